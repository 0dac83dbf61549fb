"""Results of rows: they belong to a batch, so to every submission that has a chunk in it. No Spark is needed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

import fairway
from fairway.spark import queues
from fairway.spark.results import _table, registered
from fairway.spark.settings import READ, Settings
from tests.spark.pipeline import numbers, submit
from tests.spark.playing import Player

pytestmark = pytest.mark.real


@pytest.fixture
def url(tmp_path: Path, unhurried: None) -> Iterator[str]:
    """A queue that this process hosts."""
    where = str(tmp_path / "q.db")
    with fairway.open(where):
        yield where


def seen(url: str, column: str = "x") -> Counter[int]:
    """What `collect` gives, read without Spark."""
    told = registered(queues.attached(url, "default"), Settings({"path": url, "kind": "results"}, READ))
    return Counter(value for one in told for value in _table(one)[column].to_pylist())


def wait_until_forgotten(q: fairway.Queue, id: int) -> None:
    until = time.monotonic() + 60
    while any(one.id == id for one in q.submissions()):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_rows_stay_until_every_submission_of_their_batch_is_forgotten(url: str) -> None:
    with fairway.open(url) as q:
        q.configure(retention_seconds=0.5)
        small = submit(url, numbers(1), tenant="small")
        whale = submit(url, numbers(4)[1:], tenant="whale")
        reader, writer = Player(url, "echo", lambda here: False).made()
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxRows(3))  # both tenants, and not all of the whale
        parts = reader.partitions(start, end)
        writer.commit([writer.write(batch for part in parts for batch in reader.read(part))], 0)
        reader.commit(end)
        assert seen(url).total() == 30
        wait_until_forgotten(q, small.id)
        assert seen(url).total() == 30, "the whale has rows in the batch, and is there still"
        q.configure(retention_seconds=3600.0)
        last = reader.latestOffset(end, ReadMaxRows(3))
        parts = reader.partitions(end, last)
        writer.commit([writer.write(batch for part in parts for batch in reader.read(part))], 1)
        assert q.submission(whale.id).done == 3
        assert seen(url) == Counter(range(40)), "each row once"
