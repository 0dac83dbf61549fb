"""The verbs of a worker: reserve, complete, fail, renew, release.

Guards: the n-th outcome belongs to the n-th lease given, whatever calls the leases were cut into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from fairway import limits
from fairway.engine.commands import (
    Complete,
    Fail,
    Join,
    Outcome,
    Part,
    Release,
    Renew,
    Reserve,
    Reserved,
    Settled,
    Trim,
)
from fairway.errors import BadArgument, ConsumerFenced
from fairway.face import checks
from fairway.face.batches import Batch, Completion, Failure, batch_of, finish_command
from fairway.face.keeping import KeptPages
from fairway.face.leasing import Fetch, leases_of
from fairway.face.objects import Objects
from fairway.face.receipts import Held, held, only, parts_of, spread
from fairway.face.results import Registering
from fairway.face.steps import Ask, Do, Steps
from fairway.model.lease import Lease
from fairway.strategy.terms import StrategyLike

_CUT = limits.CALL_CHUNKS_MAX


class WorkVerbs:
    """The worker's verbs."""

    _objects: Objects
    _worker: Callable[[], int]
    _fetch: Fetch | None
    _writer: Callable[[], int]
    _epochs: dict[str, int]
    _kept: KeptPages

    def reserve(
        self,
        max: int = 1,
        *,
        strategy: StrategyLike | None = None,
        lease_seconds: float | None = None,
        wait_seconds: float = 0.0,
        consumer: str | None = None,
        seq: int | None = None,
        halve: bool = True,
    ) -> Steps[list[Lease]]:
        """Reserve up to `max` chunks, chosen by a strategy (the queue's own by default).

        With nothing to hand out it waits up to `wait_seconds` and then gives an empty list.
        With consumer and seq the reservation has a name: asked again, the same chunks come back until `trim`.
        Asked again by a new process with nothing completed, half of them go back first. With `halve=False` it comes
        back whole, and is refused with ReservationLapsed when chunks of it went back because its consumer was silent.
        """
        command = Reserve(
            checks.whole("max", max, 1, limits.RESERVE_CHUNKS_MAX),
            checks.strategy(strategy),
            checks.seconds(
                "lease_seconds", lease_seconds, limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX
            ),
            checks.number("wait_seconds", wait_seconds, 0.0, limits.WAIT_SECONDS_MAX)
            if wait_seconds
            else 0.0,
            worker=self._worker(),
            halve=checks.flag("halve", halve),
        )
        if consumer is None and seq is None:
            reserved: Reserved = yield Ask(command)
        elif consumer is None or seq is None:
            raise BadArgument("consumer and seq go together", argument="seq" if seq is None else "consumer")
        else:
            named = msgspec.structs.replace(command, consumer=checks.consumer(consumer), seq=checks.seq(seq))
            reserved = yield from self._named(named)
        return (yield from leases_of(reserved, self._fetch, self._kept)) if reserved.spans else []

    def _named(self, command: Reserve) -> Steps[Reserved]:
        name = command.consumer
        while True:
            epoch = yield from self._joined(name)
            try:
                return (yield Ask(msgspec.structs.replace(command, consumer_epoch=epoch)))
            except ConsumerFenced:
                if self._epochs[name] == epoch:
                    raise  # another thread of this queue that joined meanwhile is no rival

    def _joined(self, consumer: str) -> Steps[int]:
        if consumer not in self._epochs:
            epoch: int = yield Ask(Join(consumer))
            self._epochs[consumer] = (
                epoch if epoch > self._epochs.get(consumer, 0) else self._epochs[consumer]
            )
        return self._epochs[consumer]

    def join(self, consumer: str, run: str = "", error: str = "") -> Steps[int]:
        """Take a consumer name over; whoever had it is refused from now on. Gives the new epoch.

        `run` is a text that other processes of the same run can show to `finish` instead of the epoch. `error` is
        what the one before ended with: a chunk that is given up because it was alone with it has it in its dead letter.
        """
        name = checks.consumer(consumer)
        text = checks.text("run", run, limits.CONSUMER_NAME_BYTES_MAX)
        epoch: int = yield Ask(Join(name, text, checks.error_text(error)))
        self._epochs[name] = max(epoch, self._epochs.get(name, 0))
        return epoch

    def finish(
        self,
        consumer: str,
        *,
        epoch: int = 0,
        run: str = "",
        completed: Sequence[Completion] = (),
        failed: Sequence[Failure] = (),
        first: bytes | None = None,
        others: bytes | None = None,
        whole: bool = False,
    ) -> Steps[Batch]:
        """Settle what a consumer was handed, in one step: completions, failures, and all the rest as done.

        It is fenced by the epoch that `join` gave, or by the run it was given. Of the rest,
        the first chunk of each submission gets `first` as its inline result, and each of the others `others`. `whole`
        refuses the batch if one of its chunks ended or was lost meanwhile, for a result that was made of them all.
        A lease of another batch is refused, and with it the whole call.
        """
        command = finish_command(
            checks.consumer(consumer), epoch, run, completed, failed, first, others, whole
        )
        return batch_of((yield Ask(command)))

    def trim(self, consumer: str, seq: int, *, complete: bool = False) -> Steps[None]:
        """Forget the named reservations of a consumer up to seq; `complete` completes what is left.

        What went back because the consumer was silent is completed too while nobody took it since; else all of it
        is refused with ReservationLapsed.
        """
        name, last = checks.consumer(consumer), checks.seq(seq)
        flag = checks.flag("complete", complete)
        epoch = yield from self._joined(name)
        yield Ask(Trim(name, epoch, last, flag))

    def complete(
        self,
        leases: Held | Iterable[Held],
        result: bytes | None = None,
        *,
        results: Sequence[bytes | None] | None = None,
        by_reference: bool = False,
        writer: int = 0,
    ) -> Steps[Outcome | list[Outcome]]:
        """Complete a lease, with a result if there is one, or many leases, with `results=` one for each.

        A single one gives "done" (or "already", if this receipt completed it before) or raises LeaseLost or
        AlreadyEnded. Many give a list with an outcome for each: done, already, lost, ended.
        Results of a submission by reference are uploaded first; `by_reference=True` says that they were
        written already, under lease.result_object(writer).
        """
        given, single = held(leases)
        blobs = _results(given, single, result, results)
        writer = checks.whole("writer", writer, 0, 2**62 - 1)
        if checks.flag("by_reference", by_reference):
            if blobs is not None:
                raise BadArgument(
                    "with by_reference=True the results are objects already", argument="results"
                )
            outcomes = yield from _settle(given, lambda parts: Complete(parts, None, True, writer))
        elif blobs is None:
            outcomes = yield from _settle(given, Complete)
        else:
            outcomes = yield from self._with_results(given, blobs)
        return only(given[0], outcomes) if single else outcomes

    def _with_results(self, given: list[Held], blobs: list[bytes | None]) -> Steps[list[Outcome]]:
        registering = Registering(given, blobs, self._writer)
        if registering.uploads:
            yield Do(lambda: self._objects.write(registering.uploads))
        for leases, command in registering.commands:
            settled: Settled = yield Ask(command)
            registering.settled(leases, spread(settled.outcomes))
        if useless := registering.useless():
            yield Do(lambda: self._objects.remove(useless))
        return registering.outcomes

    def fail(
        self,
        leases: Held | Iterable[Held],
        error: str | BaseException = "",
        *,
        retry: bool = True,
        delay_seconds: float | None = None,
    ) -> Steps[Outcome | list[Outcome]]:
        """Fail a lease or many: each comes back after a back-off, or is dead after its last attempt.

        `retry=False` gives up at once; `delay_seconds` replaces the queue's back-off.
        The outcome is retrying or dead (lost or ended in a list; raised for a single lease).
        """
        given, single = held(leases)
        text = checks.error_text(error)
        again = checks.flag("retry", retry)
        delay = -1.0
        if delay_seconds is not None:
            delay = checks.number("delay_seconds", delay_seconds, 0.0, limits.DELAY_SECONDS_MAX)
        outcomes = yield from _settle(given, lambda parts: Fail(parts, text, again, delay))
        return only(given[0], outcomes) if single else outcomes

    def release(self, leases: Held | Iterable[Held]) -> Steps[Outcome | list[Outcome]]:
        """Give a lease or many back untouched: no attempt counts, and the chunk can be handed out at once."""
        given, single = held(leases)
        outcomes = yield from _settle(given, Release)
        return only(given[0], outcomes) if single else outcomes

    def renew(self, leases: Held | Iterable[Held], seconds: float | None = None) -> Steps[Held | list[Held]]:
        """Hold a lease or many for `seconds` from now (the queue's lease time by default).

        Gives the renewed lease, or raises LeaseLost or AlreadyEnded. Of many it gives those that are yours
        still. A receipt comes back as it is.
        """
        given, single = held(leases)
        time = checks.seconds("seconds", seconds, limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX)
        renewed: list[Held] = []
        for start in range(0, len(given), _CUT):
            some = given[start : start + _CUT]
            settled: Settled = yield Ask(Renew(parts_of(some), time))
            outcomes = spread(settled.outcomes)
            if single:
                only(given[0], outcomes)
            for lease, outcome in zip(some, outcomes, strict=True):
                if outcome == "renewed":
                    renewed.append(lease if isinstance(lease, str) else _until(lease, settled.deadline))
        return renewed[0] if single else renewed

    def payload(self, lease: Lease) -> Steps[bytes | None]:
        """The payload of a lease, read from its object if it is by reference."""
        if not isinstance(lease, Lease):
            checks.refuse("lease", "a lease", lease)
        name = lease.object
        if lease.data is not None or name is None:
            return lease.data
        return (yield Do(lambda: self._objects.read(name)))


