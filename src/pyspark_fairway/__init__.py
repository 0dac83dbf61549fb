"""Where Spark looks for format("fairway") by itself: a module `pyspark_*` with a DefaultSource."""

from fairway.spark.datasource import FairwaySource


class DefaultSource(FairwaySource):
    """The data source of fairway.spark."""
