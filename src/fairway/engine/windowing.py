"""Windowing: which reads the window wants, and what their answers do.

Guards: a read that fails is wanted again after a pause, and nothing that waited for it is forgotten; whatever an
answer makes eligible is served before the engine returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappush
from itertools import islice

from fairway import limits
from fairway.engine import search
from fairway.engine.backlog import drop_gone, fit, refresh, standing_of
from fairway.engine.ending import end_late
from fairway.engine.lodging import adopt, lodge, make_room, room, too_large
from fairway.engine.reads import Answer, Read
from fairway.engine.run import FETCHED, TRACKED, Run
from fairway.engine.state import DUE_DEADLINE, DUE_START, State
from fairway.errors import FairwayError
from fairway.fair.levels import START, Level
from fairway.fair.window import COUNTED, FINISHED, NEVER
from fairway.model.ids import ID_MAX
from fairway.model.stored import Move, StoredRun


def wanted(state: State) -> bool:
    """Whether a read should begin now; quick where the whole queue is in memory."""
    aside, window = state.aside, state.window
    if window.scan_wanted and state.live == aside.here:
        _scan_memory(state)
    if window.at_end and not (
        aside.ids
        or aside.tenants
        or window.scan_wanted
        or aside.by_range
        or aside.due_until
        or aside.over_until
    ):
        return False
    return next(_wanted(state, begin=False), None) is not None


def _scan_memory(state: State) -> None:
    """All rows are here, so the lowest parked one is found without a read, when enough has finished to pay for it."""
    window, idle = state.window, state.aside.idle
    window.scan_wanted = False
    if 4 * len(window.marks) >= len(idle):
        window.found_parked(min((state.runs[id].level for id in idle), default=NEVER))


def begin(state: State) -> list[Read]:
    """The reads that begin now."""
    reads = list(_wanted(state, begin=True))
    for read in reads:
        read.era = state.window.era
        read.ticket = state.aside.tickets.begin(read)
        state.aside.reading[read.ticket] = read
    return reads


def _wanted(state: State, begin: bool) -> Iterator[Read]:
    aside, window, now = state.aside, state.window, state.now
    rests, rows = aside.troubles.rests, aside.troubles.rows
    most, most_bytes = room(state)
    most, most_bytes = min(limits.READ_ROWS, most), min(limits.READ_BYTES, most_bytes)
    if search.main_wanted(state) and not rests("main", now):
        level, limit = window.begin_main() if begin else (window.read, 1)
        yield Read("main", rows("main", min(limit, most)), level=level, bytes_max=most_bytes)
    if aside.tenants and not aside.is_reading("unpark") and not rests("unpark", now):
        name, level = next(iter(aside.tenants.items()))
        if begin:
            del aside.tenants[name]
        yield Read(
            *("unpark", rows("unpark", most)),
            level=max(level, window.ack),
            upto=window.read,
            tenant=name,
            bytes_max=most_bytes,
        )
    if aside.ids and not aside.is_reading("ids") and not rests("ids", now):
        ids = list(islice(aside.ids, rows("ids", limits.UNPARK_IDS)))
        if begin:
            for id in ids:
                del aside.ids[id]
        yield Read("ids", ids=ids)
    if search.is_wanted(state, "due", aside.due_until) and not rests("due", now):
        yield Read("due", limits.TIMES_ROWS, time=aside.due_until or (0.0, 0))
    if search.is_wanted(state, "deadline", aside.over_until) and not rests("deadline", now):
        yield Read("deadline", limits.TIMES_ROWS, time=aside.over_until or (0.0, 0))
    if window.scan_wanted and not aside.is_reading("scan") and not rests("scan", now):
        level = window.begin_scan() if begin else window.ack
        yield Read("scan", rows("scan", limits.SCAN_ROWS), level=level)
    if carry_wanted(state) and not rests("slice", now):
        level = window.begin_slice() if begin else window.ack
        yield Read("slice", rows("slice", limits.CARRY_ROWS), level=level)
    waits = state.waiters or state.askers
    if waits and not state.paused and search.may_search(state):
        for strategy in search.seekers(state):
            if rests(f"fetch {strategy}", now):
                continue
            read = search.next_page(state, strategy) if begin else _searches(state, strategy)
            if read is not None:
                yield read


def _searches(state: State, strategy: str) -> Read | None:
    aside = state.aside
    found = aside.searches.get(strategy)
    if aside.dry.get(strategy) == aside.unseen or (found is not None and found.out):
        return None
    if state.plans.building and not search.ready(state, strategy):
        return None
    return Read("fetch")


def carry_wanted(state: State) -> bool:
    """Whether finished places outnumber live ones so far that live ones should move out of their way."""
    aside = state.aside
    return (
        aside.by_range
        and aside.slice is None
        and state.finished > max(aside.gc_rows, 2 * state.live)
        and state.live > 0
        and not aside.is_reading("slice")
    )


# -- answers


def deliver(state: State, read: Read, answer: Answer) -> None:
    """What a read found."""
    aside = state.aside
    if aside.reading.pop(read.ticket, None) is None:
        return
    aside.troubles.over(read)
    if read.kind in ("due", "deadline"):
        _times(state, read, answer)
    elif read.kind == "scan":
        if read.era == state.window.era:
            rows = _judged(state, answer)
            state.window.scanned(rows, read.more(answer))
    elif read.kind == "slice":
        if read.era == state.window.era:
            aside.slice, aside.slice_rows = (
                read,
                [(_place(row), row.state != "active") for row in answer.rows],
            )
            return  # its ticket stays open until the group is closed
    elif read.kind == "main":
        _main(state, read, answer)
    elif read.kind == "unpark":
        _unparked(state, read, answer)
    elif read.kind == "ids":
        _by_id(state, answer)
    else:
        search.page_read(state, read, answer)
    aside.tickets.close(read.ticket)
    settle(state)


def _place(row: StoredRun) -> Level:
    return row.pass_, row.id


def fail(state: State, read: Read, error: FairwayError) -> None:
    """A read could not be made; it is wanted again, after a pause."""
    aside = state.aside
    if aside.reading.pop(read.ticket, None) is None:
        return
    aside.tickets.close(read.ticket)
    aside.troubles.failed(read, state.now, error)
    if read.kind == "main":
        held = [id for _, id in state.window.held]
        state.window.main_over(read.era)
        take_standing(state, held)
    elif read.kind == "unpark" and read.tenant is not None:
        aside.tenants.setdefault(read.tenant, read.level if read.era == state.window.era else START)
    elif read.kind == "ids":
        aside.ids.update(dict.fromkeys(read.ids))
    elif read.kind == "scan" and read.era == state.window.era:
        state.window.scan_failed()
    elif read.kind == "slice":
        state.window.slice_over()
    elif read.kind == "fetch":
        search.failed(state, read)
    settle(state)


def settle(state: State) -> None:
    """After anything that may have moved the window: what left it goes, and A follows."""
    fit(state)
    drop_gone(state)
    state.window.advance()
    make_room(state)


def _main(state: State, read: Read, answer: Answer) -> None:
    window = state.window
    held = [id for _, id in window.held]
    runs: list[Run] = []
    if read.era == window.era and read.level == window.read:
        for row in answer.rows:
            run = adopt(state, answer, row)
            if run is not None:
                runs.append(run)
            else:
                state.aside.over.add(_place(row))
    window.main_read(read.level, read.era, [_place(row) for row in answer.rows], not read.more(answer))
    state.aside.over.clear()
    take_standing(state, [run.id for run in runs])
    take_standing(state, held)


def take_standing(state: State, ids: Iterable[int]) -> None:
    """Runs that the window may have taken in by itself."""
    tracked, aside = state.window.tracked, state.aside
    for id in ids:
        run = state.runs.get(id)
        if run is None or run.state != "active":
            continue
        if run.standing != TRACKED and run.level in tracked:
            run.standing = TRACKED
            aside.spare.pop(id, None)
            aside.idle.pop(id, None)
        refresh(state, run)


def _unparked(state: State, read: Read, answer: Answer) -> None:
    window = state.window
    for row in answer.rows:
        run = lodge(state, answer, row)
        if run is not None:
            take_standing(state, (run.id,))
    if read.more(answer) and read.era == window.era and read.tenant is not None:
        last = _place(answer.rows[-1])
        if last < window.read:  # else the window was cut before the rest, which main reads will bring
            state.aside.tenants.setdefault(read.tenant, last)


def _by_id(state: State, answer: Answer) -> None:
    """Runs that were due or over when nobody had them in memory."""
    for row in answer.rows:
        run = lodge(state, answer, row)
        if run is None:
            continue
        deadline = run.described.deadline
        if deadline and deadline <= state.now and run.life == 1:
            end_late(state, run)
        else:
            refresh(state, run)


def _times(state: State, read: Read, answer: Answer) -> None:
    aside, due = state.aside, read.kind == "due"
    for time, id in answer.times:
        heappush(state.dues, (time, id, DUE_START if due else DUE_DEADLINE))
    last = answer.times[-1] if len(answer.times) == read.limit else None
    known = {(time, id) for time, id in answer.times}
    for run in [*state.runs.values(), *(run for _, run in aside.left.values())]:
        # What was not stored when the times were read is not among them.
        described = run.described
        at = (described.not_before if due else described.deadline, run.id)
        if at > read.time and at[0] and (last is None or at <= last) and at not in known:
            heappush(state.dues, (*at, DUE_START if due else DUE_DEADLINE))
    if due:
        aside.due_until = last
    else:
        aside.over_until = last


def prune_times(state: State) -> None:
    """Only the next times are kept of runs that are not in memory; later ones are read in time."""
    many = limits.TIMES_ROWS
    if len(state.dues) <= 2 * many + 4 * len(state.runs):
        return
    ahead = sorted(entry for entry in state.dues if entry[1] not in state.runs)
    if len(ahead) <= 2 * many:
        return
    until = ahead[many][0]
    state.dues = [entry for entry in state.dues if entry[0] <= until or entry[1] in state.runs]
    heapify(state.dues)
    last = (until, ID_MAX)
    aside = state.aside
    aside.due_until = last if aside.due_until is None else min(last, aside.due_until)
    aside.over_until = last if aside.over_until is None else min(last, aside.over_until)


def stored(state: State, places: list[Level]) -> None:
    """A group is stored, with runs in these places."""
    window = state.window
    aside = state.aside
    beside = bool(window.fetched or aside.spare or aside.by_range)
    merged = window.stored(places)
    if beside or merged:  # one that was handed out whole meanwhile stands nowhere
        take_standing(state, [id for _, id in (places if beside else merged) if _stands_beside(state, id)])
    if beside or not window.at_end or window.gone or aside.idle or aside.left or too_large(state):
        settle(state)
    prune_times(state)


def _stands_beside(state: State, id: int) -> bool:
    run = state.runs.get(id)
    if run is None or run.standing == TRACKED:
        return False
    window = state.window
    if window.at_end or (run.pass_, id) <= window.read or standing_of(run) != COUNTED:
        return True
    return id not in state.aside.spare  # else it lies above the window, and is known to be leaving


# -- carrying forward


def _judged(state: State, answer: Answer) -> list[tuple[Level, bool]]:
    return [(_place(row), _is_over(state, _place(row), row.state != "active")) for row in answer.rows]


def _is_over(state: State, level: Level, over: bool) -> bool:
    """Whether the row at a place is finished by what is known now."""
    if over:
        return True
    run = state.runs.get(level[1])
    if run is None:
        return level[1] in state.recent_ends
    return run.pass_ != level[0] or standing_of(run) == FINISHED


def carry(state: State) -> None:
    """At the close of a group: the live rows of a slice move above everything, and A over their old places."""
    aside, window = state.aside, state.window
    read, aside.slice = aside.slice, None
    if read is None:
        return
    rows = [(level, _is_over(state, level, over)) for level, over in aside.slice_rows]
    aside.slice_rows = []
    aside.tickets.close(read.ticket)
    if read.era != window.era:
        return
    before = window.ack
    moves = window.carry(rows, state.top + 1)
    if window.ack != before:
        aside.given_up_at = 0.0  # the old places go with this very group
    if moves:
        state.top += 1
    for (old, id), (new, _) in moves:
        run = state.runs.get(id)
        if run is not None:
            run.pass_ = new
            if id in window.fetched:
                window.fetched[id] = (new, id)
                if run.standing == TRACKED:
                    run.standing = FETCHED
        else:
            aside.moves(id, new, state.number)
        state.filling.moves.append(Move(id, old, new))
        state.finished += 1
    for _, id in [old for old, _ in moves]:
        run = state.runs.get(id)
        if run is not None:
            refresh(state, run)


def give_up_places(state: State) -> Level | None:
    """Up to where the group that is being closed gives places up, in a store that deletes by range."""
    aside, ack = state.aside, state.window.ack
    if not aside.by_range or ack <= aside.given_up:
        return None
    if state.window.passed < aside.gc_rows and state.now < aside.given_up_at + limits.GC_SECONDS:
        return None
    aside.given_up, aside.given_up_at = ack, state.now
    state.finished = max(0, state.finished - state.window.passed)
    state.window.passed = 0
    return ack
