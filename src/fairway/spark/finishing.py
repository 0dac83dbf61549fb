"""The sink of a processing query: its commit settles the whole micro-batch in one step of the queue.

Guards: a result is read by others only when the queue has registered it; the results of a batch that was settled
before, or that another process has taken over, are none; rows that have no chunk to be registered with are refused,
and so are those of a chunk that was settled with an earlier batch.
Arrow is loaded in tasks only: every commit of a sink by hand is a new process, and Spark waits.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, MapType, StructType

from fairway.errors import BadArgument
from fairway.face.batches import Completion, Failure
from fairway.face.results import unregistered
from fairway.runtime.objects import ObstoreObjects
from fairway.spark.batches import batch_result, in_batch
from fairway.spark.places import batches_folder, folder_of, under
from fairway.spark.queues import attached
from fairway.spark.settings import Settings
from fairway.spark.shapes import DONE, DONE_NAMES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from fairway.face.queue import Queue

_objects = ObstoreObjects()
_ROW = ("receipt", "epoch", "writer", "object", "data", "error")


@dataclass
class Done(WriterCommitMessage):
    """What one task did: rows of chunks (receipt, epoch, writer, object, data, error), or objects of the batch."""

    rows: list[tuple[str, int, int, str | None, bytes | None, str | None]] = field(default_factory=list)
    objects: list[tuple[str, int]] = field(default_factory=list)

    @classmethod
    def of(cls, found: Iterable[Mapping[str, Any]]) -> Done:
        """What rows say that were collected; those without a receipt are objects of the batch."""
        done = cls()
        for row in found:
            if row["receipt"] is None:
                done.objects.append((row["object"], row["rows"]))
            else:
                done.rows.append(tuple(row[name] for name in _ROW))  # pyright: ignore[reportArgumentType]
        return done

    def told(self) -> list[dict[str, Any]]:
        """The rows that `of` understands."""
        rows: list[dict[str, Any]] = [dict(zip(_ROW, row, strict=True)) for row in self.rows]
        return rows + [{"object": name, "rows": count} for name, count in self.objects]


class Finish(DataSourceStreamArrowWriter):
    """writeStream.format("fairway") with a consumer. `write` runs in tasks; every commit in a process of its own.

    As the function of `foreachBatch` it does the same, and its commits are made by the process that has `queue` open:
    that is what `process` does.
    """

    def __init__(
        self, settings: Settings, schema: StructType, complete: bool = False, queue: Queue | None = None
    ) -> None:
        settings.need("consumer", "the name that the source has")
        self.settings = settings
        self._queue = queue
        self.complete = complete  # every batch has the rows of all batches before it
        self.references = schema.fieldNames() == DONE_NAMES
        self.per_chunk = settings["perChunk"]
        if self.references:
            return
        settings.need("run", "with emit=rows source and sink share a text that is new for every start")
        if (twice := _twice(schema)) is not None:
            raise BadArgument(f"the DataFrame has two columns {twice!r}; rename one of them", argument=twice)
        _ = settings.objects
        if self.per_chunk and "_chunk" not in schema.fieldNames():
            raise BadArgument(
                "option perChunk: the rows must still have the column '_chunk' of the source",
                argument="perChunk",
            )

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_queue": None}  # in another process it attaches

    def __call__(self, df: DataFrame, batch: int) -> None:
        """Settle one micro-batch; Spark notes it in its commit log when this has returned."""
        done = df if self.references else self._mapped(df)
        self.commit([Done.of(done.toArrow().to_pylist())], batch)

    def _mapped(self, df: DataFrame) -> DataFrame:
        """Write in tasks. mapInArrow finds columns by texts in which a dot means something, so they go by numbers."""
        names = df.columns
        numbered = df.toDF(*map(str, range(len(names))))
        return numbered.mapInArrow(lambda batches: self._written(batches, names), DONE)

    def _written(self, batches: Iterator[pa.RecordBatch], names: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from fairway.spark.references import DONE_ARROW

        found = self.write(batch.rename_columns(names) for batch in batches)
        yield pa.RecordBatch.from_pylist(found.told(), DONE_ARROW)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        if self.references:
            return Done.of(row for batch in iterator for row in batch.to_pylist())
        found = [batch for batch in iterator if batch.num_rows]
        if not found:
            return Done()
        import pyarrow as pa

        table = pa.Table.from_batches(found)
        return self._by_chunk(table) if self.per_chunk else self._whole(table)

    def _whole(self, table: pa.Table) -> Done:
        from fairway.spark.codec import encode

        settings = self.settings
        folder = batches_folder(settings.url, settings.queue).split("/")
        name = under(settings.objects, *folder, folder_of(settings["consumer"]), secrets.token_hex(16))
        _objects.write({name: encode(table, self.settings["resultFormat"])})
        return Done(objects=[(name, table.num_rows)])

    def _by_chunk(self, table: pa.Table) -> Done:
        from fairway.spark.codec import encode
        from fairway.spark.columns import split

        writer = secrets.randbits(61)
        chunks, plain = table.column("_chunk"), table.drop_columns(["_chunk"])
        rows: list[tuple[str, int, int, str | None, bytes | None, str | None]] = []
        blobs: dict[str, bytes] = {}
        for chunk, part in split(plain, chunks):
            receipt, _, result = (chunk or "").partition(" ")
            if not receipt:
                raise BadArgument("option perChunk: column '_chunk' must be kept as the source gave it")
            blob = encode(part, self.settings["resultFormat"])
            name = f"{result}.{writer:x}" if result else None
            if name:
                blobs[name] = blob
            rows.append((receipt, 0, writer, name, None if name else blob, None))
        _objects.write(blobs)
        return Done(rows)

    def commit(self, messages: list[Any], batchId: int) -> None:
        done = [message for message in messages if message is not None]
        rows = [row for message in done for row in message.rows]
        objects = [pair for message in done for pair in message.objects]
        written = [name for name, _ in objects]
        settings = self.settings
        consumer, run = settings["consumer"], settings["run"]
        queue = self._queue or attached(settings.url, settings.queue)
        epoch = max((row[1] for row in rows), default=0)
        if not epoch and not run:
            return  # references without a row: nothing was handed out, or the trim will say that it is unfinished
        if self.per_chunk:
            _check_unsplit(rows)
        completed, names = _completions([row for row in rows if row[5] is None])
        whole = not self.references and not self.per_chunk
        try:
            outcome = queue.finish(
                consumer,
                epoch=epoch,
                run="" if epoch else run,
                completed=completed,
                failed=_failures([row for row in rows if row[5] is not None]),
                first=batch_result(batchId, consumer, self.complete, written) if whole else None,
                others=in_batch(batchId) if whole else None,
                whole=whole,
            )
        except BadArgument as error:
            if self.per_chunk and "submission" in error.details:
                raise _late(batchId, error) from error
            raise
        useless = unregistered(
            (name, verdict)
            for part, given in zip(outcome.completed, names, strict=True)
            for verdict, name in zip(part, given, strict=True)
            if name is not None
        )
        if whole and not outcome.rest:
            if objects and not outcome.before and not self.complete:
                raise _nowhere(batchId, sum(count for _, count in objects))
            # This batch was settled before its query was started again; or the one before it has the same rows.
            useless += written
        _objects.remove(useless)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing: whether the commit reached the queue may be unknown, and unregistered objects are nobody's result.

        `fairway.spark.sweep` removes them.
        """


