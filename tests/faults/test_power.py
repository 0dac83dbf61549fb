"""Power loss under load, again and again: everything that was acknowledged and synced is there, the file is sound.

Guards: a cut drops, tears and reorders what was not synced; only leases that were not synced may be forgotten.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import fairway
from fairway.testing.checker import check_history
from fairway.testing.history import Header, History, load
from tests.faults.machine import Machine
from tests.faults.places import place, unsound
from tests.kill.counting import acknowledged
from tests.kill.draining import drain
from tests.kill.follower import Follower
from tests.kill.recorded import Lines
from tests.kill.worker import CALLS_PER_LIFE
from tests.proving import number

pytestmark = pytest.mark.real

SEED = 40


class Outages:
    """Machines on one queue, one after the other; each finds what the cut before left."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.dice = random.Random(seed)
        self.history = folder / "history.jsonl"
        self.offset = time.time() - time.monotonic()
        self.follower = Follower(self.history)
        self.lives = 0
        self.unsound: list[str] = []
        self.left: Counter[str] = Counter()
        self.path = place({}, folder / "0")
        self.lines = Lines(self.history, self.offset, 0)
        self.lines.write(Header(drained=True, origin={"seed": seed}))

    def live_and_lose_power(self) -> None:
        self.lives += 1
        dice = self.dice
        machine = Machine(self.path, self.history, self.offset, self.lives, dice.getrandbits(32))
        # Some lose it while they open the file, most at work.
        machine.live(dice.randint(1, 60) if dice.random() < 0.15 else dice.randint(60, 900), self.follower)
        self.left["changes"] += machine.disk.changes
        in_flight = self.follower.catch_up()
        self.left["in flight"] += bool(in_flight)
        self.lines.note("power_loss", life=self.lives, in_flight=len(in_flight))
        files = machine.disk.platter.cut(dice)
        look, before = self.folder / "look", self.path.parent
        found = unsound(place(files, look)) if files else ""
        if found:
            self.unsound.append(f"life {self.lives}: {found}")
        self.path = place(files, self.folder / str(self.lives))
        for folder in (look, before):
            shutil.rmtree(folder, ignore_errors=True)

    def violations(self) -> tuple[History, list[str]]:
        """Everything is worked off, then the checker reads what callers saw; gives that and what is wrong with it."""
        lines = Lines(self.history, self.offset, (self.lives + 1) * CALLS_PER_LIFE)
        drain(self.path, lines, self.lives + 1, self.follower.unknown())
        self.follower.catch_up()
        self.lines.close()
        history = load(self.history)
        return history, [violation.story(history) for violation in check_history(history)]


@pytest.fixture(autouse=True)
def _nobody_waits_for_a_dead_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.runtime.committer._SETTLE_SECONDS", (0.0,))


def lose_power(folder: Path, seed: int, cycles: int, record: Callable[..., None]) -> None:
    outages = Outages(folder, seed)
    for _ in range(cycles):
        outages.live_and_lose_power()
        assert not outages.unsound
    history, violations = outages.violations()
    told = outages.follower.told
    print(f"{cycles} cuts, {outages.left['in flight']} with a call in flight, {outages.follower.calls} calls")
    print(f"{outages.left['changes']} changes of the disk; {dict(sorted(told.items()))}")
    record(
        "power cuts under load",
        operations=acknowledged(history),
        faults=cycles,
        lost=len(violations),
        seed=seed,
        note=f"{outages.left['in flight']} with a call in flight; {outages.left['changes']:,} writes and syncs",
        history=history,
    )
    assert not violations, "\n".join([f"{len(violations)} violations", *violations[:10]])
    assert told["complete done"] and told["fail retrying"] and told["submits tried again"]
    assert outages.left["in flight"] > cycles // 2
    assert apsw.Connection(str(outages.path)).pragma("integrity_check") == "ok"


def test_nothing_acknowledged_is_lost_when_the_power_is_cut(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    lose_power(tmp_path, SEED, 20, record_proof)


@pytest.mark.proof
def test_nothing_acknowledged_is_lost_in_two_hundred_power_cuts(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    lose_power(tmp_path, SEED + 1, number("POWER_CUTS", 200), record_proof)


def test_a_queue_that_never_syncs_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the cut cuts nothing, or the checker sees nothing."""
    for module in ("doubt", "opening"):
        monkeypatch.setattr(f"fairway.store.sqlite.{module}.set_sync", _never)
    outages = Outages(tmp_path, SEED)
    try:
        for _ in range(8):
            outages.live_and_lose_power()
        found = outages.unsound or outages.violations()[1]
    except (fairway.StoreCorrupt, fairway.NotFairway, AssertionError) as error:
        found = [repr(error)]
    assert found


def _never(connection: apsw.Connection, sync: bool) -> None:
    connection.pragma("synchronous", "OFF")
