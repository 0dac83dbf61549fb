"""The simulated world: one disk, its owners, the callers, a clock, and everything that can go wrong.

Guards: one seed, one history: every step has dice of its own, so steps can be left out without changing the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from msgspec.structs import replace

from fairway.engine import commands as c
from fairway.engine.draft import Draft
from fairway.engine.engine import Engine
from fairway.engine.state import Start, State
from fairway.engine.timing import counted_on
from fairway.errors import StoreFailed
from fairway.fair.levels import START as LEVEL_START
from fairway.model.event import events_of
from fairway.model.page import results_of as page_results
from fairway.model.stored import Kind
from fairway.store.memory.shelf import Fault, Shelf
from fairway.store.memory.store import MemoryStore
from fairway.store.port import Store
from fairway.testing.caller import Asked, Caller, Sent
from fairway.testing.client_script import Script
from fairway.testing.fuse import Fuse, FusedStore, Stopped
from fairway.testing.history import Header, Recorder
from fairway.testing.owner import LoadEngine, Owner, Said
from fairway.testing.profile import Profile
from fairway.testing.vocabulary import reply_of

QUEUE = "sim"
BEGIN = 1_800_000_000.0
PATIENCE_SECONDS = 3.0  # then a caller sends its request again
ZOMBIES_MAX = 2


class Disk(Protocol):
    """What outlives the owners; `faults` says what becomes of the next group."""

    faults: Callable[[Any], Fault]

    def deliver_late(self) -> object:
        """What was on its way arrives."""
        ...

    def power_loss(self) -> None:
        """What was not synced is gone."""
        ...


class World:
    """Everything of one simulated history."""

    owner_of = Owner

    def __init__(self, profile: Profile, load: LoadEngine = Engine.load, shelf: Disk | None = None) -> None:
        self.profile = profile
        self.load = load
        self.now = BEGIN
        self.wall_shift = 0.0
        self.shelf: Disk = shelf or Shelf(by_range=profile.by_range)
        self.shelf.faults = self._commit_fault
        self.next_fault = Fault.OK
        self.fuse = Fuse()
        header = Header(queue=QUEUE, drained=True, origin={"seed": profile.seed}, window=profile.window)
        steps = {"plan_steps": profile.plan_steps} if profile.plan_steps else {}
        header = replace(header, carries=profile.by_range, **steps)
        self.recorder = Recorder(header)
        self.script = Script(profile)
        self.owner: Owner | None = None
        self.zombies: list[Owner] = []
        self.offsets: dict[int, float] = {}  # an owner's clock less the world's
        self.starts = 0
        self.above_id = 0
        self.forgets = False  # the next start forgets all leases
        self.callers = [Caller(f"caller{n}", self.recorder, profile.ack_lag) for n in range(profile.callers)]
        self.faults: Counter[str] = Counter()
        self.calls = 0

    # -- the owner

    def start(self, dice: Random) -> None:
        """A new owner takes over."""
        wall = self.now + self.wall_shift
        if self.profile.skew_seconds:
            wall += dice.uniform(-self.profile.skew_seconds, self.profile.skew_seconds)
        forget, self.forgets = self.forgets, False
        start = Start(QUEUE, dice.getrandbits(32), dice.getrandbits(63), wall, forget, self.above_id)
        if self.profile.window:
            more = {"fetched_rows": self.profile.fetched, "gc_rows": 2}
            start = replace(start, window_rows=self.profile.window, **more)
        if self.profile.plan_steps:
            start = replace(start, plan_steps=self.profile.plan_steps)
        if self.profile.journal_groups:
            start = replace(start, journal_groups=self.profile.journal_groups)
        self.starts += 1
        store = FusedStore(self.open_store(), self.fuse)
        try:
            owner = self.owner_of(store, start, self.load)  # pyright: ignore[reportArgumentType]
        except Stopped:
            self.faults["crash_in_start"] += 1
            return
        except StoreFailed:
            self.faults["failed_start"] += 1
            return
        self.offsets[id(owner)] = counted_on(wall - self.now, owner.engine.state.now, self.now)
        self.owner = owner
        more: dict[str, Any] = {"forget_leases": True} if forget else {}
        self.recorder.note(self.now, "start", clock=wall, **more)

    def open_store(self) -> Store:
        """A new handle on the disk."""
        assert isinstance(self.shelf, Shelf)
        return MemoryStore.open(QUEUE, self.shelf)

    def clock(self, owner: Owner) -> float:
        """What an owner believes the time to be."""
        return self.now + self.offsets[id(owner)]

    def down(self, what: str) -> None:
        """The owner is gone, with everything it had not sent."""
        if self.owner is not None:
            self.recorder.note(self.now, what)
            # The same process goes on with a new engine; one that crashed remembers nothing.
            self.above_id = 0 if self.owner.alive else self.owner.engine.state.last_id
        self.owner = None

    def calm(self) -> None:
        """Nothing goes wrong from now on, and what was late arrives."""
        self.next_fault = Fault.OK
        self.fuse.left = -1
        self.zombies.clear()
        self.shelf.deliver_late()

    def _commit_fault(self, group: object) -> Fault:
        fault, self.next_fault = self.next_fault, Fault.OK
        if fault is not Fault.OK:
            self.faults[fault.value] += 1
        return fault

    # -- calls

    def send(self, caller: Caller, asked: Asked, dice: Random) -> None:
        """A request leaves its caller; nobody may be there to take it."""
        sent = caller.send(asked, self.now)
        self.calls += 1
        owners = [owner for owner in (self.owner, *self.zombies) if owner is not None and owner.alive]
        if owners:
            # A caller that has not heard of the new owner still speaks to the old one.
            owner = owners[0] if dice.random() < 0.7 else dice.choice(owners)
            owner.put(sent, sent.call)

    def resend(self, dice: Random, patience: float = PATIENCE_SECONDS) -> None:
        """Callers that waited long enough send their open requests again."""
        for caller in self.callers:
            for asked in list(caller.open.values()):
                waits = getattr(asked.command, "wait_seconds", 0.0) + getattr(asked.command, "seconds", 0.0)
                if self.now - asked.sent_at >= patience + waits:
                    self.send(caller, asked, dice)

    def deliver(self, owner: Owner, dice: Random, loss: float) -> None:
        """Everything that left an owner arrives, or is lost on the way."""
        while owner.outbox:
            answer = owner.outbox.popleft()
            if loss and dice.random() < loss:
                self.faults["lost_reply"] += 1
                continue
            self._arrive(owner, answer)

    def _arrive(self, owner: Owner, answer: Said) -> None:
        sent: Sent = answer.sent
        payloads = None
        if isinstance(answer.reply, c.Reserved):
            payloads = owner.payloads(answer.reply)
        sent.caller.hear(sent, self.now, answer.reply, answer.error, payloads)
        self._learn(sent, answer)

    def _learn(self, sent: Sent, answer: Said) -> None:
        caller, command, reply = sent.caller, sent.call.command, answer.reply
        if answer.error is not None:
            return
        if isinstance(command, c.Register) and caller.joining is sent.asked:
            caller.id, caller.joining = reply, None
        elif isinstance(command, c.Submit):
            self.script.known += [id for id in reply.ids if id not in self.script.known]
        elif isinstance(command, c.Cancel):
            self.script.broken.append(command.id)
        elif isinstance(command, c.Fail) and any(outcome == "dead" for outcome, _ in reply.outcomes):
            self.script.broken.append(command.parts[0].spans[0][0])
        elif isinstance(command, c.Join) and command.consumer == caller.consumer:
            caller.consumer_epoch = reply
        elif isinstance(command, c.Goodbye):
            caller.forget_me()

    # -- one owner's work

    def pump(self, owner: Owner, dice: Random, loss: float) -> None:
        """Bring everything through: execute, close, store, deliver."""
        owner.execute_looked(self.clock(owner))
        while owner.alive and owner.inbox:
            owner.execute(self.clock(owner))
        self._store_all(owner)
        self.deliver(owner, dice, loss)

    def _store_all(self, owner: Owner) -> None:
        """Store what is open; in between the window reads what it wants, and plans are made."""
        for _ in range(4 if self.profile.reads_on else 2):
            if owner.alive and (self.profile.reads_on or owner.engine.wants_reads()):
                owner.read_on(self.clock(owner))
            if owner.alive and owner.close(self.clock(owner)):
                self.commit(owner)

    def commit(self, owner: Owner) -> None:
        """Store the closed group; what an owner without the queue says from memory is not sent."""
        stale = owner is not self.owner and owner.closing is not None and owner.closing.group is None
        if stale:
            owner.closing = None
            return
        told = owner.commit()
        if told not in ("stored", "idle"):
            self.recorder.note(self.now, "group", outcome=told)

    def tick(self, owner: Owner) -> None:
        if owner.engine.next_due <= self.clock(owner):
            owner.engine.tick(self.clock(owner))

    # -- reads that are made at one instant

    def census(self, caller: Caller) -> None:
        """Counts, active submissions and tenants as of one instant."""
        owner = self.owner
        if owner is None or not owner.alive:
            return
        line = self.recorder.begin(self.now, caller.name, "census", {})
        drafts = [
            self._read(owner, command) for command in (c.Stats(), c.ListActive(limit=10_000), c.Tenants())
        ]
        left: list[Draft] = []
        for draft in drafts:
            draft.on_leave = left.append
        self.pump_reads(owner)
        if len(left) == len(drafts):
            stats, active, tenants = (reply_of(draft.reply) for draft in drafts)
            self.recorder.end(self.now, line, {"stats": stats, "active": active, "tenants": tenants})

    def _read(self, owner: Owner, command: c.Command) -> Draft:
        """Execute a command with what it needs from the store."""
        lookups = owner.engine.lookups(c.Call(command))
        found = None if lookups is None else lookups.read(owner.store)
        return owner.engine.execute(c.Call(command), self.clock(owner), found)

    def pump_reads(self, owner: Owner) -> None:
        """Store what is open, so that what was read may be told."""
        self._store_all(owner)

    def results(self, caller: Caller, submission: int) -> None:
        """Read the registered results of a submission, as `collect` does."""
        owner = self.owner
        if owner is None:
            return
        line = self.recorder.begin(self.now, caller.name, "results", {"sub": submission})
        pages = owner.store.results(submission, 0, 1_000_000)
        pairs = sorted(pair for page in pages for pair in page_results(page.body))
        self.recorder.end(self.now, line, [[index, body.decode("latin-1")] for index, body in pairs])

    def events(self, caller: Caller) -> None:
        """Read the whole event log, as the audit does."""
        owner = self.owner
        assert owner is not None
        line = self.recorder.begin(self.now, caller.name, "events", {})
        batches = owner.store.events(0, 1_000_000)
        told = [event for number, _, body in batches for event in events_of(number, body)]
        self.recorder.end(self.now, line, reply_of(told))

    def left(self, newcomer: str | None = None) -> dict[str, int]:
        """How much the store has that is of nothing any more, once nothing is active or leased.

        With a newcomer, whose turns are above all others': nothing of idle tenants and of silent clients either.
        """
        owner = self.owner
        assert owner is not None
        store, state = owner.store, owner.engine.state
        many = {kind.name.lower(): sum(1 for _ in store.objects(kind)) for kind in (Kind.PROGRESS, Kind.HOLD)}
        gone = [id for id in self.script.known if store.run(id) is None]
        many["page"] = sum(1 for id in gone if any(True for _ in store.objects(Kind.PAGE, id)))
        many["payloads"] = len(store.pages([(id, 0) for id in gone]))
        many["results"] = sum(1 for id in gone if store.results(id, 0, 1))
        keys = {store.key(tenant, key) for tenant, key in self.script.keys}
        many["key"] = sum(1 for row in keys if row is not None and row.id in gone and not row.expires)
        if newcomer is not None:
            many["place"] = len(store.above(LEVEL_START, 1000))
            many["client"] = sum(1 for _ in store.objects(Kind.CLIENT))
            idle = (
                {str(key) for key, _, _ in store.objects(Kind.TENANT)}
                - state.tables.weight.keys()
                - {newcomer}
            )
            many["tenant"] = sum(1 for name in idle if not self._is_owed(state, name))
        return {name: n for name, n in many.items() if n}

    @staticmethod
    def _is_owed(state: State, tenant: str) -> bool:
        """Whether a tenant is paused, or leaves with one of the next groups."""
        paused = tenant in state.tenants and state.tenants[tenant].paused
        return paused or tenant in state.tables.plain.moved or (Kind.TENANT, tenant, 0) in state.dirty

    def sweep(self) -> bool:
        """What the runtime's sweeper does: remove what is older than its retention; whether there was anything."""
        owner = self.owner
        if owner is None or not owner.alive:
            return False
        config, now = owner.engine.state.config, self.clock(owner)
        ids = [id for _, id in owner.store.ended_before(now - config.retention_seconds, 500)]
        keys = owner.store.keys_expired(now, 500)
        self._read(owner, c.Purge(ids, keys, now - config.event_seconds))
        return bool(ids or keys)
