"""Rows mode where rows and chunks do not fit each other: a column is missing, a window closes without input."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairway
import fairway.spark
from fairway import limits
from fairway.errors import BadArgument, ConsumerFenced
from fairway.runtime.objects import read
from fairway.spark.batches import batch_of
from fairway.spark.processing import told
from tests.spark.pipeline import collected, numbers, objects, patiently, produce, submit
from tests.spark.test_driver_kills import last

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOWS = pa.schema([("ts", pa.timestamp("us", "UTC"))])


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "q.db")
    fairway.spark.release()


def test_a_chunk_with_a_missing_column_fails_alone_and_is_told(spark: Any, url: str) -> None:
    odd = [pa.table({"x": [100, 101]}), pa.table({"z": [7]}), pa.table({"x": ["no number"]})]
    subs = {
        "a": submit(url, numbers(4), tenant="a"),
        "b": submit(url, odd, tenant="b"),
        "c": submit(url, [pa.table({"x": [200]})], tenant="c"),
    }
    with fairway.open(url) as q:
        q.configure(retry_delay_seconds=0.1, retry_delay_seconds_max=0.1, attempts_max=2)
    fairway.spark.process(spark, url, rows=lambda df: df, schema="x long", chunks_per_task=3, progress=False)
    assert collected(url) == Counter([*range(40), 100, 101, 200])
    with fairway.open(url) as q:
        assert {name: q.submission(sub.id).state for name, sub in subs.items()} == {
            "a": "completed",
            "b": "failed",
            "c": "completed",
        }
        dead = {one.index: one for one in q.dead()}
        assert {index: (one.submission, one.attempts) for index, one in dead.items()} == {
            1: (subs["b"].id, 2),
            2: (subs["b"].id, 2),
        }
        chunk = f"chunk 1 of submission {subs['b'].id} (tenant 'b')"
        assert (
            f"option emit=rows: BadArgument: the payload of {chunk} has no column 'x'; it has z"
            in dead[1].error
        )
        assert "column 'x' is string and not int64" in dead[2].error


def test_a_row_on_which_the_query_raises_costs_its_chunk_and_the_error_is_told(spark: Any, url: str) -> None:
    sub = submit(url, numbers(2))
    with fairway.open(url) as q:
        q.configure(attempts_max=1)
    done = fairway.spark.process(
        spark,
        url,
        rows=lambda df: df.selectExpr("if(x = 13, raise_error('I do not like 13'), x) x"),
        schema="x long",
        result_format="parquet",
        progress=False,
    )
    assert collected(url) == Counter(range(10)), "the other chunk is done"
    with fairway.open(url) as q:
        (dead,) = q.dead()
        assert (dead.submission, dead.index) == (sub.id, 1) and "I do not like 13" in dead.error
        (batch,) = {name for result in q.results(sub.id) for name in batch_of(result.data).objects}
    assert read(batch).startswith(b"PAR1"), "and in the format that was asked for"
    assert done.restarts == 2 and all("I do not like 13" in error for error in done.errors)


def test_without_a_schema_that_of_the_first_start_counts_and_work_that_is_over_is_no_error(
    spark: Any, url: str
) -> None:
    frame = spark.range(3).coalesce(1).selectExpr("'a' tenant", "id x")
    produce(spark, url, df=frame, token="first")
    for gone in objects(url):
        if not gone.rpartition("/")[2].startswith("commit."):
            Path(f"{url}-objects", gone).unlink()
    produce(spark, url, df=frame.selectExpr("*", "7 z"), token="second")
    with fairway.open(url) as q:
        q.configure(attempts_max=1)

    def work(**told: Any) -> fairway.spark.Processed:
        return fairway.spark.process(spark, url, rows=lambda df: df, max_chunks=1, progress=False, **told)

    work()
    with fairway.open(url) as q:
        gone, more = q.dead()
        assert "ObjectMissing" in gone.error
        assert "column 'z' is not in the table that the schema was taken from" in more.error
        assert "schema=" in more.error, "and is not left out without a word"
        q.redrive(more.submission)
    work(schema="tenant string, x long, _tenant string")
    assert fairway.spark.collect(spark, url).columns == ["tenant", "x", "_tenant"]
    assert collected(url) == Counter(range(3))
    with fairway.open(url) as q:
        assert [one.state for one in q.submissions()] == ["failed", "completed"]
    assert work().batches == 0


def test_a_checkpoint_of_another_query_is_told_at_once_and_costs_no_chunk(spark: Any, url: str) -> None:
    """Started again, Spark would only say the same."""

    def work(**told: Any) -> fairway.spark.Processed:
        return fairway.spark.process(spark, url, schema="x long", progress=False, **told)

    def count(consumer: str, key: str) -> None:
        work(rows=lambda df: df.groupBy(key).count(), output_mode="complete", consumer=consumer)

    submit(url, numbers(2))
    work(rows=lambda df: df, consumer="a")
    submit(url, [pa.table({"x": range(20, 30)})], tenant="u")
    with pytest.raises(
        BadArgument, match=r"checkpoint is another query's.*the state directory is empty or missing"
    ) as caught:
        count("a", "x")
    assert caught.value.details["argument"] == "checkpoint"
    work(rows=lambda df: df, consumer="a")
    assert collected(url) == Counter(range(30)), "the one that it belongs to goes on"
    submit(url, [pa.table({"x": [1]})], tenant="v")
    count("b", "x")
    submit(url, [pa.table({"x": [2]})], tenant="w")
    with pytest.raises(BadArgument, match=r"checkpoint is another query's.*STATE_STORE_\w+_SCHEMA"):
        work(rows=lambda df: df.groupBy(df.x.cast("string")).count(), output_mode="complete", consumer="b")
    with fairway.open(url) as q:
        assert list(q.dead()) == []


def test_a_query_with_a_state_that_fails_before_it_has_any_is_started_again(spark: Any, url: str) -> None:
    """Its checkpoint has a batch and no state, as one that was written by a query without any."""
    submit(url, numbers(2))
    with fairway.open(url) as q:
        q.configure(attempts_max=1)
    odd = "if(x = 13, raise_error('I do not like 13'), x) x"
    done = fairway.spark.process(
        spark,
        url,
        rows=lambda df: df.selectExpr(odd).groupBy("x").count(),
        schema="x long",
        output_mode="complete",
        progress=False,
    )
    assert done.restarts == 2 and collected(url) == Counter(range(10))


def test_what_rows_gives_must_be_a_frame_that_reads_the_stream_once(spark: Any, url: str) -> None:
    submit(url, numbers(2))
    with pytest.raises(BadArgument, match="rows must return a DataFrame, not None"):
        fairway.spark.process(spark, url, rows=lambda df: None, schema="x long", progress=False)
    with pytest.raises(
        ConsumerFenced, match="or this query reads its stream twice, as a join with itself does"
    ):
        fairway.spark.process(
            spark,
            url,
            rows=lambda df: df.join(df.selectExpr("x", "x y"), "x"),
            schema="x long",
            progress=False,
        )


def test_columns_may_have_any_name(spark: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark finds columns by texts in which a dot and a backtick mean something, and without regard to case."""
    monkeypatch.setattr(limits, "PROCESS_RESTARTS_MAX", 2)
    names = ["x", "a.b", "é`", " ", "X"]
    submit(url, [pa.Table.from_arrays([pa.array([at])] * len(names), names=names) for at in range(2)])
    schema = pa.schema([(name, pa.int64()) for name in names])
    fairway.spark.process(spark, url, rows=lambda df: df, schema=schema, progress=False)
    found = fairway.spark.collect(spark, url)
    assert found.columns == names
    assert sorted(map(tuple, patiently(found.collect))) == [(0,) * 5, (1,) * 5]


