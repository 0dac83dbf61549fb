"""Named reservations: the same (consumer, seq) is handed back until it is trimmed.

Guards: only the consumer's latest epoch may act; a reservation never gains a chunk, and shrinks only before its
first completion.
"""

from __future__ import annotations

from fairway import limits
from fairway.engine.commands import Complete, Join, LeasedSpan, Part, Reserve, Reserved, Trim
from fairway.engine.consumer import Consumer, Named
from fairway.engine.ending import after_burial, bury
from fairway.engine.finishing import complete
from fairway.engine.holds import Hold, seal_of
from fairway.engine.leases import Spans, drop_out, settle
from fairway.engine.lookups import Found
from fairway.engine.records import Died
from fairway.engine.reserving import pick
from fairway.engine.returning import attempts_max, kept_error, release_chunks
from fairway.engine.run import Run, Tried
from fairway.engine.state import State
from fairway.errors import (
    BadArgument,
    ConsumerFenced,
    ReservationLapsed,
    ReservationOpen,
    SeqTrimmed,
    TooLarge,
)
from fairway.model.event import Happened, What
from fairway.model.stored import Kind


def join(state: State, command: Join) -> int:
    """Take the name over; whoever had it is refused from now on."""
    name = command.consumer
    if not 0 < len(name.encode()) <= limits.CONSUMER_NAME_BYTES_MAX:
        raise BadArgument(
            f"consumer must be a name of 1 to {limits.CONSUMER_NAME_BYTES_MAX} bytes, not {name!r:.80}"
        )
    consumer = state.consumers.get(name)
    if consumer is None:
        if len(state.consumers) >= limits.CONSUMERS_MAX:
            raise TooLarge(f"a queue has at most {limits.CONSUMERS_MAX} named consumers")
        consumer = state.consumers[name] = Consumer(name)
    consumer.epoch += 1
    consumer.run = command.run
    consumer.error = command.error
    keep(state, consumer)
    return consumer.epoch


def keep(state: State, consumer: Consumer) -> None:
    """A sign of life, and a change that is stored and synced."""
    consumer.seen = state.now
    state.dirty.write_now(Kind.CONSUMER, consumer.name)
    state.filling.sync = True


def consumer_of(state: State, name: str, epoch: int) -> Consumer:
    """The consumer if this epoch still speaks for it."""
    consumer = state.consumers.get(name)
    if consumer is None or consumer.epoch != epoch:
        raise ConsumerFenced(f"another process took over consumer {name!r}; stop, or choose another name")
    return consumer


def reserve_named(state: State, command: Reserve) -> Reserved | None:
    """The reservation of this seq, made now if it is new; None if there is nothing to hand out."""
    consumer = consumer_of(state, command.consumer, command.consumer_epoch)
    consumer.seen = state.now
    if command.seq <= consumer.trimmed:
        raise SeqTrimmed(
            f"seq {command.seq} of consumer {consumer.name!r} was trimmed; go on above {consumer.trimmed}"
        )
    named = consumer.open.get(command.seq)
    if named is None:
        hold = pick(state, command)
        if hold is None:
            return None
        spans = list(hold.spans)
        named = Named(hold.epoch, hold.count, consumer.epoch, False, spans, _count(spans))
        consumer.open[command.seq] = named
        keep(state, consumer)
    else:
        if named.lapsed and not command.halve:
            raise _lapsed(consumer, command.seq, named.lapsed)
        anew = named.handed_to != consumer.epoch
        if anew and not named.completed and command.halve:
            _halve(state, named, consumer.error)
        if not named.completed:
            _shrink(state, named)
        if anew:
            named.given = _count(named.spans)
        named.handed_to = consumer.epoch
        keep(state, consumer)
    return handed(state, named)


def _count(spans: list[LeasedSpan]) -> int:
    return sum(span[2] for span in spans)


def handed(state: State, named: Named) -> Reserved:
    """The reply for a named reservation; finished chunks are in it too."""
    deadline = state.now + state.config.consumer_silent_seconds
    seal = seal_of(state.secret, named.epoch, named.count)
    return Reserved(named.epoch, named.count, seal, deadline, named.spans)


def still_out(state: State, named: Named) -> list[tuple[Run, int]]:
    """The chunks of the reservation that are leased to it now."""
    out: list[tuple[Run, int]] = []
    for id, start, count, _ in named.spans:
        run = state.runs.get(id)
        for index in range(start, start + count):
            hold = run.out.get(index) if run is not None else None
            if run is not None and hold is not None and hold.count == named.count and run.state == "active":
                out.append((run, index))
    return out


def _spans_of(chunks: list[tuple[Run, int]]) -> list[LeasedSpan]:
    spans: list[LeasedSpan] = []
    for run, index in chunks:
        attempt = run.attempts(index) + 1
        if (
            spans
            and spans[-1][0] == run.id
            and spans[-1][1] + spans[-1][2] == index
            and spans[-1][3] == attempt
        ):
            spans[-1] = (run.id, spans[-1][1], spans[-1][2] + 1, attempt)
        else:
            spans.append((run.id, index, 1, attempt))
    return spans


