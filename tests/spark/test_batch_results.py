"""Results of rows: they belong to a batch, so to every submission that has a chunk in it. No Spark is needed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import StructType

import fairway
from fairway.errors import BadArgument
from fairway.spark.batches import Batch, newest
from fairway.spark.codec import encode
from fairway.spark.columns import arrow_of, spark_of
from fairway.spark.datasource import FairwaySource
from fairway.spark.results import RAW, Results, registered, schema_of_results
from fairway.spark.settings import READ, Settings
from tests.spark.pipeline import forget, numbers, submit
from tests.spark.playing import CHUNKS, COUNTS, ROWS, Player, play

pytestmark = pytest.mark.real


@pytest.fixture
def url(tmp_path: Path, unhurried: None) -> Iterator[str]:
    """A queue that this process hosts."""
    where = str(tmp_path / "q.db")
    with fairway.open(where):
        yield where


def rows(url: str, schema: pa.Schema) -> list[tuple[Any, ...]]:
    """What `collect` gives for a schema, read without Spark."""
    results = Results(Settings({"path": url, "kind": "results"}, READ), spark_of(schema))
    tables = [batch for part in results.partitions() for batch in results.read(part)]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def seen(url: str) -> Counter[int]:
    return Counter(x for (x,) in rows(url, ROWS))


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


TRUTH = Counter(x % 7 for x in range(CHUNKS * 10))


def test_of_a_query_in_the_mode_complete_the_newest_batch_is_collected(url: str) -> None:
    for tenant in range(3):
        submit(url, numbers(CHUNKS)[tenant::3], tenant=f"t{tenant}")
    player = Player(url, "rows", lambda here: False)
    player.complete = True
    play(player)
    assert player.commits > 3
    found = rows(url, COUNTS)
    assert len(found) == 7 and Counter(dict(found)) == TRUTH
    assert schema_of_results(Settings({"path": url, "kind": "results"}, READ)) == spark_of(COUNTS)


def test_of_a_query_in_the_mode_update_rows_are_collected_with_their_batch(url: str) -> None:
    """Which are the newest of a key is for the reader to say: what a key is, only the query knows."""
    submit(url, numbers(CHUNKS))
    play(player := Player(url, "rows", lambda here: False))
    found = rows(url, COUNTS.append(pa.field("_batch", pa.int64())))
    assert {batch for *_, batch in found} == set(range(player.commits))
    latest = {key: count for key, count, _ in sorted(found, key=lambda row: row[2])}
    assert Counter(latest) == TRUTH


def test_rows_of_a_batch_are_told_to_belong_to_no_single_chunk(url: str) -> None:
    submit(url, numbers(3))
    play(Player(url, "echo", lambda here: False))
    origins = [("_tenant", pa.string()), ("_submission", pa.int64()), ("_index", pa.int32())]
    assert set(rows(url, pa.schema([*origins, ("_batch", pa.int64())]))) == {(None, None, None, 0)}
    raw = Results(Settings({"path": url, "kind": "results", "raw": "true"}, READ), spark_of(RAW))
    (batch,) = [batch for part in raw.partitions() for batch in raw.read(part)]
    assert {(row["batch"], row["submission"]) for row in batch.to_pylist()} == {(0, None)}


def test_results_of_two_queries_count_side_by_side() -> None:
    told = [(0, "a", True), (1, "a", True), (0, "b", True), (0, "c", False), (1, "c", False)]
    found = [Batch(number, consumer, complete) for number, consumer, complete in told]
    assert newest(found) == [found[1], found[2], found[3], found[4]]


def test_a_column_that_only_a_later_result_has_is_not_dropped_unless_columns_were_chosen(url: str) -> None:
    with fairway.open(url) as q:
        wide = numbers(2)[1].append_column("y", pa.array(range(10), pa.int64()))
        q.submit([b"", b""], tenant="t")
        q.complete(q.reserve(max=2), results=[encode(one, "arrow") for one in (numbers(1)[0], wide)])
        source = FairwaySource({"path": url, "kind": "results"})
        told = source.schema()
        assert isinstance(told, StructType) and told.names == ROWS.names
        reader = source.reader(told)
        with pytest.raises(
            BadArgument,
            match=r"chunk 1 .*tenant 't'.*'y' is not in the table that .*; give",
        ):
            [*map(list, map(reader.read, reader.partitions()))]
        assert len(rows(url, ROWS)) == 20


def results(q: fairway.Queue, *tables: pa.Table) -> None:
    q.submit([b""] * len(tables), tenant="t")
    q.complete(q.reserve(max=len(tables)), results=[encode(one, "arrow") for one in tables])


@pytest.mark.parametrize(
    ("first", "later", "named", "chosen"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, r"column 's.b' is not in the table that", {"a": 1}),
        ([{"a": 1}], [{"a": 1, "b": 2}], r"column 's.element.b' is not in the table that", [{"a": 1}]),
        (True, 7, r"column 's' is int64 and not bool", None),
        ({"a": True}, {"a": 7}, r"column 's.a' is int64 and not bool", None),
        (pa.scalar(0.5, pa.float32()), 0.1, r"column 's' is double and not float, .* would change 0.1", ...),
    ],
)
def test_nothing_inside_a_later_result_is_dropped_or_changed_unless_it_was_chosen(
    url: str, first: Any, later: Any, named: str, chosen: Any
) -> None:
    with fairway.open(url) as q:
        tables = [pa.table({"s": pa.array([one])}) for one in (first, later)]
        results(q, *tables)
        source = FairwaySource({"path": url, "kind": "results"})
        told = source.schema()
        assert isinstance(told, StructType)
        reader = source.reader(told)
        with pytest.raises(BadArgument, match=rf"chunk 1 .*tenant 't'.*{named}.*; give the columns that you"):
            [*map(list, map(reader.read, reader.partitions()))]
        if chosen is None:
            with pytest.raises(BadArgument, match=rf"chunk 1 .*tenant 't'.*{named}"):
                rows(url, tables[0].schema)
        elif chosen is not ...:
            assert rows(url, tables[0].schema) == [(chosen,), (chosen,)]


def test_two_columns_of_one_name_in_a_result_are_told_with_its_chunk(url: str) -> None:
    """As a worker may have stored them."""
    one, two = pa.table({"x": [1], "tax": [1]}), pa.table([[1], [2], [3]], names=["x", "tax", "tax"])
    with fairway.open(url) as q:
        results(q, one, two)
        with pytest.raises(BadArgument, match=r"chunk 1 .*tenant 't'.* two columns 'tax'"):
            rows(url, one.schema)
        assert len(rows(url, one.schema.remove(1))) == 2, "nobody asked for the other"
        forget(q)
        results(q, two)
        with pytest.raises(BadArgument, match=r"chunk 0 .*tenant 't'.* two columns 'tax'"):
            schema_of_results(Settings({"path": url, "kind": "results"}, READ))


def test_unsigned_results_are_read_as_spark_reads_them_and_other_types_are_told(url: str) -> None:
    with fairway.open(url) as q:
        results(q, pa.table({"rank": pa.array([2**64 - 1], pa.uint64())}))
        found = schema_of_results(Settings({"path": url, "kind": "results"}, READ))
        assert found.simpleString() == "struct<rank:decimal(20,0)>"
        assert rows(url, arrow_of(found)) == [(2**64 - 1,)]
        forget(q)
        results(q, pa.table({"x": [1], "at": pa.array([1], pa.time32("s"))}))
        with pytest.raises(BadArgument, match=r"chunk 0 .*tenant 't'.*column 'at' is time32.*does not have"):
            schema_of_results(Settings({"path": url, "kind": "results"}, READ))
        assert rows(url, ROWS) == [(1,)]


def test_a_null_in_a_column_that_had_none_before_is_read_as_one(url: str) -> None:
    """Spark looks for no nulls where a schema has none: it would read what lies in their place."""
    whole = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    tables = [pa.table({"x": [1]}, schema=whole), pa.table({"x": pa.array([None, 2], pa.int64())})]
    with fairway.open(url) as q:
        q.submit([b"", b""], tenant="t")
        q.complete(q.reserve(max=2), results=[encode(one, "arrow") for one in tables])
    assert schema_of_results(Settings({"path": url, "kind": "results"}, READ)) == spark_of(ROWS)
    assert rows(url, ROWS) == [(1,), (None,), (2,)]
    with pytest.raises(BadArgument, match=r"chunk 1 .*column 'x' has 1 nulls, and its schema allows none"):
        rows(url, whole)


def test_results_that_are_forgotten_while_others_are_read_are_none(url: str) -> None:
    """The submissions are listed first, some at a time."""
    with fairway.open(url) as q:
        for tenant in "ab":
            q.submit([b"one"], tenant=tenant)
        q.complete(q.reserve(max=2), results=[b"1", b"2"])
        found = registered(q, Settings({"path": url, "kind": "results"}, READ))
        assert next(found).data == b"1"
        forget(q)
        assert list(found) == []