# -- windows that close


def at(hour: int) -> pa.Table:
    return pa.table({"ts": [NOON + timedelta(hours=hour)]}, schema=WINDOWS)


def windows(df: Any, *keys: str) -> Any:
    """How many rows each minute has, told when the watermark has passed it."""
    from pyspark.sql import functions as f

    counted = df.withWatermark("ts", "1 minute").groupBy(f.window("ts", "1 minute"), *keys).count()
    return counted.selectExpr(
        f"(unix_timestamp(window.start) - {int(NOON.timestamp())}) div 3600 hour", "count", *keys
    )


def test_windows_that_close_come_with_the_next_chunks(spark: Any, url: str) -> None:
    """Spark would tell them in a batch that has no chunk; `process` makes none."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    before = spark.conf.get(NO_DATA)

    def run() -> Counter[int]:
        fairway.spark.process(spark, url, rows=windows, schema="ts timestamp", max_chunks=1, progress=False)
        return collected(url, "hour")

    submit(url, [at(0), at(1), at(2)])
    assert run() == Counter([0]), "that of hour 1 is closed by the last chunk, and waits for the next"
    submit(url, [at(3)], tenant="u")
    assert run() == Counter([0, 1])
    assert spark.conf.get(NO_DATA) == before, "the session's setting was only borrowed"


def test_a_batch_without_chunks_commits_nothing_and_rows_in_it_are_an_error(
    spark: Any, url: str, tmp_path: Path
) -> None:
    """By hand, with Spark's own setting: the batch that closes the window has nowhere to put it."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    assert spark.conf.get(NO_DATA) == "true"
    fairway.spark.register(spark)

    def run() -> None:
        options = {"consumer": "hand", "run": os.urandom(8).hex()}
        reader = spark.readStream.format("fairway").schema("ts timestamp").options(**options)
        df = reader.options(emit="rows", maxChunksPerTrigger="1").load(url)
        writer = windows(df).writeStream.format("fairway").options(**options)
        writer = writer.option("checkpointLocation", str(tmp_path / "cp")).outputMode("append")
        writer.trigger(availableNow=True).start(url).awaitTermination()

    with fairway.open(url) as q:
        first = submit(url, [at(0)])
        patiently(run)
        assert last(tmp_path / "cp/commits") == 1, "the second batch had no chunk"
        settled = [event.what for event in q.events()].count("completed")
        assert settled == 1 and q.submission(first.id).state == "completed"
        second = submit(url, [at(1)], tenant="u")
        with pytest.raises(Exception) as caught:
            patiently(run)
        error = told(caught.value)
        assert isinstance(error, BadArgument), str(error)[-800:]
        assert "batch 3 has 1 rows and no chunk to be registered with" in str(error) and NO_DATA in str(error)
        assert q.submission(second.id).state == "completed", "what had chunks is settled"
        assert collected(url, "hour") == Counter()
        # The way on that the documentation tells: the batch is forgotten, and its rows come with the next chunk.
        for name in ("3", ".3.crc"):
            (tmp_path / "cp/offsets" / name).unlink(missing_ok=True)
        submit(url, [at(2)], tenant="v")
        spark.conf.set(NO_DATA, "false")
        patiently(run)
        assert collected(url, "hour") == Counter([0])


