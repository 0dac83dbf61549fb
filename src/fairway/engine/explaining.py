"""Explaining: what a strategy would hand out next, and why the others wait, in words.

Guards: it changes nothing that is stored, and what it says is what the next reserve would do: a plan that finds
nothing in memory asks the store first. A plan that it needs is made in slices, and no other is dropped for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest, nsmallest
from itertools import groupby, islice

from fairway.engine.answering import answer, refuse
from fairway.engine.backlog import standing_of
from fairway.engine.commands import Explain
from fairway.engine.draft import Draft
from fairway.engine.run import Run
from fairway.engine.search import in_vain
from fairway.engine.state import Asker, State
from fairway.errors import TooLarge
from fairway.fair.weights import W_DEFAULT, U
from fairway.fair.window import COUNTED
from fairway.limits import WAITERS_MAX
from fairway.strategy.plan import Plan
from fairway.strategy.terms import Random

_TURN = U // W_DEFAULT  # one turn of a tenant of weight 1
_NOTHING = "  nothing can be handed out by it now."


def ask(state: State, command: Explain, draft: Draft) -> None:
    """Answer, at once or when the plan is ready and what it needs of the store was read; BadStrategy if it is none."""
    if len(state.askers) >= WAITERS_MAX:
        raise TooLarge(f"{WAITERS_MAX} explanations wait already")
    strategy = command.strategy or state.config.strategy
    plan = state.plans.lend(strategy)
    plan.pinned += 1
    draft.waits = asker = Asker(command, draft, plan, strategy)
    state.askers.append(asker)
    serve(state)


def serve(state: State) -> None:
    """Answer those who can be told what the next reserve would do."""
    known = [asker for asker in state.askers if _known(state, asker)]
    for asker in known:
        answer(state, asker.draft, _explained(state, asker))
        leave(state, asker)


def tell(state: State) -> None:
    """A read has failed once more: those who wait for what it would find hear why, if there is no use in waiting."""
    for asker in list(state.askers):
        error = state.aside.troubles.told(asker.strategy, state.now)
        if error is not None and asker.plan.ready:
            refuse(state, asker.draft, error)
            leave(state, asker)


def leave(state: State, asker: Asker) -> None:
    """No longer wait."""
    state.askers.remove(asker)
    asker.plan.pinned -= 1
    state.plans.give_back(asker.plan)


def _known(state: State, asker: Asker) -> bool:
    """Whether the plan finds something, or the store has nothing for it either."""
    plan = asker.plan
    if not plan.ready:
        return False
    return bool(plan.next_up(1, _consumers(state, plan))) or in_vain(state, asker.strategy)


def _consumers(state: State, plan: Plan[Run]) -> int:
    return state.reservers.count(state.now) if plan.by_share else 1


def _explained(state: State, asker: Asker) -> str:
    text, limit = asker.strategy, asker.command.limit
    ready, idle, here = 0, list[Run](), 0
    for run in state.runs.values():
        if run.state == "active":
            here += 1
            if run.eligible:
                ready += 1
            elif len(idle) < limit:
                idle.append(run)
    lines = [_head(state, text, ready, here)]
    if state.paused:
        lines.append("The queue is paused: nothing is handed out until it is resumed.")
    if "(" in text or text == "CustomPriority":
        lines += _composed_lines(state, asker.plan, limit)
    else:
        lines += _next_lines(state, text, limit)
    for run in idle:
        lines.append(f"  waits: tenant {run.tenant!r}, submission {run.id}: {_why(state, run)}")
    lines += islice(_paused_away(state), limit - len(idle))
    if "NewestFirst" in text:
        lines.append("Old submissions starve under NewestFirst when work comes faster than it goes.")
    return "\n".join(lines)


def _head(state: State, text: str, ready: int, here: int) -> str:
    """How many are there: of those in the store only the counts are known."""
    if state.live <= here:
        return f"{text}: {ready} of {here} submissions have chunks to hand out now."
    away = sum(tenant.away for tenant in state.tenants.values())
    return (
        f"{text}: {ready} of the {here} submissions in memory have chunks to hand out now;"
        f" {state.live - here} more are in the store, where {_chunks(away)} wait{'s' * (away == 1)}."
    )


def _paused_away(state: State) -> Iterator[str]:
    for tenant in state.tenants.values():
        if tenant.paused and tenant.away:
            yield f"  waits: tenant {tenant.name!r}, {_chunks(tenant.away)} in the store: its tenant is paused"


def _ready(state: State) -> Iterable[Run]:
    return (run for run in state.runs.values() if run.eligible)


def _composed_lines(state: State, plan: Plan[Run], limit: int) -> list[str]:
    """The next picks of a strategy of several blocks, and why what is ready is not among them."""
    consumers = _consumers(state, plan)
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
        lines.append(_NOTHING)
    elif any(tier.base is Random for tier in plan.tiers):
        lines.append("  (Random draws anew each time: this is one of many ways.)")
    named = {run.id for run, _ in picked}
    for run in islice((run for run in _ready(state) if run.id not in named), limit):
        why = plan.held_back(run, consumers)
        lines.append(f"  waits: tenant {run.tenant!r}, submission {run.id}: {why}")
    return lines


def _next_lines(state: State, text: str, limit: int) -> list[str]:
    turns = state.tables.plain
    if next(iter(_ready(state)), None) is None:
        return [_NOTHING]
    if text == "Random":
        return ["  next: any of these chunks, each as likely as every other."]
    if text != "Fair":
        chosen = (nlargest if text == "NewestFirst" else nsmallest)(limit, _ready(state), lambda run: run.id)
        return [
            f"  {n}. tenant {run.tenant!r}, submission {run.id}: {_chunks(run.ready)} ready"
            for n, run in enumerate(chosen, 1)
        ]
    first: dict[str, Run] = {}
    for run in _ready(state):
        known = first.get(run.tenant)
        if known is None or run.id < known.id:
            first[run.tenant] = run
    order = nsmallest(limit, first.values(), lambda run: (turns.turn.get(run.tenant, turns.v), run.id))
    lead = turns.turn.get(order[0].tenant, turns.v) if order else 0
    return [
        f"  {n}. tenant {run.tenant!r}: its turn is next, submission {run.id} first, {_chunks(run.ready)} ready"
        if n == 1
        else f"  {n}. tenant {run.tenant!r}: {(turns.turn.get(run.tenant, turns.v) - lead) / _TURN:.2f} turns behind,"
        f" submission {run.id} first, {_chunks(run.ready)} ready"
        for n, run in enumerate(order, 1)
    ]


def _chunks(count: int) -> str:
    return "1 chunk" if count == 1 else f"{count} chunks"


def _why(state: State, run: Run) -> str:
    if run.paused:
        return "the submission is paused"
    if run.owner.paused:
        return "its tenant is paused"
    if run.due:
        return f"not before {run.due - state.now:.0f} s from now"
    if standing_of(run) == COUNTED:
        return "it lies outside the window, and comes when there is room"
    if run.backing_off:
        return f"{len(run.out)} chunks are leased, {run.backing_off} back off after a failure"
    return f"all its {len(run.out)} unfinished chunks are leased"
