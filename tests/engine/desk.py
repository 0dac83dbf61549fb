"""A queue without a runtime: the engine on a memory store, a clock that stands still, and one method per verb.

Every step stores its group and is audited: the engine against first principles, and against a fresh start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from fairway import limits
from fairway.engine import closing, dirty, load, lodging, search, sheets
from fairway.engine.commands import (
    Accepted,
    Call,
    Cancel,
    Command,
    Complete,
    Configure,
    Fail,
    Join,
    ListDead,
    Part,
    Pause,
    Purge,
    Redrive,
    Register,
    Release,
    Renew,
    Reply,
    Reserve,
    Reserved,
    Settled,
    SetWeight,
    Show,
    Stats,
    Submit,
    Trim,
    Wait,
    Winners,
)
from fairway.engine.draft import Draft
from fairway.engine.engine import Engine
from fairway.engine.lookups import Found
from fairway.engine.state import Start
from fairway.model.stored import Group, Meta
from fairway.model.submission import Described, Offer
from fairway.store.memory import MemoryStore, Shelf
from tests.engine import truth

Chunk = tuple[int, int]
Leases = Reserved | list[Part]


def parts(leases: Leases) -> list[Part]:
    """All leases of a reservation as they are given back."""
    if isinstance(leases, list):
        return leases
    return [Part(leases.epoch, leases.count, leases.seal, [span[:3] for span in leases.spans])]


def some(reserved: Reserved, *chunks: Chunk) -> list[Part]:
    """Some leases of a reservation."""
    return [Part(reserved.epoch, reserved.count, reserved.seal, [(id, index, 1) for id, index in chunks])]


def chunks(reserved: Reserved) -> list[Chunk]:
    """The chunks of a reservation in the order of the picks."""
    return [(id, index) for id, start, many, _ in reserved.spans for index in range(start, start + many)]


def attempts(reserved: Reserved) -> list[int]:
    return [attempt for _, _, many, attempt in reserved.spans for _ in range(many)]


def spread(settled: Settled) -> list[str]:
    return [outcome for outcome, many in settled.outcomes for _ in range(many)]


def offer(
    tenant: str = "a", n: int = 1, weight: int = 0, delay: float = 0.0, deadline: float = 0.0, **told: Any
) -> Offer:
    return Offer(Described(tenant, n, **told), (), weight, delay, deadline)


class Desk:
    """One queue. `audited` may be switched off where a test is long and checks what it is about itself."""

    usual_window = 0

    def __init__(
        self,
        now: float = 1_700_000_000.0,
        audited: bool = True,
        window: int = 0,
        fetched: int = 10_000,
        by_range: bool = False,
        steps: int = limits.PLAN_STEPS,
    ) -> None:
        self.shelf = Shelf(by_range=by_range)
        self.window = window or self.usual_window  # 0: everything fits
        self.fetched = fetched
        self.steps = steps  # of a slice of a new plan
        self.reads_go_on = True  # False: whoever tests makes the reads himself
        self.now = now
        self.audited = audited
        self.groups: list[Group] = []  # all that were stored, in order
        self.starts = 0
        self.grouping = False
        self._open(forget=False)

    def _open(self, forget: bool) -> None:
        self.starts += 1
        self.store = MemoryStore(self.shelf, "q")
        start = replace(self._start(forget), plan_steps=self.steps)
        if self.window:
            start = replace(start, window_rows=self.window, fetched_rows=self.fetched, gc_rows=limits.GC_ROWS)
        self.engine = Engine.load(self.store, self.store.take_over(), start)
        self.engine.tick(self.now)
        self.settle()

    def _start(self, forget: bool = False) -> Start:
        return Start("q", 7 + self.starts, 42 + self.starts, self.now, forget)

    @property
    def state(self) -> Any:
        return self.engine.state

    # -- groups and time

    def settle(self) -> None:
        """Store what is there to be stored, let the answers leave, and audit."""
        self.read_on()
        while (closing := self.engine.close_group(self.now)) is not None:
            if closing.group is not None:
                self.store.commit(closing.group)
                self.groups.append(closing.group)
            self.engine.stored(closing)
            self.read_on()
        if self.audited:
            self.audit()

    def read_on(self) -> None:
        """Make the reads that the window wants, and the plans."""
        if self.reads_go_on:
            self._read_on(self.engine)

    def _read_on(self, engine: Engine) -> None:
        for _ in range(5_000):
            if not engine.wants_reads():
                return
            for read in engine.begin_reads(self.now):
                engine.delivered(read, read.read(self.store), self.now)
        raise AssertionError("reads never come to rest")

    @contextmanager
    def one_group(self) -> Iterator[None]:
        """What is called inside goes into one group."""
        self.grouping = True
        try:
            yield
        finally:
            self.grouping = False
        self.settle()

    def pass_time(self, seconds: float) -> None:
        """Time passes, and what is due is done, each thing at its time."""
        until = self.now + seconds
        while self.engine.next_due <= until:
            self.now = max(self.now, self.engine.next_due)
            self.engine.tick(self.now)
            self.settle()
        self.now = until
        self.engine.tick(self.now)
        self.settle()

    def restart(self, down: float = 0.0, forget: bool = False) -> None:
        """The process is gone and comes back."""
        self.now += down
        self._open(forget)

    def power_loss(self) -> None:
        """What was not synced is gone; then a restart."""
        self.shelf.power_loss()
        self._open(forget=False)

    def audit(self) -> None:
        """Everything is as it must be, and a start would bring it back."""
        if not self.reads_go_on:
            self.engine.tick(self.now)  # a reserve that may not wait is put off until the store was asked
        truth.check(self.engine)
        assert self.engine.next_due > self.now
        fresh = self.fresh()
        truth.check(fresh)
        truth.same(self.engine, fresh)
        truth.covered(self.engine, fresh)

    def fresh(self) -> Engine:
        """What a start that has room for everything would make of the store, without taking over."""
        held = self.shelf.queue("q")
        meta = Meta(held.queue, held.range_id, held.number, held.meta)
        bound, lodging.WINDOW_BYTES_MAX = lodging.WINDOW_BYTES_MAX, 1 << 60
        try:
            fresh = Engine.load(self.store, meta, self._start())
            fresh.tick(self.now)
        finally:
            lodging.WINDOW_BYTES_MAX = bound
        return fresh

    # -- calls

    def send(self, command: Command, client: int = 0, number: int = 0, received: int = 0) -> Draft:
        """A call, answered or waiting."""
        call = Call(command, client, number, received)
        return self.carry_out(call, self.look_up(call))

    def look_up(self, call: Call) -> Found | None:
        """What a call needs from the store, as it is there now."""
        lookups = self.engine.lookups(call)
        return None if lookups is None else lookups.read(self.store)

    def carry_out(self, call: Call, found: Found | None) -> Draft:
        """A call with what was looked up for it, however long ago."""
        quiet = found is None or not self.window  # what a call names comes into memory, refused or not
        before = truth.footprint(self.engine) if self.audited and quiet else None
        draft = self.engine.execute(call, self.now, found)
        if not draft.answered:
            self.read_on()
        if before is not None and draft.error is not None:
            truth.untouched(self.engine, before)
        if not self.grouping:
            self.settle()
        return draft

    def call(self, command: Command, client: int = 0, number: int = 0, received: int = 0) -> Any:
        """A call that is answered at once."""
        reply = answer(self.send(command, client, number, received))
        if self.window and self.audited and isinstance(command, Reserve) and not self.grouping:
            self._believe(command, reply)
        return reply

    def _believe(self, command: Reserve, reply: Any) -> None:
        """Nobody is told "no work" by a window where one who sees everything would find some."""
        if not reply.spans and not command.consumer and "%" not in command.strategy:
            fresh = self.fresh()
            draft = fresh.execute(Call(command), self.now)
            self._read_on(fresh)
            seen = answer(draft)
            assert isinstance(seen, Reserved) and not seen.spans, f"wrong 'no work' for {command.strategy!r}"

    def submit(self, tenant: str = "a", n: int = 1, **told: Any) -> int:
        accepted: Accepted = self.call(Submit([offer(tenant, n, **told)]))
        return accepted.ids[0]

    def message(self, tenant: str = "a", **told: Any) -> int:
        return self.submit(tenant, 1, policy="dead_letter", **told)

    def reserve(self, max: int = 1, strategy: str = "", lease: float = 0.0) -> Reserved:
        return self.call(Reserve(max, strategy, lease))

    def wait_for_work(self, seconds: float, max: int = 1, strategy: str = "") -> Draft:
        return self.send(Reserve(max, strategy, wait_seconds=seconds))

    def named(self, consumer: str, epoch: int, seq: int, max: int = 100) -> Reserved:
        return self.call(Reserve(max, consumer=consumer, consumer_epoch=epoch, seq=seq))

    def complete(self, leases: Leases, results: list[bytes | None] | None = None, **told: Any) -> list[str]:
        return spread(self.call(Complete(parts(leases), results, **told)))

    def fail(self, leases: Leases, error: str = "bad", retry: bool = True, delay: float = -1.0) -> list[str]:
        return spread(self.call(Fail(parts(leases), error, retry, delay)))

    def renew(self, leases: Leases, seconds: float = 0.0) -> list[str]:
        return spread(self.call(Renew(parts(leases), seconds)))

    def release(self, leases: Leases) -> list[str]:
        return spread(self.call(Release(parts(leases))))

    def cancel(self, id: int) -> Any:
        return self.call(Cancel(id))

    def redrive(self, id: int) -> Any:
        return self.call(Redrive(id))

    def pause(self, tenant: str | None = None, submission: int = 0) -> None:
        self.call(Pause(True, tenant, submission))

    def resume(self, tenant: str | None = None, submission: int = 0) -> None:
        self.call(Pause(False, tenant, submission))

    def weigh(self, tenant: str, thousandths: int) -> None:
        self.call(SetWeight(tenant, thousandths))

    def configure(self, **changes: Any) -> Any:
        return self.call(Configure(changes))

    def join(self, consumer: str) -> int:
        return self.call(Join(consumer))

    def trim(self, consumer: str, epoch: int, seq: int, complete: bool = False) -> None:
        self.call(Trim(consumer, epoch, seq, complete))

    def purge(self, *ids: int, keys: list[tuple[str, str]] | None = None) -> Any:
        return self.call(Purge(list(ids), keys or []))

    def register(self) -> int:
        return self.call(Register())

    def show(self, id: int) -> Any:
        return self.call(Show(id))

    def wait(self, id: int, seconds: float) -> Draft:
        return self.send(Wait(id, seconds))

    def stats(self) -> Any:
        return self.call(Stats())

    def dead(self) -> list[Chunk]:
        return [(chunk.submission, chunk.index) for chunk in self.call(ListDead())]

    def winners(self, id: int, start: int = 0, count: int = 1000) -> Any:
        return self.call(Winners(id, start, count))

    # -- longer ways

    def drain(self, strategy: str = "", max: int = 1) -> list[Chunk]:
        """Reserve and complete until there is no work; gives the chunks in order."""
        got: list[Chunk] = []
        while (reserved := self.reserve(max, strategy)).spans:
            got += chunks(reserved)
            assert set(self.complete(reserved)) == {"done"}
        return got

    def tenants_of(self, reserved: Reserved) -> str:
        """The tenants of a reservation's chunks as one word."""
        return "".join(reserved.runs[id].tenant for id, _ in chunks(reserved))


