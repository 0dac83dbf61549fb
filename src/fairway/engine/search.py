"""Searching: a plan that finds nothing in memory asks the store for rows of its own selection.

Guards: "no work" is said only when nothing is wanted from the store any more and the search was in vain; what was
found stands beside the window and moves neither A nor R.
"""

from __future__ import annotations

import msgspec

from fairway.engine.backlog import refresh, standing_of
from fairway.engine.lodging import lodge, too_large
from fairway.engine.reads import Answer, Read
from fairway.engine.run import AWAY, FETCHED, Run
from fairway.engine.state import State
from fairway.fair.levels import Level
from fairway.fair.window import COUNTED
from fairway.limits import FETCH_ROWS, PLANS_MAX
from fairway.model.stored import Time
from fairway.strategy.plan import Plan
from fairway.strategy.telling import refused
from fairway.strategy.tiers import Tier

_TENANTS_APART = 4  # so few tenants that could be served are asked for one by one


class Step(msgspec.Struct):
    """Rows of one selection."""

    tenant: str | None = None
    metadata: dict[str, str | int] = {}


class Search(msgspec.Struct):
    """How far a plan has looked."""

    steps: list[Step]
    unseen: int  # what had become eligible out of sight when it began
    level: Level
    after: int = 0
    out: bool = False  # a page is being read


def main_wanted(state: State) -> bool:
    """Whether the next rows are to be read; while those in memory take too much only if none can be handed out."""
    window = state.window
    return window.main_wanted() and not (window.counted and too_large(state))


def busy(state: State) -> bool:
    """Whether the window itself still wants something from the store."""
    window, aside = state.window, state.aside
    if window.at_end and not aside.reading:
        return bool(aside.ids or aside.tenants) or times_wanted(state) != ""
    return bool(
        main_wanted(state)
        or window.main_from is not None
        or aside.ids
        or aside.tenants
        or times_wanted(state)
        or aside.is_reading("unpark", "ids", "due", "deadline")
    )


def may_search(state: State) -> bool:
    """Whether plans search the store: the window wants nothing of it, or only what is damaged."""
    window, aside, troubles = state.window, state.aside, state.aside.troubles
    if window.at_end:
        return False
    damaged = troubles.damaged if troubles else ()
    if not damaged:
        return not busy(state)
    main = main_wanted(state) or window.main_from is not None
    unpark = aside.tenants or aside.is_reading("unpark")
    ids = aside.ids or aside.is_reading("ids")
    times = times_wanted(state) or aside.is_reading("due", "deadline")
    return not (
        (main and "main" not in damaged)
        or (unpark and "unpark" not in damaged)
        or (ids and "ids" not in damaged)
        or times
    )


def times_wanted(state: State) -> str:
    """Which times that are not known may have come."""
    if is_wanted(state, "due", state.aside.due_until):
        return "due"
    return "deadline" if is_wanted(state, "deadline", state.aside.over_until) else ""


def is_wanted(state: State, what: str, until: Time | None) -> bool:
    """Whether times of a kind that are known only up to one are to be read."""
    return until is not None and until[0] <= state.now and not state.aside.is_reading(what)


def seekers(state: State) -> list[str]:
    """The strategies of those who wait, for work or to have it explained."""
    asked = {asker.strategy: None for asker in state.askers if asker.strategy not in state.waiters}
    return [*state.waiters, *asked]


def ready(state: State, strategy: str) -> bool:
    """Whether a strategy has a plan that all runs in memory are in."""
    plan = state.plans.peek(strategy)
    return plan is not None and plan.ready


def in_vain(state: State, strategy: str) -> bool:
    """Whether a plan that found nothing in memory may be told that there is no work."""
    window, aside = state.window, state.aside
    if state.paused:
        return True
    if state.plans.building and not ready(state, strategy):
        return False
    if window.at_end and not aside.reading and not aside.ids and not aside.tenants:
        return not times_wanted(state)
    return not busy(state) and (window.at_end or aside.dry.get(strategy) == aside.unseen)


def next_page(state: State, strategy: str) -> Read | None:
    """The next page that a plan wants for those who wait; None if it must wait, or has seen all."""
    aside = state.aside
    if state.window.at_end or aside.dry.get(strategy) == aside.unseen:
        return None
    search = aside.searches.get(strategy)
    if search is None:
        plan = state.plans.peek(strategy)
        if plan is None or not plan.ready:
            return None  # what is in flight is not counted yet
        if _promote(state, plan):
            return None
        _let_go(state)
        search = aside.searches[strategy] = Search(_steps(state, plan), aside.unseen, state.window.read)
    if search.out:
        return None
    if not search.steps:
        _over(state, strategy, search)
        return None
    search.out = True
    step = search.steps[0]
    return Read(
        "fetch",
        aside.troubles.rows(f"fetch {strategy}", FETCH_ROWS),
        level=search.level,
        tenant=step.tenant,
        metadata=step.metadata,
        after=search.after,
        strategy=strategy,
    )