def test_results_per_chunk_are_refused_for_a_query_that_keeps_a_state(spark: Any, url: str) -> None:
    """Its windows close in later batches, when their chunks are completed: they ended without a word and a result."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    sub = submit(url, [at(0), at(1), at(2), at(3)])

    def work(rows: Any, per_chunk: bool = True) -> None:
        schema = "ts timestamp, _chunk string"
        fairway.spark.process(
            spark, url, rows=rows, schema=schema, per_chunk=per_chunk, max_chunks=1, progress=False
        )

    def by_chunk(df: Any) -> Any:
        return windows(df, "_chunk")

    for rows in (by_chunk, lambda df: df.dropDuplicates(["ts"]), lambda df: df.limit(2)):
        with pytest.raises(BadArgument, match=r"perChunk: the query keeps a state \(\w+\).*per_chunk out"):
            work(rows)
    with fairway.open(url) as q:
        assert q.submission(sub.id).done == 0 and q.consumers() == [], "before it took anything"
    work(by_chunk, per_chunk=False)
    assert collected(url, "hour") == Counter([0, 1])


def test_by_hand_windows_that_close_after_their_chunk_are_refused(
    spark: Any, url: str, tmp_path: Path
) -> None:
    """A sink by hand cannot see the query; what comes too late ends it, and is there when perChunk is left out."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set(NO_DATA, "false")
    fairway.spark.register(spark)
    sub = submit(url, [at(0), at(1), at(2), at(3)], tenant="late")

    def run(per_chunk: str) -> None:
        options = {"consumer": "hand", "run": os.urandom(8).hex()}
        reader = spark.readStream.format("fairway").schema("ts timestamp, _chunk string").options(**options)
        df = reader.options(emit="rows", maxChunksPerTrigger="1").load(url)
        writer = windows(df, "_chunk").writeStream.format("fairway").options(**options, perChunk=per_chunk)
        writer = writer.option("checkpointLocation", str(tmp_path / "cp")).outputMode("append")
        writer.trigger(availableNow=True).start(url).awaitTermination()

    with fairway.open(url) as q:
        with pytest.raises(Exception) as caught:
            patiently(lambda: run("true"))
        error = told(caught.value)
        assert isinstance(error, BadArgument), str(error)[-800:]
        assert f"option perChunk: chunk 0 of submission {sub.id} (tenant 'late')" in str(error)
        assert q.submission(sub.id).state == "active"
        patiently(lambda: run("false"))
        assert q.submission(sub.id).state == "completed"
    assert collected(url, "hour") == Counter([0, 1])
