"""Finishing: results are accepted from the latest reservation of a chunk, once.

Guards: no result is accepted after a later reservation of the chunk was handed out;
the same receipt gets the same answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from fairway import limits
from fairway.engine.backlog import refresh, touch, waits
from fairway.engine.commands import Complete, Outcome, Part, Span
from fairway.engine.commands import Settled as SettledReply
from fairway.engine.done import Done
from fairway.engine.ending import end, end_if_finished
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

    __slots__ = ("_looked", "_seen", "bodies", "held", "spans")

    def __init__(self) -> None:
        self.spans = Spans()
        self.held: dict[Hold, int] = {}  # how many chunks left each hold
        self.bodies: dict[int, list[tuple[int, bytes]]] = {}
        self._seen: set[tuple[int, int]] = set()  # the chunks of the first spans, once somebody asked
        self._looked = 0  # at so many spans

    def took(self, id: int, index: int) -> bool:
        """Whether the chunk is among those that were accepted: a lease may be named twice."""
        spans = self.spans.spans
        if not spans:
            return False
        last_id, start, many = spans[-1]  # it may grow yet
        if last_id == id and start <= index < start + many:
            return True
        for its, start, many in spans[self._looked : -1]:
            self._seen.update((its, at) for at in range(start, start + many))
        self._looked = len(spans) - 1
        return (id, index) in self._seen

    def leave(self, hold: Hold | None, n: int) -> None:
        """n chunks more left the hold."""
        if hold is not None and n:
            self.held[hold] = self.held.get(hold, 0) + n


def _complete_part(
    state: State,
    command: Complete,
    part: Part,
    results: Iterator[bytes | None] | None,
    tally: Tally,
    found: Found,
) -> None:
    accepting = _Accepting()
    runs, limited = state.runs, state.plans.limited
    usual, epoch, count, accept = (
        results is None and not limited,
        part.epoch,
        part.count,
        accepting.spans.spans.append,
    )
    last: Hold | None = None  # the hold that the chunks before this one left
    done = left = 0  # of those that are done, so many are not yet told to the hold that they left
    for span in part.spans:
        id, start, many = span
        run = runs.get(id)
        if run is None or run.state != "active":
            accepting.leave(last, left)
            tally.add("done", done + left)
            done = left = 0
            _span_of_ended(state, part, span, results, tally, found)
            continue
        if many == 1 and usual and not run.tried:  # `_take_back` of one chunk, written out
            hold = run.out.get(start)
            if hold is not last and hold is not None and hold.count == count and hold.epoch == epoch:
                accepting.leave(last, left)
                done += left
                last, left = hold, 0
            if hold is last and hold is not None:
                del run.out[start]
                accept(span)
                run.owner.leased -= 1
                left += 1
                continue
        taken = 0 if run.tried or results is not None else _take_back(run, span, part, accepting)
        if taken:
            done += taken
            if limited:
                freed(state, run, taken)
        if taken < many:
            accepting.leave(last, left)
            tally.add("done", done + left)
            done = left = 0
            _each_chunk(state, run, range(start + taken, start + many), part, results, tally, accepting)
    tally.add("done", done + left)
    accepting.leave(last, left)
    if accepting.spans.spans:
        _let_go(state, accepting)
        _store(state, part, accepting, command)


def _take_back(run: Run, span: Span, part: Part, accepting: _Accepting) -> int:
    """The usual case: chunks that this reservation holds and that had no trouble; how many, up to the first other."""
    out, held = run.out, accepting.held
    _, start, many = span
    for taken in range(many):
        hold = out.get(start + taken)
        if hold is None or (hold not in held and (hold.count != part.count or hold.epoch != part.epoch)):
            if not taken:
                return 0
            span = (run.id, start, taken)
            break
        del out[start + taken]
        held[hold] = held.get(hold, 0) + 1
    accepting.spans.spans.append(span)  # whoever asks has joined neighbours
    run.owner.leased -= span[2]
    return span[2]


def _let_go(state: State, accepting: _Accepting) -> None:
    """The chunks are no longer leased."""
    for hold, n in accepting.held.items():
        hold.left -= n
        state.leased -= n
        left_behind(state, hold)
        if hold.consumer:
            _mark_named(state, hold.consumer, hold.seq)


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
            run.owner.leased -= 1
            if state.plans.limited:
                freed(state, run, 1)
            accepting.held[hold] = accepting.held.get(hold, 0) + 1
            if tried and tried.pop(index, None) is not None:
                touch(state, run)
        else:
            outcome = _late(state, run, index, hold, epoch, count)
            if outcome == "lost" and accepting.took(id, index):
                outcome = "already"
            if outcome != "done":
                tally.add(outcome)
                continue
        accepting.spans.add(id, index)
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
        _came_after_all(state, run, index, epoch, count)
        return "done"
    return "already" if index in run.done and run.done.won(index, epoch, count) else "lost"


def _came_after_all(state: State, run: Run, index: int, epoch: int, count: int) -> None:
    """A named reservation that lapsed is unchanged from now on, too, and one of its chunks is no longer missing."""
    for consumer in state.consumers.values():
        for named in consumer.open.values():
            if named.count == count and named.epoch == epoch:
                if any(id == run.id and 0 <= index - start < many for id, start, many, _ in named.spans):
                    named.lapsed = max(0, named.lapsed - 1)
                named.completed = True
                state.dirty.write_now(Kind.CONSUMER, consumer.name)


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
    """Chunks are done; with the last of a run it ends."""
    filling, runs = state.filling, state.runs
    bodies, spans, epoch, reservation = accepting.bodies, accepting.spans.spans, part.epoch, part.count
    filling.sync = True
    kind = 2 if command.by_reference else 1 if bodies else 0
    filling.records.append(Completed(epoch, reservation, command.writer, kind, spans))
    filling.events.append(Happened(What.COMPLETED, state.now, spans, epoch, reservation))  # pyright: ignore[reportArgumentType]
    for id, results in bodies.items():
        results.sort()
        filling.results.append(ResultPage(id, results[0][0], result_page(results)))
    winner = array("Q", (epoch, reservation, command.writer << 2 | kind))
    accepted = sum([span[2] for span in spans])
    state.done += accepted
    state.completed += accepted
    alone: Done | None = None  # what is done of a message; they all have the same, and it will not change
    for id, start, count in spans:
        run = runs[id]
        done, total, owner = run.done, run.total, run.owner
        if total == 1:
            if alone is None:
                alone = Done()
                alone.add(0, 1, *winner)
            run.done = alone
            end(state, run, "last chunk done")
            continue
        if not done.count:
            done = run.own_done()
        page = done.win(start, count, winner)
        if total <= PAGE_CHUNKS:
            if not run.marked:
                touch(state, run)
        elif page is None or not page.marked:
            _touch_pages(state, run, start, count)
        if done.count + len(run.dead) == total:
            end_if_finished(state, run)
        elif not run.eligible:
            refresh(state, run)  # nothing of it may be out any more
        if not owner.waiting and not owner.leased:
            state.tables.idle(owner.name)


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
