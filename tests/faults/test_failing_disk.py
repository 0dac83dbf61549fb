"""A disk that fails at any one call: typed errors, no false acknowledgement, service when the fault is gone.

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
from fairway.testing.checker import check_history
from fairway.testing.history import load
from tests.faults.kinds import KINDS, plan_of
from tests.faults.places import place, unsound
from tests.faults.script import Script
from tests.kill.counting import acknowledged
from tests.kill.draining import drain
from tests.kill.follower import Follower
from tests.kill.recorded import Lines
from tests.proving import Kept, number

pytestmark = pytest.mark.real

SEED = 7
CALLS_OF_A_START = 200  # an engine that was thrown away is loaded anew
REFUSED_AFTER = (
    2  # calls that meet no fault themselves, after the last one: what threads beside the script met
)
SYNCS_MIN = 3  # that have to fail in a short form, else nothing is seen of what is done about it
TYPED = {"store_failed", "store_full", "group_unknown", "already_ended"}


def fails_at(
    folder: Path, n: int, kind: str, cut: bool, operations: int, kept: Kept
) -> tuple[Counter[str], Counter[str], int]:
    """One run, checked, with or without a power cut at its end: what its callers were told, which calls of the disk
    were, and how many calls were acknowledged.
    """
    script = Script(folder, plan_of(kind, n), SEED)
    script.play(operations)
    # Threads beside the script make some calls too, now more of them and now fewer.
    reached = script.disk.calls >= n
    met = Counter(call.operation for call in script.disk.faults)
    files = script.disk.platter.cut(script.disk.dice, 0.0) if cut else {}
    if cut:
        script.lines.note("power_loss")
    disk = script.disk
    disk.off = cut
    script.close()
    assert reached or not met
    assert met or not reached or not kind.startswith("eio"), "whatever the call is, it fails"
    assert disk.retried == [], "a handle on which a sync failed is not used again"
    path = place(files, folder / "after") if cut else script.path
    follower = Follower(script.history)
    follower.catch_up()
    drain(path, Lines(script.history, script.offset, 1_000_000), script.lives + 1, follower.unknown())
    history = load(script.history)
    kept.add(history)
    violations = [violation.story(history) for violation in check_history(history)]
    assert not violations, "\n".join([f"{kind} at call {n}", *violations[:5]])
    assert set(script.errors) <= TYPED, script.errors
    assert script.after < CALLS_OF_A_START, "when the fault is gone the next call is served"
    assert script.refused <= REFUSED_AFTER, "the next call is served, whether or not it asks the disk"
    assert not unsound(path)
    shutil.rmtree(folder)
    return Counter(script.errors), met, acknowledged(history)


def every(folder: Path, step: int, operations: int, record: Callable[..., None]) -> None:
    script = Script(folder / "well", None, SEED)
    script.play(operations)
    calls = script.disk.calls
    script.close()
    assert set(script.errors) <= {"already_ended"}
    told, failed = Counter[str](), Counter[str]()
    kept = Kept("runs")
    runs = faults = acked = 0
    for n in range(1, calls, step):
        kind = KINDS[runs % len(KINDS)]
        said, met, more = fails_at(folder / str(n), n, kind, runs // len(KINDS) % 2 == 0, operations, kept)
        told += said
        failed += met
        runs += 1
        faults += bool(met)
        acked += more
    print(f"{operations} operations make {calls} calls; {runs} runs, each with one fault; told {dict(told)}")
    print(f"calls of the disk that failed: {dict(failed)}")
    assert told["store_failed"] and told["store_full"]
    assert failed["sync"] >= SYNCS_MIN, failed
    assert faults >= runs - 1 - runs // 20, "only a fault near the end is not always met"
    record(
        "a disk call that fails: input or output error, no space, half of a write",
        operations=acked,
        faults=faults,
        lost=0,  # a false acknowledgement would have ended the test
        seed=SEED,
        note=f"a fault at {'every' if step == 1 else f'one in {step}'} of {calls:,} calls of {operations}"
        " operations, each of the next kind",
        **kept.told(),
    )


@pytest.fixture(autouse=True)
def _settled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.runtime.committer._SETTLE_SECONDS", (0.0, 0.0))


def test_a_queue_that_refuses_for_ever_after_a_fault_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Script._step

    def refusing(script: Script, n: int) -> None:
        if script.disk.faults:
            raise fairway.StoreFailed  # from memory: the disk hears nothing of it
        step(script, n)

    monkeypatch.setattr(Script, "_step", refusing)
    with pytest.raises(AssertionError, match="the next call is served"):
        fails_at(tmp_path / "run", 900, "eio", False, 120, Kept("runs"))


def test_a_fault_at_any_call_of_the_disk_makes_no_false_acknowledgement(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    every(tmp_path, 113, 120, record_proof)


@pytest.mark.proof
def test_a_fault_at_every_call_of_the_disk_makes_no_false_acknowledgement(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    every(tmp_path, number("FAULT_STEP", 1), 500, record_proof)
