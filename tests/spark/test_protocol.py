"""Source and sink under the calls that Spark makes, in its order, with deaths at every step and no Spark."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

import fairway
from fairway import limits
from fairway.errors import SeqTrimmed
from fairway.runtime import objects as runtime_objects
from fairway.server.roots import Roots
from fairway.spark import queues, source
from fairway.spark.codec import decode
from fairway.spark.columns import spark_of
from fairway.spark.mapping import _over
from fairway.spark.places import folder_of, task_prefix
from fairway.spark.references import DONE_ARROW, REFERENCE_ARROW
from fairway.spark.settings import SOURCE, Settings
from fairway.spark.shapes import DONE, DONE_NAMES, REFERENCE
from fairway.spark.source import ChunkStream
from tests.s3 import s3
from tests.server.live import live
from tests.spark.pipeline import collected, numbers, objects, submit
from tests.spark.playing import CHUNKS, COUNTS, ROWS, Killed, Player, play
from tests.spark.test_driver_kills import last_counts


@pytest.fixture
def url(tmp_path: Path, unhurried: None) -> Iterator[str]:
    """A queue that this process hosts."""
    where = str(tmp_path / "q.db")
    with fairway.open(where) as q:
        q.configure(attempts_max=1000)
        for tenant in range(3):
            submit(where, numbers(CHUNKS)[tenant::3], tenant=f"t{tenant}")
        yield where


def check(player: Player) -> None:
    with fairway.open(player.url) as q:
        assert {one.state for one in q.submissions()} == {"completed"}
        assert sum(one.done for one in q.submissions()) == CHUNKS
    if player.mode == "rows":
        whole = Counter(x % 7 for x in range(CHUNKS * 10))
        assert player.states[player.commits] == whole, "each row was added to the state once"
        assert last_counts(player.url) == whole
    else:
        assert collected(player.url) == Counter(range(CHUNKS * 10))


MODES = ["references", "rows", "echo", "chunked"]
PLACES = ["reserved", "noted", "trimmed", "planned", "worked", "committed", "logged"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", MODES)
def test_a_death_at_each_step_loses_and_doubles_nothing(url: str, mode: str, place: str) -> None:
    deaths = iter([False, True, True, False, True])
    player = Player(url, mode, lambda here: here == place and next(deaths, False))
    play(player)
    assert player.places[place] == 3
    check(player)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mode", MODES)
def test_deaths_at_random_steps_lose_and_double_nothing(url: str, mode: str, seed: int) -> None:
    dice = Random(f"{mode} {seed}")
    player = Player(url, mode, lambda here: dice.random() < 0.2)
    play(player)
    assert player.places
    check(player)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("mode", ["references", "rows"])
def test_with_a_server_in_between_deaths_lose_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unhurried: None, mode: str, seed: int
) -> None:
    root = f"file://{tmp_path}/objects"
    dice = Random(f"{mode} {seed}")
    with live(tmp_path, objects=[root]) as server:
        monkeypatch.setenv("FAIRWAY_TOKEN", server.token("submit", "work", "read"))
        with fairway.open(str(tmp_path / "work.db")) as q:
            q.configure(attempts_max=1000)
        for tenant in range(3):
            submit(server.url, numbers(CHUNKS)[tenant::3], tenant=f"t{tenant}", objects=root)
        player = Player(server.url, mode, lambda here: dice.random() < 0.2, root)
        play(player)
        assert player.places
        check(player)
        for one in queues._open.values():
            one.close()
        queues._open.clear()


@pytest.mark.parametrize("mode", ["references", "rows"])
def test_payloads_and_results_may_be_in_s3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unhurried: None, mode: str
) -> None:
    monkeypatch.setattr(runtime_objects, "_stores", {})
    deaths = iter([False, True])
    with s3() as store, fairway.open(str(tmp_path / "q.db")) as q:
        for name, value in store.environ.items():
            monkeypatch.setenv(name, value)
        for tenant in range(3):
            part = numbers(CHUNKS)[tenant::3]
            submit(str(tmp_path / "q.db"), part, tenant=f"t{tenant}", objects="s3://bucket/job")
        player = Player(
            str(tmp_path / "q.db"),
            mode,
            lambda here: here == "committed" and next(deaths, False),
            "s3://bucket/job",
        )
        play(player)
        assert player.places["committed"] == 1
        check(player)
        results = len(store.objects) - CHUNKS
        assert results == (CHUNKS if mode == "references" else len(player.offsets)), "and no other is left"
        assert not [path for path in tmp_path.iterdir() if path.is_dir()], "nothing went beside the file"
        assert q.stats().submissions_active == 0


@pytest.mark.parametrize("mode", ["references", "rows"])
def test_no_result_object_is_left_that_the_queue_does_not_name_after_a_replay(url: str, mode: str) -> None:
    deaths = iter([True, True])
    player = Player(url, mode, lambda here: here == "committed" and next(deaths, False))
    play(player)
    check(player)
    made = {name for name in objects(url) if ".out." in name or name.startswith("batches/")}
    batches = len(player.offsets)
    assert len(made) == (CHUNKS if mode == "references" else batches), "what a replay wrote again is gone"


def test_a_reference_that_comes_twice_keeps_the_result_that_was_registered(url: str) -> None:
    """As from a frame that was cached and joined with itself: both rows name one object."""
    player = Player(url, "references", lambda here: False)
    reader, writer = player.made()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    done = [
        writer.write(_over(reader.read(part), lambda t: t, None, "arrow"))
        for part in reader.partitions(start, end)
    ]
    writer.commit([*done, *done], 0)
    with fairway.open(url) as q:
        assert sum(one.done for one in q.submissions()) == 4
    assert collected(url) == Counter(range(40))


@pytest.mark.parametrize("mode", ["references", "echo"])
def test_results_may_be_in_parquet(url: str, mode: str) -> None:
    player = Player(url, mode, lambda here: False)
    player.format = "parquet"
    play(player)
    check(player)
    made = [name for name in objects(url) if ".out." in name or name.startswith("batches/")]
    assert made and all(Path(f"{url}-objects", name).read_bytes().startswith(b"PAR1") for name in made)


def test_a_chunk_that_lapsed_refuses_a_batch_of_rows(url: str) -> None:
    """Its rows are in the sum already, and somebody else will work on it: the batch must be made again."""
    player = Player(url, "rows", lambda here: False)
    with fairway.open(url) as q:
        cancelled: list[int] = []

        def cancel(here: str) -> bool:
            if here == "worked" and not cancelled:
                cancelled.append(next(iter(q.submissions(state="active"))).id)
                q.cancel(cancelled[0])
            return False

        player.dies = cancel
        with pytest.raises(fairway.LeaseLost, match="run again"):
            player.start()
        player.start()
        kept = [one for one in q.submissions() if one.id != cancelled[0]]
        assert {one.state for one in kept} == {"completed"}
    mine = [x for table in (numbers(CHUNKS)[1::3] + numbers(CHUNKS)[2::3]) for x in table["x"].to_pylist()]
    assert player.states[player.commits] == Counter(x % 7 for x in mine)


def test_a_checkpoint_that_is_older_than_the_queue_is_refused(url: str) -> None:
    play(player := Player(url, "references", lambda here: False))
    check(player)
    more = submit(url, numbers(1), tenant="more")
    with pytest.raises(SeqTrimmed, match="gone or older"):
        Player(url, "references", lambda here: False).start()
    with fairway.open(url) as q:
        assert q.submission(more.id).leased == 0, "nothing was taken"
    player.start()
    with fairway.open(url) as q:
        assert q.submission(more.id).state == "completed", "the right checkpoint goes on"


def test_making_a_source_takes_no_epoch_and_no_chunk(url: str) -> None:
    """Planners make one too, as often as they like."""
    for _ in range(3):
        reader, writer = Player(url, "rows", lambda here: False).made()
        pickle.loads(pickle.dumps((reader, writer)))
    with fairway.open(url) as q:
        assert q.consumers() == [] and q.stats().reservations == 0
        assert reader.initialOffset() == {"seq": 0}
        assert [one.epoch for one in q.consumers()] == [1], "the first call that works takes it"


TABLE = pa.table({"k": [1, 2], "count": [3, 4]}, schema=COUNTS)


def test_a_batch_without_chunks_commits_nothing_and_its_rows_are_refused(url: str) -> None:
    """Spark makes one when a watermark has moved on: its rows must not vanish as those of a replay do."""
    player = Player(url, "rows", lambda here: False)
    reader, writer = player.made()
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(4))
    reader.partitions({"seq": 0}, end)
    writer.commit([writer.write(iter(TABLE.to_batches()))], 0)
    reader.commit(end)
    with fairway.open(url) as q:
        before = q.stats(), [event.number for event in q.events()]
        made = objects(url)
        writer.commit([writer.write(iter([])), None], 1)
        message = writer.write(iter(TABLE.to_batches()))
        with pytest.raises(fairway.BadArgument, match="batch 1 has 2 rows and no chunk"):
            writer.commit([message], 1)
        assert len(objects(url)) == len(made) + 1, "they are still there"
        writer.complete = True  # then batch 0 had all of these rows
        writer.commit([message], 1)
        assert objects(url) == made
        after = q.stats(), [event.number for event in q.events()]
        assert before[1] == after[1] and before[0].chunks_done == after[0].chunks_done == 4


def test_rows_of_a_batch_whose_chunks_ended_are_refused(url: str) -> None:
    player = Player(url, "rows", lambda here: False)
    reader, _ = player.made()
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(4))
    with fairway.open(url) as q:
        for one in list(q.submissions(state="active")):
            q.cancel(one.id)
    again, writer = player.made()
    assert again.partitions({"seq": 0}, end) == []
    with pytest.raises(fairway.BadArgument, match="its chunks had ended"):
        writer.commit([writer.write(iter(TABLE.to_batches()))], 0)
    writer.commit([writer.write(iter([]))], 0)
    again.commit(end)


def test_with_per_chunk_rows_of_a_chunk_of_an_earlier_batch_are_refused(url: str) -> None:
    """As windows that close later: their chunk was completed with its own batch, and has no place for them."""
    player = Player(url, "chunked", lambda here: False)
    reader, writer = player.made()
    first = reader.latestOffset(reader.initialOffset(), ReadMaxRows(4))
    late = [rows for part in reader.partitions({"seq": 0}, first) for rows in reader.read(part)]
    writer.commit([writer.write(iter([]))], 0)
    second = reader.latestOffset(first, ReadMaxRows(4))
    own = [rows for part in reader.partitions(first, second) for rows in reader.read(part)]
    with fairway.open(url) as q:
        made, before = objects(url), q.stats()
        with pytest.raises(
            fairway.BadArgument,
            match=r"option perChunk: chunk \d of submission \d+ \(tenant 't\d'\).*Leave perChunk out",
        ) as caught:
            writer.commit([writer.write(iter(own + late))], 1)
        assert caught.value.details["argument"] == "perChunk"
        assert q.stats().chunks_done == before.chunks_done == 4, "nothing of the batch is settled"
        assert len(objects(url)) == len(made) + 8, "and nothing removed"
    assert collected(url) == Counter()
    # What the error tells to do: the same batch is made again, and its rows are the batch's.
    writer.per_chunk = False
    writer.commit([writer.write(iter(own + late))], 1)
    assert collected(url) == Counter(x for rows in own + late for x in rows["x"].to_pylist())


def test_available_now_ends_though_chunks_are_leased_elsewhere(url: str) -> None:
    with fairway.open(url) as q:
        held = q.reserve(3, lease_seconds=3600)
        player = Player(url, "references", lambda here: False)
        player.start()
        assert q.stats().chunks_leased == 3
        mine = {x for lease in held for x in numbers_of(lease)}
        assert collected(url) == Counter(set(range(CHUNKS * 10)) - mine)
        q.release(held)
        player.start()
        check(player)


def numbers_of(lease: Any) -> list[int]:
    return decode(lease.payload, "a payload")["x"].to_pylist()


def test_a_server_that_dies_is_named_and_its_batch_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unhurried: None
) -> None:
    root = f"file://{tmp_path}/objects"
    places: list[str] = []
    with live(tmp_path, objects=[root]) as server:
        submit(server.url, numbers(CHUNKS), objects=root)
        first = Player(
            server.url, "references", lambda here: places.append(here) is None and here == "planned", root
        )
        with pytest.raises(Killed):
            first.start()
        reader, writer = first.made()
        parts = reader.partitions({"seq": 0}, first.offsets[0])
    gone = server.url
    done = [writer.write(_over(reader.read(part), lambda t: t, None, "arrow")) for part in parts]
    with monkeypatch.context() as patch:
        patch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.2)
        for call in (
            lambda: reader.latestOffset({"seq": 0}, ReadMaxRows(4)),
            lambda: reader.partitions({"seq": 0}, first.offsets[0]),
            lambda: writer.commit(done, 0),
            lambda: first.made()[0].initialOffset(),
        ):
            with pytest.raises(fairway.Unreachable, match=f"no server answered at {gone}"):
                call()
    with live(tmp_path, objects=[root]) as server:
        first.url, first.dies = server.url, lambda here: False
        play(first)
        check(first)
        for one in queues._open.values():
            one.close()


@pytest.mark.parametrize("per_task", ["1", "4"])
def test_chunks_that_cannot_be_read_as_rows_fail_alone(
    url: str, monkeypatch: pytest.MonkeyPatch, per_task: str
) -> None:
    """A task fails its chunk in the queue and ends its batch, which is made again without it."""
    odd = [pa.table({"z": [7]}), pa.table({"x": [1000]}), pa.table({"x": ["none"]}), pa.table({"x": [1001]})]
    bad = submit(url, odd, tenant="odd")
    Path(f"{url}-objects/odd/3").unlink()
    monkeypatch.setattr(source.limits, "SPARK_TASKS", 4 // int(per_task))
    player = Player(url, "rows", lambda here: False)
    player.complete = True  # every batch has all counts, also one whose chunks are all dead by now
    refused = 0
    with fairway.open(url) as q:
        q.configure(attempts_max=2, retry_delay_seconds=0.01, retry_delay_seconds_max=0.01)
        for _ in range(40):
            try:
                player.start()
                break
            except fairway.LeaseLost as error:
                refused += 1
                assert "option emit=rows" in str(error) and "(tenant 'odd')" in str(error)
        assert 2 <= refused <= 6, "each of three chunks twice, several at a time"
        dead = {(one.submission, one.index): one for one in q.dead()}
        assert {where: one.attempts for where, one in dead.items()} == {(bad.id, at): 2 for at in (0, 2, 3)}
        told = f"BadArgument: the payload of chunk 0 of submission {bad.id} (tenant 'odd') has no column 'x'; it has z"
        assert told in dead[bad.id, 0].error
        assert "column 'x' is string and not int64" in dead[bad.id, 2].error
        assert "ObjectMissing" in dead[bad.id, 3].error
        assert {one.state for one in q.submissions() if one.id != bad.id} == {"completed"}
    whole = Counter(x % 7 for x in [*range(CHUNKS * 10), 1000])
    assert player.states[player.commits] == whole == last_counts(url)


def test_a_chunk_pays_only_for_itself_in_rows_mode(url: str) -> None:
    """One payload is gone, one is damaged, and neither has more than one attempt: their neighbours are done."""
    bad = submit(url, numbers(2), tenant="bad")
    Path(f"{url}-objects/bad/0").unlink()
    damaged = bytearray(Path(f"{url}-objects/bad/1").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    Path(f"{url}-objects/bad/1").write_bytes(damaged)
    player = Player(url, "echo", lambda here: False)
    with fairway.open(url) as q:
        q.configure(attempts_max=1)
        for _ in range(20):
            try:
                player.start()
                break
            except fairway.LeaseLost:
                continue
        dead = {(one.submission, one.index): one.error for one in q.dead()}
        assert set(dead) == {(bad.id, 0), (bad.id, 1)}
        assert "ObjectMissing" in dead[bad.id, 0] and "PayloadCorrupt" in dead[bad.id, 1]
        assert {one.state for one in q.submissions() if one.id != bad.id} == {"completed"}
    assert collected(url) == Counter(range(CHUNKS * 10))


def test_available_now_sees_a_back_off_that_ends_while_it_looks(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fairway.open(url) as q:
        q.configure(retry_delay_seconds=0.5, retry_delay_seconds_max=0.5)
        q.fail(failed := q.reserve(1), error="once")
        held = q.reserve(CHUNKS, lease_seconds=3600)
        reader, _ = Player(url, "references", lambda here: False).made()
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        looked = queues.attached(url, "default")
        reserve = looked.reserve

        def slow(*given: Any, **told: Any) -> Any:
            found = reserve(*given, **told)
            until = time.monotonic() + 60
            while q.stats().chunks_retrying and time.monotonic() < until:
                time.sleep(0.05)  # the back-off ends behind the look
            return found

        monkeypatch.setattr(looked, "reserve", slow)
        assert reader.latestOffset(start, ReadMaxRows(4)) == {"seq": 1}
        assert q.stats().chunks_leased == len(held) + len(failed) == CHUNKS


@pytest.mark.parametrize("hours", [-2, 2])
def test_available_now_goes_by_the_time_of_the_queue(
    url: str, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """The wall clock was set while the queue is open, or is that of another machine than the server's."""
    with fairway.open(url) as q:
        held = q.reserve(CHUNKS, lease_seconds=3600)
        early = submit(url, numbers(1), tenant="early", delay_seconds=0.2)
        late = submit(url, numbers(1), tenant="late", delay_seconds=3600.0)
        time.sleep(0.5)
        behind = time.time
        monkeypatch.setattr(time, "time", lambda: behind() + hours * 3600)
        reader, _ = Player(url, "references", lambda here: False).made()
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        end = reader.latestOffset(start, ReadMaxRows(4))
        assert end == {"seq": 1} and q.submission(early.id).leased == 1, "it is due"
        submit(url, numbers(1), tenant="new")
        assert reader.latestOffset({"seq": 0}, ReadMaxRows(4)) == end
        assert not reader._reserve_old(2, 4), "the other is not, and what came later is not waited for"
        assert q.submission(late.id).leased == 0 and q.stats().chunks_leased == len(held) + 1


