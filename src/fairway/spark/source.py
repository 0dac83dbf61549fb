"""The streaming source: micro-batches are named reservations, and their seqs are Spark's offsets.

Guards: what an offset stands for is stored in the queue before Spark hears of the offset, and never grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from fairway import limits
from fairway.errors import (
    BadArgument,
    ConsumerFenced,
    FairwayError,
    LeaseLost,
    NotFound,
    ObjectMissing,
    PayloadCorrupt,
    ReservationLapsed,
    ReservationOpen,
    SeqTrimmed,
)
from fairway.spark.columns import arrow_of, batches, fitted
from fairway.spark.payloads import origin_of, table_of
from fairway.spark.queues import attached
from fairway.spark.references import REFERENCE_ARROW, References, reference, tasks, told
from fairway.spark.renewing import Heart
from fairway.spark.settings import Settings

if TYPE_CHECKING:
    from fairway.engine.commands import ConsumerView
    from fairway.face.queue import Queue
    from fairway.model.lease import Lease


class ChunkStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """spark.readStream.format("fairway").

    `__init__` runs in planners too, and `read` in tasks. All the rest runs in one process per query, on the driver:
    it takes the consumer's epoch with its first call and keeps it.
    """

    def __init__(self, settings: Settings, schema: StructType, chosen: bool = True) -> None:
        settings.need(
            "consumer", "the name under which the queue keeps this query's place; the sink needs the same"
        )
        self.settings = settings
        self.rows = settings["emit"] == "rows"
        self._foreign = settings["completeOn"] == "sourceCommit"  # the sink is not ours
        if self.rows and not self._foreign:
            settings.need("run", "with emit=rows source and sink share a text that is new for every start")
        self.schema = arrow_of(schema)
        self.chosen = chosen  # who chose the columns knows that there may be others
        self._epoch = 0
        self._targets: list[int] | None = None  # with availableNow: the submissions that existed at the start
        self._heart = None
        self._unread: set[int] = set()  # batches that were told here and that Spark has not asked for

    # -- on the driver

    def _queue(self) -> Queue:
        """The queue; the first call takes the consumer over."""
        queue = attached(self.settings.url, self.settings.queue)
        if not self._epoch:
            settings = self.settings
            self._epoch = queue.join(settings["consumer"], settings["run"], settings["error"])
            self._heart = Heart(self._reserved)
        return queue

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.settings["maxChunksPerTrigger"])

    def initialOffset(self) -> dict[str, int]:
        self._queue()
        return {"seq": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        queue = attached(self.settings.url, self.settings.queue)
        self._targets = [one.id for one in queue.submissions(state="active")]

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        seq, most = start["seq"] + 1, getattr(limit, "max_rows", self.settings["maxChunksPerTrigger"])
        queue = self._queue()
        seqs = self._consumer(queue).seqs
        if start["seq"] in seqs:
            # Spark asks for the next batch when this one is in its commit log; its word to the source may never come.
            self.commit(start)
        if seq in seqs:  # the process before this one made it and was ended
            self._reserved(seq)
        elif not (self._reserve_now(seq, most) if self._targets is None else self._reserve_old(seq, most)):
            return start
        self._unread.add(seq)  # whoever made it: Spark has not noted it yet, so its sink cannot have it
        return {"seq": seq}

    def _consumer(self, queue: Queue) -> ConsumerView:
        """This consumer as the queue knows it."""
        name = self.settings["consumer"]
        for one in queue.consumers():
            if one.name == name:
                return one
        raise ConsumerFenced(f"the queue does not know consumer {name!r} any more; start the query again")

    def _reserve_now(self, seq: int, most: int) -> bool:
        return bool(self._reserved(seq, most, self.settings["waitSeconds"]))

    def _reserve_old(self, seq: int, most: int) -> bool:
        """Reserve while chunks that existed at the start wait; those in a back-off are waited for."""
        queue = self._queue()
        while self._left(queue):
            # Before the look for work: a back-off that ends between the two would be missed by both.
            retrying = queue.stats().chunks_retrying
            if self._reserved(seq, most):
                return True
            if not retrying:
                return False
            if self._reserved(seq, most, 1.0):
                return True
        return False

    def _left(self, queue: Queue) -> bool:
        """Whether a submission of the start has a chunk that is neither over nor leased nor put off.

        The next look begins with the one that had: those before it are asked again only when it has none left.
        """
        # When it last heard of us, by its own time: things are due by that, and the wall clock may be elsewhere.
        now = self._consumer(queue).seen
        targets, passed = self._targets or [], list[int]()
        for at, id in enumerate(targets):
            try:
                one = queue.submission(id)
            except NotFound:
                continue  # it ended, and its retention is over
            if one.state != "active":
                continue
            if one.left > one.leased and not one.paused and one.not_before <= now:
                self._targets = targets[at:] + passed
                return True
            passed.append(id)
        self._targets = passed
        return False

    def _reserved(self, seq: int, most: int = 1, wait_seconds: float = 0.0) -> list[Lease]:
        """The reservation of this seq, made now if it is new."""
        settings, queue = self.settings, self._queue()
        try:
            leases = queue.reserve(
                most,
                strategy=settings["strategy"] or None,
                wait_seconds=wait_seconds,
                consumer=settings["consumer"],
                seq=seq,
                # Another sink may have written the whole batch already, so it must come again as it was.
                halve=not self._foreign,
            )
        except ReservationLapsed as error:
            raise self._lapsed(seq) from error
        except ConsumerFenced as error:
            raise ConsumerFenced(
                f"another process took over consumer {settings['consumer']!r}, or this query reads its stream twice, as"
                " a join with itself does; stop, or choose another name"
            ) from error
        except SeqTrimmed as error:
            anew = "a new consumer name" + (" and, for files, an empty folder" if self._foreign else "")
            raise SeqTrimmed(
                f"the checkpoint of consumer {settings['consumer']!r} is gone or older than the queue: it asks for"
                f" batch {seq}, which is finished. Start with the newest checkpoint, or with {anew}; what this one"
                " still holds comes back when it was silent for consumer_silent_seconds"
            ) from error
        if leases and self._heart is not None:
            # By the queue's time alone: the clock of this machine may be elsewhere.
            self._heart.watch(seq, leases[0].deadline - self._consumer(queue).seen)
        return leases

    def _lapsed(self, seq: int) -> ReservationLapsed:
        """What became of a batch that another sink may have, and the way out."""
        name = self.settings["consumer"]
        return ReservationLapsed(
            f"chunks of batch {seq} of consumer {name!r} went back to the queue, since nothing was heard of this query"
            " for consumer_silent_seconds. They come again in later batches, and the sink may have their rows already."
            f' First see whether it has the batch whose offset is {{"seq": {seq}}}, and take its rows out; then call'
            f" queue.reserve(consumer={name!r}, seq={seq}), by which the batch lets go of them, and start again"
        )

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        queue = self._queue()
        seqs = range(start["seq"] + 1, end["seq"] + 1)
        if self._foreign:
            self._check_known(queue, seqs)
        self._unread.difference_update(seqs)
        rows = [reference(lease, self._epoch) for seq in seqs for lease in self._reserved(seq)]
        per_task = self.settings["chunksPerTask"] or ceil(len(rows) / limits.SPARK_TASKS) or 1
        return tasks(rows, per_task)

    def _check_known(self, queue: Queue, seqs: range) -> None:
        """A batch that is in Spark's log is never made anew: another sink that has it would skip what is in it now."""
        for seq in set(seqs).difference(self._consumer(queue).seqs):
            raise NotFound(
                f"the queue does not hold batch {seq} of consumer {self.settings['consumer']!r}, which this checkpoint"
                " has begun: the batch is finished and the checkpoint older than the queue, or the queue is another one"
                " or an older copy. Give the two that belong together; else start anew with another consumer name, an"
                " empty checkpoint and, for files, an empty folder"
            )

    def commit(self, end: dict[str, int]) -> None:
        settings, queue = self.settings, self._queue()
        if self._foreign and end["seq"] in self._unread:
            queue.release(self._reserved(end["seq"]))  # the next start must not take it for written either
            raise BadArgument(
                f"Spark committed batch {end['seq']} of consumer {settings['consumer']!r} and never read it, so its"
                " chunks went back: the sink took it for one that it has, since another checkpoint was used with it"
                " before (or a function of yours did nothing with it). Start with another consumer name, an empty"
                " checkpoint and, for files, an empty folder",
                argument="completeOn",
            )
        try:
            queue.trim(settings["consumer"], end["seq"], complete=self._foreign)
        except ReservationLapsed as error:
            raise self._lapsed(end["seq"]) from error
        except ReservationOpen as error:
            raise ReservationOpen(
                f"batch {end['seq']} of consumer {settings['consumer']!r} has unfinished chunks: end the query with"
                " writeStream.format('fairway') and the same consumer, or, with another sink, set"
                " completeOn=sourceCommit"
            ) from error

    # -- in tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert isinstance(partition, References)
        if self.settings["function"]:
            from fairway.spark.mapping import run_text

            yield from run_text(self.settings["function"], partition.rows)
            return
        if not self.rows:
            yield pa.RecordBatch.from_pylist(partition.rows, REFERENCE_ARROW)
            return
        refused: list[str] = []
        for row in partition.rows:
            try:
                what = f"the payload of {told(row)}"
                table = fitted(table_of(row), self.schema, origin_of(row), what, self.chosen)
            except self._of_the_chunk as error:
                refused.append(self._fail(row, error))
                continue
            yield from batches(table)
        if refused:
            raise LeaseLost(
                f"{refused[0]} ({len(refused)} of the {len(partition.rows)} chunks of this task). By its retry policy"
                " it comes again or is dead; the batch must be made again without it"
            )

    @property
    def _of_the_chunk(self) -> tuple[type[FairwayError], ...]:
        """What is wrong with a chunk, and not with the place where it is read."""
        if not self._foreign:
            return BadArgument, ObjectMissing, PayloadCorrupt
        # Another sink may have its rows already. A column that is missing now was missing then.
        return (BadArgument,)

    def _fail(self, row: dict[str, Any], error: FairwayError) -> str:
        """Fail one chunk from its task: rows that Spark gets cannot say it. The batch, no longer whole, is refused."""
        text = f"option emit=rows: {type(error).__name__}: {error}"
        # If a task cannot reach the queue, the batch is halved until the chunk is alone, and then its attempts count.
        with suppress(FairwayError):
            attached(self.settings.url, self.settings.queue).fail(row["receipt"], text)
        return text
