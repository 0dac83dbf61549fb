"""One program of calls, played on an engine in several ways: plainly, with restarts, with groups that go wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from fairway.engine import commands as c
from fairway.engine.state import Start
from fairway.errors import FairwayError
from fairway.store.memory.shelf import Fault, Shelf
from fairway.store.memory.store import MemoryStore
from fairway.testing.caller import Asked, Caller, Held
from fairway.testing.client_script import Script
from fairway.testing.history import Header, Recorder
from fairway.testing.owner import Owner
from fairway.testing.profile import OPS, Profile
from fairway.testing.vocabulary import reply_of

BEGIN = 1_800_000_000.0
AGES = 5000.0  # longer than any lease, delay, back-off and silence in a program
# What differs from owner to owner: one also counts idle tenants that it saw, and a lease that it restored ends later.
_TELLS_OWNERS = {"epoch", "groups", "calls", "syncs", "handed", "completed", "died", "tenants", "ended"}


def profile_of(seed: int) -> Profile:
    """What a program is made of. Nothing waits and nothing is left to chance: a restart would show."""
    dice = Random(f"program {seed}")
    return Profile(
        seed=seed,
        callers=1,
        tenants=dice.sample(["", "a", "b", "c"], 3),
        ops={
            op: rate
            for op, rate in OPS.items()
            if dice.random() < 0.8 or op in ("submit", "reserve", "complete")
        },
        faults={},
        fault_rate=0.0,
        reply_loss=0.0,
        pump_rate=1.0,
        ack_lag=dice.choice((0, 3)),
        strategies=["", "Fair", "Fair", "OldestFirst", "NewestFirst"],
        config={
            "attempts_max": dice.choice((1, 2, 4)),
            "consumer_silent_seconds": 3600.0,
            "retry_delay_seconds": 1.0,
        },
        chunks_max=dice.choice((3, 8, 30)),
        delays=dice.random() < 0.5,
        hungry=False,
        waits=False,
    )


class Player:
    """Plays one program. `fault` happens to group `at`; `restarts` puts a new owner after every step."""

    def __init__(
        self, seed: int, *, restarts: bool = False, fault: str = "", at: int = -1, batch: int = 1
    ) -> None:
        self.seed, self.restarts, self.fault, self.at, self.batch = seed, restarts, fault, at, batch
        self.now = BEGIN
        self.shelf = Shelf()
        self.shelf.faults = self._fault
        self.groups = self.starts = self.hit = 0
        self.told: list[Any] = []
        self.names: dict[int, str] = {}
        self.owner = self._start(0)
        self.script = Script(profile_of(seed))
        self.caller = Caller("player", Recorder(Header()), self.script.profile.ack_lag)

    def _start(self, above_id: int) -> Owner:
        self.starts += 1
        start = Start("q", self.starts, self.starts, self.now, above_id=above_id)
        return Owner(MemoryStore.open("q", self.shelf), start)

    def _fault(self, group: object) -> Fault:
        self.groups += 1
        if self.groups - 1 != self.at:
            return Fault.OK
        self.hit += 1
        if self.fault == "takeover":
            MemoryStore.open("q", self.shelf).take_over()
            return Fault.OK
        return Fault(self.fault)

    def ask(self, asked: list[Asked]) -> None:
        """Calls that go into one group; those that are refused by the store are asked again by number."""
        answers: dict[int, Any] = {}
        while len(answers) < len(asked):
            for n, one in enumerate(asked):
                if n not in answers:
                    sent = self.caller.send(one, self.now)
                    self.owner.put((n, sent), sent.call)
                    self.owner.execute(self.now)
            while self.owner.alive and self.owner.close(self.now):
                self.owner.commit()
            for answer in self.owner.outbox:
                n, sent = answer.sent
                if self.owner.alive or not isinstance(answer.error, FairwayError):
                    answers[n] = (sent, answer)
            self.owner.outbox.clear()
            if not self.owner.alive:
                self.owner = self._start(self.owner.engine.state.last_id)
                self.shelf.deliver_late()
        for n in range(len(asked)):
            self._hear(*answers[n])

    def _hear(self, sent: Any, answer: Any) -> None:
        self.caller.hear(sent, self.now, answer.reply, answer.error, None)
        command, reply = sent.call.command, answer.reply
        if answer.error is None:
            if isinstance(command, c.Register):
                self.caller.id, self.caller.joining = reply, None
            elif isinstance(command, c.Submit):
                self.script.known += [id for id in reply.ids if id not in self.script.known]
                for id in reply.ids:
                    self.names.setdefault(id, f"submission {len(self.names)}")
            elif isinstance(command, c.Cancel):
                self.script.broken.append(command.id)
            elif isinstance(command, c.Join):
                self.caller.consumer_epoch = reply
            elif isinstance(command, c.Goodbye):
                self.caller.forget_me()
        error = "" if answer.error is None else answer.error.code
        self.told.append([sent.asked.op, error, self._named(reply_of(reply))])

    def _named(self, value: Any) -> Any:
        """A reply in which ids are names, and without what tells owners apart."""
        if isinstance(value, dict):
            return {name: self._named(one) for name, one in value.items() if name not in _TELLS_OWNERS}
        if isinstance(value, list | tuple):
            return [self._named(one) for one in value]
        return self.names.get(value, value) if isinstance(value, int) else value

    def step(self, number: int) -> None:
        """One step of the program: time passes, then some calls are made."""
        dice = Random(f"{self.seed} play {number}")
        self.now += 0.001
        if dice.random() < 0.08:
            self.ages_pass()
        asked = [
            one for _ in range(self.batch) if (one := self.script.next(self.caller, dice, BEGIN)) is not None
        ]
        if asked:
            self.ask(asked)
        if self.restarts:
            self.owner = self._start(0)

    def ages_pass(self) -> None:
        """All leases run out: at once, or the next time if a new owner let them live a little longer."""
        for _ in range(3):
            self.now += AGES
            self.owner.engine.tick(self.now)
            while self.owner.alive and self.owner.close(self.now):
                self.owner.commit()
            if not self.owner.alive:
                self.owner = self._start(self.owner.engine.state.last_id)

    def do(self, command: c.Command) -> Any:
        self.ask([self.caller.ask(command, {})])
        return self.told[-1]

    def play(self, steps: int) -> list[Any]:
        """The whole program, then everything resumed and handed out one by one under plain Fair."""
        self.caller.joining = self.caller.ask(c.Register())
        self.ask([self.caller.joining])
        self.do(c.Configure(self.script.profile.config))
        for number in range(steps):
            self.step(number)
        if not self.caller.id:
            self.caller.joining = self.caller.ask(c.Register())
            self.ask([self.caller.joining])
        for tenant, submission in [
            (None, 0),
            *sorted(self.script.paused, key=lambda one: (str(one[0]), self.names.get(one[1], ""))),
        ]:
            self.do(c.Pause(False, tenant, submission))
        self.ages_pass()
        self.do(c.Stats())
        self._drain()
        for id in list(self.names):
            self.do(c.Show(id))
        return self.told

    def _drain(self) -> None:
        for _ in range(2000):
            said = self.do(c.Reserve(1, "Fair", 1000.0))[2]
            if not said["spans"]:
                return
            held: Held = self.caller.held[-1]
            self.do(c.Complete([held.part(held.chunks)]))
            if self.restarts:
                self.owner = self._start(0)


def plain(told: list[Any]) -> bytes:
    """What was told, as text that can be compared and shown."""
    return b"\n".join(msgspec.json.encode(one) for one in told)
