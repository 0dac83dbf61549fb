"""Producing: rows become chunks and submissions, once per token, and what belongs to nothing is removed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairway
import fairway.spark
from fairway.errors import BadArgument
from fairway.spark.codec import decode
from fairway.spark.places import batches_folder
from fairway.spark.processing import told
from tests.spark.pipeline import objects, patiently, produce, rows
from tests.spark.screens import screen_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
HARD_NAMES = ["", "..", "a/b", "../up", "é %2F", "t.", "x" * 256]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "q.db")


def payloads(url: str) -> dict[str, list[pa.Table]]:
    """Every payload of every tenant, leased and given back."""
    found: dict[str, list[pa.Table]] = {}
    with fairway.open(url) as q:
        for lease in (leases := q.reserve(10_000)):
            assert lease.payload is not None
            found.setdefault(lease.tenant, []).append(decode(lease.payload, "a payload"))
        q.release(leases)
    return found


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_every_row_is_in_one_chunk_of_its_tenant(spark: Any, url: str, form: str) -> None:
    made = produce(spark, url, 1000, payload_format=form, metadata={"mode": "a,b=c", "n": 7}, weight=2.5)
    assert [(one.tenant, one.metadata) for one in sorted(made, key=lambda one: one.tenant)] == [
        (tenant, {"mode": "a,b=c", "n": 7, "token": "job"}) for tenant in ("t0", "t1", "t2")
    ]
    assert {one.policy for one in made} == {"dead_letter"}, "unless told otherwise"
    found = payloads(url)
    for rest, tenant in enumerate(("t0", "t1", "t2")):
        assert sorted(x for table in found[tenant] for x in table["x"].to_pylist()) == list(
            range(rest, 1000, 3)
        )
        sizes = [table.num_rows for table in found[tenant]]
        assert max(sizes) == 50 and sum(size < 50 for size in sizes) <= 2, (
            "one rest for each of the two tasks"
        )
        assert all(set(table["tenant"].to_pylist()) == {tenant} for table in found[tenant])
    with fairway.open(url) as q:
        assert {one.name: one.weight for one in q.tenants()} == {"t0": 2.5, "t1": 2.5, "t2": 2.5}


def test_no_name_of_a_tenant_leaves_its_folder(spark: Any, url: str) -> None:
    df = spark.createDataFrame([(name, n) for n, name in enumerate(HARD_NAMES)], "tenant string, x long")
    made = produce(spark, url, df=df)
    assert sorted(one.tenant for one in made) == sorted(HARD_NAMES)
    assert {name: tables[0]["x"].to_pylist() for name, tables in payloads(url).items()} == {
        name: [n] for n, name in enumerate(HARD_NAMES)
    }
    outside = {path.name for path in Path(url).parent.iterdir()}
    assert {name for name in outside if not name.startswith("q.db")} == set()
    assert all(name.startswith(("_job/_", "_job/commit.")) for name in objects(url))


def test_the_same_token_submits_once_and_a_rerun_removes_its_own_objects(
    spark: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = screen_of(monkeypatch)
    first = produce(spark, url)
    assert "payloads written" in screen.getvalue()
    before = objects(url)
    again = produce(spark, url, df=rows(spark, 900, parts=3))
    assert [(one.id, one.total) for one in again] == [(one.id, one.total) for one in first]
    assert objects(url) == before, "what the rerun wrote is gone, what the first wrote is there"
    assert sum(table.num_rows for tables in payloads(url).values() for table in tables) == 600


def failing(partition: int, times: int, marks: str) -> Any:
    """A stage that ends one task with an error, a number of times, after its first rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == partition and len(os.listdir(marks)) < times:
            Path(marks, str(time.time_ns())).touch()
            raise RuntimeError("planted failure")

    return run


