"""Finishing: results are accepted from the latest reservation of a chunk, once.

Guards: no result is accepted after a later reservation of the chunk was handed out;
the same receipt gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway import limits
from fairway.engine.backlog import touch, waits
from fairway.engine.commands import Complete, Outcome, Part, Span
from fairway.engine.commands import Settled as SettledReply
from fairway.engine.ending import end_if_finished
from fairway.engine.holds import Hold
from fairway.engine.leases import Spans, freed, genuine, left_behind, settle
from fairway.engine.lookups import Found
from fairway.engine.records import Completed
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.engine.thaw import pages_into, thaw
from fairway.errors import BadArgument, TooLarge
from fairway.limits import PAGE_CHUNKS
from fairway.model.event import Happened, What
from fairway.model.page import result_page
from fairway.model.stored import Kind, ResultPage


class Tally:
    """Outcomes in order, equal neighbours joined."""

    __slots__ = ("outcomes",)

    def __init__(self) -> None:
        self.outcomes: list[tuple[Outcome, int]] = []

    def add(self, outcome: Outcome, count: int = 1) -> None:
        if not count:
            return
        if self.outcomes and self.outcomes[-1][0] == outcome:
            self.outcomes[-1] = (outcome, self.outcomes[-1][1] + count)
        else:
            self.outcomes.append((outcome, count))


def check_parts(parts: list[Part]) -> int:
    """How many chunks are named; TooLarge if they are too many for one call."""
    chunks = 0
    for part in parts:
        for _, start, count in part.spans:
            if start < 0 or count < 1:
                raise BadArgument("a span needs a first index of 0 or more and at least one chunk")
            chunks += count
    if chunks > limits.CALL_CHUNKS_MAX:
        raise TooLarge(
            f"one call takes at most {limits.CALL_CHUNKS_MAX} leases, not {chunks}; cut it into several"
        )
    return chunks


def complete(state: State, command: Complete, found: Found) -> SettledReply:
    """Accept results."""
    chunks = check_parts(command.parts)
    if command.results is not None and len(command.results) != chunks:
        raise BadArgument(f"{chunks} leases need as many results, not {len(command.results)}")
    results = iter(command.results) if command.results is not None else None
    tally = Tally()
    for part in command.parts:
        if genuine(state, part):
            _complete_part(state, command, part, results, tally, found)
            continue
        for span in part.spans:
            tally.add("lost", span[2])
            if results is not None:
                for _ in range(span[2]):
                    next(results)
    return SettledReply(tally.outcomes)


class _Accepting:
    """What a part of a complete changed so far."""

    __slots__ = ("bodies", "holds", "runs", "spans")

    def __init__(self) -> None:
        self.spans = Spans()
        self.runs: dict[int, Run] = {}
        self.holds: dict[int, Hold] = {}
        self.bodies: dict[int, list[tuple[int, bytes]]] = {}


def _complete_part(
    state: State,
    command: Complete,
    part: Part,
    results: Iterator[bytes | None] | None,
    tally: Tally,
    found: Found,
) -> None:
    accepting = _Accepting()
    runs, touched, limited = state.runs, accepting.runs, state.plans.limited
    done = 0
    for id, start, many in part.spans:
        run = runs.get(id)
        if run is None or run.state != "active":
            tally.add("done", done)
            done = 0
            _span_of_ended(state, part, (id, start, many), results, tally, found)
            continue
        taken = 0 if run.tried or results is not None else _take_back(run, start, many, part, accepting)
        if taken:
            done += taken
            state.leased -= taken
            touched[id] = run
            if limited:
                freed(state, run, taken)
        if taken < many:
            tally.add("done", done)
            done = 0
            _each_chunk(state, run, range(start + taken, start + many), part, results, tally, accepting)
    tally.add("done", done)
    if touched:
        _store(state, part, accepting, command)
        for hold in accepting.holds.values():
            left_behind(state, hold)
            if hold.consumer:
                _mark_named(state, hold.consumer, hold.seq)
        for run in touched.values():
            if run.done.count + len(run.dead) == run.total:
                end_if_finished(state, run)
            owner = run.owner
            if not owner.waiting and not owner.leased:
                state.tables.idle(owner.name)


def _take_back(run: Run, start: int, many: int, part: Part, accepting: _Accepting) -> int:
    """The usual case: chunks that this reservation holds and that had no trouble; how many, up to the first other."""
    out, epoch, count, holds = run.out, part.epoch, part.count, accepting.holds
    taken = 0
    for index in range(start, start + many):
        hold = out.get(index)
        if hold is None or hold.count != count or hold.epoch != epoch:
            break
        del out[index]
        hold.left -= 1
        holds[hold.part] = hold
        taken += 1
    if taken:
        run.owner.leased -= taken
        accepting.spans.add(run.id, start, taken)
    return taken


def _each_chunk(
    state: State,
    run: Run,
    indexes: range,
    part: Part,
    results: Iterator[bytes | None] | None,
    tally: Tally,
    accepting: _Accepting,
) -> None:
    """Chunks that have results, or that some trouble happened to."""
    out, tried, epoch, count, id = run.out, run.tried, part.epoch, part.count, run.id
    for index in indexes:
        body = next(results) if results is not None else None
        hold = out.get(index)
        if hold is not None and hold.count == count and hold.epoch == epoch:
            del out[index]
            hold.left -= 1
            run.owner.leased -= 1
            state.leased -= 1
            if state.plans.limited:
                freed(state, run, 1)
            accepting.holds[hold.part] = hold
            if tried and tried.pop(index, None) is not None:
                touch(state, run)
        else:
            outcome = _late(state, run, index, hold, epoch, count)
            if outcome != "done":
                tally.add(outcome)
                continue
        accepting.spans.add(id, index)
        accepting.runs[id] = run
        if body is not None:
            accepting.bodies.setdefault(id, []).append((index, body))
        tally.add("done")


def _late(state: State, run: Run, index: int, hold: Hold | None, epoch: int, count: int) -> Outcome:
    """The outcome for a chunk that this reservation does not hold now."""
    tried = run.tried.get(index)
    if (
        hold is None
        and tried is not None
        and tried.count == count
        and tried.epoch == epoch
        and index in run.returned
    ):
        run.withdraw(index)  # it expired, and nobody took it since
        waits(state, run, -1)
        if not run.ready:
            run.eligible = False
        del run.tried[index]
        touch(state, run)
        for consumer in state.consumers.values():  # a named one that lapsed is unchanged from now on, too
            for seq, named in consumer.open.items():
                if named.count == count and named.epoch == epoch:
                    _mark_named(state, consumer.name, seq)
        return "done"
    return "already" if index in run.done and run.done.won(index, epoch, count) else "lost"


def _span_of_ended(
    state: State, part: Part, span: Span, results: Iterator[bytes | None] | None, tally: Tally, found: Found
) -> None:
    id, start, many = span
    for index in range(start, start + many):
        if results is not None:
            next(results)
        tally.add(_of_ended(state, id, index, part, found))


def _of_ended(state: State, id: int, index: int, part: Part, found: Found) -> Outcome:
    """The outcome for a chunk whose submission is not active."""
    run = state.runs.get(id) or state.recent_ends.get(id)
    if run is None:
        stored = found.runs.get(id)
        if stored is None or stored.state == "active":
            return "lost"
        run = thaw(stored, state.seed)
        pages_into(run, found)
    hold = run.out.get(index)
    if hold is not None and hold.count == part.count and hold.epoch == part.epoch:
        settle(state, run, index, part.count)
        return "ended"
    return "already" if index in run.done and run.done.won(index, part.epoch, part.count) else "ended"


def _store(state: State, part: Part, accepting: _Accepting, command: Complete) -> None:
    filling, runs = state.filling, accepting.runs
    bodies, spans, epoch, reservation = accepting.bodies, accepting.spans.spans, part.epoch, part.count
    filling.sync = True
    kind = 2 if command.by_reference else 1 if bodies else 0
    filling.records.append(Completed(epoch, reservation, command.writer, kind, spans))
    filling.events.append(Happened(What.COMPLETED, state.now, spans, epoch, reservation))  # pyright: ignore[reportArgumentType]
    who = command.writer << 2 | kind
    for id, start, count in spans:
        run = runs[id]
        run.own_done().add(start, count, epoch, reservation, who)
        if run.total > PAGE_CHUNKS:
            _touch_pages(state, run, start, count)
        elif not run.marked:
            touch(state, run)
    for id, results in bodies.items():
        results.sort()
        filling.results.append(ResultPage(id, results[0][0], result_page(results)))


def _touch_pages(state: State, run: Run, start: int, count: int) -> None:
    """Pages of a long run differ from their stored form."""
    for number in range(start // PAGE_CHUNKS, (start + count - 1) // PAGE_CHUNKS + 1):
        page = run.done.pages[number]
        if not page.marked:
            page.marked = True
            state.dirty.mark(Kind.PAGE, run.id, number, state.number)


def _mark_named(state: State, name: str, seq: int) -> None:
    consumer = state.consumers.get(name)
    named = consumer.open.get(seq) if consumer is not None else None
    if named is not None and not named.completed:
        named.completed = True
        state.dirty.write_now(Kind.CONSUMER, name)
