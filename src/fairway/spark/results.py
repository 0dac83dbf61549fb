"""Collecting: the registered results of a queue as a DataFrame.

Guards: only what a winning attempt registered is read, once; of a query whose every batch has all rows, the newest
batch; what is gone or damaged is an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fairway.errors import BadArgument, NotFound
from fairway.runtime.objects import read
from fairway.spark.batches import Batch, batch_of, newest
from fairway.spark.codec import decode, is_table
from fairway.spark.columns import arrow_of, batches, check_once, first_of_many, fitted, spark_of
from fairway.spark.queues import attached
from fairway.spark.settings import Settings

if TYPE_CHECKING:
    from fairway.face.queue import Queue
    from fairway.face.results import Result
    from fairway.model.submission import Submission

_PER_TASK = 256  # results in one task
RAW = pa.schema(
    [
        ("submission", pa.int64()),
        ("index", pa.int32()),
        ("tenant", pa.string()),
        ("data", pa.binary()),
        ("object", pa.string()),
        ("batch", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Row:
    """A result of a chunk, or an object of a batch of rows, which is of many chunks: what RAW has."""

    submission: int | None
    index: int | None
    tenant: str | None
    data: bytes | None  # inline, or else an object
    object: str | None
    batch: int | None = None

    @property
    def origin(self) -> dict[str, object]:
        """The values of columns that tell where rows come from."""
        return {
            "_submission": self.submission,
            "_index": self.index,
            "_tenant": self.tenant,
            "_batch": self.batch,
        }

    def __str__(self) -> str:
        if self.batch is not None:
            return f"the result of batch {self.batch}, the object {self.object},"
        return f"the result of chunk {self.index} of submission {self.submission} (tenant {self.tenant!r})"


@dataclass
class Registered(InputPartition):
    """Results of one task."""

    results: list[Row]


def kept_results(queue: Queue, one: Submission) -> Iterator[Result]:
    """The results of a submission; none if it was forgotten since it was listed."""
    with suppress(NotFound):
        yield from queue.results(one.id) if one.done else ()


def registered(queue: Queue, settings: Settings) -> Iterator[Row]:
    """Every registered result that counts; one of a batch is told as its objects."""
    chosen = settings["submission"]
    found = [queue.submission(chosen)] if chosen else queue.submissions(tenant=settings["tenant"])
    found_batches: dict[Batch, None] = {}  # each is named by all submissions that are in it
    for one in found:
        for result in kept_results(queue, one):
            batch = batch_of(result.data)
            if batch is None:
                yield Row(one.id, result.index, one.tenant, result.data, result.object)
                continue
            if chosen or settings["tenant"] is not None:
                raise BadArgument(
                    f"the results of submission {one.id} were written batch by batch (emit=rows), with those of others;"
                    " read them without the options submission and tenant, or process with perChunk=true"
                )
            if batch.complete or batch.tokens:
                found_batches[batch] = None
    for batch in newest(list(found_batches)):
        for name in batch.objects:
            yield Row(None, None, None, None, name, batch.number)


def schema_of_results(settings: Settings) -> StructType:
    """The schema of the first result; others are held to it."""
    if settings["raw"]:
        return spark_of(RAW)
    queue = attached(settings.url, settings.queue)
    for result in registered(queue, settings):
        schema = _table(result).schema
        check_once(schema, str(result))
        try:
            return first_of_many(schema)
        except BadArgument as error:
            raise BadArgument(f"{result}: {error}", argument="schema") from error
    raise BadArgument(
        "there is no result yet to take the schema from; give it with .schema(...), or process first",
        argument="schema",
    )


class Results(DataSourceReader):
    """spark.read.format("fairway") with kind=results. `partitions` runs on the driver, `read` in tasks."""

    def __init__(self, settings: Settings, schema: StructType, chosen: bool = True) -> None:
        self.settings = settings
        self.schema = arrow_of(schema)
        self.chosen = chosen  # who chose the columns knows that there may be others

    def partitions(self) -> Sequence[InputPartition]:
        queue = attached(self.settings.url, self.settings.queue)
        rows = list(registered(queue, self.settings))
        found = [Registered(rows[at : at + _PER_TASK]) for at in range(0, len(rows), _PER_TASK)]
        return found or [Registered([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert isinstance(partition, Registered)
        if self.settings["raw"]:
            columns = [[getattr(row, field.name) for row in partition.results] for field in RAW]
            table = pa.Table.from_arrays(
                [pa.array(column, f.type) for column, f in zip(columns, RAW, strict=True)], schema=RAW
            )
            yield from batches(table)
            return
        for result in partition.results:
            table = _table(result)
            yield from batches(fitted(table, self.schema, result.origin, str(result), self.chosen))


def _table(result: Row) -> pa.Table:
    blob = result.data if result.object is None else read(result.object)
    if blob is None or not is_table(blob):
        raise BadArgument(f"{result} is no table; read it with option raw=true")
    return decode(blob, str(result))