def test_a_task_that_is_tried_again_submits_its_rows_once(spark: Any, url: str, tmp_path: Path) -> None:
    (marks := tmp_path / "marks").mkdir()
    df = rows(spark, 600).mapInArrow(failing(1, 1, str(marks)), "tenant string, x long")
    made = produce(spark, url, df=df)
    assert len(list(marks.iterdir())) == 1, "it failed once"
    assert sorted(x for tables in payloads(url).values() for t in tables for x in t["x"].to_pylist()) == list(
        range(600)
    )
    assert len(objects(url)) == sum(one.total for one in made) + 1, "the failed try left nothing but the note"


def failing_after(sign: str, stuck: bool) -> Any:
    """A stage whose second task fails when something is there; its first one ends, or is stuck after its rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        task = TaskContext.get()
        assert task is not None
        first, until = task.partitionId() == 0, time.monotonic() + 30
        if first and not stuck:
            return
        while time.monotonic() < until and (first or not os.path.exists(sign)):
            time.sleep(0.01)
        raise RuntimeError("planted failure" if os.path.exists(sign) else "nothing came")

    return run


def fail_to_produce(
    spark: Any, url: str, count: int, sign: Path, stuck: bool, ready: Callable[[], bool]
) -> None:
    """A job of two tasks, of which one fails when the other is so far."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            if ready():
                sign.touch()

    df = rows(spark, count).mapInArrow(failing_after(str(sign), stuck), "tenant string, x long")

    def attempt() -> None:
        sign.unlink(missing_ok=True)
        fairway.spark.produce(df, url, tenant_column="tenant", token="job", chunk_rows=1000)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(Exception, match="planted failure"):
            patiently(attempt)
    finally:
        over.set()
        watcher.join()
    with fairway.open(url) as q:
        assert list(q.submissions()) == []


def test_a_job_that_fails_submits_nothing_and_removes_what_finished_tasks_wrote(
    spark: Any, url: str, tmp_path: Path
) -> None:
    tracker = spark.sparkContext.statusTracker()

    def heard() -> bool:
        """The driver has the message of the other task."""
        stages = [tracker.getStageInfo(id) for id in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numCompletedTasks for stage in stages)

    # So few rows that a task writes all its chunks at its end: the one that fails has written none.
    fail_to_produce(spark, url, 60, tmp_path / "heard", False, heard)
    assert objects(url) == set()


def test_what_a_task_wrote_that_spark_killed_is_swept(spark: Any, url: str, tmp_path: Path) -> None:
    """Spark kills the other tasks of a job that fails: it does not tell what they wrote, nor wait until they stop."""
    # So many rows that most come through, though the buffers between two processes keep the last ones.
    fail_to_produce(spark, url, 60_000, tmp_path / "written", True, lambda: bool(objects(url)))
    until = time.monotonic() + 30
    while fairway.spark.sweep(url, older_seconds=-60) or objects(url):
        assert time.monotonic() < until, "what is killed stops writing soon"


def test_the_sweeper_removes_what_belongs_to_nothing_and_is_old(spark: Any, url: str) -> None:
    produce(spark, url)
    kept = objects(url)
    top = Path(f"{url}-objects")
    orphans = {
        "_dead/_t/0.0-1-ab/0",
        "_job/_t0/9.9-9-ff/0",
        "_job/_t0/9.9-9-ff/0.out.1.2.3",
        f"{batches_folder(url, 'default')}/_c/ffff",
    }
    for name in orphans:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(b"orphan")
    assert fairway.spark.sweep(url, older_seconds=3600) == [], "young ones stay: their job may be running"
    gone = fairway.spark.sweep(url, older_seconds=-60)
    assert {name.partition("q.db-objects/")[2] for name in gone} == orphans
    assert objects(url) == kept


