"""Processing: every chunk once, whatever its function, its payload or its neighbours do."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairway
import fairway.spark
from fairway import limits
from fairway.errors import BadArgument, ConsumerFenced, ReservationOpen, SeqTrimmed
from fairway.spark.processing import told
from tests.spark.pipeline import collected, doubled, numbers, objects, patiently, produce, submit

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "q.db")
    fairway.spark.release()


def process(spark: Any, url: str, **given: Any) -> fairway.spark.Processed:
    if "rows" not in given:
        given = {"fn": doubled, **given}
    return fairway.spark.process(spark, url, progress=False, **given)


def quick(url: str, **changes: Any) -> None:
    """Back-offs that a test can wait for."""
    with fairway.open(url) as q:
        q.configure(
            **{"retry_delay_seconds": 0.1, "retry_delay_seconds_max": 0.1, "attempts_max": 2, **changes}
        )


def once(count: int) -> Counter[int]:
    return Counter(range(count))


def test_results_equal_the_function_and_are_collected_by_submission_and_tenant(spark: Any, url: str) -> None:
    made = produce(spark, url, 600)
    told = process(spark, url, strategy='OrElse(SelectOnly("tenant", "t1", Fair), OldestFirst)', max_chunks=9)
    assert told.batches >= 2
    frame = fairway.spark.collect(spark, url)
    assert frame.columns == ["tenant", "x", "y"]
    found = patiently(lambda: [(r.tenant, r.x, r.y) for r in frame.collect()])
    assert sorted(found) == sorted((f"t{x % 3}", x, 2 * x) for x in range(600))
    one = made[0]
    mine = fairway.spark.collect(
        spark, url, submission=one.id, schema="x long, _tenant string, _submission long, _index int"
    )
    rows = patiently(mine.collect)
    assert {(r["_tenant"], r["_submission"]) for r in rows} == {(one.tenant, one.id)}
    assert {r["_index"] for r in rows} == set(range(one.total))
    by_tenant = fairway.spark.collect(spark, url, tenant="t2")
    assert patiently(lambda: {r.x % 3 for r in by_tenant.collect()}) == {2}
    with fairway.open(url) as q:
        first = next(event for event in q.events() if event.what == "reserved")
        assert first.submission == next(s.id for s in made if s.tenant == "t1"), "the strategy chose"


def test_every_kind_can_be_read_and_reading_changes_nothing(spark: Any, url: str) -> None:
    sub = submit(url, numbers(5))
    quick(url, attempts_max=1)
    process(spark, url, fn=poison_on(3))
    with fairway.open(url) as q:
        before = list(q.events())
        kinds = {
            kind: patiently(lambda kind=kind: fairway.spark.read(spark, url, kind).collect())
            for kind in ("submissions", "chunks", "events", "dead")
        }
        fairway.spark.read(spark, url, "chunks").explain()
        assert list(q.events()) == before
    (shown,) = kinds["submissions"]
    assert (shown.id, shown.state, shown.total, shown.done, shown.failed) == (sub.id, "failed", 5, 4, 1)
    assert [(r["index"], r.state) for r in sorted(kinds["chunks"], key=lambda r: r["index"])] == [
        (index, "dead" if index == 3 else "done") for index in range(5)
    ]
    assert [(r["submission"], r["index"], r.tenant) for r in kinds["dead"]] == [(sub.id, 3, "t")]
    assert [
        (r.number, r.what, r.start, r["count"]) for r in sorted(kinds["events"], key=lambda r: r.number)
    ] == [(e.number, e.what, e.start, e.count) for e in before]


# -- chunks that fail


def poison_on(chunk: int) -> Any:
    """A function that fails on the chunk that begins with this number times ten."""

    def run(table: pa.Table) -> pa.Table:
        if table["x"][0].as_py() == chunk * 10:
            raise ValueError(f"I do not like {chunk}")
        return doubled(table)

    return run


def test_a_poison_chunk_ends_in_the_dead_letters_and_the_others_are_done(spark: Any, url: str) -> None:
    sub = submit(url, numbers(6))
    quick(url)
    process(spark, url, fn=poison_on(2))
    assert collected(url) == once(60) - Counter(range(20, 30))
    with fairway.open(url) as q:
        (dead,) = q.dead()
        assert (dead.submission, dead.index, dead.attempts) == (sub.id, 2, 2)
        # Told to the queue and not to Spark, whose query would have ended "again and again".
        assert "ValueError" in dead.error and "I do not like 2" in dead.error
        assert f"chunk 2 of submission {sub.id} (tenant 't')" in dead.error
    with fairway.open(url) as q:
        q.redrive(sub.id)
    process(spark, url)
    assert collected(url) == once(60), "redriven, it is processed by a function that likes it"


def test_a_function_that_returns_another_schema_fails_its_chunk(spark: Any, url: str) -> None:
    submit(url, numbers(3))
    quick(url, attempts_max=1)

    def odd(table: pa.Table) -> Any:
        first = table["x"][0].as_py()
        return {0: doubled(table), 10: table, 20: "no table"}[first]

    process(spark, url, fn=odd, schema="x long, y long")
    with fairway.open(url) as q:
        errors = {dead.index: dead.error for dead in q.dead()}
    assert set(errors) == {1, 2} and collected(url) == once(10)
    assert "columns (x int64) and not (x int64, y int64)" in errors[1] and "tenant 't'" in errors[1]
    assert "returned str and not a pyarrow.Table" in errors[2]


def test_a_payload_that_is_gone_or_damaged_fails_its_chunk(spark: Any, url: str) -> None:
    submit(url, numbers(4))
    quick(url, attempts_max=1)
    top = Path(f"{url}-objects/t")
    (top / "1").unlink()
    damaged = bytearray((top / "2").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (top / "2").write_bytes(damaged)
    process(spark, url)
    with fairway.open(url) as q:
        errors = {dead.index: dead.error for dead in q.dead()}
    assert set(errors) == {1, 2} and collected(url) == Counter([*range(10), *range(30, 40)])
    assert "ObjectMissing" in errors[1] and "q.db-objects/t/1" in errors[1] and "tenant 't'" in errors[1]
    assert "PayloadCorrupt" in errors[2] and "q.db-objects/t/2" in errors[2]


def test_a_chunk_that_kills_its_worker_dies_alone_and_nobody_helps(spark: Any, url: str) -> None:
    submit(url, numbers(4))
    quick(url)

    def deadly(table: pa.Table) -> pa.Table:
        if table["x"][0].as_py() == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return doubled(table)

    told = process(spark, url, fn=deadly, chunks_per_task=4)
    assert told.restarts >= 3, "4 chunks, then 2, then 1, until its attempts are over"
    assert collected(url) == once(40) - Counter(range(20, 30))
    with fairway.open(url) as q:
        (dead,) = q.dead()
        assert dead.index == 2 and "ended again and again" in dead.error


# -- rows and results that are not there


def test_a_chunk_with_no_surviving_rows_is_done(spark: Any, url: str) -> None:
    sub = submit(url, numbers(4))
    process(spark, url, rows=lambda df: df.where("x between 10 and 14 or x = 39"), schema="x long")
    assert collected(url) == Counter([*range(10, 15), 39])
    with fairway.open(url) as q:
        assert q.submission(sub.id).state == "completed"
    again = submit(url, numbers(2), tenant="u")
    process(spark, url, fn=lambda table: table.slice(0, 0))
    with fairway.open(url) as q:
        assert q.submission(again.id).state == "completed"
        assert [decode_rows(result.read()) for result in q.results(again.id)] == [0, 0]


def decode_rows(blob: bytes) -> int:
    from fairway.spark.codec import decode

    return decode(blob, "a result").num_rows


def test_a_batch_of_which_no_row_survives_is_done(spark: Any, url: str) -> None:
    sub = submit(url, numbers(3))
    process(spark, url, rows=lambda df: df.where("x < 0"), schema="x long", max_chunks=2)
    with fairway.open(url) as q:
        assert q.submission(sub.id).state == "completed"
    assert collected(url) == Counter()
    assert not any(name.startswith("batches/") for name in objects(url))


def test_inline_payloads_have_inline_results(spark: Any, url: str) -> None:
    from fairway.spark.codec import encode

    with fairway.open(url) as q:
        sub = q.submit([encode(one, "parquet") for one in numbers(3)], tenant="t")
    process(spark, url)
    with fairway.open(url) as q:
        assert q.submission(sub.id).state == "completed"
        assert all(result.data is not None for result in q.results(sub.id))
    assert collected(url, "y") == Counter(range(0, 60, 2))


# -- rows mode


def test_rows_mode_gives_the_rows_with_their_origin(spark: Any, url: str) -> None:
    produce(spark, url, 300)
    done = process(
        spark,
        url,
        rows=lambda df: df.groupBy("_tenant").count(),
        output_mode="complete",
        max_chunks=4,
    )
    assert done.batches >= 2, "each has the counts of all, and the last one is collected"
    frame = fairway.spark.collect(spark, url)
    assert patiently(lambda: sorted((r["_tenant"], r["count"]) for r in frame.collect())) == [
        ("t0", 100),
        ("t1", 100),
        ("t2", 100),
    ]
    with pytest.raises(Exception) as caught, fairway.open(url) as q:
        patiently(
            lambda: fairway.spark.collect(spark, url, submission=next(iter(q.submissions())).id).collect()
        )
    assert "batch by batch" in str(told(caught.value))


def test_results_per_chunk_need_rows_that_were_not_shuffled(spark: Any, url: str) -> None:
    sub = submit(url, numbers(4))
    schema = "x long, _chunk string"
    with pytest.raises(BadArgument, match="a shuffle stands between"):
        process(spark, url, rows=lambda df: df.repartition(2), schema=schema, per_chunk=True)
    with fairway.open(url) as q:
        assert q.submission(sub.id).done == 0
    process(spark, url, rows=lambda df: df.where("x >= 10"), schema=schema, per_chunk=True)
    with fairway.open(url) as q:
        assert [result.index for result in q.results(sub.id)] == [1, 2, 3]
        assert q.submission(sub.id).state == "completed"
    assert collected(url) == Counter(range(10, 40))


def test_a_payload_that_cannot_be_read_in_rows_mode_dies_alone(spark: Any, url: str) -> None:
    submit(url, numbers(2))
    quick(url)
    Path(f"{url}-objects/t/1").unlink()
    process(spark, url, rows=lambda df: df, schema="x long")
    assert collected(url) == once(10)
    with fairway.open(url) as q:
        (dead,) = q.dead()
        assert dead.index == 1 and "ObjectMissing" in dead.error and "q.db-objects/t/1" in dead.error


# -- by hand


def by_hand(spark: Any, url: str, checkpoint: Path, fn: Any = doubled, **options: str) -> Any:
    fairway.spark.register(spark)
    df = spark.readStream.format("fairway").options(**{"consumer": "hand", **options}).load(url)
    writer = (
        df.transform(fairway.spark.map_chunks(fn)).writeStream.format("fairway").option("consumer", "hand")
    )
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(url)


def hand_over(spark: Any, url: str, checkpoint: Path, **options: str) -> None:
    patiently(lambda: by_hand(spark, url, checkpoint, **options).awaitTermination())


def test_a_deleted_checkpoint_is_a_clear_error_and_nothing_is_lost(
    spark: Any, url: str, tmp_path: Path
) -> None:
    submit(url, numbers(4))
    with fairway.open(url):
        hand_over(spark, url, tmp_path / "cp", maxChunksPerTrigger="2")
        shutil.rmtree(tmp_path / "cp")
        more = submit(url, [pa.table({"x": range(40, 50)})], tenant="more")
        with pytest.raises(Exception) as caught:
            hand_over(spark, url, tmp_path / "cp")
        error = told(caught.value)
        assert isinstance(error, SeqTrimmed) and "checkpoint of consumer 'hand' is gone or older" in str(
            error
        )
    process(spark, url, consumer="another")
    with fairway.open(url) as q:
        assert q.submission(more.id).state == "completed"
    assert collected(url) == once(50)


def test_of_two_queries_with_one_consumer_the_older_is_refused(spark: Any, url: str, tmp_path: Path) -> None:
    submit(url, numbers(6))
    marks = tmp_path / "marks"
    marks.mkdir()

    def slow(table: pa.Table) -> pa.Table:
        Path(marks, str(table["x"][0])).touch()
        while not Path(marks, "go").exists():
            time.sleep(0.05)
        return doubled(table)

    with fairway.open(url) as q:
        first = by_hand(spark, url, tmp_path / "cp", slow, maxChunksPerTrigger="4")
        wait_for(lambda: any(marks.iterdir()) or not first.isActive)
        epoch = next(one.epoch for one in q.consumers() if one.name == "hand")
        # The second one has a checkpoint of its own, as a second machine would.
        second = by_hand(spark, url, tmp_path / "cp2", doubled, maxChunksPerTrigger="4")
        wait_for(lambda: next(one.epoch for one in q.consumers()) > epoch or not second.isActive)
        wait_for(lambda: q.stats().chunks_leased < 4 or not second.isActive)
        (marks / "go").touch()
        with pytest.raises(Exception) as caught:
            first.awaitTermination()
        assert isinstance(told(caught.value), ConsumerFenced), str(caught.value)[-800:]
        patiently(second.awaitTermination)
    process(spark, url, consumer="rest")
    assert collected(url) == once(60)


def wait_for(true: Any, seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_foreign_sink_completes_on_source_commit(spark: Any, url: str, tmp_path: Path) -> None:
    fairway.spark.register(spark)
    sub = submit(url, numbers(6))

    def run(**options: str) -> None:
        df = (
            spark.readStream.format("fairway")
            .schema("x long")
            .options(consumer="files", emit="rows", run="r", maxChunksPerTrigger="2", **options)
            .load(url)
        )
        writer = df.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start()
        query.awaitTermination()

    with fairway.open(url) as q:
        with pytest.raises(Exception) as caught:
            patiently(run)
        error = told(caught.value)
        assert isinstance(error, ReservationOpen) and "completeOn=sourceCommit" in str(error)
        assert q.submission(sub.id).done == 0
        patiently(lambda: run(completeOn="sourceCommit"))
        found = patiently(lambda: spark.read.parquet(str(tmp_path / "out")).collect())
        assert Counter(row.x for row in found) == once(60)
        assert q.submission(sub.id).state == "completed", (
            "the last batch too, which Spark never tells its source of"
        )


@pytest.mark.parametrize(
    ("options", "kind", "named"),
    [
        ({"consumer": ""}, "BadArgument", "consumer"),
        ({"maxChunks": "7"}, "BadArgument", "maxChunks"),
        ({"strategy": "Fairest"}, "BadStrategy", "Fairest"),
        ({"emit": "rows"}, "BadArgument", "schema"),
    ],
)
def test_a_bad_option_of_a_stream_is_named(
    spark: Any, url: str, tmp_path: Path, options: dict[str, str], kind: str, named: str
) -> None:
    with fairway.open(url), pytest.raises(Exception) as caught:
        hand_over(spark, url, tmp_path / "cp", **options)
    error = told(caught.value)
    assert type(error).__name__ == kind and named in str(error)


# -- time


def test_a_batch_may_take_longer_than_the_lease(spark: Any, url: str) -> None:
    sub = submit(url, numbers(2))
    quick(
        url, consumer_silent_seconds=12.0, lease_seconds=1.0
    )  # four beats of three seconds, on a busy machine

    def slow(table: pa.Table) -> pa.Table:
        time.sleep(8)
        return doubled(table)

    process(spark, url, fn=slow, chunks_per_task=2)
    assert collected(url) == once(20)
    with fairway.open(url) as q:
        assert [e.what for e in q.events() if e.what in ("expired", "failed")] == []
        assert q.submission(sub.id).state == "completed"


def test_available_now_waits_for_back_offs_and_not_for_what_is_not_due(
    spark: Any, url: str, tmp_path: Path
) -> None:
    sub = submit(url, numbers(3))
    later = submit(url, numbers(1), tenant="later", delay_seconds=3600)
    with fairway.open(url) as q:
        q.configure(retry_delay_seconds=3.0, attempts_max=3)
    marks = str(tmp_path)

    def fails_once(table: pa.Table) -> pa.Table:
        first = table["x"][0].as_py()
        if first == 10 and not Path(marks, "failed").exists():
            Path(marks, "failed").touch()
            raise ValueError("once")
        return doubled(table)

    process(spark, url, fn=fails_once)
    with fairway.open(url) as q:
        assert q.submission(sub.id).state == "completed"
        assert q.submission(later.id).done == 0
    assert collected(url) == once(30)


def test_without_available_now_it_goes_on_with_what_comes_until_it_is_told(spark: Any, url: str) -> None:
    submit(url, numbers(2))
    stop = threading.Event()

    def add() -> None:
        with fairway.open(url) as q:
            wait_for(lambda: q.stats().submissions_active == 0)
            added = submit(url, [pa.table({"x": range(20, 30)})], tenant="new")
            q.wait(added.id, 240)
        stop.set()

    adding = threading.Thread(target=add)
    adding.start()
    process(spark, url, available_now=False, seconds=500, stop=stop)
    adding.join()
    assert collected(url) == once(30)


def test_it_runs_in_any_thread(spark: Any, url: str) -> None:
    submit(url, numbers(2))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(process, spark, url).result().inputs == 2
    assert collected(url) == once(20)


def test_a_function_is_a_must(spark: Any, url: str) -> None:
    for given in ({"fn": None}, {"fn": doubled, "rows": lambda df: df}):
        with pytest.raises(BadArgument, match="either fn or rows"):
            process(spark, url, **given)
    with pytest.raises(BadArgument, match="in memory"):
        process(spark, ":memory:")


def test_a_function_that_the_executors_cannot_import_is_told_and_costs_no_chunk(spark: Any, url: str) -> None:
    import sys
    import types

    module = types.ModuleType("only_on_the_driver")
    exec("def fn(table):\n    return table", module.__dict__)
    sys.modules["only_on_the_driver"] = module
    sub = submit(url, numbers(2))
    quick(url, attempts_max=1)
    try:
        with pytest.raises(BadArgument, match="cannot import 'only_on_the_driver'"):
            process(spark, url, fn=module.fn)
    finally:
        del sys.modules["only_on_the_driver"]
    with fairway.open(url) as q:
        assert q.submission(sub.id).failed == 0


def test_spark_finds_the_format_by_itself(spark: Any, url: str) -> None:
    submit(url, numbers(2))
    with fairway.open(url):
        fresh = spark.newSession()
        read = fresh.read.format("fairway").option("kind", "submissions")
        assert patiently(lambda: read.load(url).count()) == 1


def test_a_function_of_many_bytes_runs_behind_the_source_and_does_the_same(spark: Any, url: str) -> None:
    """What it is called with must not depend on how long it is."""
    from fairway.spark.mapping import placed

    ballast = bytes(range(256)) * (limits.SPARK_FUNCTION_BYTES // 256)

    def short(table: pa.Table) -> pa.Table:
        return table.append_column("pid", pa.array([os.getpid()] * len(table)))

    def long(table: pa.Table) -> pa.Table:
        return short(table).append_column("more", pa.array([len(ballast)] * len(table)))

    assert placed(short, None, "arrow")[0] is not None
    assert placed(long, None, "arrow")[0] is None
    for fn, columns in ((short, {"x", "pid"}), (long, {"x", "pid", "more"})):
        sub = submit(url, numbers(4))
        process(spark, url, fn=fn, consumer=fn.__name__)
        with fairway.open(url) as q:
            assert q.submission(sub.id).state == "completed"
        mine = fairway.spark.collect(spark, url, submission=sub.id)
        assert columns == {*mine.columns}
