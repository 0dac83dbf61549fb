"""TPC-H data through the pipeline gives what the same query gives in plain Spark, to the last cent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fairway.spark
from tests.spark.pipeline import patiently

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]
PRICING = """
    select l_returnflag, l_linestatus, sum(l_quantity) quantity, sum(l_extendedprice) price,
           sum(l_extendedprice * (1 - l_discount)) discounted, count(*) orders
    from lineitem where l_shipdate <= date'1998-09-02' group by l_returnflag, l_linestatus
"""


def pricing(table: pa.Table) -> pa.Table:
    """The pricing summary (query 1) of one chunk."""
    import datetime

    table = table.filter(pc.less_equal(table["l_shipdate"], pa.scalar(datetime.date(1998, 9, 2))))
    kept = pc.subtract(pa.scalar(Decimal("1.00"), pa.decimal128(15, 2)), table["l_discount"])
    table = table.append_column("discounted", pc.multiply(table["l_extendedprice"], kept))
    sums = [("l_quantity", "sum"), ("l_extendedprice", "sum"), ("discounted", "sum"), ([], "count_all")]
    found = table.group_by(["l_returnflag", "l_linestatus"]).aggregate(sums)
    return found.rename_columns(["l_returnflag", "l_linestatus", "quantity", "price", "discounted", "orders"])


def check(spark: Any, folder: Path, scale: str) -> tuple[int, int]:
    """Compare, and give how many lines went through and how many groups differ."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    command = [tool, "parquet", "-s", scale, "--tables", "lineitem", "--output-dir", folder]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    lines = spark.read.parquet(str(folder / "lineitem.parquet"))
    lines.createOrReplaceTempView("lineitem")
    expected = patiently(lambda: spark.sql(PRICING).collect())
    url = str(folder / "q.db")
    patiently(
        lambda: fairway.spark.produce(lines, url, tenant_column="l_shipmode", chunk_rows=5000, token="tpch")
    )
    fairway.spark.process(spark, url, fn=pricing, progress=False)
    parts = fairway.spark.collect(spark, url)
    sums = _sums("quantity", "price", "discounted", "orders")
    summed = parts.groupBy("l_returnflag", "l_linestatus").agg(*sums)
    found = patiently(lambda: summed.collect())
    fairway.spark.release()
    assert len(expected) == 4
    ours, theirs = ({tuple(row) for row in rows} for rows in (found, expected))
    assert len(found) == len(ours)
    return patiently(lines.count), len(ours ^ theirs)


def _sums(*names: str) -> list[Any]:
    from pyspark.sql import functions

    return [functions.sum(name).alias(name) for name in names]


def test_tpch_through_the_pipeline_equals_plain_spark(spark: Any, tmp_path: Path) -> None:
    lines, differing = check(spark, tmp_path, "0.01")
    assert lines > 60_000 and not differing


@pytest.mark.proof
def test_ten_times_as_much_tpch_through_the_pipeline_equals_plain_spark(
    spark: Any, tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    lines, differing = check(spark, tmp_path, "0.1")
    record_proof("TPC-H 0.1 through Spark", operations=lines, lost=differing, note="operations are rows")
    assert lines > 600_000 and not differing