def _settle(
    given: list[Held], command: Callable[[list[Part]], Complete | Fail | Release]
) -> Steps[list[Outcome]]:
    if len(given) <= _CUT:
        if not given:
            return []
        settled: Settled = yield Ask(command(parts_of(given)))
        return spread(settled.outcomes)
    outcomes: list[Outcome] = []
    commands = [command(parts_of(given[start : start + _CUT])) for start in range(0, len(given), _CUT)]
    for one in commands:
        settled = yield Ask(one)
        outcomes += spread(settled.outcomes)
    return outcomes


def _results(given: list[Held], single: bool, result: object, results: object) -> list[bytes | None] | None:
    if result is None and results is None:
        return None
    if result is not None:
        if not single or results is not None:
            raise BadArgument(
                "result= goes with a single lease; give results=[...], one for each lease", argument="result"
            )
        return [checks.blob("result", result, _bytes_max(given[0]))]
    if not isinstance(results, Sequence) or isinstance(results, bytes | str) or len(results) != len(given):
        checks.refuse("results", f"a list of {len(given)} results, one for each lease", results)
    return [
        None if blob is None else checks.blob(f"results[{i}]", blob, _bytes_max(lease))
        for i, (lease, blob) in enumerate(zip(given, results, strict=True))
    ]


def _bytes_max(lease: Held) -> int:
    """How long a result may be: one that becomes an object has no bound of ours."""
    return 2**62 if isinstance(lease, Lease) and lease.described.segments else limits.PAYLOAD_BYTES_MAX


def _until(lease: Lease, deadline: float) -> Lease:
    return msgspec.structs.replace(lease, deadline=deadline)
