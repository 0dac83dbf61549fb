"""Counts: what the queue says of itself is the truth.

Guards: DESIGN promise 7. A `census` reads the counts and the active submissions at one instant.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any

from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History
from fairway.testing.violation import Violation, found


def check_counts_agree(history: History) -> list[Violation]:
    """The queue's counts are the sums over its active submissions, and over its tenants."""
    violations: list[Violation] = []
    for census in history.of("census"):
        if not census.answered:
            continue
        for name, counted, summed in _sums(census.ok):
            if counted != summed:
                what = f"{name} is {counted}, but adds up to {summed}"
                violations.append(found("counts_agree", what, census))
    return violations


def _sums(census: dict[str, Any]) -> list[tuple[str, int, int]]:
    stats, active, tenants = census["stats"], census["active"], census["tenants"]
    waiting = {one["id"]: one["total"] - one["done"] - one["failed"] - one["leased"] for one in active}
    sums = [
        ("submissions_active", stats["submissions_active"], len(active)),
        ("chunks_waiting", stats["chunks_waiting"], sum(waiting.values())),
        ("chunks_done", stats["chunks_done"], sum(one["done"] for one in active)),
        ("chunks_dead", stats["chunks_dead"], sum(one["failed"] for one in active)),
        ("chunks_leased", stats["chunks_leased"], sum(one["leased"] for one in tenants)),
    ]
    by_tenant: dict[str, tuple[int, int, int]] = {}
    for one in active:
        many, wait, out = by_tenant.get(one["tenant"], (0, 0, 0))
        by_tenant[one["tenant"]] = (many + 1, wait + waiting[one["id"]], out + one["leased"])
    for tenant in tenants:
        many, wait, out = by_tenant.pop(tenant["name"], (0, 0, 0))
        sums.append((f"submissions of {tenant['name']!r}", tenant["submissions"], many))
        sums.append((f"waiting of {tenant['name']!r}", tenant["waiting"], wait))
        # Leases of ended submissions count for their tenant until they are answered.
        sums.append((f"leased of {tenant['name']!r}", max(tenant["leased"], out), tenant["leased"]))
    sums += [(f"submissions of {name!r}", 0, many) for name, (many, _, _) in by_tenant.items()]
    return sums


def check_counts_match_callers(history: History) -> list[Violation]:
    """Done chunks of a submission are those that callers completed, and what they were told is dead is dead."""
    facts = facts_of(history)
    unnamed = facts.ends_unnamed
    sure, possible = _done_places(facts)
    dead = _dead_places(facts)
    violations: list[Violation] = []
    for id, views in facts.views.items():
        for view in views:
            shown = view.shown
            least = bisect_left(sure.get(id, []), view.request.begin)
            most = bisect_left(possible.get(id, []), view.request.end)
            if shown["done"] < least or (shown["done"] > most and not unnamed):
                what = f"submission {id} says {shown['done']} done; callers know of {least} to {most}"
                violations.append(found("counts_match_callers", what, view.request))
            buried = bisect_left(dead.get(id, []), view.request.begin)
            if shown["failed"] < buried:
                what = f"submission {id} says {shown['failed']} dead; callers were told of {buried}"
                violations.append(found("counts_match_callers", what, view.request))
            if not 0 <= shown["done"] + shown["failed"] + shown["leased"] <= shown["total"]:
                what = f"the counts of submission {id} exceed it"
                violations.append(found("counts_match_callers", what, view.request))
    return violations


def _done_places(facts: Facts) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """For each submission, the places from which on each of its chunks is surely, and is possibly, done."""
    sure: dict[int, list[int]] = {}
    possible: dict[int, list[int]] = {}
    for id, chunk in facts.chunks.items():
        wins = [s for s in chunk.settlings if s.verb == "complete" and s.outcome in ("", "done", "already")]
        if wins:
            possible.setdefault(id[0], []).append(min(win.request.begin for win in wins))
        told = [win.request.end for win in wins if win.outcome]
        if told:
            sure.setdefault(id[0], []).append(min(told))
    for places in (*sure.values(), *possible.values()):
        places.sort()
    return sure, possible


def _dead_places(facts: Facts) -> dict[int, list[int]]:
    """For each submission that nobody may have redriven, the places from which on chunks are surely dead."""
    dead: dict[int, list[int]] = {}
    for id, chunk in facts.chunks.items():
        told = [s.request.end for s in chunk.settlings if s.outcome == "dead"]
        if told and not facts.by_target["redrive"].get(id[0]):
            dead.setdefault(id[0], []).append(min(told))
    for places in dead.values():
        places.sort()
    return dead


def check_counters_count(history: History) -> list[Violation]:
    """Between two censuses of one owner its counters rise by what callers were told of, and by no more than may be."""
    facts = facts_of(history)
    hidden = facts.first_hidden < len(history.lines)
    violations: list[Violation] = []
    for first, second in pairwise(r for r in history.of("census") if r.answered):
        if facts.restarted(first.begin, second.end):
            continue
        for name, places in _counted(facts).items():
            risen = second.ok["stats"].get(name, 0) - first.ok["stats"].get(name, 0)
            least = sum(first.end < begin and end < second.begin for begin, end in places)
            most = sum(begin < second.end and first.begin < end for begin, end in places)
            unsure = hidden if name == "handed" else name == "died" or facts.ends_unnamed
            if risen < least or (risen > most and not unsure):
                what = f"{name} rose by {risen}; callers know of {least} to {most}"
                violations.append(found("counters_count", what, first, second))
    return violations


def _counted(facts: Facts) -> dict[str, list[tuple[int, int]]]:
    """Between which places each chunk was handed out, was completed, or died; a call without an answer has no end."""
    if "counted" not in facts.history.memo:
        never = len(facts.history.lines)
        counted: dict[str, list[tuple[int, int]]] = {"handed": [], "completed": [], "died": []}
        for chunk in facts.chunks.values():
            counted["handed"] += [(h.begin, h.request.end) for h in chunk.hands]
            done = [s for s in chunk.settlings if s.verb == "complete" and s.outcome in ("", "done")]
            told = [s.request.end for s in done if s.outcome]
            if done:
                counted["completed"].append((min(s.request.begin for s in done), min(told, default=never)))
            counted["died"] += [
                (s.request.begin, s.request.end) for s in chunk.settlings if s.outcome == "dead"
            ]
        facts.history.memo["counted"] = counted
    return facts.history.memo["counted"]


def check_drained_is_empty(history: History) -> list[Violation]:
    """After a drain nothing waits, nothing is leased, nothing is active."""
    drained = [place for place, note in history.notes if note.what == "drained"]
    if not drained:
        return []
    violations: list[Violation] = []
    for census in history.of("census"):
        if census.answered and census.begin > drained[-1]:
            stats = census.ok["stats"]
            left = {
                n: stats[n] for n in ("submissions_active", "chunks_waiting", "chunks_leased") if stats[n]
            }
            if left:
                violations.append(found("drained_is_empty", f"the queue was drained, but has {left}", census))
    return violations