def _shrink(state: State, named: Named) -> None:
    """Chunks that ended elsewhere, or went back, leave a reservation of which nothing was completed."""
    _leave_ended(state, named)
    named.spans = _spans_of(still_out(state, named))
    named.lapsed = 0


def _leave_ended(state: State, named: Named) -> None:
    """Leases of submissions that ended go: their consumer is through with them, and a redrive needs the chunks."""
    for id, start, count, _ in named.spans:
        run = state.runs.get(id)
        if run is None or run.state == "active":
            continue
        for index in range(start, start + count):
            hold = run.out.get(index)
            if hold is not None and (hold.epoch, hold.count) == (named.epoch, named.count):
                settle(state, run, index, named.count)


def _still_its(state: State, named: Named) -> list[tuple[Run, int]]:
    """The chunks that went back by themselves and that nobody took since: its receipt is still the latest."""
    back: list[tuple[Run, int]] = []
    for id, start, count, _ in named.spans if named.lapsed else ():
        run = state.runs.get(id)
        if run is None or run.state != "active":
            continue
        for index in range(start, start + count):
            tried = run.tried.get(index)
            latest = tried is not None and (tried.epoch, tried.count) == (named.epoch, named.count)
            if latest and index in run.returned:
                back.append((run, index))
    return back


def _lapsed(consumer: Consumer, seq: int, chunks: int) -> ReservationLapsed:
    more = (  # it lets go of no chunk any more, so that asking alone would not help
        "; something of it was completed, so complete what it still has, then trim it without complete=True"
        if consumer.open[seq].completed
        else ""
    )
    return ReservationLapsed(
        f"{chunks} chunks of seq {seq} of consumer {consumer.name!r} went back to the queue, since it gave no sign for"
        f" consumer_silent_seconds: others may work on them. To go on with what is left, ask for it with"
        f" halve=True{more}"
    )


def _halve(state: State, named: Named, error: str) -> None:
    """Handed out again with nothing completed: half goes back uncounted; a chunk that was alone counts an attempt."""
    chunks = still_out(state, named)
    if len(chunks) > 1:
        keep_count = (len(chunks) + 1) // 2
        run, index = chunks[0]
        release_chunks(state, run.out[index], chunks[keep_count:])
    elif chunks and named.given == 1:
        # One that had neighbours when it was handed out need not be what ended its consumer.
        _count_attempt(state, *chunks[0], error)


def _count_attempt(state: State, run: Run, index: int, reason: str) -> None:
    attempts = run.attempts(index) + 1
    state.dirty.write_now(Kind.PROGRESS, run.id)
    if attempts < attempts_max(state, run):
        run.note(index, Tried(attempts))
        return
    hold = drop_out(state, run, index)
    last = reason and f"; the last time: {reason}"
    error = kept_error(f"its consumer ended again and again while it had this chunk{last}")
    bury(state, run, index, attempts, error)
    spans = Spans()
    spans.add(run.id, index)
    state.filling.events.append(
        Happened(What.DEAD, state.now, spans.spans, hold.epoch, hold.count, detail=error)
    )  # pyright: ignore[reportArgumentType]
    state.filling.records.append(Died(hold.epoch, hold.count, state.now, error, spans.spans))
    after_burial(state, run)


def part_of(state: State, named: Named, chunks: list[tuple[Run, int]]) -> Part:
    """Some chunks of a named reservation with its receipt."""
    spans = [(id, start, count) for id, start, count, _ in _spans_of(chunks)]
    return Part(named.epoch, named.count, seal_of(state.secret, named.epoch, named.count), spans)


def trim(state: State, command: Trim, found: Found) -> None:
    """Forget reservations up to a seq; unfinished ones only if they are to be completed, and then whole."""
    consumer = consumer_of(state, command.consumer, command.consumer_epoch)
    seqs = sorted(seq for seq in consumer.open if seq <= command.seq)
    if not command.complete:
        for seq in seqs:
            if still_out(state, consumer.open[seq]):
                raise ReservationOpen(
                    f"seq {seq} of consumer {consumer.name!r} has unfinished chunks; complete, fail or release them,"
                    " or trim with complete=True"
                )
    back = {seq: _still_its(state, consumer.open[seq]) for seq in seqs if command.complete}
    for seq, chunks in back.items():
        gone = consumer.open[seq].lapsed - len(chunks)
        if gone:
            raise _lapsed(consumer, seq, gone)
    for seq in seqs:
        named = consumer.open.pop(seq)
        _leave_ended(state, named)
        chunks = still_out(state, named) + back.get(seq, [])
        if chunks:
            complete(state, Complete([part_of(state, named, chunks)]), found)
    consumer.trimmed = max(consumer.trimmed, command.seq)
    keep(state, consumer)


def expire_at(state: State, hold: Hold) -> float:
    """When the hold of a named reservation runs out: its consumer's silence decides."""
    consumer = state.consumers.get(hold.consumer)
    if consumer is None or hold.seq not in consumer.open:
        return hold.deadline
    return max(hold.deadline, consumer.seen + state.config.consumer_silent_seconds)
