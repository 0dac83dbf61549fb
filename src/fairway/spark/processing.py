"""process: a function or a query over every chunk of a queue, exactly once, through every death that may come.

Guards: it ends only when nothing is left to do, or with an error that starting again would not cure.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fairway import errors, limits
from fairway.errors import BadArgument, ConsumerFenced, OurError, ReservationOpen, SeqTrimmed, TooLarge
from fairway.face.queue import Queue
from fairway.runtime.urls import Place
from fairway.spark.columns import schema_of
from fairway.spark.finishing import Finish
from fairway.spark.mapping import TableFunction, placed
from fairway.spark.plans import keeping_state
from fairway.spark.progress import Progress
from fairway.spark.queues import hosting
from fairway.spark.settings import SINK, Settings, located, path_of
from fairway.spark.sources import register
from fairway.spark.telling import brief, told
from fairway.strategy.terms import StrategyLike

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
    from pyspark.sql.types import StructType

# What the next start would only meet again, but for TooLarge, since it has half of the batch. All else may be the death
# of an executor, of a worker, of a host.
_FINAL = (errors.CallerError, ConsumerFenced, SeqTrimmed, ReservationOpen)
_BUSY = ("connect back", "Python worker")  # how Spark says that a machine was too slow to start a worker
_POLL_SECONDS = 0.25
_ERRORS = 10  # that are told at the end
_log = logging.getLogger("fairway.spark")
_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_starting = threading.Lock()  # the setting is the session's, and one thread at a time borrows it


@dataclass(frozen=True)
class Processed:
    """What a call of `process` did."""

    batches: int
    inputs: int  # what tasks were handed: chunks with fn, their rows with rows
    restarts: int
    seconds: float
    errors: tuple[str, ...] = ()  # what the query was started again for, the last ten


def process(
    spark: SparkSession,
    url: Place,
    *,
    fn: TableFunction | None = None,
    rows: Callable[[DataFrame], DataFrame] | None = None,
    schema: str | StructType | pa.Schema | None = None,
    queue: str = "default",
    consumer: str = "process",
    strategy: StrategyLike | None = None,
    checkpoint: str | None = None,
    max_chunks: int = 1000,
    chunks_per_task: int | None = None,
    objects: str | None = None,
    result_format: str = "arrow",
    output_mode: str = "append",
    per_chunk: bool = False,
    available_now: bool = True,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    progress: bool = True,
) -> Processed:
    """Work on every chunk of a queue: with `fn`, a function of a pyarrow.Table, or with `rows`, a query.

    `fn` runs once per chunk on the executors, and its table is the chunk's result; `schema` is what it must return.
    `rows` gets a streaming DataFrame of the rows and gives another; `schema` is that of the rows, or else the oldest
    submission's, and then a chunk that has more columns fails. The query is started again after every failure that
    this may cure, and a chunk that ends its executor again and again ends in the dead letters. With `available_now` it
    ends when all that was there at the start is over; else it runs for `seconds`, until `stop` is set, or until it is
    interrupted.
    """
    if (fn is None) == (rows is None):
        raise BadArgument("give either fn or rows", argument="fn")
    register(spark)
    url = located(url)
    both = {"queue": queue, "consumer": consumer, "objects": objects}
    function, work = (None, rows) if rows is not None else placed(fn, schema, result_format)
    source = both | {
        "function": function,
        "strategy": None if strategy is None else str(strategy),
        "maxChunksPerTrigger": max_chunks,
        "chunksPerTask": chunks_per_task,
        "emit": "rows" if rows is not None else "references",
    }
    place = checkpoint or _checkpoint(url, queue, consumer)
    sink = both | {"path": url, "resultFormat": result_format, "perChunk": str(per_chunk).lower()}
    load = _loading(url, schema_of(schema) if rows is not None and schema is not None else None)

    def start(q: Queue, error: str) -> StreamingQuery:
        spark.createDataFrame([], "nothing int")  # makes it this thread's session, where Spark looks
        run = secrets.token_hex(8)  # new for every start, so that the one before is fenced out
        reader = spark.readStream.format("fairway").options(**_given(source), run=run, error=error)
        df = _frame(work(load(reader)), per_chunk)
        # Not format("fairway"): for every commit of such a sink Spark makes a new process, and waits until it is there.
        finish = Finish(Settings(_given(sink) | {"run": run}, SINK), df.schema, output_mode == "complete", q)
        writer = df.writeStream.option("checkpointLocation", place).outputMode(output_mode)
        return _started(spark, writer.trigger(availableNow=True) if available_now else writer, finish)

    with hosting(url, queue) as q, Progress(q, progress) as bar:
        return _Running(q, start, bar, seconds, stop).run()


def _loading(url: str, schema: StructType | None) -> Callable[[DataStreamReader], DataFrame]:
    """Load a stream; without a schema with that of the first time, since what noted it may have ended by the next."""
    noted = ""

    def load(reader: DataStreamReader) -> DataFrame:
        nonlocal noted
        df = (reader.option("noted", noted) if schema is None else reader.schema(schema)).load(url)
        noted = df.schema.json()
        return df

    return load


def _frame(given: DataFrame, per_chunk: bool) -> DataFrame:
    """What `rows` returned; classic and Connect have a DataFrame each."""
    if not hasattr(given, "writeStream"):
        raise BadArgument(f"rows must return a DataFrame, not {given!r:.80}", argument="rows")
    if per_chunk:
        _check_stateless(given)
    return given


def _check_stateless(df: DataFrame) -> None:
    """Refuse results per chunk where rows may wait in a state until their chunk is completed."""
    operator = keeping_state(df)
    if operator is not None:
        raise BadArgument(
            f"option perChunk: the query keeps a state ({operator}), so rows of a chunk may come in a later batch, when"
            " it is completed and has no place for them. Leave per_chunk out, then rows belong to the batch that they"
            " come with",
            argument="perChunk",
        )


def _started(spark: SparkSession, writer: DataStreamWriter, finish: Finish) -> StreamingQuery:
    """Start a query that makes no batch without chunks: its rows could be registered with none.

    A query keeps what the session was set to at its start.
    """
    with _starting:
        before = spark.conf.get(_NO_DATA)
        spark.conf.set(_NO_DATA, "false")
        try:
            # Here: two threads that are first to call foreachBatch would each start a server for what Spark calls back.
            return writer.foreachBatch(finish).start()
        finally:
            spark.conf.set(_NO_DATA, before or "true")


def _given(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items() if value is not None}


def _checkpoint(url: str, queue: str, consumer: str) -> str:
    path = path_of(url)
    if path is None:
        raise BadArgument(
            f"checkpoint: {url} is no file, so say where Spark keeps its place", argument="checkpoint"
        )
    return f"{path}-spark/{queue}/{quote(consumer, safe='')}"


class _Running:
    """One call of process: starts of one query, until it ends by itself."""

    def __init__(
        self,
        queue: Queue,
        start: Callable[[Queue, str], StreamingQuery],
        bar: Progress,
        seconds: float | None,
        stop: threading.Event | None,
    ) -> None:
        self._queue, self._start, self._bar = queue, start, bar
        self._began = time.monotonic()
        self._until = None if seconds is None else self._began + seconds
        self._stop = stop
        self._batches: dict[tuple[str, int], int] = {}  # chunks by run and batch
        self._errors: list[str] = []  # one for each restart

    def run(self) -> Processed:
        in_a_row, done = 0, 0
        while True:
            error = self._once()
            if error is None:
                return self._told()
            if isinstance(error, _FINAL) and not isinstance(error, TooLarge):
                raise error
            in_a_row = in_a_row + 1 if done == len(self._batches) else 1
            done = len(self._batches)
            if in_a_row > limits.PROCESS_RESTARTS_MAX:
                raise OurError(
                    f"the query ended {in_a_row} times and no batch was done in between; the last time: {brief(error)}"
                ) from error
            self._errors.append(brief(error))
            _log.warning("the query ended and is started again (%s): %s", in_a_row, self._errors[-1])
            time.sleep(min(2.0, 0.1 * in_a_row))

    def _told(self) -> Processed:
        spent = time.monotonic() - self._began
        inputs, errors = sum(self._batches.values()), tuple(self._errors[-_ERRORS:])
        return Processed(len(self._batches), inputs, len(self._errors), spent, errors)

    def _once(self) -> Exception | None:
        """Start the query and wait for its end; the error it ended with, if it did."""
        from pyspark.errors import PySparkException

        try:
            query = self._start(self._queue, self._errors[-1] if self._errors else "")
        except PySparkException as error:
            if any(text in str(error) for text in _BUSY):
                return told(error)
            raise told(error) from None  # the query itself is wrong
        try:
            while not query.awaitTermination(_POLL_SECONDS):  # pyright: ignore[reportArgumentType]
                self._note(query)
                if self._over():
                    break
            self._note(query)
        except PySparkException as error:
            with suppress(PySparkException):  # a server that is gone tells nothing more
                self._note(query)
            return told(error)
        finally:
            query.stop()
        return None

    def _over(self) -> bool:
        late = self._until is not None and time.monotonic() >= self._until
        return late or (self._stop is not None and self._stop.is_set())

    def _note(self, query: StreamingQuery) -> None:
        for one in query.recentProgress:
            inputs = sum(source["numInputRows"] for source in one["sources"])  # Connect does not add them up
            if inputs:
                self._batches[one["runId"], one["batchId"]] = inputs
        self._bar.show()
