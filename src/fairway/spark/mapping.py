"""map_chunks: a function over tables, run on the executors once per chunk, behind a source or inside of it.

Guards: an error of the function, of a payload or of a result's schema fails its own chunk and no other.
"""

from __future__ import annotations

import base64
import secrets
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fairway import limits
from fairway.errors import BadArgument, ObjectMissing, OurError, PayloadCorrupt
from fairway.face import checks
from fairway.runtime.objects import ObstoreObjects
from fairway.spark.casting import check_cast
from fairway.spark.codec import encode
from fairway.spark.columns import arrow_of, check_once, schema_of
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
    promised = _promised(fn, schema, format)

    def transform(df: DataFrame) -> DataFrame:
        missing = [name for name in REFERENCE_ARROW.names if name not in df.columns]
        if missing:
            raise BadArgument(
                f"map_chunks needs chunk references (emit=references); columns {', '.join(missing)} are missing"
            )
        return df.mapInArrow(lambda batches: _over(batches, fn, promised, format), DONE)

    return transform


def _over(
    batches: Iterator[pa.RecordBatch], fn: TableFunction, promised: pa.Schema | None, format: str
) -> Iterator[pa.RecordBatch]:
    return run((row for batch in batches for row in batch.to_pylist()), fn, promised, format)


def placed(
    fn: TableFunction | None, schema: str | StructType | pa.Schema | None, format: str
) -> tuple[str | None, Callable[[DataFrame], DataFrame]]:
    """A function as a text, for the source to run where it reads: each task has one Python process then, and not two.

    One that is too long for an option of Spark is no text, and is run by what is made of the source's DataFrame.
    """
    from pyspark.serializers import CloudPickleSerializer

    behind = map_chunks(fn, schema, format=format)  # pyright: ignore[reportArgumentType]
    pickled = CloudPickleSerializer().dumps((fn, _promised(fn, schema, format), format))
    if len(pickled) > limits.SPARK_FUNCTION_BYTES:
        return None, behind
    return base64.b85encode(pickled).decode(), lambda df: df


def run_text(text: str, rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Run what `placed` wrote."""
    from pyspark.serializers import CloudPickleSerializer

    fn, promised, format = CloudPickleSerializer().loads(base64.b85decode(text))
    return run(rows, fn, promised, format)


def _promised(
    fn: TableFunction | None, schema: str | StructType | pa.Schema | None, format: str
) -> pa.Schema | None:
    if not callable(fn):
        raise BadArgument(f"fn must be a function of a pyarrow.Table, not {fn!r:.80}", argument="fn")
    if format not in ("arrow", "parquet"):
        raise BadArgument(f"format must be arrow or parquet, not {format!r}", argument="format")
    return None if schema is None else arrow_of(schema_of(schema))


def run(
    rows: Iterable[dict[str, Any]], fn: TableFunction, promised: pa.Schema | None, format: str
) -> Iterator[pa.RecordBatch]:
    """What was done with each chunk."""
    writer = secrets.randbits(61)  # of this attempt of this task: a zombie of it cannot overwrite a result
    for row in rows:
        yield pa.RecordBatch.from_pylist([_one(row, fn, promised, format, writer)], DONE_ARROW)


def _one(
    row: dict[str, Any], fn: TableFunction, promised: pa.Schema | None, format: str, writer: int
) -> dict[str, Any]:
    done: dict[str, Any] = {"receipt": row["receipt"], "epoch": row["epoch"], "writer": writer}
    try:
        table = _result(row, fn, promised)
        blob = _encoded(table, format, row)
        if row["result"] is None and len(blob) > limits.PAYLOAD_BYTES_MAX:
            raise _ChunkFailed(
                f"the result of {told(row)} has {len(blob)} bytes; one of a submission without objects has at"
                f" most {limits.PAYLOAD_BYTES_MAX}: submit it with objects"
            )
    except _ChunkFailed as failure:
        return done | {"error": checks.error_text(str(failure)), "rows": 0}
    done["rows"] = table.num_rows
    if row["result"] is None:
        return done | {"data": blob}
    name = f"{row['result']}.{writer:x}"
    ObstoreObjects().write(
        {name: blob}
    )  # an error here is the store's, not the chunk's: the task is tried again
    return done | {"object": name}


def _encoded(table: pa.Table, format: str, row: dict[str, Any]) -> bytes:
    try:
        return encode(table, format)
    except BadArgument as error:
        raise _ChunkFailed(f"the result of {told(row)}: {error}") from error


def _result(row: dict[str, Any], fn: TableFunction, promised: pa.Schema | None) -> pa.Table:
    try:
        payload = table_of(row)
    except (ObjectMissing, PayloadCorrupt) as error:
        raise _ChunkFailed(f"{type(error).__name__}: {error}") from error
    except OurError:
        raise  # the object store cannot be reached: the task is tried again
    try:
        table = fn(payload)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a cancelled task's error is no Exception, nor is sys.exit's
        raise _ChunkFailed(_raised(error, row)) from error
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise _ChunkFailed(
            f"the function returned {type(table).__name__} and not a pyarrow.Table, on {told(row)}"
        )
    return _kept(table, promised, row)


def _kept(table: pa.Table, promised: pa.Schema | None, row: dict[str, Any]) -> pa.Table:
    """What was promised of a result, or all of it."""
    kept = [field for field in table.schema if promised is None or field.name in promised.names]
    try:
        check_once(kept, f"the result of {told(row)}")
    except BadArgument as error:
        raise _ChunkFailed(str(error)) from error
    if promised is None or table.schema.equals(promised):
        return table
    try:
        chosen = table.select(promised.names)
        for field in promised:
            check_cast(chosen[field.name], field.type, field.name, True)
        return chosen.cast(promised)
    except (BadArgument, pa.ArrowException, KeyError, ValueError) as error:
        raise _ChunkFailed(
            f"the function returned columns ({_columns(table.schema)}) and not ({_columns(promised)}),"
            f" on {told(row)}: {error}"
        ) from error


def _raised(error: BaseException, row: dict[str, Any]) -> str:
    """What the function raised. Not every error can tell itself."""
    where = f"{type(error).__name__} in the function, on {told(row)}"
    try:
        return "".join(traceback.format_exception(error)[-3:]) + f"{where}: {error}"
    except Exception as other:
        return f"{where}, which cannot be told ({type(other).__name__})"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
