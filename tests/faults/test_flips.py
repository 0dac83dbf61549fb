"""Bits that turn over in the file and in its log: what is found then, and what is not.

Guards: every error is one of Fairway's; a file tells what it told before, or says that it is damaged; no payload and
no result comes back altered; a log with a damaged place gives an earlier moment, whole, and with a warning.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import apsw
import pytest

import fairway
from fairway.testing.disk.flips import flip

pytestmark = pytest.mark.real

SEED = 11
MESSAGES = 300


def payload(n: int) -> bytes:
    return b"%d " % n * (20 + n % 50)


def fill(path: Path, into_the_log: Path) -> None:
    """A queue at rest in `path`, and the same with everything since its start still in the log."""
    with fairway.open(path) as q:
        for n in range(MESSAGES):
            q.put(payload(n), tenant=f"t{n % 5}", metadata={"n": n})
        done = q.submit([payload(n) for n in range(40)], tenant="done")
        for lease in q.reserve(300, strategy='SelectOnly("tenant", "done", Fair)'):
            q.complete(lease, result=lease.payload[::-1])
        assert q.submission(done.id).state == "completed"
        copy_with_log(path, into_the_log)


def fill_buckets(path: Path, into_the_log: Path) -> None:
    """The same for a bucket queue with messages in every state."""
    with fairway.open(path, "events", kind="bucket") as q:
        q.configure(bucket_rows=100)
        for n in range(0, MESSAGES, 10):
            q.put_many([{"payload": payload(k), "headers": {"n": k}} for k in range(n, n + 10)])
        leases = q.reserve(max=60, lease_seconds=3600)
        q.complete(leases[:20])
        q.fail(leases[20:40], "no good", retry=False)
        q.fail(leases[40:50], "not yet", delay_seconds=0.0)
        q.put_many([{"payload": payload(n), "delay_seconds": 3000} for n in range(20)])
        q.renew(leases[50], 3600)  # that the very last commit is lost nobody can tell
        copy_with_log(path, into_the_log)


def copy_with_log(path: Path, into: Path) -> None:
    into.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", into / f"work.db{suffix}")
    cut_what_is_stale(into / "work.db")


def cut_what_is_stale(path: Path) -> None:
    """A log that was begun anew in its old place ends in frames that nobody reads."""
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    assert connection.pragma("integrity_check") == "ok"
    page_bytes = connection.pragma("page_size")
    frames = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
    connection.close()
    Path(f"{path}-shm").unlink()
    os.truncate(f"{path}-wal", 32 + frames * (24 + page_bytes))


def told(path: Path) -> dict[str, Any]:
    """All that a queue tells."""
    with fairway.open(path) as q:
        shown = {one.id: (one.state, one.done, one.tenant, dict(one.metadata)) for one in q.submissions()}
        results = [r.data for id, one in shown.items() if one[0] == "completed" for r in q.results(id)]
        given = [lease.payload for lease in q.reserve(1000)]
    return {"shown": shown, "results": results, "given": given}


def told_by_buckets(path: Path) -> dict[str, Any]:
    with fairway.open(path, "events", kind="bucket", create=False) as q:
        stats = q.stats()
        dead = [(one.payload, one.headers, one.attempts, one.error) for one in q.dead()]
        sizes = (stats.ready, stats.delayed, stats.leased, stats.dead, stats.finished)
        leases: list[fairway.BucketLease] = []
        while some := q.reserve(max=100):
            leases += some
    leases.sort(key=lambda lease: lease.id)
    shown = [(lease.id, lease.headers, lease.attempt, lease.put_at) for lease in leases]
    results = [payload[::-1] for payload, *_ in dead if payload is not None]
    given = [lease.payload for lease in leases]
    return {"shown": (sizes, dead, shown), "results": results, "given": given}


def look(told: Callable[[Path], Any], path: Path, truth: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    try:
        found = told(path)
    except fairway.FairwayError as error:
        return f"told {error.code}", {}
    return ("the same" if found == truth else "different"), found


class Warnings(logging.Handler):
    """What was warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def __enter__(self) -> Self:
        logging.getLogger("fairway").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("fairway").removeHandler(self)


class Queue(NamedTuple):
    """What is filled, what it is asked, and what it may tell beside the truth and errors."""

    fill: Callable[[Path, Path], None]
    told: Callable[[Path], dict[str, Any]]
    only_refused: Callable[[dict[str, Any], dict[str, Any]], bool]
    earlier: Callable[[dict[str, Any], dict[str, Any]], bool]