def test_a_stream_submits_each_batch_once(spark: Any, url: str, tmp_path: Path) -> None:
    fairway.spark.register(spark)
    source = tmp_path / "in"
    patiently(lambda: rows(spark, 300).write.mode("overwrite").parquet(str(source)))

    def run(checkpoint: str) -> None:
        df = spark.readStream.schema("tenant string, x long").parquet(str(source))
        options = {"tenantColumn": "tenant", "submissionToken": "stream", "chunkRows": "50"}
        writer = df.writeStream.format("fairway").options(**options)
        writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True).start(
            url
        ).awaitTermination()

    with fairway.spark.hosting(url) as q:
        for checkpoint in ("one", "one", "two"):  # started again, and with its checkpoint deleted
            patiently(lambda checkpoint=checkpoint: run(checkpoint))
        assert {(one.key, one.policy) for one in q.submissions()} == {("stream.0", "dead_letter")}
    assert sorted(x for tables in payloads(url).values() for t in tables for x in t["x"].to_pylist()) == list(
        range(300)
    )


# -- bad input


def save(spark: Any, url: str, **options: str) -> None:
    fairway.spark.register(spark)
    rows(spark, 6).write.format("fairway").mode("append").options(**options).save(url)


@pytest.mark.parametrize(
    ("options", "kind", "named"),
    [
        ({}, "BadArgument", "tenantColumn"),
        ({"tenantColumn": "owner"}, "BadArgument", "owner"),
        ({"tenantColumn": "tenant", "chunkrow": "5"}, "BadArgument", "chunkrow"),
        ({"tenantColumn": "tenant", "chunkRows": "none"}, "BadArgument", "chunkRows"),
        ({"tenantColumn": "tenant", "payloadFormat": "csv"}, "BadArgument", "payloadFormat"),
        ({"tenantColumn": "tenant", "consumer": "c"}, "BadArgument", "consumer"),
    ],
)
def test_a_bad_option_is_named(spark: Any, url: str, options: dict[str, str], kind: str, named: str) -> None:
    with fairway.spark.hosting(url), pytest.raises(Exception) as caught:
        patiently(lambda: save(spark, url, **options))
    error = told(caught.value)
    assert type(error).__name__ == kind and named in str(error), str(caught.value)[-2000:]


def test_a_queue_that_nobody_hosts_is_named_and_leaves_nothing(spark: Any, url: str) -> None:
    fairway.open(url).close()
    with pytest.raises(Exception) as caught:
        patiently(lambda: save(spark, url, tenantColumn="tenant"))
    error = told(caught.value)
    assert isinstance(error, fairway.NoHost) and url in str(error)
    assert objects(url) == set()


def test_a_row_without_a_tenant_is_refused(spark: Any, url: str) -> None:
    df = spark.createDataFrame([("a", 1), (None, 2)], "tenant string, x long").coalesce(1)
    with pytest.raises(BadArgument, match="every row needs a tenant"):
        patiently(lambda: fairway.spark.produce(df, url, tenant_column="tenant"))
    assert objects(url) == set()


def test_a_name_that_is_too_long_for_a_tenant_is_refused_with_its_column(spark: Any, url: str) -> None:
    df = spark.createDataFrame([("a", 1), ("x" * 300, 2)], "tenant string, x long").coalesce(1)
    with pytest.raises(
        BadArgument, match="option tenantColumn: each value of column 'tenant' must be a str of 0 to"
    ):
        patiently(lambda: fairway.spark.produce(df, url, tenant_column="tenant"))
    assert objects(url) == set()


def test_a_weight_that_the_queue_would_refuse_is_refused_before_any_payload_is_written(
    spark: Any, url: str
) -> None:
    with pytest.raises(BadArgument, match=r"weight must be a number from 0.01 to 100"):
        produce(spark, url, 6, weight=1000)
    assert objects(url) == set()


def test_the_mode_must_be_append(spark: Any, url: str) -> None:
    fairway.spark.register(spark)
    with pytest.raises(Exception, match=r"(?i)append"):
        rows(spark, 6).write.format("fairway").mode("overwrite").option("tenantColumn", "tenant").save(url)
