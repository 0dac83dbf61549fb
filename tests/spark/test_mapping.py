"""A function over chunks: what is wrong with one of them costs its chunk and no other. No session is needed."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StructType

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


def worked(fn: Any, format: str = "arrow", promised: pa.Schema | None = None) -> list[str | None]:
    """The errors of three chunks."""
    rows = [row(at, table) for at, table in enumerate(numbers(3))]
    return [one["error"] for done in run(rows, fn, promised, format) for one in done.to_pylist()]


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


@pytest.mark.parametrize("format", ["arrow", "parquet"])
@pytest.mark.parametrize("promised", [None, pa.schema([("x", pa.int64()), ("tax", pa.int64())])])
def test_a_result_with_two_columns_of_one_name_fails_its_chunk_alone(
    promised: pa.Schema | None, format: str
) -> None:
    """`collect` could not say which of them is meant."""

    def fn(table: pa.Table) -> pa.Table:
        taxed = table.append_column("tax", table["x"])
        return taxed.append_column("tax", table["x"]) if table["x"][0].as_py() == 10 else taxed

    first, bad, last = worked(fn, format, promised)
    assert first is last is None
    assert (
        bad is not None and "the result of chunk 1 of submission 1 (tenant 't') has two columns 'tax'" in bad
    )


def test_a_struct_with_two_fields_of_one_name_fails_its_chunk_alone() -> None:
    def fn(table: pa.Table) -> pa.Table:
        if table["x"][0].as_py() == 10:
            return pa.table({"s": pa.StructArray.from_arrays([table["x"].chunk(0)] * 2, names=["y", "y"])})
        return table

    first, bad, last = worked(fn)
    assert first is last is None and bad is not None and "has two columns 's.y'" in bad


def test_a_truth_value_for_a_number_that_was_promised_fails_its_chunk_alone() -> None:
    def fn(table: pa.Table) -> pa.Table:
        return pa.table({"x": [True]}) if table["x"][0].as_py() == 10 else table

    first, bad, last = worked(fn, promised=pa.schema([("x", pa.int32())]))
    assert first is last is None and bad is not None
    assert "chunk 1 of submission 1 (tenant 't')" in bad and "column 'x' is bool and not int32" in bad


def test_rows_with_two_columns_of_one_name_are_refused_before_any_work() -> None:
    given = {"path": "/q.db", "consumer": "c", "run": "r"}
    with pytest.raises(BadArgument, match="the DataFrame has two columns 'tax'"):
        Finish(Settings(given, SINK), spark_schema("tax", "x", "tax"))
    with pytest.raises(BadArgument, match=r"the DataFrame has two columns 's.tax'"):
        inside = ArrayType(spark_schema("tax", "tax"))
        Finish(Settings(given, SINK), spark_schema("x").add("s", inside))


def spark_schema(*names: str) -> StructType:
    found = StructType()
    for name in names:
        found.add(name, LongType())
    return found


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