def flips(queue: Queue, folder: Path, many: int, seed: int) -> Counter[str]:
    """Flip a bit in a copy, open it, ask it everything; the last of the flips fall into the log."""
    queue.fill(folder / "work.db", folder / "log")
    truth = told_of_a_copy(queue, folder / "work.db", folder / "truth")
    assert told_of_a_copy(queue, folder / "log" / "work.db", folder / "truth of the log") == truth
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    known = {payload(n) for n in range(MESSAGES)}
    for n in range(many):
        in_log = n >= many // 2
        place = folder / f"flip {n}"
        place.mkdir()
        for file in (folder / "log").iterdir() if in_log else [folder / "work.db"]:
            shutil.copy(file, place / file.name)
        where = flip(place / ("work.db-wal" if in_log else "work.db"), dice)
        with Warnings() as warned:
            outcome, found = look(queue.told, place / "work.db", truth)
        if found:
            assert set(found["given"]) <= known, f"an altered payload: {where}"
            assert set(found["results"]) <= {one[::-1] for one in known}, f"an altered result: {where}"
        if outcome == "different" and queue.only_refused(found, truth):
            outcome = "a payload refused"
        elif outcome == "different" and in_log and queue.earlier(found, truth):
            outcome = f"an earlier moment, {'told' if warned.texts else 'untold'}"
        counts[("log: " if in_log else "file: ") + outcome] += 1
        shutil.rmtree(place)
    print(f"{many} flips: {dict(sorted(counts.items()))}")
    return counts


def told_of_a_copy(queue: Queue, path: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", folder / f"work.db{suffix}")
    return queue.told(folder / "work.db")


def only_refused(found: dict[str, Any], truth: dict[str, Any]) -> bool:
    """Whether all is as it was, but payloads whose checksum does not fit are not handed out."""
    same = found["shown"] == truth["shown"] and found["results"] == truth["results"]
    return same and len(found["given"]) < len(truth["given"]) and set(found["given"]) < set(truth["given"])


def earlier(found: dict[str, Any], truth: dict[str, Any]) -> bool:
    """Whether these are the first submissions of the truth, none of them further than there."""
    ids, all_ids = sorted(found["shown"]), sorted(truth["shown"])
    if ids != all_ids[: len(ids)]:
        return False
    return all(
        found["shown"][id][1] <= truth["shown"][id][1] and found["shown"][id][2:] == truth["shown"][id][2:]
        for id in ids
    )


FAIR = Queue(fill, told, only_refused, earlier)
# A message is never left out, and of an earlier moment only the payloads are judged: each commit was one.
BUCKETS = Queue(fill_buckets, told_by_buckets, lambda found, truth: False, lambda found, truth: bool(found))


def unseen(counts: Counter[str]) -> int:
    """Flips that changed what is told, and of which nothing was said."""
    return sum(
        counts[what] for what in ("file: different", "log: different", "log: an earlier moment, untold")
    )


def test_a_flipped_bit_alters_no_payload_and_no_result(tmp_path: Path) -> None:
    counts = flips(FAIR, tmp_path, 24, SEED)
    assert not unseen(counts) and counts["log: an earlier moment, told"]


def test_a_flipped_bit_alters_and_hides_no_message_of_a_bucket_queue(tmp_path: Path) -> None:
    counts = flips(BUCKETS, tmp_path, 24, SEED)
    assert (
        not unseen(counts) and counts["log: an earlier moment, told"] and counts["file: told store_corrupt"]
    )


@pytest.mark.proof
def test_two_hundred_flipped_bits_alter_no_payload_and_no_result(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    counts = flips(FAIR, tmp_path, 200, SEED + 1)
    assert not unseen(counts)
    record_proof(
        "bits that turn over in the file and its log",
        operations=200,
        faults=200,
        lost=unseen(counts),
        seed=SEED + 1,
        note="told, or nothing changed",
    )


@pytest.mark.proof
def test_a_thousand_flipped_bits_alter_and_hide_no_message_of_a_bucket_queue(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    counts = flips(BUCKETS, tmp_path, 1000, SEED + 1)
    assert not unseen(counts)
    record_proof(
        "bits that turn over in the file and the log of a bucket queue",
        operations=1000,
        faults=1000,
        lost=unseen(counts),
        seed=SEED + 1,
        note="told, or nothing changed",
    )
