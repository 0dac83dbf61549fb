"""Registering format("fairway") with a session.

Guards: a session has it once, whether Spark finds it by itself or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make format("fairway") known to a session; asked again, it is registered again, which changes nothing."""
    from fairway.spark.datasource import FairwaySource

    spark.dataSource.register(FairwaySource)
