"""Random programs with every way a lease can end, on the engine, against the definition.

Leases are completed, failed, released, run out, or outlive a cancel; tenants and submissions are paused, time passes,
the process restarts, and what comes next is asked for. With everything in memory each reserve is exactly what the
definition says; through a window it is one that the definition admits.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from fairway import limits
from fairway.engine import load
from fairway.engine.commands import Explain, Reserve
from fairway.strategy.inflight import InFlight
from fairway.strategy.plan import Plan
from fairway.strategy.terms import Random, Strategy
from fairway.strategy.trial import Trial
from tests.engine.desk import Chunk, chunks, some
from tests.strategy.test_strategies_through_windows import TENANTS, Program

LEASE_SECONDS = (2.0, 10.0, 10_000.0)


class Lease:
    def __init__(self, receipt: list, chunk: Chunk, seconds: float, until: float) -> None:
        self.receipt, self.chunk, self.seconds, self.until = receipt, chunk, seconds, until


class Ends(Program):
    """The engine and the definition, told the same; `out` is what is leased, with the time at which it runs out."""

    def __init__(self, rng: random.Random, window: int) -> None:
        super().__init__(rng, window)
        self.desk.configure(attempts_max=limits.ATTEMPTS_MAX_MAX)  # nothing dies of being tried
        self.leases: list[Lease] = []
        self.did: Counter[str] = Counter()

    @override
    def step(self) -> None:
        way = self.rng.choices(list(WAYS), list(WAYS.values()))[0]
        self.did[way] += 1
        getattr(self, way)()

    def take(self) -> None:
        self.reserve(self.rng.choice([*self.strategies, self.chance]), self.rng.randint(1, 5))

    @override
    def reserve(self, strategy: Strategy, k: int) -> None:
        exact = not self.window and not any(tier.base is Random for tier in strategy.tiers())
        possible = bool(self.naive.possible(strategy)[1])
        seconds = self.rng.choice(LEASE_SECONDS)
        reply = self.desk.call(Reserve(k, str(strategy), seconds))
        got = chunks(reply)
        assert bool(got) == possible, f"wrong 'no work', or work that may not be: {strategy}"
        if exact:
            assert got == self.naive.take(k, strategy), str(strategy)
        else:
            self.follow(strategy, got)
        until = self.desk.now + seconds
        self.leases += [Lease(some(reply, chunk), chunk, seconds, until) for chunk in got]
        self.handed |= set(got)

    def _one(self) -> Lease | None:
        return self.leases.pop(self.rng.randrange(len(self.leases))) if self.leases else None

    def finish(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            lease = self._one()
            if lease is None:
                return
            ended = self.naive.subs[lease.chunk[0]].cancelled
            assert self.desk.complete(lease.receipt) == ["ended" if ended else "done"]
            self.naive.complete(*lease.chunk)

    def fail(self) -> None:
        lease = self._one()
        if lease is not None:
            ended = self.naive.subs[lease.chunk[0]].cancelled
            assert self.desk.fail(lease.receipt, delay=0.0) == ["ended" if ended else "retrying"]
            self.naive.give_back(*lease.chunk)

    def release(self) -> None:
        lease = self._one()
        if lease is not None:
            self.desk.release(lease.receipt)
            self.naive.give_back(*lease.chunk)

    def time(self) -> None:
        """Time passes; leases run out at their time."""
        self.desk.pass_time(self.rng.choice([0.5, 2.0, 11.0]))
        over = [lease for lease in self.leases if lease.until <= self.desk.now]
        self.leases = [lease for lease in self.leases if lease.until > self.desk.now]
        for lease in over:
            self.naive.give_back(*lease.chunk)
            self.did["expired"] += 1

    def cancel(self) -> None:
        active = [
            sub for sub in self.naive.subs.values() if not sub.cancelled and (sub.waiting or sub.leased)
        ]
        if active:
            sub = self.rng.choice(active)
            self.desk.cancel(sub.id)
            self.naive.cancel(sub.id)
            self.submitted -= {(sub.id, index) for index in sub.waiting} - self.handed
            self.did["cancelled with leases"] += bool(sub.leased)

    def weigh(self) -> None:
        tenant, weight = self.rng.choice(TENANTS), self.rng.choice([10, 500, 1000, 3000, 100_000])
        self.desk.weigh(tenant, weight)
        self.naive.set_weight(tenant, weight)

    def restart(self) -> None:
        self.desk.restart(down=self.rng.choice([0.0, 5.0]))
        self.naive.restart()
        for lease in self.leases:
            lease.until = max(lease.until, self.desk.now + min(lease.seconds, limits.RESTORED_LEASE_SECONDS))

    def explain(self) -> None:
        """What is told changes nothing, and is what comes; a lane is as young for the definition as for the plan."""
        strategy = self.rng.choice(self.strategies)
        told = self.desk.call(Explain(str(strategy), self.rng.randint(1, 6)))
        self.naive.understand(strategy)
        assert ("nothing can be handed out" in told) == (not self.naive.possible(strategy)[1])

    @override
    def pause(self) -> None:
        """As before, but an ended submission has no pause."""
        on, rng = self.rng.random() < 0.5, self.rng
        active = [
            sub for sub in self.naive.subs.values() if not sub.cancelled and (sub.waiting or sub.leased)
        ]
        if rng.random() < 0.5 or not active:
            tenant = rng.choice(TENANTS)
            (self.desk.pause if on else self.desk.resume)(tenant)
            (self.naive.paused.add if on else self.naive.paused.discard)(tenant)
        else:
            sub = rng.choice(active)
            (self.desk.pause if on else self.desk.resume)(submission=sub.id)
            sub.paused = on

    @override
    def drain(self) -> None:
        for tenant in TENANTS:
            self.desk.resume(tenant)
        self.naive.paused.clear()
        for sub in self.naive.subs.values():
            if sub.paused and not sub.cancelled and (sub.waiting or sub.leased):
                self.desk.resume(submission=sub.id)
                sub.paused = False
        while any(sub.leased or (sub.waiting and not sub.cancelled) for sub in self.naive.subs.values()):
            for strategy in [*self.strategies, self.chance, self.last]:
                self.reserve(strategy, 5)
            while self.leases:
                self.finish()
        assert self.handed >= self.submitted


WAYS = {
    "submit": 30,
    "take": 28,
    "finish": 14,
    "fail": 6,
    "release": 4,
    "time": 8,
    "cancel": 4,
    "pause": 6,
    "weigh": 4,
    "restart": 4,
    "explain": 5,
}


def run(rng: random.Random, window: int, steps: int) -> Ends:
    program = Ends(rng, window)
    for _ in range(steps):
        program.step()
    program.drain()
    return program


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 60), st.sampled_from([0, 0, 0, 1, 2, 8]))
def test_every_reserve_is_what_the_definition_says_however_leases_end(
    rng: random.Random, steps: int, window: int
) -> None:
    run(rng, window, steps)


@pytest.mark.parametrize("window", [0, 2])
def test_every_reserve_is_what_the_definition_says_in_long_programs(window: int) -> None:
    did: Counter[str] = Counter()
    for seed in range(24):
        did += run(random.Random(f"{seed} {window}"), window, 90).did
    assert min(did[way] for way in (*WAYS, "expired", "cancelled with leases")) > 10, did


PLANTED: dict[str, tuple[object, str, object]] = {
    "what was only told stays charged": (Plan, "lowered", lambda plan, tenants: None),
    "what was only told stays taken": (Trial, "back", lambda trial: ([], set())),
    "a count is never lowered": (InFlight, "freed", lambda counts, run, n, but=(): False),
    "a restored lease has no time left to it": (load, "RESTORED_LEASE_SECONDS", 0.0),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_seen_in_programs(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[mistake])
    with pytest.raises(AssertionError):
        for seed in range(200):
            run(random.Random(f"{seed} 0"), 0, 90)
