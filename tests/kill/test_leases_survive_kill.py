"""Leases survive kill -9: they hold until their time, they count, and their receipts stay good.

Guards: DESIGN section 6: a lease is stored before it leaves, and a restored one lives at least its time from the start.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

import fairway

pytestmark = pytest.mark.real

LEASES = 100
LEASE_SECONDS = 3.0
ATTEMPTS_MAX = 3
PATIENCE_SECONDS = 60.0  # for what must happen at some time

# Programs that are killed while they hold leases; the second one kills itself.
HOLD = """
import sys, time, fairway
q = fairway.open(sys.argv[1])
leases = q.reserve(max=100, lease_seconds=float(sys.argv[2]))
for lease in leases:
    print(lease.submission, lease.index, lease.attempt, lease.deadline, lease.receipt)
print("held", flush=True)
time.sleep(600)
"""
DIE = """
import os, sys, fairway
q = fairway.open(sys.argv[1])
(lease,) = q.reserve(lease_seconds=0.2, wait_seconds=60)
print(lease.submission, lease.index, lease.attempt, flush=True)
os.kill(os.getpid(), 9)
"""


class Held(msgspec.Struct):
    """A lease as the killed process wrote it down."""

    submission: int
    index: int
    attempt: int
    deadline: float
    receipt: str


def hold_and_be_killed(path: Path) -> list[Held]:
    """A process reserves, writes its leases down and is killed; what it wrote."""
    command = [sys.executable, "-c", HOLD, str(path), str(LEASE_SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = [line.split() for line in iter(process.stdout.readline, "held\n") if line]
        finally:
            process.kill()
    assert process.returncode == -9
    return [Held(int(s), int(i), int(a), float(d), r) for s, i, a, d, r in said]


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, list[Held]]:
    """A queue whose 100 chunks are leased by a process that was killed."""
    path = tmp_path / "work.db"
    with fairway.open(path) as q:
        for tenant in ("acme", "whale"):
            q.submit([b"%d" % n for n in range(LEASES // 2)], tenant=tenant, attempts_max=2)
    held = hold_and_be_killed(path)
    assert len({(one.submission, one.index) for one in held}) == LEASES
    return path, held


def test_no_chunk_is_handed_out_before_its_deadline_after_a_kill(killed: tuple[Path, list[Held]]) -> None:
    path, held = killed
    deadlines = {(one.submission, one.index): one.deadline for one in held}
    started = time.time()
    seen: set[tuple[int, int]] = set()
    with fairway.open(path) as q:
        assert q.stats().chunks_leased == LEASES or time.time() >= started + LEASE_SECONDS
        while len(seen) < LEASES:
            leases = q.reserve(max=LEASES, lease_seconds=600, wait_seconds=PATIENCE_SECONDS)
            now = time.time()
            assert leases, "the leases of the killed process never ended"
            for lease in leases:
                chunk = (lease.submission, lease.index)
                assert chunk not in seen, "handed out twice"
                seen.add(chunk)
                assert now >= deadlines[chunk]
                # Restored leases get their whole time again: their holder may have come back with us.
                assert now >= started + LEASE_SECONDS
                assert lease.attempt == 2
                assert lease.payload == b"%d" % lease.index
        assert seen == set(deadlines)
        assert q.stats().chunks_leased == LEASES


def test_old_receipts_complete_after_a_kill(killed: tuple[Path, list[Held]]) -> None:
    path, held = killed
    with fairway.open(path) as q:
        before = held[: LEASES // 2]
        results = [one.receipt.encode() for one in before]
        assert q.complete([one.receipt for one in before], results=results) == ["done"] * len(before)
        assert q.complete(before[0].receipt, result=b"another") == "already"
    with fairway.open(path) as q:
        after = held[LEASES // 2 :]
        assert q.complete([one.receipt for one in after]) == ["done"] * len(after)
        assert q.complete(before[0].receipt) == "already"
        assert [s.state for s in q.submissions()] == ["completed", "completed"]
        found = {(s.id, r.index): r.data for s in q.submissions() for r in q.results(s.id)}
    assert found == {(one.submission, one.index): one.receipt.encode() for one in before}


def test_an_old_receipt_is_lost_once_another_has_the_chunk(killed: tuple[Path, list[Held]]) -> None:
    path, held = killed
    receipts = {(one.submission, one.index): one.receipt for one in held}
    with fairway.open(path) as q:
        (lease,) = q.reserve(lease_seconds=600, wait_seconds=PATIENCE_SECONDS)
        old = receipts.pop((lease.submission, lease.index))
        with pytest.raises(fairway.LeaseLost):
            q.complete(old)
        # The others ran out as well, but nobody has taken them since.
        assert set(q.complete(list(receipts.values()))) == {"done"}
        assert q.complete(lease) == "done"
        assert q.stats().submissions_active == 0


def test_a_chunk_that_kills_its_process_is_dead_after_attempts_max_restarts(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with fairway.open(path) as q:
        # The other two are held by somebody who is slow, so that every process gets the poisoned one.
        job = q.submit([b"poison", b"one", b"two"], policy="dead_letter", attempts_max=ATTEMPTS_MAX)
        rest = q.reserve(max=3, lease_seconds=600)
        q.release(rest[0])
    for attempt in range(1, ATTEMPTS_MAX + 1):
        command = [sys.executable, "-c", DIE, str(path)]
        process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert process.returncode == -9, process.stderr
        assert process.stdout.split() == [str(job.id), "0", str(attempt)]
    with fairway.open(path) as q:
        assert q.complete([lease.receipt for lease in rest[1:]], results=[b"1", b"2"]) == ["done", "done"]
        ended = q.wait(job.id, PATIENCE_SECONDS)
        assert (ended.total, ended.done, ended.failed) == (3, 2, 1)
        (dead,) = q.dead()
        assert (dead.submission, dead.index, dead.attempts) == (job.id, 0, ATTEMPTS_MAX)
        assert [(result.index, result.data) for result in q.results(job.id)] == [(1, b"1"), (2, b"2")]
        assert q.reserve(wait_seconds=1) == []
