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
from typing import Any, Self

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
        into_the_log.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", into_the_log / f"work.db{suffix}")
    cut_what_is_stale(into_the_log / "work.db")


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


def look(path: Path, truth: dict[str, Any]) -> tuple[str, dict[str, Any]]:
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


def flips(folder: Path, many: int, seed: int) -> Counter[str]:
    """Flip a bit in a copy, open it, ask it everything; the last of the flips fall into the log."""
    fill(folder / "work.db", folder / "log")
    truth = told_of_a_copy(folder / "work.db", folder / "truth")
    assert told_of_a_copy(folder / "log" / "work.db", folder / "truth of the log") == truth
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
            outcome, found = look(place / "work.db", truth)
        if found:
            assert set(found["given"]) <= known, f"an altered payload: {where}"
            assert set(found["results"]) <= {one[::-1] for one in known}, f"an altered result: {where}"
        if outcome == "different" and only_refused(found, truth):
            outcome = "a payload refused"
        elif outcome == "different" and in_log and earlier(found, truth):
            outcome = f"an earlier moment, {'told' if warned.texts else 'untold'}"
        counts[("log: " if in_log else "file: ") + outcome] += 1
        shutil.rmtree(place)
    print(f"{many} flips: {dict(sorted(counts.items()))}")
    return counts


def told_of_a_copy(path: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", folder / f"work.db{suffix}")
    return told(folder / "work.db")


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


def unseen(counts: Counter[str]) -> int:
    """Flips that changed what is told, and of which nothing was said."""
    return sum(
        counts[what] for what in ("file: different", "log: different", "log: an earlier moment, untold")
    )


def test_a_flipped_bit_alters_no_payload_and_no_result(tmp_path: Path) -> None:
    counts = flips(tmp_path, 24, SEED)
    assert not unseen(counts) and counts["log: an earlier moment, told"]


@pytest.mark.proof
def test_two_hundred_flipped_bits_alter_no_payload_and_no_result(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    counts = flips(tmp_path, 200, SEED + 1)
    assert not unseen(counts)
    record_proof(
        "bits that turn over in the file and its log",
        operations=200,
        faults=200,
        lost=unseen(counts),
        seed=SEED + 1,
        note="told, or nothing changed",
    )
