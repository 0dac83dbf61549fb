"""Explaining: what a strategy would hand out next, and why the others wait, in words.

Guards: it changes nothing, and what it says is what the next reserve would do.
"""

from __future__ import annotations

from itertools import groupby

from fairway.engine.commands import Explain
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.fair.weights import W_DEFAULT, U
from fairway.strategy.plan import Plan
from fairway.strategy.terms import Random

_TURN = U // W_DEFAULT  # one turn of a tenant of weight 1


def explain(state: State, command: Explain) -> str:
    """What a strategy would hand out next, and why the others wait, in words."""
    text = command.strategy or state.config.strategy
    plan = state.plans.get(text)  # BadStrategy if it is none
    active = [run for run in state.runs.values() if run.state == "active"]
    ready = [run for run in active if run.eligible]
    lines = [f"{text}: {len(ready)} of {len(active)} submissions have chunks to hand out now."]
    if state.paused:
        lines.append("The queue is paused: nothing is handed out until it is resumed.")
    if "(" in text:
        lines += _composed_lines(state, plan, ready, command.limit)
    else:
        lines += _next_lines(state, text, ready, command.limit)
    for run in [run for run in active if not run.eligible][: command.limit]:
        lines.append(f"  waits: tenant {run.tenant!r}, submission {run.id}: {_why(state, run)}")
    if "NewestFirst" in text:
        lines.append("Old submissions starve under NewestFirst when work comes faster than it goes.")
    return "\n".join(lines)


def _composed_lines(state: State, plan: Plan[Run], ready: list[Run], limit: int) -> list[str]:
    """The next picks of a strategy of several blocks, and why what is ready is not among them."""
    consumers = state.reservers.count(state.now) if plan.by_share else 1
    lines: list[str] = []
    first = 1
    picked = plan.next_up(limit, consumers)
    for (id, tier), some in groupby(picked, lambda pick: (pick[0].id, pick[1])):
        picks = [run for run, _ in some]
        which = f"{first}." if len(picks) == 1 else f"{first}. to {first + len(picks) - 1}."
        step = f", by step {tier + 1} of {len(plan.tiers)}" if len(plan.tiers) > 1 else ""
        lines.append(f"  {which} tenant {picks[0].tenant!r}, submission {id}{step}")
        first += len(picks)
    if not lines:
        lines.append("  nothing can be handed out by it now.")
    elif any(tier.base is Random for tier in plan.tiers):
        lines.append("  (Random draws anew each time: this is one of many ways.)")
    named = {run.id for run, _ in picked}
    for run in [run for run in ready if run.id not in named][:limit]:
        why = plan.held_back(run, consumers)
        lines.append(f"  waits: tenant {run.tenant!r}, submission {run.id}: {why}")
    return lines


def _next_lines(state: State, text: str, ready: list[Run], limit: int) -> list[str]:
    turns = state.tables.plain
    if text == "Random":
        return ["  next: any of these chunks, each as likely as every other."]
    if text != "Fair":
        ready.sort(key=lambda run: -run.id if text == "NewestFirst" else run.id)
        return [
            f"  {n}. tenant {run.tenant!r}, submission {run.id}: {run.ready} chunks ready"
            for n, run in enumerate(ready[:limit], 1)
        ]
    first: dict[str, Run] = {}
    for run in sorted(ready, key=lambda run: run.id):
        first.setdefault(run.tenant, run)
    order = sorted(first.values(), key=lambda run: (turns.turn.get(run.tenant, turns.v), run.id))
    lead = turns.turn.get(order[0].tenant, turns.v) if order else 0
    return [
        f"  {n}. tenant {run.tenant!r}: its turn is next, submission {run.id} first, {run.ready} chunks ready"
        if n == 1
        else f"  {n}. tenant {run.tenant!r}: {(turns.turn.get(run.tenant, turns.v) - lead) / _TURN:.2f} turns behind,"
        f" submission {run.id} first, {run.ready} chunks ready"
        for n, run in enumerate(order[:limit], 1)
    ]


def _why(state: State, run: Run) -> str:
    if run.paused:
        return "the submission is paused"
    if run.owner.paused:
        return "its tenant is paused"
    if run.due:
        return f"not before {run.due - state.now:.0f} s from now"
    if run.backing_off:
        return f"{len(run.out)} chunks are leased, {run.backing_off} back off after a failure"
    return f"all its {len(run.out)} unfinished chunks are leased"
