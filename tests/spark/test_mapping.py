"""A function over chunks: what is wrong with one of them costs its chunk and no other. No session is needed."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pyarrow as pa
import pytest

from fairway.errors import BadArgument
from fairway.spark.codec import encode
from fairway.spark.columns import spark_of
from fairway.spark.finishing import Finish
from fairway.spark.mapping import run
from fairway.spark.settings import SINK, Settings
from tests.spark.pipeline import numbers

INTERVAL = pa.array([(1, 2, 3)], pa.month_day_nano_interval())


def row(index: int, table: pa.Table) -> dict[str, Any]:
    """A reference to a chunk whose payload and result are inline."""
    where = {"submission": 1, "index": index, "tenant": "t", "attempt": 1, "metadata": [], "object": None}
    return where | {"payload": encode(table, "arrow"), "receipt": f"r{index}", "result": None, "epoch": 1}


def worked(fn: Any, format: str = "arrow") -> list[str | None]:
    """The errors of three chunks."""
    rows = [row(at, table) for at, table in enumerate(numbers(3))]
    return [one["error"] for done in run(rows, fn, None, format) for one in done.to_pylist()]


def test_a_result_that_parquet_cannot_hold_fails_its_chunk_alone() -> None:
    def fn(table: pa.Table) -> pa.Table:
        return pa.table({"span": INTERVAL}) if table["x"][0].as_py() == 10 else table

    first, bad, last = worked(fn, "parquet")
    assert first is last is None
    assert bad is not None and "month_day_nano_interval" in bad and "chunk 1 of submission 1" in bad


def test_an_error_that_is_no_unicode_text_fails_its_chunk_alone() -> None:
    def fn(table: pa.Table) -> pa.Table:
        if table["x"][0].as_py() == 10:
            raise ValueError("a file called \udcff")
        return table

    first, bad, last = worked(fn)
    assert first is last is None and bad is not None and "a file called ?" in bad


class Untold(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize("error", [SystemExit("bye"), CancelledError("bye"), Untold()])
def test_whatever_a_function_raises_fails_its_chunk_alone(error: BaseException) -> None:
    def fn(table: pa.Table) -> pa.Table:
        if table["x"][0].as_py() == 10:
            raise error
        return table

    first, bad, last = worked(fn)
    assert first is last is None and bad is not None
    assert f"{type(error).__name__} in the function, on chunk 1 of submission 1 (tenant 't')" in bad


@pytest.mark.parametrize("per_chunk", ["true", "false"])
def test_rows_that_parquet_cannot_hold_are_refused_by_name(per_chunk: str) -> None:
    given = {"path": "/q.db", "consumer": "c", "run": "r", "resultFormat": "parquet", "perChunk": per_chunk}
    batch = pa.record_batch({"_chunk": pa.array(["r1 "]), "nothing": pa.array([{}], pa.struct([]))})
    sink = Finish(Settings(given, SINK), spark_of(batch.schema))
    with pytest.raises(BadArgument, match=r"cannot be written as parquet.*'nothing'"):
        sink.write(iter([batch]))