def test_available_now_asks_of_no_submission_again_and_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are put off stand before those that are not; each batch looks at the one that had chunks last."""
    with fairway.open(url) as q:
        first = q.reserve(CHUNKS, lease_seconds=3600)
        for at in range(40):
            submit(url, numbers(1), tenant=f"late{at}", delay_seconds=3600.0)
        submit(url, numbers(20), tenant="now")
        reader, writer = Player(url, "references", lambda here: False).made()
        end = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        looked = queues.attached(url, "default")
        asked: list[int] = []
        look = looked.submission
        monkeypatch.setattr(looked, "submission", lambda id: (asked.append(id), look(id))[1])
        counts = []
        for _ in range(6):
            before, start = len(asked), end
            end = reader.latestOffset(start, ReadMaxRows(4))
            counts.append(len(asked) - before)
            if end == start:
                break
            parts = reader.partitions(start, end)
            done = [writer.write(_over(reader.read(part), lambda t: t, None, "arrow")) for part in parts]
            writer.commit(done, len(counts))
        assert max(counts[1:5]) == 1 and max(counts) <= 50, counts
        assert q.stats().chunks_leased == len(first) and q.stats().chunks_waiting == 40


def test_available_now_ends_though_what_it_began_with_was_forgotten_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player(url, "references", lambda here: False)
    submissions = fairway.Queue.submissions
    gone = fairway.Submission(7, "active", "t", 1, 0, 0, 0, 0.0)
    with monkeypatch.context() as patch:  # not undone by itself: that would undo what `url` patched too
        patch.setattr(fairway.Queue, "submissions", lambda *a, **k: [gone, *submissions(*a, **k)])
        player.start()
    check(player)


def test_a_source_says_that_it_lives_by_the_queues_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the machine where it runs may be an hour behind that of the queue."""
    told: list[float] = []
    monkeypatch.setattr(source.Heart, "watch", lambda self, seq, silence: told.append(silence))
    with fairway.open(url) as q:
        q.configure(consumer_silent_seconds=8.0)
        behind = time.time() - 3600
        monkeypatch.setattr(time, "time", lambda: behind)
        reader, _ = Player(url, "references", lambda here: False).made()
        reader.latestOffset({"seq": 0}, ReadMaxRows(4))
    assert told == [pytest.approx(8.0, abs=1.0)]


