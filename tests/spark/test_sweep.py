"""Sweeping: what killed jobs left goes, and nothing that anybody's submission names. No Spark is needed."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

import fairway
from fairway.spark.codec import encode
from fairway.spark.columns import spark_of
from fairway.spark.finishing import Finish
from fairway.spark.places import batches_folder, marker, task_prefix
from fairway.spark.settings import SINK, SOURCE, Settings
from fairway.spark.source import ChunkStream
from fairway.spark.sweeping import sweep
from tests.spark.pipeline import collected, numbers, objects
from tests.spark.playing import ROWS

pytestmark = pytest.mark.real
HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture
def url(tmp_path: Path, unhurried: None) -> Iterator[str]:
    """A queue that this process hosts."""
    where = str(tmp_path / "q.db")
    with fairway.open(where):
        yield where


def old(url: str, name: str = "", days: float = 2.0) -> None:
    """Everything beside the queue, or one object, was written two days ago."""
    top = Path(f"{url}-objects")
    for path in [top / name] if name else [path for path in top.rglob("*") if path.is_file()]:
        os.utime(path, (time.time() - days * DAY,) * 2)


def swept(url: str, **told: object) -> set[str]:
    return {name.partition("q.db-objects/")[2] for name in sweep(url, **told)}  # type: ignore[arg-type]


def write(url: str, name: str, blob: bytes = b"orphan") -> str:
    path = Path(f"{url}-objects", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(blob)
    return name


def produced(url: str, tables: list[pa.Table], token: str = "job", queue: str = "default") -> tuple[int, str]:
    """What a producing job leaves: payloads, its note and a submission; its id, and where the payloads are."""
    root, nonce = f"file://{url}-objects", "0123456789ab"
    prefix = task_prefix(root, token, "t", 0, "0-1-ab")
    place = prefix.partition("-objects/")[2]
    for at, table in enumerate(tables):
        write(url, f"{place}/{at}", encode(table, "arrow"))
    note = marker(root, token, nonce).partition("-objects/")[2]
    write(url, note, json.dumps([prefix]).encode())
    with fairway.open(url, queue) as q:
        info = f"{nonce} schema".encode()
        made = q.submit(objects=[(prefix, len(tables))], tenant="t", info=info, policy="dead_letter")
    return made.id, place


def one_batch(url: str, queue: str) -> None:
    """A micro-batch of rows, read and settled."""
    given = {"path": url, "queue": queue, "consumer": "process", "run": "r"}
    reader = ChunkStream(Settings(given | {"emit": "rows"}, SOURCE), spark_of(ROWS))
    writer = Finish(Settings(given, SINK), spark_of(ROWS))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(100))
    parts = reader.partitions(start, end)
    writer.commit([writer.write(batch for part in parts for batch in reader.read(part))], 0)


def test_nothing_of_a_plain_submission_is_swept(url: str) -> None:
    root = f"file://{url}-objects"
    for queue in ("default", "other"):
        with fairway.open(url, queue) as q:
            blobs = (encode(table, "arrow") for table in numbers(2))
            q.submit(blobs, objects=f"{root}/{queue}", tenant="t")
            q.complete(q.reserve(1), results=[b"registered"])
    old(url)
    kept = objects(url)
    assert len(kept) >= 4
    assert swept(url) == set() and objects(url) == kept


def test_results_of_another_queue_in_the_same_file_are_not_swept(url: str) -> None:
    """The queries of both have one consumer name, and both write below one root."""
    with fairway.open(url, "other"):
        for queue in ("default", "other"):
            produced(url, numbers(2), token=queue, queue=queue)
            one_batch(url, queue)
        mine = write(url, f"{batches_folder(url, 'default')}/_process/{'f' * 32}")
        other = write(url, f"{batches_folder(url, 'other')}/_process/{'e' * 32}")
        old(url)
        kept = objects(url)
        assert swept(url) == {mine}
        assert swept(url, queue="other") == {other}
        assert objects(url) == kept - {mine, other}
    assert collected(url) == Counter(range(20))


def test_payloads_that_no_job_came_to_submit_go_when_their_job_is_surely_over(url: str) -> None:
    produced(url, numbers(2))
    kept = objects(url)
    orphans = {write(url, f"_dead/_t/{at}.0-1-ab/0") for at in range(3)}
    beside = write(url, "_job/_t/9.9-9-ff/0")  # of a run of the same job that was killed
    assert swept(url) == set(), "all are young"
    old(url)
    os.utime(Path(f"{url}-objects/_dead/_t/2.0-1-ab/0"))
    assert swept(url) == {beside}, "the other job wrote a moment ago, and may submit all it wrote"
    assert swept(url, older_seconds=-HOUR) == orphans
    assert objects(url) == kept


def test_results_of_attempts_that_lost_go_and_those_that_may_still_win_stay(url: str) -> None:
    id, place = produced(url, numbers(3))
    with fairway.open(url) as q:
        leases = q.reserve(2)
        names = [lease.result_object(7) for lease in leases]
        for name in names:
            assert name is not None
            write(url, name.partition("-objects/")[2], b"won")
        q.complete(leases[:1], by_reference=True, writer=7)
        lost = write(url, f"{place}/0.out.1.1.8")
        old(url)
        assert swept(url) == {lost}, "chunk 1 is leased, and its result may be registered yet"
        assert [result.read() for result in q.results(id)] == [b"won"]
        q.cancel(id)
        assert swept(url) == {f"{place}/1.out." + str(names[1]).rpartition(".out.")[2]}
        assert [result.read() for result in q.results(id)] == [b"won"]
    assert {name for name in objects(url) if name.startswith(place) and ".out." not in name} == {
        f"{place}/{at}" for at in range(3)
    }


@pytest.mark.parametrize("note", [b"{", b""])
def test_a_folder_with_a_note_that_cannot_be_read_is_left_alone(url: str, note: bytes) -> None:
    write(url, "_job/_t/0.0-1-ab/0")
    write(url, "_job/commit.ff", note)
    old(url)
    assert swept(url) == set()


def test_a_root_that_is_spelled_in_another_way_is_the_same_root(url: str) -> None:
    id, _ = produced(url, numbers(2))
    one_batch(url, "default")
    old(url)
    assert sweep(url, objects=f"file://{url}-objects/") == []
    assert sweep(f"file://{url}", objects=f"file://{url.replace('q.db', '%71.db')}-objects") == []
    with fairway.open(url) as q:
        assert q.submission(id).state == "completed"
    assert collected(url) == Counter(range(20))
