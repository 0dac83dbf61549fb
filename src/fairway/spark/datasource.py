"""format("fairway"): which reader or writer does what Spark asks for.

Guards: making one reserves nothing and changes nothing; Spark makes them in planners, as often as it likes.
Each import stands where it is needed: every commit of a sink is a new process that loads this module, and Spark waits.
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from fairway.errors import BadArgument
from fairway.spark.settings import NO_STREAM, READ, SINK, SOURCE, WRITE, Settings, of_stream
from fairway.spark.shapes import DONE, REFERENCE

_KIND = f"say what to read: submissions, chunks, results, events or dead; {NO_STREAM}"


class FairwaySource(DataSource):
    """A queue as a source and a sink of Spark."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.given = dict(options)
        self._chosen = True  # who reads chose the columns: Spark asked for no schema

    @classmethod
    def name(cls) -> str:
        return "fairway"

    def schema(self) -> StructType | str:
        from fairway.spark.columns import spark_of
        from fairway.spark.listings import SCHEMAS
        from fairway.spark.results import schema_of_results

        self._chosen = False
        if of_stream(self.given):
            settings = Settings(self.given, SOURCE)
            if settings["function"]:
                return DONE
            return _schema_of_rows(settings) if settings["emit"] == "rows" else REFERENCE
        settings = Settings(self.given, READ)
        kind = settings.need("kind", _KIND)
        return schema_of_results(settings) if kind == "results" else spark_of(SCHEMAS[kind])

    def reader(self, schema: StructType) -> DataSourceReader:
        from fairway.spark.listings import SCHEMAS, Listing
        from fairway.spark.results import Results

        settings = Settings(self.given, READ)
        kind = settings.need("kind", _KIND)
        if kind == "results":
            return Results(settings, schema, self._chosen)
        if schema.fieldNames() != SCHEMAS[kind].names:
            raise BadArgument(
                f"kind={kind} has the columns {', '.join(SCHEMAS[kind].names)}: leave the schema out, and"
                " select from them",
                argument="schema",
            )
        return Listing(settings)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from fairway.spark.source import ChunkStream

        return ChunkStream(Settings(self.given, SOURCE), schema, self._chosen)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from fairway.spark.submitting import Submit

        if overwrite:
            raise BadArgument("a queue is only added to: use mode('append')", argument="mode")
        return Submit(Settings(self.given, WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        settings = Settings(self.given, SINK)
        if bool(settings["tenantColumn"]) == bool(settings["consumer"]):
            raise BadArgument(
                "a stream sink has either a consumer (it settles the chunks of a query that reads the queue) or a"
                " tenantColumn (it submits rows)",
                argument="consumer",
            )
        if settings["consumer"]:
            from fairway.spark.finishing import Finish

            # Spark says "overwrite" for the output mode complete: every batch has all that the ones before it had.
            return Finish(settings, schema, overwrite)
        from fairway.spark.submitting import SubmitStream

        if overwrite:
            raise BadArgument("a queue is only added to: use outputMode('append')", argument="outputMode")
        return SubmitStream(settings, schema)


def _schema_of_rows(settings: Settings) -> StructType:
    """What the oldest active submission noted of its payloads, and the columns that tell where rows come from.

    Where none is active nothing will be read, and what any other noted will do: a query that is done ends as one.
    """
    if settings["noted"]:  # by the first start
        return StructType.fromJson(json.loads(settings["noted"]))
    import pyarrow as pa

    from fairway.spark.columns import ORIGINS, first_of_many
    from fairway.spark.queues import attached
    from fairway.spark.submitting import payload_schema

    queue = attached(settings.url, settings.queue)
    oldest = next(queue.submissions(state="active"), None)
    for one in queue.submissions() if oldest is None else (oldest,):
        noted = payload_schema(one.info)
        if noted is not None:
            for name, kind in ORIGINS.items():
                if (
                    name not in noted.names
                ):  # rows that were collected may have it, and theirs is what is meant
                    noted = noted.append(pa.field(name, kind))
            return first_of_many(noted)
    raise BadArgument("option emit=rows: give the schema of the rows with .schema(...)", argument="schema")
