"""TPC-H's pricing summary through a fair queue: shipping modes are the tenants; equal to plain Spark to the last cent.

The data is made by `tpchgen-cli` (pip install tpchgen-cli). `python spark_tpch.py 1` takes scale factor 1.
"""

import datetime
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

import fairway.spark

KEYS = ("l_returnflag", "l_linestatus")
SUMS = ("quantity", "price", "discounted", "orders")


def summary(lines: pa.Table) -> pa.Table:
    """Runs on the executors: the summary of one chunk."""
    lines = lines.filter(pc.less_equal(lines["l_shipdate"], pa.scalar(datetime.date(1998, 9, 2))))
    kept = pc.subtract(pa.scalar(Decimal("1.00"), pa.decimal128(15, 2)), lines["l_discount"])
    lines = lines.append_column("discounted", pc.multiply(lines["l_extendedprice"], kept))
    sums = [("l_quantity", "sum"), ("l_extendedprice", "sum"), ("discounted", "sum"), ([], "count_all")]
    return lines.group_by(list(KEYS)).aggregate(sums).rename_columns([*KEYS, *SUMS])


scale = sys.argv[1] if len(sys.argv) > 1 else "0.01"
spark = fairway.spark.session()
with tempfile.TemporaryDirectory() as folder:
    tool = Path(sys.executable).parent / "tpchgen-cli"
    if not tool.exists():
        sys.exit("this example makes its data with tpchgen-cli: pip install tpchgen-cli")
    subprocess.run([tool, "parquet", "-s", scale, "--tables", "lineitem", "--output-dir", folder], check=True)
    lines = spark.read.parquet(f"{folder}/lineitem.parquet")
    url = f"{folder}/tpch.db"
    made = fairway.spark.produce(lines, url, tenant_column="l_shipmode", chunk_rows=5000, token="tpch")
    fairway.spark.process(spark, url, fn=summary, strategy="Fair", progress=False)

    parts = fairway.spark.collect(spark, url).groupBy(*KEYS).agg(*(f.sum(name).alias(name) for name in SUMS))
    discounted = f.col("l_extendedprice") * (1 - f.col("l_discount"))
    plain = lines.where("l_shipdate <= date'1998-09-02'").groupBy(*KEYS).agg(
        f.sum("l_quantity"), f.sum("l_extendedprice"), f.sum(discounted), f.count("*")
    )  # fmt: skip
    same = sorted(map(tuple, parts.collect())) == sorted(map(tuple, plain.collect()))
    print(len(made), "tenants,", sum(one.total for one in made), "chunks; equal to plain Spark:", same)
    fairway.spark.release()
spark.stop()
