"""collect and read: what a queue holds, as DataFrames that Spark reads when it likes.

Guards: the queue stays open in this program for as long as such a DataFrame may be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairway.runtime.urls import Place
from fairway.spark.columns import schema_of
from fairway.spark.queues import keep
from fairway.spark.settings import located
from fairway.spark.sources import register
from fairway.spark.telling import unwrapped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read(
    spark: SparkSession,
    url: Place,
    kind: str,
    *,
    queue: str = "default",
    schema: str | StructType | pa.Schema | None = None,
    **options: object,
) -> DataFrame:
    """What a queue holds: kind is submissions, chunks, results, events or dead.

    The queue stays open in this program until it ends or `fairway.spark.release()` is called.
    """
    register(spark)
    keep(url, queue)
    reader = spark.read.format("fairway").option("kind", kind).option("queue", queue)
    for name, value in options.items():
        if value is not None:
            reader = reader.option(name, str(value).lower() if isinstance(value, bool) else str(value))
    if schema is not None:
        reader = reader.schema(schema_of(schema))
    with unwrapped():
        return reader.load(located(url))


def collect(
    spark: SparkSession,
    url: Place,
    *,
    queue: str = "default",
    submission: int | None = None,
    tenant: str | None = None,
    schema: str | StructType | pa.Schema | None = None,
) -> DataFrame:
    """The registered results of a queue, of one submission or of one tenant, row by row.

    Without a schema it is that of the first result, and one that has other columns or fields, or values that its types
    would change, is an error. A schema that names _tenant, _submission or _index gets them filled in. Rows of a query
    (`process(rows=...)`) belong to a batch and to no single chunk: they have a _batch instead. In the output mode
    complete only the newest batch of a consumer counts, since it has all rows.
    """
    return read(spark, url, "results", queue=queue, schema=schema, submission=submission, tenant=tenant)
