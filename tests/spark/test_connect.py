"""The four stages through Spark Connect, where no program of the user touches the JVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.pipeline import patiently

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
PROGRAM = """
import sys
from fairway.spark.archive import option
from fairway.spark.java import prepare
from fairway.spark.sessions import LOCAL

options = LOCAL + option(prepare(local=True))
from pyspark.sql import SparkSession

settings = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": options,
}
spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
assert type(spark).__module__ == "pyspark.sql.connect.session"
import fairway.spark

url = sys.argv[1] + "/q.db"
rows = spark.range(0, 120, numPartitions=2).selectExpr("concat('t', id % 3) tenant", "id x")
fairway.spark.produce(rows, url, tenant_column="tenant", chunk_rows=10, token="job")


def twice(table):
    import pyarrow.compute as pc

    return table.append_column("y", pc.multiply(table["x"], 2))


done = fairway.spark.process(spark, url, fn=twice, max_chunks=8, progress=False)
assert done.batches >= 2 and done.inputs == 12, done
found = fairway.spark.collect(spark, url).select("x", "y").collect()
assert sorted((row.x, row.y) for row in found) == [(x, 2 * x) for x in range(120)]
counts = fairway.spark.audit(spark, url).counts
assert (counts.completed, counts.lost, counts.duplicate, counts.stale) == (12, 0, 0, 0), counts
try:
    fairway.spark.process(
        spark,
        url,
        rows=lambda df: df.groupBy("_chunk").count(),
        schema="x long, _chunk string",
        per_chunk=True,
        consumer="rows",
        progress=False,
    )
except fairway.BadArgument as error:
    assert "the query keeps a state (StateStoreSave)" in str(error), error
else:
    raise AssertionError("results per chunk of a query with a state")
fairway.spark.release()
spark.stop()
print("all four")
"""


def test_all_four_stages_work_through_connect(tmp_path: Path) -> None:
    def once() -> str:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr[-4000:])
        return done.stdout

    assert "all four" in patiently(once)
