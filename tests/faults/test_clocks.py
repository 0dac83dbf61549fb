"""Clocks that jump by an hour, both ways, while leases, delays and deadlines are out.

Guards: clocks decide when, never whether: no chunk has two holders, nothing comes early, nothing is lost.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairway
from fairway.model.lease import Lease
from fairway.runtime.looking import look
from fairway.store.sqlite import SqliteStore
from fairway.testing.checker import check_history
from fairway.testing.history import load
from tests.faults.clocks import HOUR, Clocks
from tests.faults.machine import queue_on
from tests.faults.script import Script
from tests.kill.counting import acknowledged
from tests.kill.draining import drain
from tests.kill.follower import Follower
from tests.kill.recorded import Given, Lines
from tests.proving import Kept

OPERATIONS = 150  # of a script

pytestmark = pytest.mark.real


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    clocks.put_into(monkeypatch, "fairway.runtime.clock")
    return clocks


@contextmanager
def opened(path: Path) -> Iterator[fairway.Queue]:
    q, _ = queue_on(SqliteStore.open(path, "default"))
    with q:
        yield q


def busy(q: fairway.Queue) -> Lease:
    """A lease of a minute that is out, a message that is due in ten minutes, a submission that is over by then."""
    q.put(b"held")
    (held,) = q.reserve(lease_seconds=60)
    q.put(b"later", delay_seconds=600)
    over = q.submit([b"over"], deadline_seconds=600, delay_seconds=599)
    assert q.submission(over.id).state == "active"
    return held


def payloads(q: fairway.Queue) -> list[bytes | None]:
    return [lease.payload for lease in q.reserve(10, lease_seconds=60)]


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_wall_clock_that_is_set_while_the_queue_is_open_changes_nothing(
    tmp_path: Path, clocks: Clocks, jump: float
) -> None:
    with opened(tmp_path / "work.db") as q:
        held = busy(q)
        clocks.wall += jump
        assert payloads(q) == [], "not handed out twice, and not early"
        assert q.stats().submissions_active == 3
        assert q.complete(held, result=b"done") == "done"


def test_a_wall_clock_that_was_set_back_before_a_start_ends_nothing_and_repeats_nothing(
    tmp_path: Path, clocks: Clocks
) -> None:
    with opened(tmp_path / "work.db") as q:
        held = busy(q)
        last = max(one.id for one in q.submissions())
    clocks.wall -= HOUR
    with opened(tmp_path / "work.db") as q:
        assert payloads(q) == []
        assert q.put(b"new").id > last, "ids rise whatever the clock says"
        assert payloads(q) == [b"new"]
        assert q.complete(held, result=b"done") == "done"


MINUTE = 60.0


def test_time_goes_on_after_a_start_with_the_wall_clock_set_back(tmp_path: Path, clocks: Clocks) -> None:
    """From the time that is stored, at once, and no further than the seconds that pass."""
    with opened(tmp_path / "work.db") as q:
        busy(q)
        last = q.put(b"last").created
        (lease,) = q.reserve(lease_seconds=60)
    clocks.wall -= HOUR
    with opened(tmp_path / "work.db") as q:
        assert last <= q.put(b"new", delay_seconds=90).created < last + MINUTE, "not back, and no leap"
        assert q.reserve(10) == [], "no lease is over early"
        clocks.slept += MINUTE + 1
        (held, again) = q.reserve(10, lease_seconds=60)
        assert (held.payload, again.payload, again.attempt) == (b"held", b"last", lease.attempt + 1)
        clocks.slept += MINUTE
        assert b"new" in payloads(q), "delays run"
        clocks.slept += 10 * MINUTE
        assert b"later" in payloads(q)
        assert [one.state for one in q.submissions(state="failed")] == ["failed"], "deadlines too"


def test_waits_end_after_a_start_with_the_wall_clock_set_back(tmp_path: Path, clocks: Clocks) -> None:
    path = tmp_path / "work.db"
    with opened(path) as q:
        q.put(b"x")
        held = q.reserve(lease_seconds=60)
    clocks.wall -= HOUR
    found: list[list[Lease]] = []
    with opened(path) as q:
        sent = time.monotonic()
        waiting = threading.Thread(target=lambda: found.append(q.reserve(wait_seconds=0.2)), daemon=True)
        waiting.start()
        waiting.join(20)
        assert (found, len(held)) == ([[]], 1)
        assert time.monotonic() - sent >= 0.2


def test_time_goes_on_for_who_takes_over_with_a_wall_clock_that_is_behind(
    tmp_path: Path, clocks: Clocks
) -> None:
    """The process takes its own queue over anew, by the same steps as the queue of a host that died."""
    path = tmp_path / "work.db"
    with fairway.open(path) as q:
        last = q.put(b"held").created
        (held,) = q.reserve(lease_seconds=60)
        clocks.wall -= HOUR
        rival = SqliteStore.open(path, "default")
        rival.take_over()
        rival.close()
        assert last <= q.put(b"new").created < last + MINUTE
        assert payloads(q) == [b"new"]
        clocks.slept += MINUTE + 1
        assert payloads(q) == [b"held", b"new"]
        with pytest.raises(fairway.LeaseLost):
            q.complete(held)


def test_who_only_looks_sees_time_go_on_too(tmp_path: Path, clocks: Clocks) -> None:
    path = tmp_path / "work.db"
    with opened(path) as q:
        q.put(b"later", delay_seconds=60)
    clocks.wall -= HOUR
    with look(path) as q:
        assert "0 of 1" in q.explain()
        clocks.slept += MINUTE + 1
        assert "1 of 1" in q.explain()


def test_a_wall_clock_that_was_set_forward_before_a_start_lets_what_is_due_come_and_holders_finish(
    tmp_path: Path, clocks: Clocks
) -> None:
    with opened(tmp_path / "work.db") as q:
        held = busy(q)
    clocks.wall += HOUR
    with opened(tmp_path / "work.db") as q:
        assert payloads(q) == [b"later"], (
            "the holder has half a minute more; what is due comes; what is over does not"
        )
        assert q.complete(held, result=b"done") == "done"
        assert sorted(one.state for one in q.submissions()) == ["active", "completed", "failed"]


def test_a_machine_that_slept_an_hour_hands_out_again_and_refuses_the_sleeper(
    tmp_path: Path, clocks: Clocks
) -> None:
    with opened(tmp_path / "work.db") as q:
        held = busy(q)
        clocks.slept += HOUR
        assert payloads(q) == [b"held", b"later"]
        with pytest.raises(fairway.LeaseLost):
            q.complete(held, result=b"stale")


def test_a_lease_that_ran_out_in_an_hours_sleep_still_counts_while_nobody_took_the_chunk(
    tmp_path: Path, clocks: Clocks
) -> None:
    with opened(tmp_path / "work.db") as q:
        held = busy(q)
        clocks.slept += HOUR
        assert q.complete(held, result=b"late") == "done"


def test_a_monotonic_clock_that_runs_backward_breaks_nothing(tmp_path: Path, clocks: Clocks) -> None:
    """No system does this; a virtual machine that is moved may."""
    with opened(tmp_path / "work.db") as q:
        held = busy(q)
        clocks.slept -= HOUR
        assert payloads(q) == []
        q.put(b"new")
        assert payloads(q) == [b"new"]
        assert q.complete(held, result=b"done") == "done"


class Jumping(Script):
    """A script whose clocks jump between its operations, sometimes with a restart."""

    def __init__(self, folder: Path, seed: int, clocks: Clocks) -> None:
        super().__init__(folder, None, seed)
        self.clocks = clocks
        self.jumps = 0

    def _step(self, n: int) -> None:
        if self.dice.random() < 0.05 and self.jumps < 12:
            self.jumps += 1
            kind = self.dice.choice(("wall", "wall", "slept"))
            if kind == "slept":
                self.clocks.slept += HOUR
            else:
                self.clocks.wall += HOUR if self.clocks.wall < 0 else -HOUR
                if self.dice.random() < 0.7:
                    self._open()
        super()._step(n)

    def _offer(self, verb: str) -> Given:
        given = super()._offer(verb)
        if verb != "put_many":
            given.update(self.dice.choice(({}, {}, {"delay_seconds": 600.0}, {"deadline_seconds": 5000.0})))
        return given


def jump_through(folder: Path, seed: int, clocks: Clocks, kept: Kept) -> tuple[int, int]:
    """How often clocks jumped, and how many operations were acknowledged."""
    script = Jumping(folder, seed, clocks)
    script.play(OPERATIONS)
    script.close()
    clocks.wall += 2 * HOUR  # whatever waits is due
    follower = Follower(script.history)
    follower.catch_up()
    lines = Lines(script.history, script.offset, 1_000_000)
    drain(script.path, lines, script.lives + 1, follower.unknown())
    history = load(script.history)
    kept.add(history)
    violations = [violation.story(history) for violation in check_history(history)]
    assert not violations, "\n".join([f"seed {seed}", *violations[:5]])
    assert set(script.errors) <= {"already_ended"}
    shutil.rmtree(folder)
    return script.jumps, acknowledged(history)


def jumps(folder: Path, seeds: range, monkeypatch: pytest.MonkeyPatch, record: Callable[..., None]) -> None:
    jumped, operations, kept = 0, 0, Kept("scripts")
    for seed in seeds:
        with monkeypatch.context() as patch:
            clocks = Clocks()
            modules = ("tests.kill.recorded", "tests.kill.draining", "tests.faults.script")
            clocks.put_into(patch, "fairway.runtime.clock", *modules)
            more, acked = jump_through(folder / str(seed), seed, clocks, kept)
            jumped, operations = jumped + more, operations + acked
    print(f"{jumped} jumps of an hour in {len(seeds)} scripts")
    assert jumped > 2 * len(seeds)
    record(
        "clocks that jump by an hour, either way",
        operations=operations,
        faults=jumped,
        lost=0,  # a violation would have ended the test
        seed=f"{seeds[0]} to {seeds[-1]}",
        **kept.told(),
    )


def test_nothing_is_lost_or_early_while_clocks_jump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_proof: Callable[..., None]
) -> None:
    jumps(tmp_path, range(4), monkeypatch, record_proof)


@pytest.mark.proof
def test_nothing_is_lost_or_early_in_sixty_scripts_of_jumping_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_proof: Callable[..., None]
) -> None:
    jumps(tmp_path, range(100, 160), monkeypatch, record_proof)
