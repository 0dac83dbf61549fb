"""Batches: what a consumer was handed is settled whole, in one step.

Guards: only the epoch or the run that was handed the chunks settles them; a refused batch changes nothing; a batch
that names a chunk of another is refused.
"""

from __future__ import annotations

from fairway import limits
from fairway.engine.commands import Complete, Finish, Finished
from fairway.engine.consumer import Consumer, Named
from fairway.engine.finishing import check_parts, complete
from fairway.engine.lookups import Found
from fairway.engine.named import consumer_of, keep, part_of, still_out
from fairway.engine.returning import fail
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.engine.thaw import decode_described
from fairway.errors import BadArgument, ConsumerFenced, LeaseLost, TooLarge


def finish(state: State, command: Finish, found: Found) -> Finished:
    """Completions, failures, and what nobody spoke of: done without a result of its own."""
    consumer = _speaking(state, command)
    _check(command)
    handed = [named for named in consumer.open.values() if named.handed_to == consumer.epoch]
    _check_named(state, command, handed, found)
    _check_size(command, [run for named in handed for run, _ in still_out(state, named)])
    if command.whole:
        _check_whole(state, consumer)
    before = sum(named.completed for named in handed)
    completed = [complete(state, one, found) for one in command.completed]
    failed = [fail(state, one, found) for one in command.failed]
    rest, told = 0, set[int]()
    for seq in sorted(consumer.open):
        named = consumer.open[seq]
        # One that was not handed to this epoch is not this batch's to settle.
        chunks = still_out(state, named) if named.handed_to == consumer.epoch else []
        if not chunks:
            continue
        complete(state, Complete([part_of(state, named, chunks)], _results(command, chunks, told)), found)
        rest += len(chunks)
    consumer.error = ""
    keep(state, consumer)
    return Finished(completed, failed, rest, before)


def _results(command: Finish, chunks: list[tuple[Run, int]], told: set[int]) -> list[bytes | None] | None:
    """The batch's own result for the first chunk of each submission: what one forgets, the others still name."""
    if command.first is None and command.others is None:
        return None
    results: list[bytes | None] = []
    for run, _ in chunks:
        results.append(command.others if run.id in told else command.first)
        told.add(run.id)
    return results


def _speaking(state: State, command: Finish) -> Consumer:
    """The consumer, if this epoch or this run speaks for it."""
    name = command.consumer
    if command.consumer_epoch:
        return consumer_of(state, name, command.consumer_epoch)
    if not command.run:
        raise BadArgument("finish needs the epoch or the run that joined the consumer", argument="run")
    consumer = state.consumers.get(name)
    if consumer is None or consumer.run != command.run:
        raise ConsumerFenced(f"another process took over consumer {name!r}; stop, or choose another name")
    return consumer


def _check(command: Finish) -> None:
    """Everything that could be refused is refused before anything is changed."""
    chunks = 0
    for one in command.completed:
        many = check_parts(one.parts)
        if one.results is not None and len(one.results) != many:
            raise BadArgument(f"{many} leases need as many results, not {len(one.results)}")
        chunks += many
    for one in command.failed:
        if one.delay_seconds > limits.DELAY_SECONDS_MAX:
            raise BadArgument(f"delay_seconds must be at most {limits.DELAY_SECONDS_MAX:.0f}")
        chunks += check_parts(one.parts)
    if chunks > limits.CALL_CHUNKS_MAX:
        raise TooLarge(f"one call takes at most {limits.CALL_CHUNKS_MAX} leases, not {chunks}")


def _check_named(state: State, command: Finish, handed: list[Named], found: Found) -> None:
    """What comes for a chunk after its batch was settled has no place, and must not go without a word."""
    known = {(named.epoch, named.count) for named in handed}
    spoken = [("completed", one) for one in command.completed] + [("failed", one) for one in command.failed]
    for argument, one in spoken:
        for part in one.parts:
            if (part.epoch, part.count) in known or not part.spans:
                continue
            id, index, _ = part.spans[0]
            tenant = _tenant(state, id, found)
            told = f" (tenant {tenant!r})" if tenant is not None else ""
            raise BadArgument(
                f"chunk {index} of submission {id}{told} is of no batch that consumer {command.consumer!r} was handed"
                " and has not trimmed; nothing was settled",
                argument=argument,
                submission=id,
                index=index,
            )


def _tenant(state: State, id: int, found: Found) -> str | None:
    run = state.runs.get(id) or state.recent_ends.get(id)
    if run is not None:
        return run.owner.name
    return decode_described(found.runs[id].body).tenant if id in found.runs else None


def _check_size(command: Finish, runs: list[Run]) -> None:
    """Results for all the rest are short to send, and as long as all of them to store."""
    submissions, each = len({run.id for run in runs}), len(command.first or b"")
    size = submissions * each + (len(runs) - submissions) * len(command.others or b"")
    if size > limits.GROUP_BYTES_MAX:
        raise TooLarge(
            f"the results of one batch have at most {limits.GROUP_BYTES_MAX} bytes, not {size}, {each} of them for each"
            f" of {submissions} submissions; reserve fewer chunks at a time, or let fewer tasks write results"
        )


def _check_whole(state: State, consumer: Consumer) -> None:
    """A result of many chunks is worth nothing if one of them was, or will be, worked on elsewhere."""
    for seq, named in consumer.open.items():
        if named.handed_to != consumer.epoch or named.completed:
            continue
        gone = named.given - len(still_out(state, named))
        if gone > 0:
            raise LeaseLost(
                f"{gone} chunks of seq {seq} of consumer {consumer.name!r} ended or were lost meanwhile; run again"
            )
