"""Another sink than ours, completed on source commit: what it has and what the queue says is done are the same."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

import fairway
import fairway.spark
from fairway.errors import NotFound, ReservationLapsed
from fairway.spark import queues
from fairway.spark.columns import spark_of
from fairway.spark.processing import told
from fairway.spark.settings import SOURCE, Settings
from fairway.spark.source import ChunkStream
from tests.server.live import live
from tests.spark.pipeline import numbers, patiently, submit
from tests.spark.playing import ROWS, Killed

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
CHUNKS = 8
LAPSED_SECONDS = 1.5  # longer than the shortest consumer_silent_seconds


class Files:
    """A checkpoint and Spark's file sink: what it has under a batch's number is never written again, nor asked for.

    A sink that is `eager` asks the source first and then finds that it has the batch.
    """

    def __init__(self, url: str, eager: bool = False) -> None:
        self.url, self.eager, self.consumer = url, eager, "f"
        self.offsets: list[dict[str, int]] = []
        self.commits = 0
        self.batches: dict[int, list[int]] = {}  # the sink
        self.dies: Callable[[str], bool] = lambda place: False

    def here(self, place: str) -> None:
        if self.dies(place):
            raise Killed(place)

    def made(self) -> ChunkStream:
        given = {"path": self.url, "consumer": self.consumer, "emit": "rows", "run": secrets.token_hex(4)}
        given |= {"completeOn": "sourceCommit", "maxChunksPerTrigger": "4"}
        return ChunkStream(Settings(given, SOURCE), spark_of(ROWS))

    def start(self) -> None:
        reader = self.made()
        if not self.offsets:
            reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        while True:
            if len(self.offsets) == self.commits:
                start = self.offsets[-1] if self.offsets else {"seq": 0}
                end = reader.latestOffset(start, ReadMaxRows(4))
                self.here("reserved")
                if end == start:
                    return
                self.offsets.append(end)
                self.here("noted")
                if self.commits:
                    reader.commit(start)
            number = self.commits
            self.batch(reader, number)
            self.here("written")
            self.commits += 1
            self.here("logged")

    def batch(self, reader: ChunkStream, number: int) -> None:
        if number in self.batches and not self.eager:
            return
        start = self.offsets[number - 1] if number else {"seq": 0}
        parts = reader.partitions(start, self.offsets[number])
        self.here("planned")
        if number not in self.batches:
            found = (batch for part in parts for batch in reader.read(part))
            self.batches[number] = [x for batch in found for x in batch["x"].to_pylist()]

    @property
    def rows(self) -> Counter[int]:
        return Counter(x for batch in self.batches.values() for x in batch)


PLACES = ["reserved", "noted", "planned", "written", "logged"]


def once(chunks: int = CHUNKS) -> Counter[int]:
    return Counter(range(chunks * 10))


@pytest.fixture(params=[False, True], ids=["files", "eager"])
def killed(
    tmp_path: Path, unhurried: None, request: pytest.FixtureRequest
) -> Iterator[dict[str, tuple[fairway.Queue, Files]]]:
    """For each place a query that was killed there in its first batch, and whose reservation lapsed since."""
    with ExitStack() as stack:
        made: dict[str, tuple[fairway.Queue, Files]] = {}
        for place in PLACES:
            url = str(tmp_path / f"{place}.db")
            q = stack.enter_context(fairway.open(url))
            q.configure(consumer_silent_seconds=1.0)
            submit(url, numbers(CHUNKS))
            made[place] = q, (files := Files(url, request.param))
            files.dies = place.__eq__
            with pytest.raises(Killed):
                files.start()
            files.dies = lambda place: False
        time.sleep(LAPSED_SECONDS)
        for q, _ in made.values():
            assert q.stats().chunks_leased == 0
        yield made


def let_go(q: fairway.Queue, files: Files) -> None:
    """What the refusal says: take out of the sink what it has of the batch, then ask for what is left."""
    files.batches.pop(0, None)
    files.commits = 0
    assert q.reserve(consumer="f", seq=1) == []


def test_a_start_after_the_lapse_is_refused_unless_the_batch_is_known_to_be_written(
    killed: dict[str, tuple[fairway.Queue, Files]],
) -> None:
    for place, (q, files) in killed.items():
        if place == "logged" or (place == "written" and not files.eager):
            files.start()  # it is written, and nobody took its chunks: they are completed after all
        else:
            for _ in range(2):
                with pytest.raises(ReservationLapsed, match="batch 1 of consumer 'f'"):
                    files.start()
            assert q.stats().chunks_waiting == CHUNKS, place
            let_go(q, files)
            files.start()
        assert files.rows == once(), place
        assert {one.state for one in q.submissions()} == {"completed"}


def test_a_batch_of_which_somebody_took_a_chunk_meanwhile_is_refused_wherever_its_query_ended(
    killed: dict[str, tuple[fairway.Queue, Files]],
) -> None:
    for place, (q, files) in killed.items():
        (lease,) = q.reserve()
        for _ in range(2):
            with pytest.raises(ReservationLapsed, match="batch 1 of consumer 'f'"):
                files.start()
        q.complete(lease)
        with pytest.raises(ReservationLapsed):
            files.start()
        assert sum(one.done for one in q.submissions()) == 1, "nothing is completed that may come twice"
        let_go(q, files)
        files.start()
        assert files.rows == once() - Counter(range(10)), f"{place}: the first chunk was done elsewhere"
        assert {one.state for one in q.submissions()} == {"completed"}


@pytest.mark.parametrize("taken", [False, True])
def test_a_query_that_was_stopped_for_so_long_in_a_batch_completes_only_what_nobody_took(
    tmp_path: Path, unhurried: None, taken: bool
) -> None:
    """As a machine that was suspended: the process goes on, and hears of nothing until it asks."""
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        q.configure(consumer_silent_seconds=1.0)
        submit(url, numbers(CHUNKS))
        files = Files(url)

        def sleep(place: str) -> bool:
            if place == "planned" and not files.batches:
                time.sleep(LAPSED_SECONDS)
                if taken:
                    q.complete(q.reserve())
            return False

        files.dies = sleep
        if taken:
            with pytest.raises(ReservationLapsed, match="batch 1"):
                files.start()
            assert sum(one.done for one in q.submissions()) == 1
        else:
            files.start()
            assert files.rows == once()


def test_a_start_after_the_lapse_is_refused_through_a_server_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unhurried: None
) -> None:
    """Also when it was started again since the lapse: the refusal is stored."""
    root = f"file://{tmp_path}/objects"
    with fairway.open(str(tmp_path / "work.db")) as q:
        q.configure(consumer_silent_seconds=1.0)
    for start in range(2):
        with live(tmp_path, objects=[root]) as server:
            monkeypatch.setenv("FAIRWAY_TOKEN", server.token("submit", "work", "read"))
            if start == 0:
                submit(server.url, numbers(CHUNKS), objects=root)
                files = Files(server.url, eager=True)
                files.dies = "written".__eq__
                with pytest.raises(Killed):
                    files.start()
                files.dies = lambda place: False
                time.sleep(LAPSED_SECONDS)
            files.url = server.url
            with pytest.raises(ReservationLapsed, match="batch 1 of consumer 'f'"):
                files.start()
            if start == 1:
                let_go(queues.attached(server.url, "default"), files)
                files.start()
                assert files.rows == once()
            for one in queues._open.values():
                one.close()
            queues._open.clear()


def test_a_batch_that_the_queue_does_not_hold_is_never_made_anew(tmp_path: Path, unhurried: None) -> None:
    """The sink has it, would skip what is in it now, and then that would be completed: chunks that nobody wrote."""
    first, second = str(tmp_path / "q.db"), str(tmp_path / "q2.db")
    files = Files(first, eager=True)
    with fairway.open(first):
        submit(first, numbers(CHUNKS))
        files.dies = "written".__eq__
        with pytest.raises(Killed):
            files.start()
        for one in queues._open.values():
            one.close()
        queues._open.clear()
    files.url, files.dies = second, lambda place: False
    with fairway.open(second) as q:
        submit(second, numbers(CHUNKS)[::-1])
        with pytest.raises(NotFound, match="does not hold batch 1 of consumer 'f'"):
            files.start()
        assert q.stats().chunks_waiting == CHUNKS and q.stats().reservations == 0


def another_checkpoint(url: str) -> Files:
    """A query that writes where another wrote the first four chunks, over a checkpoint of its own; four are left."""
    submit(url, numbers(4))
    old = Files(url)
    old.start()
    submit(url, numbers(CHUNKS)[4:], tenant="more")
    new = Files(url)
    new.consumer, new.batches = "g", old.batches
    return new


def test_a_batch_that_the_sink_took_for_one_that_it_has_is_not_completed(
    tmp_path: Path, unhurried: None
) -> None:
    """A new checkpoint numbers its batches from 0, and the folder has those numbers from the one before."""
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        new = another_checkpoint(url)
        for _ in range(len(new.batches)):
            with pytest.raises(fairway.BadArgument, match="never read it"):
                new.start()
            assert q.stats().chunks_waiting == 4
        new.start()  # from here on it has numbers that the folder does not have
        assert new.rows == once()
        assert {one.state for one in q.submissions()} == {"completed"}


def test_a_batch_that_the_sink_has_of_another_is_not_completed_by_the_start_after_a_kill(
    tmp_path: Path, unhurried: None
) -> None:
    """The driver was killed before Spark noted the batch, so the next start finds it made."""
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        new = another_checkpoint(url)
        new.dies = "reserved".__eq__
        with pytest.raises(Killed):
            new.start()
        new.dies = lambda place: False
        with pytest.raises(fairway.BadArgument, match="never read it"):
            new.start()
        assert q.stats().chunks_waiting == 4


# -- with Spark


def run(spark: Any, url: str, folder: Path, consumer: str = "f", **trigger: bool) -> None:
    """Chunks of a queue into Parquet files."""
    df = spark.readStream.format("fairway").schema("x long")
    df = df.options(
        consumer=consumer, emit="rows", run="r", maxChunksPerTrigger="4", completeOn="sourceCommit"
    )
    writer = df.load(url).writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / f"cp-{consumer}"))
    writer.trigger(**(trigger or {"availableNow": True})).start().awaitTermination()


def written(spark: Any, folder: Path) -> Counter[int]:
    return Counter(row.x for row in patiently(lambda: spark.read.parquet(str(folder / "out")).collect()))


def refused(spark: Any, url: str, folder: Path, error: type[Exception], consumer: str = "f") -> str:
    with pytest.raises(Exception) as caught:
        patiently(lambda: run(spark, url, folder, consumer))
    assert isinstance(told(caught.value), error), str(caught.value)[-800:]
    return str(told(caught.value))


def remove(file: Path) -> None:
    """With the checksum that Spark keeps beside it on a local disk."""
    for one in (file, file.with_name(f".{file.name}.crc")):
        one.unlink(missing_ok=True)


def take_out(folder: Path, number: int) -> None:
    """Take the newest batch out of Spark's file sink and out of the commit log, as docs/spark.md says."""
    log = folder / "out" / "_spark_metadata" / str(number)
    if log.exists():
        for line in log.read_text().splitlines()[1:]:
            remove(Path(json.loads(line)["path"].removeprefix("file://")))
    remove(log)
    remove(folder / "cp-f" / "commits" / str(number))