def _let_go(state: State) -> None:
    """Searches of which all who wanted them were served or are gone; none is missed: who comes begins anew."""
    searches = state.aside.searches
    if len(searches) >= PLANS_MAX:
        wanted = set(seekers(state))
        for text in [text for text, one in searches.items() if not one.out and text not in wanted]:
            del searches[text]


def _over(state: State, strategy: str, search: Search) -> None:
    aside = state.aside
    del aside.searches[strategy]
    if len(aside.dry) >= 4 * PLANS_MAX:  # most of those who asked are gone; who is there looks once more
        aside.dry.clear()
    aside.dry[strategy] = search.unseen


def _steps(state: State, plan: Plan[Run]) -> list[Step]:
    """The selections of a plan that may have rows out of memory; one for all of them if a tier selects nothing."""
    steps: list[Step] = []
    for tier in plan.tiers:
        if not tier.selection:
            return _anywhere(state, plan)
        metadata = {key: value for key, value in tier.selection if key != "tenant"}
        tenant = next((str(value) for key, value in tier.selection if key == "tenant"), None)
        step = Step(tenant, metadata)
        if step not in steps:
            steps.append(step)
    return steps


def _anywhere(state: State, plan: Plan[Run]) -> list[Step]:
    consumers = _consumers(state, plan)
    away = [tenant for tenant in state.tenants.values() if tenant.away > 0]
    could = [
        tenant.name
        for tenant in away
        if not tenant.paused and any(_open(state, tier, tenant.name, consumers) for tier in plan.tiers)
    ]
    if not could:
        return []
    if len(could) <= _TENANTS_APART and len(could) < len(away):
        return [Step(name) for name in could]
    return [Step()]


def _open(state: State, tier: Tier, tenant: str, consumers: int) -> bool:
    """Whether a tier's limit on tenants leaves room for this one."""
    for key, cap in tier.limits:
        if key == "tenant":
            return state.plans.in_flight.counts.get(key, {}).get(tenant, 0) < cap.at(consumers)
    return True


def _consumers(state: State, plan: Plan[Run]) -> int:
    return state.reservers.count(state.now) if plan.by_share else 1


def _admits(state: State, plan: Plan[Run], run: Run, consumers: int) -> bool:
    counts = state.plans.in_flight.counts
    return any(refused(tier, run, counts, consumers) is None for tier in plan.tiers)


def _promote(state: State, plan: Plan[Run]) -> bool:
    """Runs that are in memory though the window does not hold them come first."""
    consumers = _consumers(state, plan)
    found = False
    for id in list(state.aside.spare):
        run = state.runs.get(id)
        ready = run is not None and not run.standing and standing_of(run) == COUNTED
        if ready and run is not None and _admits(state, plan, run, consumers):
            found = beside(state, run) or found
    return found


def beside(state: State, run: Run) -> bool:
    """A run stands beside the window, for plans to hand out from; another makes room if need be."""
    window = state.window
    while len(window.fetched) >= window.fetched_max and window.fetched:
        other = state.runs.get(next(iter(window.fetched)))
        if other is None or other.standing != FETCHED:
            window.unfetch(next(iter(window.fetched)))
            continue
        window.unfetch(other.id)
        other.standing = AWAY
        other.eligible = False
        state.aside.spare[other.id] = None
        state.aside.unseen += 1
    if not window.fetch(run.level):
        return False
    run.standing = FETCHED
    state.aside.spare.pop(run.id, None)
    refresh(state, run)
    return run.standing == FETCHED


def page_read(state: State, read: Read, answer: Answer) -> None:
    """What a page holds for the plan; with nothing it goes on to the next one, or is over."""
    search = state.aside.searches.get(read.strategy)
    if search is None:
        return
    search.out = False
    plan = state.plans.peek(read.strategy)
    if plan is None or not plan.ready:  # who wanted it is gone
        del state.aside.searches[read.strategy]
        return
    consumers = _consumers(state, plan)
    found = False
    for stored in answer.rows:
        if found and too_large(state):
            break  # what was found is handed out first
        run = lodge(state, answer, stored)
        if run is None or run.standing:
            continue
        refresh(state, run)
        if not run.standing and standing_of(run) == COUNTED and _admits(state, plan, run, consumers):
            found = beside(state, run) or found
        elif run.standing:
            found = True
    if found:
        del state.aside.searches[read.strategy]
        return
    if read.more(answer):
        last = answer.rows[-1]
        search.after, search.level = last.id, (last.pass_, last.id)
    else:
        search.steps.pop(0)
        search.after, search.level = 0, state.window.read
    if not search.steps:
        _over(state, read.strategy, search)


def failed(state: State, read: Read) -> None:
    """A page could not be read: the plan asks again."""
    search = state.aside.searches.get(read.strategy)
    if search is not None:
        search.out = False
