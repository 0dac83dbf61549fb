"""Small data for pipelines, and patience with a machine that is too busy to start a Python worker in ten seconds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

import fairway
import fairway.spark
from fairway.spark.codec import encode

T = TypeVar("T")
# What the JVM says when a worker of a busy machine did not connect in its ten seconds. It says nothing else of it, so
# nothing else is tried again: a worker that "exited unexpectedly" crashed.
BUSY = "to connect back"


def patiently(call: Callable[[], T], tries: int = 8) -> T:
    for left in range(tries - 1, -1, -1):
        try:
            return call()
        except Exception as error:
            if not left or BUSY not in str(error):
                raise
    raise AssertionError


def rows(spark: Any, count: int, tenants: int = 3, parts: int = 2) -> Any:
    """x from 0 to count - 1, dealt to the tenants t0, t1, ..."""
    return spark.range(0, count, numPartitions=parts).selectExpr(
        f"concat('t', id % {tenants}) tenant", "id x"
    )


def produce(spark: Any, url: str, count: int = 600, **told: Any) -> list[fairway.Submission]:
    told = {"tenant_column": "tenant", "chunk_rows": 50, "token": "job", **told}
    df = told.pop("df", None)
    return patiently(lambda: fairway.spark.produce(rows(spark, count) if df is None else df, url, **told))


def submit(
    url: str, tables: Iterable[pa.Table], tenant: str = "t", objects: str | None = None, **told: Any
) -> fairway.Submission:
    """Chunks without Spark, which is quicker: objects beside the file, unless told."""
    prefix = f"{objects or f'file://{url}-objects'}/{tenant}"
    with fairway.open(url) as q:
        return q.submit(
            (encode(one, "arrow") for one in tables),
            objects=prefix,
            tenant=tenant,
            policy="dead_letter",
            **told,
        )


def numbers(chunks: int, rows: int = 10) -> list[pa.Table]:
    """Chunk i holds x from i * rows on."""
    return [pa.table({"x": range(at * rows, (at + 1) * rows)}) for at in range(chunks)]


def doubled(table: pa.Table) -> pa.Table:
    return table.append_column("y", pc.multiply(table["x"], 2))


def collected(url: str, column: str = "x") -> Counter[int]:
    """Every value of a column in every registered result, read without Spark; how often it is there."""
    from fairway.runtime.objects import read
    from fairway.spark.batches import batch_of
    from fairway.spark.codec import decode

    found: Counter[int] = Counter()
    named: set[str] = set()  # a batch is named by each of its submissions
    with fairway.open(url) as q:
        for one in q.submissions():
            for result in q.results(one.id):
                batch = batch_of(result.data)
                if batch is None:
                    found.update(decode(result.read(), "a result")[column].to_pylist())
                else:
                    named.update(batch.objects)
    for name in named:
        found.update(decode(read(name), "a result")[column].to_pylist())
    return found


def objects(url: str) -> set[str]:
    """Files that lie beside the queue."""
    top = Path(f"{url}-objects")
    return {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}


def forget(q: fairway.Queue) -> None:
    """Let the queue forget every submission that has ended."""
    q.configure(retention_seconds=0.0)
    until = time.monotonic() + 60
    while any(one.state != "active" for one in q.submissions()):
        assert time.monotonic() < until
        time.sleep(0.1)
