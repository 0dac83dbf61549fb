"""map_chunks: a function over tables, run on the executors once per chunk.

Guards: an error of the function, of a payload or of a result's schema fails its own chunk and no other.
"""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fairway import limits
from fairway.errors import BadArgument, ObjectMissing, OurError, PayloadCorrupt
from fairway.runtime.objects import ObstoreObjects
from fairway.spark.codec import encode
from fairway.spark.columns import arrow_of, schema_of
from fairway.spark.payloads import table_of
from fairway.spark.references import DONE_ARROW, REFERENCE_ARROW, told
from fairway.spark.shapes import DONE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

TableFunction = Callable[[pa.Table], pa.Table]


class _ChunkFailed(Exception):
    """What becomes of one chunk, told to the queue and not to Spark."""


def map_chunks(
    fn: TableFunction, schema: str | StructType | pa.Schema | None = None, *, format: str = "arrow"
) -> Callable[[DataFrame], DataFrame]:
    """For DataFrame.transform over chunk references: run `fn` on each chunk's table and write what it returns.

    `schema` is what every result must have; without it any table will do.
    """
    if not callable(fn):
        raise BadArgument(f"fn must be a function of a pyarrow.Table, not {fn!r:.80}", argument="fn")
    promised = None if schema is None else arrow_of(schema_of(schema))
    if format not in ("arrow", "parquet"):
        raise BadArgument(f"format must be arrow or parquet, not {format!r}", argument="format")

    def transform(df: DataFrame) -> DataFrame:
        missing = [name for name in REFERENCE_ARROW.names if name not in df.columns]
        if missing:
            raise BadArgument(
                f"map_chunks needs chunk references (emit=references); columns {', '.join(missing)} are missing"
            )
        return df.mapInArrow(lambda batches: _run(batches, fn, promised, format), DONE)

    return transform


def _run(
    batches: Iterator[pa.RecordBatch], fn: TableFunction, promised: pa.Schema | None, format: str
) -> Iterator[pa.RecordBatch]:
    writer = secrets.randbits(61)  # of this attempt of this task: a zombie of it cannot overwrite a result
    for batch in batches:
        for row in batch.to_pylist():
            done = _one(row, fn, promised, format, writer)
            yield pa.RecordBatch.from_pylist([done], DONE_ARROW)


def _one(
    row: dict[str, Any], fn: TableFunction, promised: pa.Schema | None, format: str, writer: int
) -> dict[str, Any]:
    done: dict[str, Any] = {"receipt": row["receipt"], "epoch": row["epoch"], "writer": writer}
    try:
        table = _result(row, fn, promised)
        blob = encode(table, format)
        if row["result"] is None and len(blob) > limits.PAYLOAD_BYTES_MAX:
            raise _ChunkFailed(
                f"the result of {told(row)} has {len(blob)} bytes; one of a submission without objects has at"
                f" most {limits.PAYLOAD_BYTES_MAX}: submit it with objects"
            )
    except _ChunkFailed as failure:
        return done | {"error": str(failure), "rows": 0}
    done["rows"] = table.num_rows
    if row["result"] is None:
        return done | {"data": blob}
    name = f"{row['result']}.{writer:x}"
    ObstoreObjects().write(
        {name: blob}
    )  # an error here is the store's, not the chunk's: the task is tried again
    return done | {"object": name}


def _result(row: dict[str, Any], fn: TableFunction, promised: pa.Schema | None) -> pa.Table:
    try:
        payload = table_of(row)
    except (ObjectMissing, PayloadCorrupt) as error:
        raise _ChunkFailed(f"{type(error).__name__}: {error}") from error
    except OurError:
        raise  # the object store cannot be reached: the task is tried again
    try:
        table = fn(payload)
    except Exception as error:
        trace = "".join(traceback.format_exception(error)[-3:])
        raise _ChunkFailed(
            f"{trace}{type(error).__name__} in the function, on {told(row)}: {error}"
        ) from error
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise _ChunkFailed(
            f"the function returned {type(table).__name__} and not a pyarrow.Table, on {told(row)}"
        )
    if promised is not None and not table.schema.equals(promised):
        try:
            table = table.select(promised.names).cast(promised)
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise _ChunkFailed(
                f"the function returned columns ({_columns(table.schema)}) and not ({_columns(promised)}),"
                f" on {told(row)}: {error}"
            ) from error
    return table


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