def answer(draft: Draft) -> Reply:
    """What a call was answered."""
    assert draft.answered, "the call waits"
    if draft.error is not None:
        raise draft.error
    return draft.reply


def through_windows(test: Callable[..., None]) -> Callable[..., None]:
    """The promise of a test holds through every window: its desks have windows of 1, 2 and 8 rows too."""
    sizes = pytest.mark.parametrize("window", [0, 1, 2, 8], indirect=True, ids="window {}".format)
    return pytest.mark.usefixtures("window")(sizes(test))


def small_journal(monkeypatch: Any, groups: int = 2, objects: int = 1) -> None:
    """Objects are rewritten soon and few at a time, so that starts meet every mixture of objects and journal."""
    monkeypatch.setattr(dirty, "JOURNAL_GROUPS_MAX", groups)
    monkeypatch.setattr(dirty, "FLUSH_OBJECTS_PER_GROUP_MIN", objects)
    monkeypatch.setattr(closing, "JOURNAL_TRIM_GROUPS", 1)


def small_reads(monkeypatch: Any, rows: int) -> None:
    """Reads of a few rows, and places that are given up soon."""
    for name in ("READ_ROWS", "UNPARK_IDS", "SCAN_ROWS", "CARRY_ROWS", "GC_ROWS", "TIMES_ROWS"):
        monkeypatch.setattr(limits, name, rows)
    monkeypatch.setattr(search, "FETCH_ROWS", rows)
    monkeypatch.setattr(load, "TIMES_ROWS", rows)


def small_pages(monkeypatch: Any, chunks: int = 4) -> None:
    """Bitmap pages of a few chunks, so that small submissions have several, and sheets that do not hold one."""
    monkeypatch.setattr(sheets, "SHEET_ROWS", max(1, min(limits.SHEET_ROWS, chunks // 2)))
    for name, module in list(sys.modules.items()):
        if name.startswith("fairway.engine.") and hasattr(module, "PAGE_CHUNKS"):
            monkeypatch.setattr(module, "PAGE_CHUNKS", chunks)