@pytest.mark.parametrize("mode", MODES)
def test_a_start_after_the_lapse_loses_and_doubles_nothing(
    tmp_path: Path, unhurried: None, mode: str
) -> None:
    """Our own sink registers what it did; what comes a second time has no result yet."""
    with ExitStack() as stack:
        players: list[Player] = []
        for place in PLACES:
            where = str(tmp_path / f"{place}.db")
            q = stack.enter_context(fairway.open(where))
            q.configure(attempts_max=1000, consumer_silent_seconds=1.0)
            submit(where, numbers(CHUNKS))
            deaths = iter([False, True])
            player = Player(
                where, mode, lambda here, at=place, deaths=deaths: here == at and next(deaths, False)
            )
            player.complete = True  # a batch whose chunks went back has all counts, too
            with pytest.raises(Killed):
                player.start()
            players.append(player)
        time.sleep(1.5)
        for player in players:
            player.start()
            check(player)


def test_with_another_sink_only_what_was_always_wrong_fails_a_chunk(url: str) -> None:
    """A payload that is gone now may have been written by that sink before: failed, it would come twice."""
    Path(f"{url}-objects/t0/0").unlink()
    given = {"path": url, "consumer": "c", "emit": "rows", "completeOn": "sourceCommit"}
    reader = ChunkStream(Settings(given, SOURCE), spark_of(ROWS))
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(CHUNKS))
    with pytest.raises(fairway.ObjectMissing, match="t0/0"):
        for part in reader.partitions({"seq": 0}, end):
            list(reader.read(part))
    with fairway.open(url) as q:
        assert q.stats().chunks_leased == CHUNKS