@pytest.mark.parametrize("ended", ["planned", "written", "committed", "taken"])
def test_rows_in_files_come_once_though_a_start_comes_after_the_lapse(
    spark: Any, tmp_path: Path, ended: str
) -> None:
    """A query ends in its first batch, before or after the batch is in the files, and is started again much later."""
    fairway.spark.register(spark)
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        q.configure(consumer_silent_seconds=2.0)
        submit(url, numbers(CHUNKS))
        # One batch, of which Spark does not tell the source.
        patiently(lambda: run(spark, url, tmp_path, once=True))
        assert written(spark, tmp_path) == Counter(range(40)) and q.stats().chunks_done == 0
        if ended in ("planned", "written"):
            remove(tmp_path / "cp-f" / "commits" / "0")
        if ended == "planned":
            take_out(tmp_path, 0)
        until = time.monotonic() + 120
        while q.stats().chunks_leased:
            assert time.monotonic() < until
            time.sleep(0.1)
        if ended == "taken":
            q.release(q.reserve())
        if ended in ("planned", "taken"):
            for _ in range(2):
                error = refused(spark, url, tmp_path, ReservationLapsed)
                assert 'whose offset is {"seq": 1}' in error
            assert q.stats().chunks_waiting == CHUNKS
            take_out(tmp_path, 0)
            assert q.reserve(consumer="f", seq=1) == []
        patiently(lambda: run(spark, url, tmp_path))
        assert written(spark, tmp_path) == once()
        assert {one.state for one in q.submissions()} == {"completed"}
    fairway.spark.release()


def test_a_folder_that_another_checkpoint_wrote_to_loses_no_rows(spark: Any, tmp_path: Path) -> None:
    """Spark's file sink passes batches over whose numbers it has, whoever wrote them."""
    fairway.spark.register(spark)
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        submit(url, numbers(4))
        patiently(lambda: run(spark, url, tmp_path))
        submit(url, numbers(CHUNKS)[4:], tenant="more")
        refused(spark, url, tmp_path, fairway.BadArgument, "g")
        assert q.stats().chunks_waiting == 4 and q.stats().chunks_leased == 0
        patiently(lambda: run(spark, url, tmp_path, "g"))
        assert written(spark, tmp_path) == once()
    fairway.spark.release()
