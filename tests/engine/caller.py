"""Somebody who calls every verb in any order, and knows nothing but what he was told.

He keeps what a caller may rely on, so that each answer can be held against it; the desk audits the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from fairway.engine.commands import (
    Call,
    Cancel,
    Command,
    Complete,
    Fail,
    Goodbye,
    Join,
    Part,
    Purge,
    Redrive,
    Release,
    Renew,
    Reserve,
    Reserved,
    Submit,
    Trim,
)
from fairway.engine.draft import Draft
from fairway.engine.lookups import Found
from fairway.errors import ClientUnknown, FairwayError
from tests.engine.desk import (
    Chunk,
    Desk,
    answer,
    chunks,
    offer,
    parts,
    small_journal,
    small_pages,
    small_reads,
    some,
    spread,
)

T = TypeVar("T")
Choose = Callable[[int], int]
"""Choose(n) gives a number from 0 to n - 1."""

STRATEGIES = [
    "",
    "Fair",
    "OldestFirst",
    "NewestFirst",
    "Random",
    "CustomPriority",
    'SelectOnly("lane", "fast", Fair)',
    'MaxSimultaneous("tenant", 2, Fair)',
    'MaxSimultaneous("lane", "50%", MaxSimultaneous("tenant", 3, OldestFirst))',
    'PreferDistinct("lane", 1, Random)',
    'OrElse(SelectOnly("lane", 7, Random), PreferDistinct("tenant", 1, MaxSimultaneous("lane", 2, CustomPriority)))',
]
LANES: list[dict[str, str | int]] = [{}, {"lane": "fast"}, {"lane": "slow"}, {"lane": 7}]
SECONDS = [5.0, 60.0, 400.0]


class Caller:
    """One queue, one client, some consumers; all choices come from outside."""

    def __init__(self, choose: Choose, window: int = 0, desk: type[Desk] = Desk) -> None:
        self.choose = choose
        self.patch = pytest.MonkeyPatch()
        small_journal(self.patch, self.one([0, 1, 3, 512]), self.one([1, 2, 256]))
        small_pages(self.patch, self.one([2, 65536]))
        if window:
            small_reads(self.patch, self.one([1, 2, 5, 400]))
            self.desk = desk(window=window, fetched=self.one([1, 3, 100]), by_range=self.yes())
        else:
            self.desk = desk()
        self.ids: list[int] = []
        self.held: list[Reserved] = []
        self.waits: list[Draft] = []
        self.epochs: dict[str, int] = {}
        self.done: dict[Chunk, tuple[int, int]] = {}
        self.latest: dict[Chunk, tuple[int, int]] = {}  # the last reservation of each chunk that was told
        self.purged: set[int] = set()
        self.looked: list[tuple[Call, Found]] = []  # calls that have read the store and are not carried out
        self.new_client()

    def live(self, steps: int, verbs: Sequence[Callable[[Any], None]] = ()) -> None:
        """Do anything, so many times."""
        try:
            for _ in range(steps):
                self.one(verbs or VERBS)(self)
                self.told_to_waiters()
            self.end_group()
        finally:
            self.patch.undo()

    def one(self, some: Sequence[T]) -> T:
        return some[self.choose(len(some))]

    def yes(self) -> bool:
        return bool(self.choose(2))

    # -- what a caller may rely on

    def handed(self, reserved: Reserved | None, named: bool = False) -> None:
        if reserved is None or not reserved.spans:
            return
        for chunk in chunks(reserved):
            assert named or chunk not in self.done, "handed out after its final state"
            if self.latest.get(chunk, (0, 0))[1] < reserved.count:
                self.latest[chunk] = (reserved.epoch, reserved.count)
        self.held.append(reserved)

    def completed(self, given: list[Part], outcomes: list[str]) -> None:
        for (chunk, attempt), outcome in zip(named_by(given), outcomes, strict=True):
            if outcome == "done":
                assert chunk not in self.done, "two results of one chunk"
                assert self.latest.get(chunk, attempt) == attempt, "a result after a later reservation"
                self.done[chunk] = attempt
            elif chunk[0] not in self.purged:
                assert (outcome == "already") == (self.done.get(chunk) == attempt), (chunk, outcome)

    def told_to_waiters(self) -> None:
        for draft in [draft for draft in self.waits if draft.answered]:
            self.waits.remove(draft)
            if draft.error is None:
                self.handed(answer(draft))

    # -- calls

    def call(self, command: Command, numbered: bool = False) -> Any:
        """The answer, or None if the call was refused."""
        try:
            if not numbered:
                return self.desk.call(command)
            self.number += 1
            self.last = None
            reply = self.desk.call(command, self.client, self.number, self.received)
            self.last = (command, reply)
            return reply
        except ClientUnknown:
            self.new_client()
        except FairwayError:
            pass
        return None

    def new_client(self) -> None:
        self.client, self.number, self.received = self.desk.register(), 0, 0
        self.last: tuple[Command, Any] | None = None

    def some_leases(self) -> list[Part]:
        reserved = self.one(self.held)
        mine = chunks(reserved)
        return parts(reserved) if self.yes() else some(reserved, *mine[self.choose(len(mine)) :])

    def submit(self) -> None:
        told: dict[str, Any] = {
            "policy": self.one(["fail_fast", "dead_letter"]),
            "attempts_max": self.one([0, 1, 2]),
            "priority": self.one([0, 0, 5]),
            "metadata": self.one(LANES),
        }
        if self.choose(4) == 0:
            told |= {"key": self.one(["k", "l"]), "fingerprint": self.one([b"1", b"1", b"2"])}
        weight, delay, deadline = self.one([0, 0, 3, 2500]), self.one([0, 0, 0, 20]), self.one([0, 0, 0, 100])
        offers = [offer(self.one("abc"), self.choose(8), weight, delay, deadline, **told)]
        offers += [offer(self.one("abc"), 1)] * self.choose(3)
        accepted = self.call(Submit(offers), self.yes())
        self.ids += [] if accepted is None else accepted.ids

    def reserve(self) -> None:
        self.handed(
            self.call(Reserve(1 + self.choose(6), self.one(STRATEGIES), self.one(SECONDS)), self.yes())
        )

    def complete(self) -> None:
        if self.held:
            given = self.some_leases()
            settled = self.call(Complete(given), self.yes())
            self.told_to_waiters()
            if settled is not None:
                self.completed(given, spread(settled))

    def fail(self) -> None:
        if self.held:
            self.call(Fail(self.some_leases(), "bad", self.yes(), self.one([-1.0, 0.0, 3.0])), self.yes())

    def renew(self) -> None:
        if self.held:
            self.call(Renew(self.some_leases(), self.one(SECONDS)))

    def release(self) -> None:
        if self.held:
            self.call(Release(self.some_leases()), self.yes())

    def cancel(self) -> None:
        if self.ids:
            self.call(Cancel(self.one(self.ids)), self.yes())

    def redrive(self) -> None:
        if self.ids:
            self.call(Redrive(self.one(self.ids)))

    def look(self) -> None:
        """A submission shows what its callers were told."""
        id = self.one(self.ids) if self.ids else 0
        try:
            shown = self.desk.show(id)
        except FairwayError:
            return
        mine = {index: attempt for (x, index), attempt in self.done.items() if x == id}
        wins = {w.start + i: (w.epoch, w.reservation) for w in self.desk.winners(id) for i in range(w.count)}
        assert shown.done == len(mine) and wins == mine

    def wait_for_work(self) -> None:
        self.waits.append(self.desk.wait_for_work(self.one([1.0, 50.0, 1000.0]), 2, self.one(STRATEGIES)))

    def abandon(self) -> None:
        if self.waits:
            self.desk.engine.abandon(self.one(self.waits))

    def join(self) -> None:
        name = self.one("cd")
        self.epochs[name] = self.desk.call(Join(name))

    def named(self) -> None:
        if self.epochs:
            name = self.one(sorted(self.epochs))
            command = Reserve(
                1 + self.choose(4), consumer=name, consumer_epoch=self.epochs[name], seq=self.choose(3)
            )
            self.handed(self.call(command, self.yes()), named=True)

    def trim(self) -> None:
        if self.epochs:
            name = self.one(sorted(self.epochs))
            self.call(Trim(name, self.epochs[name], self.choose(3)))

    def pause(self) -> None:
        act = self.desk.resume if self.choose(3) else self.desk.pause
        with suppress(FairwayError):
            act(**self.one([{}, {"tenant": self.one("abc")}, {"submission": self.one([*self.ids, 1])}]))

    def weigh(self) -> None:
        self.desk.weigh(self.one("abc"), self.one([1000, 10, 333, 100_000]))

    def configure(self) -> None:
        self.desk.configure(attempts_max=1 + self.choose(3), retry_delay_seconds=self.one([0.0, 1.0, 10.0]))

    def purge(self) -> None:
        if self.ids:
            id = self.one(self.ids)
            self.desk.configure(retention_seconds=self.one([0.0, 1e6]))
            if self.call(Purge([id], [("a", "k"), ("b", "l")])):
                self.purged.add(id)

    def repeat(self) -> None:
        """The last numbered call comes again; one that found nothing had no effect, so it would be a new one."""
        if self.last is None or (isinstance(self.last[1], Reserved) and not self.last[1].spans):
            return
        command, reply = self.last
        again = self.desk.call(command, self.client, self.number, self.received)
        if isinstance(reply, Reserved):
            assert (again.count, again.spans) == (reply.count, reply.spans)
        else:
            assert again == reply

    def look_first(self) -> None:
        """A call reads the store, and others come before it is carried out."""
        if not self.ids or not self.held:
            return
        id, key = self.one(self.ids), {"key": "k", "fingerprint": b"1"}
        commands = [
            Cancel(id),
            Redrive(id),
            Complete(self.some_leases()),
            Submit([offer("a", 2, **key)]),
            Purge([id]),
        ]
        call = Call(self.one(commands))
        found = self.desk.look_up(call)
        if found is not None:
            self.looked.append((call, found))

    def then_call(self) -> None:
        """A call that has read the store is carried out."""
        if not self.looked:
            return
        call, found = self.looked.pop(self.choose(len(self.looked)))
        draft = self.desk.carry_out(call, found)
        self.told_to_waiters()
        if draft.error is not None:
            return
        if isinstance(call.command, Complete):
            self.completed(call.command.parts, spread(answer(draft)))
        elif isinstance(call.command, Submit):
            self.ids += answer(draft).ids
        elif isinstance(call.command, Purge) and answer(draft):
            self.purged.update(call.command.ids)

    def acknowledge(self) -> None:
        self.received, self.last = self.number, None

    def goodbye(self) -> None:
        self.desk.call(Goodbye(), self.client)
        self.new_client()

    # -- time and trouble

    def pass_time(self) -> None:
        self.end_group()
        self.desk.pass_time(self.one([0.0, 1.0, 6.0, 30.0, 100.0, 4000.0]))

    def late_tick(self) -> None:
        self.end_group()
        self.desk.now += self.one([6.0, 100.0])
        self.desk.engine.tick(self.desk.now)
        self.desk.settle()

    def begin_group(self) -> None:
        self.desk.grouping = True

    def end_group(self) -> None:
        self.desk.grouping = False
        self.desk.settle()

    def restart(self) -> None:
        self.end_group()
        self.told_to_waiters()
        self.waits, self.looked = [], []
        forget = self.choose(8) == 0
        self.desk.restart(self.one([0.0, 10.0, 500.0]), forget)
        assert not forget or self.desk.state.leased == 0

    def power_loss(self) -> None:
        """What was synced stays; what this caller knows of leases may be gone."""
        self.end_group()
        self.waits, self.looked, self.latest = [], [], {}
        self.desk.power_loss()
        self.new_client()


def named_by(given: list[Part]) -> list[tuple[Chunk, tuple[int, int]]]:
    """The chunks that parts name, each with its attempt."""
    return [
        ((id, i), (p.epoch, p.count))
        for p in given
        for id, start, n in p.spans
        for i in range(start, start + n)
    ]


# What is listed more often is done more often.
VERBS: list[Callable[[Caller], None]] = [
    *[Caller.submit] * 4, *[Caller.reserve] * 6, *[Caller.complete] * 4, *[Caller.fail] * 2, *[Caller.renew] * 2,
    *[Caller.release] * 2, Caller.cancel, *[Caller.redrive] * 2, Caller.look, Caller.wait_for_work, Caller.abandon,
    Caller.join, *[Caller.named] * 2, Caller.trim, Caller.pause, Caller.weigh, Caller.configure, Caller.purge,
    Caller.repeat, Caller.acknowledge, Caller.goodbye, *[Caller.look_first] * 2, *[Caller.then_call] * 2,
    *[Caller.pass_time] * 2, Caller.late_tick,
    *[Caller.begin_group] * 2, *[Caller.end_group] * 2, *[Caller.restart] * 2, Caller.power_loss,
]  # fmt: skip
