"""Collecting: the registered results of a queue as a DataFrame.

Guards: only what a winning attempt registered is read, once; what is gone or damaged is an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fairway.errors import BadArgument
from fairway.runtime.objects import read
from fairway.spark.batches import batch_of
from fairway.spark.codec import decode, is_table
from fairway.spark.columns import arrow_of, batches, fitted, spark_of
from fairway.spark.queues import attached
from fairway.spark.settings import Settings

if TYPE_CHECKING:
    from fairway.face.queue import Queue

_PER_TASK = 256  # results in one task
RAW = pa.schema(
    [
        ("submission", pa.int64()),
        ("index", pa.int32()),
        ("tenant", pa.string()),
        ("data", pa.binary()),
        ("object", pa.string()),
    ]
)


@dataclass
class Registered(InputPartition):
    """Results of one task: (submission, index, tenant, inline bytes, object)."""

    results: list[tuple[int, int, str, bytes | None, str | None]]


def registered(queue: Queue, settings: Settings) -> Iterator[tuple[int, int, str, bytes | None, str | None]]:
    """Every registered result; one of a batch is told as its objects."""
    chosen = settings["submission"]
    found = [queue.submission(chosen)] if chosen else queue.submissions(tenant=settings["tenant"])
    named: set[str] = set()  # by several submissions, if they met in a batch
    for one in found:
        for result in queue.results(one.id) if one.done else ():
            batch = batch_of(result.data)
            if batch is None:
                yield one.id, result.index, one.tenant, result.data, result.object
                continue
            if chosen or settings["tenant"] is not None:
                raise BadArgument(
                    f"the results of submission {one.id} were written batch by batch (emit=rows), with those of others;"
                    " read them without the options submission and tenant, or process with perChunk=true"
                )
            for name in batch.objects:
                if name not in named:
                    named.add(name)
                    yield one.id, result.index, one.tenant, None, name


def schema_of_results(settings: Settings) -> StructType:
    """The schema of the first result; others are held to it."""
    if settings["raw"]:
        return spark_of(RAW)
    queue = attached(settings.url, settings.queue)
    for result in registered(queue, settings):
        return spark_of(_table(result).schema)
    raise BadArgument(
        "there is no result yet to take the schema from; give it with .schema(...), or process first",
        argument="schema",
    )


class Results(DataSourceReader):
    """spark.read.format("fairway") with kind=results. `partitions` runs on the driver, `read` in tasks."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = arrow_of(schema)

    def partitions(self) -> Sequence[InputPartition]:
        queue = attached(self.settings.url, self.settings.queue)
        rows = list(registered(queue, self.settings))
        found = [Registered(rows[at : at + _PER_TASK]) for at in range(0, len(rows), _PER_TASK)]
        return found or [Registered([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert isinstance(partition, Registered)
        if self.settings["raw"]:
            columns = [list(column) for column in zip(*partition.results, strict=True)] or [[]] * len(RAW)
            table = pa.Table.from_arrays(
                [pa.array(column, f.type) for column, f in zip(columns, RAW, strict=True)], schema=RAW
            )
            yield from batches(table)
            return
        for result in partition.results:
            origin = {"_submission": result[0], "_index": result[1], "_tenant": result[2]}
            yield from batches(fitted(_table(result), self.schema, origin, _told(result)))


def _told(result: tuple[Any, ...]) -> str:
    return f"the result of chunk {result[1]} of submission {result[0]} (tenant {result[2]!r})"


def _table(result: tuple[int, int, str, bytes | None, str | None]) -> pa.Table:
    data, name = result[3], result[4]
    blob = data if name is None else read(name)
    if blob is None or not is_table(blob):
        raise BadArgument(f"{_told(result)} is no table; read it with option raw=true")
    return decode(blob, _told(result))
