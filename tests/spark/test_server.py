"""Spark on a queue behind a server, and on one that cannot be reached."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairway
import fairway.spark
from fairway import limits
from fairway.errors import BadArgument, NoHost, Unreachable
from fairway.spark.processing import told
from tests.server.live import live
from tests.spark.pipeline import collected, doubled, patiently, rows, submit

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
NOWHERE = "http://127.0.0.1:9"  # nobody listens at the port of `discard`


def test_every_stage_works_over_http(spark: Any, tmp_path: Path) -> None:
    root = f"file://{tmp_path}/objects"
    names = {"t0": "t0", "t1": "a/b %2F", "t2": "é"}  # a server takes no prefix with a percent sign

    def fails_once(table: pa.Table) -> pa.Table:
        if 2 in table["x"].to_pylist() and not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise ValueError("once")
        return doubled(table)

    with live(tmp_path, objects=[root]) as server:
        df = rows(spark, 60).replace(names, subset="tenant")
        made = patiently(
            lambda: fairway.spark.produce(
                df, server.url, tenant_column="tenant", chunk_rows=10, objects=root, token="job"
            )
        )
        assert sorted(one.tenant for one in made) == sorted(names.values())
        told = fairway.spark.process(
            spark,
            server.url,
            fn=fails_once,
            objects=root,
            checkpoint=str(tmp_path / "checkpoint"),
            max_chunks=4,
            progress=False,
        )
        assert told.batches >= 2
        frame = fairway.spark.collect(spark, server.url)
        found = patiently(lambda: [(r.tenant, r.x, r.y) for r in frame.collect()])
        fairway.spark.release()
        assert sorted(found) == sorted((names[f"t{x % 3}"], x, 2 * x) for x in range(60))
        counts = patiently(lambda: fairway.spark.audit(spark, server.url)).counts
        assert (counts.faults, counts.chunks, counts.completed, counts.retries) == (0, 6, 6, 1)
        with fairway.open(server.url) as q:
            assert {one.state for one in q.submissions()} == {"completed"}


@pytest.mark.parametrize("stage", ["produce", "process", "collect", "stream"])
def test_a_queue_on_cassandra_is_reached_through_a_server(spark: Any, tmp_path: Path, stage: str) -> None:
    url = "cassandra://nobody.invalid/fairway"
    stages = {
        "produce": lambda: fairway.spark.produce(rows(spark, 1), url, tenant_column="tenant"),
        "process": lambda: fairway.spark.process(spark, url, fn=doubled, checkpoint=str(tmp_path)),
        "collect": lambda: fairway.spark.collect(spark, url),
        "stream": lambda: patiently(
            lambda: spark.readStream.format("fairway").option("consumer", "c").load(url)
        ),
    }
    with pytest.raises(Exception) as caught:
        stages[stage]()
    error = told(caught.value)
    assert isinstance(error, BadArgument)
    assert "`fairway serve`" in str(error) and "give the server's URL" in str(error)


def test_a_server_that_is_not_there_is_named(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.2)
    for stage in (
        lambda: fairway.spark.process(spark, NOWHERE, fn=doubled, checkpoint="/nowhere"),
        lambda: fairway.spark.produce(rows(spark, 1), NOWHERE, tenant_column="tenant", objects="memory://x"),
        lambda: fairway.spark.collect(spark, NOWHERE),
    ):
        with pytest.raises(Unreachable, match=f"no server answered at {NOWHERE}"):
            stage()


def test_a_server_has_no_folder_of_its_own_so_places_are_asked_for(spark: Any) -> None:
    with pytest.raises(BadArgument, match=f"checkpoint: {NOWHERE} is no file"):
        fairway.spark.process(spark, NOWHERE, fn=doubled)


def test_a_stream_on_a_queue_that_nobody_hosts_is_told_and_takes_nothing(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "q.db")
    sub = submit(url, [pa.table({"x": [1]})])

    def run() -> None:
        df = spark.readStream.format("fairway").option("consumer", "c").load(url)
        mapped = df.transform(fairway.spark.map_chunks(doubled))
        writer = mapped.writeStream.format("fairway").option("consumer", "c")
        writer.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start(
            url
        ).awaitTermination()

    fairway.spark.register(spark)
    with pytest.raises(Exception) as caught:
        patiently(run)
    error = told(caught.value)
    assert isinstance(error, NoHost) and f"no process hosts the queue 'default' of {url}" in str(error)
    with fairway.open(url):
        patiently(run)
    assert collected(url) == Counter([1])
    with fairway.open(url) as q:
        assert q.submission(sub.id).state == "completed", "the same checkpoint goes on when somebody hosts it"