def _twice(schema: StructType, path: str = "") -> str | None:
    """A name that two columns have, or two fields of a struct; without Arrow, for a commit is a new process."""
    names: set[str] = set()
    for column in schema.fields:
        where, inner = path + column.name, column.dataType
        if column.name in names:
            return where
        names.add(column.name)
        while isinstance(inner, ArrayType | MapType):
            inner = inner.elementType if isinstance(inner, ArrayType) else inner.valueType
        found = _twice(inner, f"{where}.") if isinstance(inner, StructType) else None
        if found is not None:
            return found
    return None


def _nowhere(number: int, rows: int) -> BadArgument:
    return BadArgument(
        f"batch {number} has {rows} rows and no chunk to be registered with: the query gave them without input (a"
        " watermark closed windows, a timeout came, or its chunks had ended). Nothing was settled. Before the start set"
        " spark.sql.streaming.noDataMicroBatches.enabled=false, so that they come with the next chunks",
        argument="rows",
    )


def _late(number: int, error: BadArgument) -> BadArgument:
    return BadArgument(
        f"option perChunk: {error}. Its rows came with batch {number}, after its own: the query keeps a state, as"
        " windows do. Leave perChunk out and start again, then rows belong to the batch that they come with",
        argument="perChunk",
    )


def _completions(rows: list[Any]) -> tuple[list[Completion], list[list[str | None]]]:
    by_writer: dict[int, list[Any]] = defaultdict(list)
    inline: list[Any] = []
    for row in rows:
        (by_writer[row[2]] if row[3] is not None else inline).append(row)
    completed = [
        Completion([row[0] for row in mine], by_reference=True, writer=writer)
        for writer, mine in by_writer.items()
    ]
    names: list[list[str | None]] = [[row[3] for row in mine] for mine in by_writer.values()]
    if inline:
        completed.append(Completion([row[0] for row in inline], results=[row[4] for row in inline]))
        names.append([None] * len(inline))
    return completed, names


def _failures(rows: list[Any]) -> list[Failure]:
    by_error: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_error[row[5]].append(row[0])
    return [Failure(receipts, error) for error, receipts in by_error.items()]


def _check_unsplit(rows: list[Any]) -> None:
    """A chunk whose rows came to several tasks has no result of its own."""
    split = [receipt for receipt, many in Counter(row[0] for row in rows).items() if many > 1]
    if split:
        raise BadArgument(
            f"option perChunk: the rows of {len(split)} chunks came to several tasks; a shuffle stands between source"
            " and sink. Leave perChunk out, or the shuffle",
            argument="perChunk",
        )
