"""Events: the log that the audit reads tells everything that callers were told of, and nothing twice.

Guards: an event is stored with its effect; what is older than `event_seconds` may have left the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from fairway.testing.deliveries import ChunkId, Receipt
from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found

_TELLS = {
    "done": "completed",
    "retrying": "failed",
    "dead": "dead",
    "released": "released",
    "renewed": "renewed",
}
_UNSYNCED = ("released", "renewed", "reserved")  # the power may take them


class _Log(msgspec.Struct):
    """One reading of the log: what happened to chunks under which receipts, and what to submissions how often."""

    read: Request
    chunks: Counter[tuple[str, ChunkId, Receipt]] = msgspec.field(default_factory=Counter)
    whole: Counter[tuple[str, int]] = msgspec.field(default_factory=Counter)
    submitted: dict[int, tuple[str, int]] = {}  # the tenant and the chunks of each
    attempts: dict[tuple[ChunkId, Receipt], int] = {}


def _log_of(read: Request) -> _Log:
    log = _Log(read)
    for what, id, start, count, epoch, reservation, attempt, tenant in read.ok:
        if not epoch:
            log.whole[what, id] += 1
            if what == "submitted":
                log.submitted[id] = (tenant, start + count)
            continue
        for index in range(start, start + count):
            chunk, receipt = (id, index), (epoch, reservation)
            log.chunks[what, chunk, receipt] += 1
            if what == "reserved":
                log.attempts[chunk, receipt] = attempt
    return log


def _logs(history: History) -> list[_Log]:
    if "event_logs" not in history.memo:
        history.memo["event_logs"] = [_log_of(read) for read in history.of("events") if read.answered]
    return history.memo["event_logs"]


def _is_kept(facts: Facts, request: Request, log: _Log) -> bool:
    """Whether what a request did is surely in the log: it is young, and no power loss took it."""
    now = facts.clock_high(log.read.end, log.read.end_t)
    young = now - facts.heard_at(request) < min(facts.config_ever("event_seconds"))
    return young and request.end < log.read.begin


def check_events_are_told(history: History) -> list[Violation]:
    """What callers were told of is in the log: submissions, deliveries and their attempts, outcomes, ends, redrives."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for log in _logs(history):
        for what, request in (*_untold_chunks(facts, log), *_untold_submissions(facts, log)):
            violations.append(found("events_are_told", f"{what} is not in the log", request, log.read))
    return violations


def _untold_chunks(facts: Facts, log: _Log) -> Iterator[tuple[str, Request]]:
    for delivery in facts.deliveries:
        request = delivery.request
        if (
            delivery.named
            or facts.forgotten(request.begin, log.read.begin)
            or not _is_kept(facts, request, log)
        ):
            continue
        for id, attempt in delivery.picks():
            if log.attempts.get((id, delivery.receipt)) != attempt:
                yield (
                    f"that chunk {id} was handed out for attempt {attempt} under {delivery.receipt}",
                    request,
                )
    for id, chunk in facts.chunks.items():
        for one in chunk.settlings:
            what = _TELLS.get(one.outcome)
            if what is None or (what, id, one.receipt) in log.chunks:
                continue
            lost = what in _UNSYNCED and facts.forgotten(one.request.begin, log.read.begin)
            if not lost and _is_kept(facts, one.request, log):
                yield f"that chunk {id} was {what} under {one.receipt}", one.request


def _untold_submissions(facts: Facts, log: _Log) -> Iterator[tuple[str, Request]]:
    for offered in facts.offers:
        if offered.id and not offered.known and _is_kept(facts, offered.request, log):
            asked = (offered.tenant, offered.given.get("total", 1))
            if log.submitted.get(offered.id) != asked:
                yield f"submission {offered.id} of {asked[0]!r} with {asked[1]} chunks", offered.request
    for id, redrives in facts.by_target["redrive"].items():
        told = [r for r in redrives if r.answered and _is_kept(facts, r, log)]
        if len(told) > log.whole["redriven", id]:
            yield f"one of {len(told)} redrives of submission {id}", told[-1]
    for id, views in facts.views.items():
        for view in views:
            state, now = view.shown["state"], facts.clock_high(log.read.end, log.read.end_t)
            young = now - view.shown.get("ended", 0.0) < min(facts.config_ever("event_seconds"))
            told = not view.ended or log.whole[f"ended_{state}", id]
            if not told and young and view.request.end < log.read.begin:
                yield f"that submission {id} is {state}", view.request


def check_events_happened_once(history: History) -> list[Violation]:
    """Nothing is told twice or invented: a chunk is completed once, by a receipt that did; each life ends once."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for log in _logs(history):
        for what in (*_twice(log), *_invented(facts, log)):
            violations.append(found("events_happened_once", what, log.read))
    return violations


def _twice(log: _Log) -> Iterator[str]:
    completed: Counter[ChunkId] = Counter()
    for (what, chunk, receipt), many in log.chunks.items():
        if what == "completed":
            completed[chunk] += many
        elif many > 1 and what not in ("renewed", "released"):
            yield f"that chunk {chunk} was {what} under {receipt} is in the log {many} times"
    yield from (f"chunk {chunk} was completed {many} times" for chunk, many in completed.items() if many > 1)
    ends: Counter[int] = Counter()
    for (what, id), many in log.whole.items():
        ends[id] += many if what.startswith("ended_") else 0
    for id, many in ends.items():
        if id in log.submitted and many > 1 + log.whole["redriven", id]:
            yield f"submission {id} ended {many} times in {1 + log.whole['redriven', id]} lives"


def _invented(facts: Facts, log: _Log) -> Iterator[str]:
    words: dict[str, tuple[str, ...]] = {"completed": ("complete",), "renewed": ("renew",)}
    for what, chunk, receipt in log.chunks:
        verbs = words.get(what)
        if verbs is None or (what == "completed" and facts.ends_unnamed):
            continue
        may = (one for one in facts.chunk(chunk).settled(receipt, *verbs) if one.request.begin < log.read.end)
        if not any(one.outcome in ("", "done", "already", "renewed") for one in may):
            yield f"chunk {chunk} was {what} under {receipt}, which nobody asked for"
