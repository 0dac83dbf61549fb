"""A disk that fails at any one call under a bucket queue: typed errors, no false acknowledgement, service afterwards.

Guards: half of the runs end in a power cut in which nothing that was owed got to the platter, so an acknowledgement
of something that was never synced shows. The handle on which a sync failed is never used again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import fairway
from fairway.bucket import statements as s
from fairway.store.sqlite.buckets import SqliteBuckets
from fairway.store.sqlite.connections import Readers
from fairway.testing.bucket.checker import check_history
from fairway.testing.disk.faults import input_output_error
from fairway.testing.disk.vfs import Disk
from fairway.testing.history import History
from tests.bucket.storming import stories
from tests.faults.bucket_calls import hurry
from tests.faults.bucket_drain import acknowledged, drained, note_power_loss
from tests.faults.bucket_script import PROCESSES, BucketScript
from tests.faults.kinds import KINDS, plan_of
from tests.faults.places import place, unsound
from tests.proving import Kept, number

pytestmark = pytest.mark.real

SEED = 8
SYNCS_MIN = 3  # that have to fail in a short form, else nothing is seen of what is done about it
REFUSED_AFTER = (
    PROCESSES  # calls that meet no fault themselves: each process hears of a failed sync by its next one
)
NEAR_CALLS = 500  # of which one is a write, and one a sync
TYPED = {"store_failed", "store_full", "outcome_unknown"}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def fails_at(
    folder: Path, n: int, kind: str, cut: bool, operations: int
) -> tuple[Counter[str], Counter[str], History]:
    """One run, checked, with or without a power cut at its end: what its callers were told, and which calls of the
    disk were; and what happened.
    """
    script = BucketScript(folder, plan_of(kind, n), SEED)
    script.play(operations, n + NEAR_CALLS)
    disk = script.disk
    met = Counter(call.operation for call in disk.faults)
    files = disk.platter.cut(disk.dice, 0.0) if cut else {}
    if cut:
        note_power_loss(script.history)
    disk.off = cut
    script.close()
    assert met or kind == "no space", "there is no write near that call"
    assert disk.retried == [], "a handle on which a sync failed is not used again"
    path = place(files, folder / "after") if cut else script.path
    history = drained(path, [script.history], script.lives + 1, SEED)
    wrong = check_history(history)
    assert not wrong, f"{kind} at call {n}\n{stories(history, wrong)}"
    assert set(script.errors) <= TYPED, script.errors
    assert set(script.unopened) <= TYPED | {"group_unknown"}, script.unopened  # tables are made in a group
    assert script.refused <= REFUSED_AFTER, "the next call is served, whether or not it asks the disk"
    assert not unsound(path)
    shutil.rmtree(folder)
    return Counter(script.errors + script.unopened), met, history


def every(folder: Path, step: int, operations: int, record: Callable[..., None]) -> None:
    script = BucketScript(folder / "well", None, SEED)
    script.play(operations)
    calls = script.disk.calls
    script.close()
    assert not script.errors + script.unopened
    told, failed, kept = Counter[str](), Counter[str](), Kept("runs")
    runs = faults = acked = 0
    for n in range(1, calls, step):
        kind = KINDS[runs % len(KINDS)]
        said, met, history = fails_at(folder / str(n), n, kind, runs // len(KINDS) % 2 == 0, operations)
        kept.add(history)
        told += said
        failed += met
        runs += 1
        faults += bool(met)
        acked += acknowledged(history)
    print(f"{operations} operations make {calls} calls; {runs} runs, each with one fault; told {dict(told)}")
    print(f"calls of the disk that failed: {dict(failed)}")
    assert told["store_failed"] and told["store_full"]
    assert failed["sync"] >= SYNCS_MIN, failed
    assert faults >= runs - 1 - runs // 10
    record(
        "a disk call that fails under a bucket queue",
        operations=acked,
        faults=faults,
        lost=0,  # a false acknowledgement would have ended the test
        seed=SEED,
        note=f"a fault at {'every' if step == 1 else f'one in {step}'} of {calls:,} calls of {operations}"
        " operations of two processes, each of the next of five kinds",
        **kept.told(),
    )


def test_a_fault_at_any_call_of_the_disk_makes_no_false_acknowledgement_of_a_bucket_queue(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    every(tmp_path, 373, 120, record_proof)


@pytest.mark.proof
def test_a_fault_at_every_third_call_of_the_disk_makes_no_false_acknowledgement_of_a_bucket_queue(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    every(tmp_path, number("BUCKET_FAULT_STEP", 3), 200, record_proof)


def test_a_read_of_a_bucket_queue_that_the_disk_fails_tells_what_the_disk_said(tmp_path: Path) -> None:
    disk = Disk(place({}, tmp_path / "queue").parent)
    path = tmp_path / "queue" / "work.db"
    buckets = SqliteBuckets.open(path, vfs=disk.name)
    assert buckets.execute(s.CreateQueue("q", 0, b"g" * 16, b"{}", b"secret")) is s.APPLIED
    reads = 0
    while True:
        buckets._readers.close()
        buckets._readers = Readers(str(path), disk.name)  # which has read nothing yet
        disk.plan, before = input_output_error(disk.calls + 1 + reads), len(disk.faults)
        try:
            buckets.execute(s.ReadName("q"))
        except fairway.StoreFailed as error:
            assert "fails as planned" in str(error)
        if len(disk.faults) == before:
            break
        reads += 1
    assert reads > 5
    disk.plan = None
    buckets.close()
    disk.unregister()