def test_every_folder_is_one_that_a_server_takes_and_no_two_names_share_it() -> None:
    names = [
        "",
        "..",
        "a/b",
        "a~2Fb",
        "a%2Fb",
        "é %",
        "~",
        "%7E",
        "t.",
        "x" * 256,
        "x" * 255 + "y",
        "~" * 300,
    ]
    names += [folder_of("x" * 256)[1:]]
    for root in ("file:///data/in", "s3://bucket/in"):
        prefixes = [task_prefix(root, name, name, 0, "0-1-ab") for name in names]
        Roots([root]).check(prefixes)
        assert len(set(prefixes)) == len(names) and all(
            prefix.count("/") == root.count("/") + 3 for prefix in prefixes
        )


def test_the_commit_of_a_sink_by_hand_loads_no_arrow() -> None:
    """Spark makes a new process for each, and waits until it is there."""
    script = """
import sys
from fairway.spark.datasource import FairwaySource
from fairway.spark.shapes import DONE_NAMES
from pyspark.sql.types import LongType, StructType

schema = StructType()
for name in DONE_NAMES:
    schema.add(name, LongType())
assert FairwaySource({"path": "/q.db", "consumer": "c"}).streamWriter(schema, False).references
sys.exit("pyarrow" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_texts_and_arrow_tell_the_same_columns() -> None:
    for text, arrow in ((REFERENCE, REFERENCE_ARROW), (DONE, DONE_ARROW)):
        assert text == ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in spark_of(arrow))
    assert DONE_ARROW.names == DONE_NAMES
