"""Power loss under load on a bucket queue: what was acknowledged is there, what was completed or died stays so.

Guards: a cut drops, tears and reorders what was not synced; only leases that were not synced may be forgotten.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

import fairway
from fairway.testing.bucket.checker import check_history
from fairway.testing.disk.vfs import Disk
from fairway.testing.history import Begin, End, History
from tests.bucket.storming import stories
from tests.faults.bucket_calls import bucket_queue, hurry
from tests.faults.bucket_drain import acknowledged, drained, lines_of, note_power_loss
from tests.faults.bucket_machine import ROLES, Machine
from tests.faults.places import place, unsound
from tests.proving import number

pytestmark = pytest.mark.real

SEED = 60


class Outages:
    """Machines on one queue, one after the other; each finds what the cut before left."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.dice = Random(seed)
        self.lives, self.generation = 0, b""
        self.held: list[fairway.BucketLease] = []
        self.histories: list[Path] = []
        self.left: Counter[str] = Counter()
        self.path = place({}, folder / "0")

    def live_and_lose_power(self) -> str:
        """Gives what is wrong with the file that is left."""
        self.lives += 1
        history = self.folder / f"history-{self.lives}.jsonl"
        self.histories.append(history)
        dice = self.dice
        machine = Machine(self.path, history, self.lives, dice.getrandbits(32), self.generation)
        # Some lose it while they open the file, most at work.
        machine.live(dice.randint(1, 60) if dice.random() < 0.15 else dice.randint(60, 900), self.held)
        self.generation = machine.generation
        told = Counter(type(line) for line in lines_of(history))
        self.left["changes"] += machine.disk.changes
        self.left["in flight"] += told[Begin] > told[End]
        note_power_loss(history)
        files = machine.disk.platter.cut(machine.disk.dice)
        look, before = self.folder / "look", self.path.parent
        found = unsound(place(files, look)) if files else ""
        self.path = place(files, self.folder / str(self.lives))
        for folder in (look, before):
            shutil.rmtree(folder, ignore_errors=True)
        return f"life {self.lives}: {found}" if found else ""

    def drained(self) -> History:
        return drained(self.path, self.histories, 1000 * len(ROLES), self.seed)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def lose_power(folder: Path, seed: int, cycles: int, record: Callable[..., None]) -> None:
    outages = Outages(folder, seed)
    for _ in range(cycles):
        assert not outages.live_and_lose_power()
    history = outages.drained()
    wrong = check_history(history)
    words = Counter(request.op for request in history.requests if request.answered)
    print(f"{cycles} cuts, {outages.left['in flight']} with a call in flight, {len(history.requests)} calls")
    print(f"{outages.left['changes']} changes of the disk; {dict(sorted(words.items()))}")
    record(
        "power cuts under load on a bucket queue",
        operations=acknowledged(history),
        faults=cycles,
        lost=len(wrong),
        seed=seed,
        note=f"{outages.left['in flight']} with a call in flight; {outages.left['changes']:,} writes and syncs",
        history=history,
    )
    assert not wrong, stories(history, wrong)
    assert words["put"] and words["complete"] and words["renew"] and words["give_up"]
    assert words["fail"] + words["release"] and words["purge"] + words["redrive"]
    assert outages.left["in flight"] > cycles // 2
    assert not unsound(outages.path)


def test_nothing_acknowledged_by_a_bucket_queue_is_lost_when_the_power_is_cut(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    lose_power(tmp_path, SEED, 20, record_proof)


@pytest.mark.proof
def test_nothing_acknowledged_by_a_bucket_queue_is_lost_in_two_hundred_power_cuts(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    lose_power(tmp_path, SEED + 1, number("BUCKET_POWER_CUTS", 200), record_proof)


def test_a_bucket_queue_that_never_syncs_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the cut cuts nothing, or the checker sees nothing."""
    for module in ("doubt", "opening"):
        monkeypatch.setattr(f"fairway.store.sqlite.{module}.set_sync", _never)
    outages = Outages(tmp_path, SEED)
    found: object = ""
    try:
        for _ in range(8):
            found = found or outages.live_and_lose_power()
        found = found or check_history(outages.drained())
    except (fairway.StoreCorrupt, fairway.NotFairway, AssertionError) as error:
        found = error
    assert found


def _never(connection: apsw.Connection, sync: bool) -> None:
    connection.pragma("synchronous", "OFF")


Verb = Callable[[fairway.BucketQueue], object]


def dead_letters(q: fairway.BucketQueue) -> int:
    """Two dead letters, of which everything is synced."""
    q.put_many([b"one", b"two"])
    q.fail(q.reserve(2), "not today", retry=False)
    q.put(b"three")
    return q.stats().dead


def finish(q: fairway.BucketQueue) -> None:
    q.put_many([b"one", b"two"])
    q.complete(q.reserve(1))


def give_up(q: fairway.BucketQueue) -> None:
    q.put_many([b"one", b"two"])
    q.fail(q.reserve(1), "not today", retry=False)


def purge(q: fairway.BucketQueue) -> None:
    dead_letters(q)
    q.purge()


def redrive(q: fairway.BucketQueue) -> None:
    dead_letters(q)
    q.redrive()


# What each does, and what is then ready, finished and dead.
VERBS: dict[str, tuple[Verb, tuple[int, int, int]]] = {
    "put": (lambda q: q.put(b"one"), (1, 0, 0)),
    "put_many": (lambda q: q.put_many([b"%d" % n for n in range(50)]), (50, 0, 0)),
    "complete": (finish, (1, 1, 0)),
    "fail": (give_up, (1, 1, 1)),
    "purge": (purge, (1, 2, 0)),
    "redrive": (redrive, (3, 2, 0)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_bucket_queue_acknowledged_is_synced_at_once(tmp_path: Path, verb: str) -> None:
    """Nothing follows whose sync would be its own, and of what is owed nothing gets to the platter."""
    do, wanted = VERBS[verb]
    disk = Disk(place({}, tmp_path / "before").parent)
    with bucket_queue(tmp_path / "before" / "work.db", disk.name, repairs=False) as q:
        do(q)
        disk.cut()
    disk.unregister()
    path = place(disk.platter.cut(disk.dice, 0.0), tmp_path / "after")
    with bucket_queue(path, None, repairs=False) as q:
        stats = q.stats()
        assert (stats.ready + stats.leased + stats.delayed, stats.finished, stats.dead) == wanted


def test_a_bucket_queues_settings_and_its_end_are_synced_at_once(tmp_path: Path) -> None:
    disk = Disk(place({}, tmp_path / "before").parent)
    with bucket_queue(tmp_path / "before" / "work.db", disk.name, repairs=False) as q:
        q.configure(attempts_max=9)
        files = disk.platter.cut(disk.dice, 0.0)
        q.put(b"one")
        q.delete()
        disk.cut()
    disk.unregister()
    with bucket_queue(place(files, tmp_path / "configured"), None) as q:
        assert q.configure().attempts_max == 9
    with bucket_queue(place(disk.platter.cut(disk.dice, 0.0), tmp_path / "deleted"), None) as q:
        assert q.configure().attempts_max != 9 and q.stats().ready == 0, "another queue"
