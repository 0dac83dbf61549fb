"""Any sequence of calls, restarts and power losses: the audit of the desk holds after each of them.

Beside the audit a small model that knows nothing of the engine keeps what a caller may rely on.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, precondition, rule

from fairway.engine.commands import (
    Call,
    Complete,
    Fail,
    Goodbye,
    Join,
    Redrive,
    Release,
    Renew,
    Reserve,
    Reserved,
    Submit,
    Trim,
)
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
    some,
    spread,
)

TENANTS = st.sampled_from("abc")
STRATEGIES = st.sampled_from(["", "Fair", "OldestFirst", "NewestFirst", "Random"])
LEASES = st.sampled_from([5.0, 60.0, 400.0])
KEYS = st.sampled_from(["", "", "k1", "k2"])


class EveryVerb(RuleBasedStateMachine):
    submissions: Bundle[int] = Bundle("submissions")
    reservations: Bundle[Reserved] = Bundle("reservations")

    @initialize(
        groups=st.sampled_from([0, 1, 3, 512]),
        objects=st.sampled_from([1, 2, 256]),
        page=st.sampled_from([2, 65536]),
    )
    def open(self, groups: int, objects: int, page: int) -> None:
        self.patch = pytest.MonkeyPatch()
        small_journal(self.patch, groups, objects)
        small_pages(self.patch, page)
        self.desk = Desk()
        self.client, self.number, self.received = self.desk.register(), 0, 0
        self.epochs: dict[str, int] = {}
        self.waiters: list[Any] = []
        self.forget_all()

    def forget_all(self) -> None:
        self.latest: dict[Chunk, tuple[int, int]] = {}  # the last reservation of each chunk that was told
        self.done: dict[Chunk, tuple[int, int]] = {}
        self.purged: set[int] = set()
        self.last: tuple[Any, Any] | None = None

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            self.desk.grouping = False
            self.desk.settle()
            self.patch.undo()

    # -- what a caller may rely on

    def handed(self, reserved: Reserved) -> Reserved:
        for chunk in chunks(reserved):
            assert chunk not in self.done, "handed out after its final state"
            self.latest[chunk] = (reserved.epoch, reserved.count)
        return reserved

    def completed(self, given: list[Any], outcomes: list[str]) -> None:
        named = [
            ((id, i), (p.epoch, p.count)) for p in given for id, s, n in p.spans for i in range(s, s + n)
        ]
        for (chunk, attempt), outcome in zip(named, outcomes, strict=True):
            if outcome == "done":
                assert chunk not in self.done, "two results of one chunk"
                assert self.latest.get(chunk, attempt) == attempt, "a result after a later reservation"
                self.done[chunk] = attempt
            elif chunk[0] not in self.purged:
                assert (outcome == "already") == (self.done.get(chunk) == attempt)

    def try_(self, command: Any, numbered: bool = False) -> Any:
        """A call whose refusal is fine."""
        try:
            if numbered:
                return self.numbered(command)
            return self.desk.call(command)
        except FairwayError:
            return None

    def numbered(self, command: Any) -> Any:
        self.number += 1
        self.last = (command, None)
        try:
            reply = self.desk.call(command, self.client, self.number, self.received)
        except ClientUnknown:
            self.client, self.number, self.received = self.desk.register(), 0, 0
            self.last = None
            raise
        self.last = (command, reply)
        return reply

    # -- producers

    @rule(
        target=submissions, tenant=TENANTS, n=st.integers(0, 7), policy=st.sampled_from(["fail_fast", "dead_letter"]),
        key=KEYS, content=st.sampled_from([b"1", b"2"]), delay=st.sampled_from([0.0, 0.0, 20.0]),
        deadline=st.sampled_from([0.0, 0.0, 100.0]), weight=st.sampled_from([0, 0, 3, 2500]),
        attempts=st.sampled_from([0, 1, 2]), numbered=st.booleans(),
    )  # fmt: skip
    def submit(self, tenant, n, policy, key, content, delay, deadline, weight, attempts, numbered):
        told = {
            "policy": policy,
            "attempts_max": attempts,
            "key": key,
            "fingerprint": content if key else b"",
        }
        offers = [offer(tenant, n, weight, delay, deadline, **told), offer("b", 1)]
        reply = self.try_(Submit(offers), numbered)
        return multiple() if reply is None else multiple(*reply.ids)

    @rule(id=submissions)
    def cancel(self, id):
        try:
            self.desk.cancel(id)
        except FairwayError:
            return

    @rule(id=submissions)
    def redrive(self, id):
        self.try_(Redrive(id))

    @rule(id=submissions)
    def look(self, id):
        try:
            shown = self.desk.show(id)
        except FairwayError:
            return
        mine = [chunk for chunk in self.done if chunk[0] == id]
        assert shown.done == len(mine)
        wins = [(w.start + i, w.epoch, w.reservation) for w in self.desk.winners(id) for i in range(w.count)]
        assert sorted(wins) == sorted((index, *self.done[id, index]) for _, index in mine)

    # -- workers

    @rule(
        target=reservations, max=st.integers(1, 6), strategy=STRATEGIES, lease=LEASES, numbered=st.booleans()
    )
    def reserve(self, max, strategy, lease, numbered):
        reply = self.try_(Reserve(max, strategy, lease), numbered)
        return multiple() if reply is None or not reply.spans else self.handed(reply)

    @rule(seconds=st.sampled_from([1.0, 50.0, 1000.0]), strategy=STRATEGIES)
    def wait_for_work(self, seconds, strategy):
        self.waiters.append(self.desk.wait_for_work(seconds, 2, strategy))

    @precondition(lambda self: self.waiters)
    @rule(target=reservations, abandon=st.booleans())
    def served(self, abandon):
        draft = self.waiters.pop(0)
        if draft.answered:
            reply = answer(draft)
            return self.handed(reply) if reply.spans else multiple()
        self.desk.engine.abandon(draft) if abandon else self.waiters.append(draft)
        return multiple()

    @rule(reserved=reservations, cut=st.integers(0, 5), numbered=st.booleans())
    def complete(self, reserved, cut, numbered):
        given = self.cut(reserved, cut)
        reply = self.try_(Complete(given), numbered)
        if reply is not None:
            self.settle_waiters()
            self.completed(given, spread(reply))

    @rule(
        reserved=reservations,
        cut=st.integers(0, 5),
        retry=st.booleans(),
        delay=st.sampled_from([-1.0, 0.0, 3.0]),
    )
    def fail(self, reserved, cut, retry, delay):
        self.try_(Fail(self.cut(reserved, cut), "bad", retry, delay))

    @rule(reserved=reservations, cut=st.integers(0, 5), seconds=LEASES)
    def renew(self, reserved, cut, seconds):
        self.try_(Renew(self.cut(reserved, cut), seconds))

    @rule(reserved=reservations, cut=st.integers(0, 5), numbered=st.booleans())
    def release(self, reserved, cut, numbered):
        self.try_(Release(self.cut(reserved, cut)), numbered)

    def cut(self, reserved: Reserved, cut: int) -> list[Any]:
        mine = chunks(reserved)
        return some(reserved, *mine[cut:]) if cut < len(mine) else parts(reserved)

    def settle_waiters(self) -> None:
        """What waiters were given is told before anything that came after it is looked at."""
        for draft in self.waiters:
            if draft.answered and draft.reply is not None:
                for chunk in chunks(draft.reply):
                    if self.latest.get(chunk, (0, 0))[1] < draft.reply.count:
                        self.latest[chunk] = (draft.reply.epoch, draft.reply.count)

    # -- named consumers

    @rule(name=st.sampled_from(["c", "d"]))
    def join(self, name):
        self.epochs[name] = self.desk.call(Join(name))

    @precondition(lambda self: self.epochs)
    @rule(target=reservations, seq=st.integers(0, 2), max=st.integers(1, 4), data=st.data())
    def named(self, seq, max, data):
        name = data.draw(st.sampled_from(sorted(self.epochs)))
        reply = self.try_(Reserve(max, consumer=name, consumer_epoch=self.epochs[name], seq=seq))
        if reply is None or not reply.spans:
            return multiple()
        for chunk in chunks(reply):
            if self.latest.get(chunk, (0, 0))[1] < reply.count:
                self.latest[chunk] = (reply.epoch, reply.count)
        return reply

    @precondition(lambda self: self.epochs)
    @rule(seq=st.integers(0, 2), data=st.data())
    def trim(self, seq, data):
        name = data.draw(st.sampled_from(sorted(self.epochs)))
        self.try_(Trim(name, self.epochs[name], seq))

    # -- operators

    @rule(on=st.booleans(), tenant=TENANTS)
    def pause_tenant(self, on, tenant):
        (self.desk.pause if on else self.desk.resume)(tenant=tenant)

    @rule(on=st.booleans())
    def pause_queue(self, on):
        (self.desk.pause if on else self.desk.resume)()

    @rule(on=st.booleans(), id=submissions)
    def pause_submission(self, on, id):
        try:
            (self.desk.pause if on else self.desk.resume)(submission=id)
        except FairwayError:
            return

    @rule(tenant=TENANTS, weight=st.sampled_from([1000, 10, 333, 100_000]))
    def weigh(self, tenant, weight):
        self.desk.weigh(tenant, weight)

    @rule(attempts=st.integers(1, 3), retry=st.sampled_from([0.0, 1.0, 10.0]))
    def configure(self, attempts, retry):
        self.desk.configure(attempts_max=attempts, retry_delay_seconds=retry)

    @rule(id=submissions)
    def purge(self, id):
        self.desk.configure(retention_seconds=0.0)
        if self.desk.purge(id, keys=[("a", "k1"), ("b", "k2")]):
            self.purged.add(id)
        self.desk.configure(retention_seconds=1e6)

    # -- requests

    @precondition(lambda self: self.last is not None and self.last[1] is not None)
    @rule()
    def repeat(self):
        command, reply = self.last
        again = self.desk.call(command, self.client, self.number, self.received)
        if not isinstance(reply, Reserved):
            assert again == reply
        elif reply.spans:
            assert (again.count, again.spans) == (reply.count, reply.spans)

    @rule()
    def acknowledge(self):
        self.received, self.last = self.number, None

    @rule()
    def goodbye(self):
        self.desk.engine.execute(Call(Goodbye(), self.client), self.desk.now)
        self.desk.grouping or self.desk.settle()
        self.client, self.number, self.received = self.desk.register(), 0, 0
        self.last = None

    # -- time and trouble

    @rule(seconds=st.sampled_from([0.0, 1.0, 6.0, 30.0, 100.0, 4000.0]))
    def pass_time(self, seconds):
        self.end_group()
        self.desk.pass_time(seconds)

    @rule()
    def begin_group(self):
        self.desk.grouping = True

    @rule()
    def end_group(self):
        self.desk.grouping = False
        self.desk.settle()

    @rule(down=st.sampled_from([0.0, 10.0, 500.0]))
    def restart(self, down):
        self.end_group()
        self.settle_waiters()
        self.waiters = []
        self.desk.restart(down)

    @rule(down=st.sampled_from([0.0, 10.0]))
    def restart_and_forget_leases(self, down):
        self.end_group()
        self.settle_waiters()
        self.waiters = []
        self.desk.restart(down, forget=True)
        assert self.desk.state.leased == 0

    @rule()
    def power_loss(self):
        """What is synced stays; leases, and with them what this model knows of them, may be gone."""
        self.end_group()
        self.waiters = []
        done, purged = self.done, self.purged
        self.desk.power_loss()
        self.forget_all()
        self.done, self.purged = done, purged
        self.client, self.number, self.received = self.desk.register(), 0, 0


EveryVerb.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestEveryVerb = EveryVerb.TestCase
