"""Bucket queues as users meet them: every verb, in memory and in a file, for threads and for event loops."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway import limits
from fairway.bucket import statements as s


@pytest.fixture(params=["memory", "file"])
def q(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[fairway.BucketQueue]:
    url = ":memory:" if request.param == "memory" else str(tmp_path / "work.db")
    with fairway.open(url, "events", kind="bucket") as queue:
        yield queue


def until(condition, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_what_is_put_is_delivered_once_and_completed(q: fairway.BucketQueue) -> None:
    before = time.time()
    id = q.put(b"hello", headers={"kind": "greeting", "size": 5})
    (lease,) = q.reserve(max=10)
    assert (lease.id, lease.payload, lease.headers, lease.attempt) == (
        id,
        b"hello",
        {"kind": "greeting", "size": 5},
        1,
    )
    assert lease.deadline >= before + 60 and abs(lease.put_at - before) < 60
    assert q.reserve() == []
    assert q.complete(lease) == "done"
    assert q.complete(lease.receipt) == "already"
    stats = q.stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (0, 0, 0, 0)


def test_many_messages_go_in_batches_and_fill_buckets(q: fairway.BucketQueue) -> None:
    q.configure(bucket_rows=100)
    bodies = [b"%d" % n for n in range(730)]
    ids = q.put_many(bodies)
    assert len(set(ids)) == 730
    assert q.stats().ready == 730 and q.stats().buckets >= 7
    got: list[bytes] = []
    while leases := q.reserve(max=333):
        got += [lease.payload for lease in leases]
        assert set(q.complete(leases)) == {"done"}
    assert sorted(got) == sorted(bodies)


def test_big_messages_are_cut_by_their_bytes(q: fairway.BucketQueue) -> None:
    big = [bytes([n]) * limits.BUCKET_PAYLOAD_BYTES_MAX for n in range(12)]
    q.put_many(big)
    assert sorted(lease.payload for lease in q.reserve(max=50)) == big
    with pytest.raises(fairway.BadArgument, match="65536"):
        q.put(b"x" * (limits.BUCKET_PAYLOAD_BYTES_MAX + 1))


def test_sizes_are_true_at_rest(q: fairway.BucketQueue) -> None:
    q.configure(attempts_max=2)
    q.put_many([b"ready", b"leased", b"failed", b"dead", b"done"])
    q.put(b"later", delay_seconds=3000)
    leases = {lease.payload: lease for lease in q.reserve(max=9)}
    q.release(leases[b"ready"])
    q.fail(leases[b"failed"], "try later", delay_seconds=500)
    q.fail(leases[b"dead"], "hopeless", retry=False)
    q.complete(leases[b"done"])
    stats = q.stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (1, 2, 1, 1)


def test_a_lease_that_runs_out_is_delivered_again(q: fairway.BucketQueue) -> None:
    q.put(b"m")
    (first,) = q.reserve(lease_seconds=0.1)
    (second,) = q.reserve(wait_seconds=60)
    assert (second.id, second.attempt) == (first.id, 2)
    with pytest.raises(fairway.LeaseLost):
        q.complete(first)
    assert q.complete([first, second]) == ["lost", "done"]


def test_a_renewed_lease_has_a_receipt_of_its_own(q: fairway.BucketQueue) -> None:
    q.put(b"m")
    (lease,) = q.reserve(lease_seconds=60)
    renewed = q.renew(lease, 3000)
    assert renewed.deadline > lease.deadline + 2000 and renewed.receipt != lease.receipt
    again = q.renew(lease, 3000)
    assert again.receipt == renewed.receipt, "the same call again gets the same answer"
    with pytest.raises(fairway.LeaseLost):
        q.complete(lease)
    receipt = q.renew(renewed.receipt, 3000)
    assert q.complete(receipt) == "done"
    assert q.renew([renewed]) == []


def test_a_released_message_comes_back_at_once_and_uncounted(q: fairway.BucketQueue) -> None:
    q.configure(attempts_max=1)
    q.put(b"m")
    for _ in range(4):
        (lease,) = q.reserve()
        assert lease.attempt == 1
        assert q.release(lease) == "released"


def test_a_failed_message_comes_back_after_its_back_off(q: fairway.BucketQueue) -> None:
    q.configure(retry_delay_seconds=300)
    q.put(b"much later")
    assert q.fail(q.reserve()[0], ValueError("no")) == "retrying"
    assert q.reserve() == []
    q.configure(retry_delay_seconds=0.3)
    q.put(b"m")
    (lease,) = q.reserve()
    assert q.fail(lease, ValueError("no")) == "retrying"
    (again,) = q.reserve(wait_seconds=60)
    assert (again.id, again.attempt) == (lease.id, 2)


def test_after_its_last_delivery_a_message_is_a_dead_letter(q: fairway.BucketQueue) -> None:
    q.configure(attempts_max=2, retry_delay_seconds=0.0)
    id = q.put(b"m", headers={"a": 1})
    assert q.fail(q.reserve()[0], "first") == "retrying"
    assert q.fail(q.reserve()[0], "second") == "dead"
    (dead,) = q.dead()
    assert (dead.id, dead.payload, dead.headers, dead.attempts, dead.error) == (
        id,
        b"m",
        {"a": 1},
        2,
        "second",
    )
    assert q.reserve() == []


def test_a_lease_that_runs_out_for_the_last_time_dies_by_repair(q: fairway.BucketQueue) -> None:
    q.configure(attempts_max=1)
    q.put(b"m")
    (lease,) = q.reserve(lease_seconds=0.05)
    until(lambda: q.stats().dead == 1)
    (dead,) = q.dead()
    assert dead.id == lease.id and "never completed" in dead.error
    with pytest.raises(fairway.LeaseLost):
        q.complete(lease)


def test_dead_letters_are_redriven_as_new_messages(q: fairway.BucketQueue) -> None:
    ids = q.put_many([b"one", b"two", b"three"])
    q.fail(q.reserve(max=3), "no", retry=False)
    assert {dead.id for dead in q.dead()} == set(ids)
    assert q.redrive([ids[0]]) == 1
    (lease,) = q.reserve(max=5)
    assert lease.payload == b"one" and lease.id != ids[0] and lease.attempt == 1
    assert q.purge([ids[1]]) == 1
    assert [dead.payload for dead in q.dead()] == [b"three"]
    assert q.redrive() == 1 and list(q.dead()) == []
    assert q.purge() == 0
    with pytest.raises(fairway.BadArgument):
        q.purge(["nonsense"])


def test_a_delayed_message_waits_and_a_waiting_reserve_gets_it(q: fairway.BucketQueue) -> None:
    q.put(b"much later", delay_seconds=300)
    assert q.reserve() == []
    began = time.monotonic()
    q.put(b"later", delay_seconds=0.5)
    (lease,) = q.reserve(wait_seconds=60)
    assert lease.payload == b"later" and time.monotonic() - began >= 0.4


def test_long_delays_share_buckets_by_their_hour(q: fairway.BucketQueue) -> None:
    for _ in range(5):
        q.put(b"now")
        q.put(b"tomorrow", delay_seconds=86_400)
        q.put(b"tomorrow", delay_seconds=86_401)
    assert q.stats().buckets <= 3, "one for now, one or two for an hour of tomorrow"


def test_a_put_goes_on_when_a_slot_of_its_hour_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait longer than it for another hour, whose only slot stays in use."""
    held = {True: threading.Event(), False: threading.Event()}
    with fairway.open(":memory:", "events", kind="bucket") as q:
        desk = q._verbs._desk  # pyright: ignore[reportPrivateUsage]
        execute, wait = desk._storage.execute, desk._free.wait
        at_work, waiting, done = [], [], []

        def stand_still(statement: s.Statement) -> object:
            if isinstance(statement, s.Put):
                at_work.append(statement)
                held[statement.messages[0].not_before > time.time() + 3600].wait(30)
            return execute(statement)

        monkeypatch.setattr(desk._storage, "execute", stand_still)
        monkeypatch.setattr(desk._free, "wait", lambda: (waiting.append(1), wait()))

        def put(body: bytes, delay_seconds: float) -> None:
            q.put(body, delay_seconds=delay_seconds)
            done.append(body)

        threads: list[threading.Thread] = []

        def start(body: bytes, delay_seconds: float = 0.0) -> None:
            threads.append(threading.Thread(target=put, args=(body, delay_seconds)))
            threads[-1].start()
            until(lambda: len(at_work) + len(waiting) == len(threads))

        later = (time.time() // 3600 + 3) * 3600 + 1800 - time.time()  # far from the hour's ends
        slots = desk._writer.config.open_buckets
        start(b"delayed", later)
        for _ in range(slots):
            start(b"at once")
        for _ in range(slots):
            start(b"delayed", later)
        start(b"last")
        assert len(waiting) == slots + 1 and not done
        held[False].set()
        try:
            until(lambda: b"last" in done, 2.0)
        finally:
            held[True].set()
            for thread in threads:
                thread.join()


def test_forged_receipts_are_refused(q: fairway.BucketQueue) -> None:
    q.put_many([b"one", b"two"])
    one, two = q.reserve(max=2)
    head, _, seal = one.receipt.rpartition(".")
    parts = two.receipt.split(".")
    parts[4] = "1"
    for forged in (f"{head}.{'0' * len(seal)}", ".".join(parts), head + "." + two.receipt.rpartition(".")[2]):
        with pytest.raises(fairway.LeaseLost):
            q.complete(forged)
    for wrong in ("", "x", "1.2.3", 7, None, [object()]):
        with pytest.raises(fairway.BadArgument):
            q.complete(wrong)  # pyright: ignore
    assert q.complete([one, two]) == ["done", "done"]


def test_the_same_lease_given_twice_gets_one_answer(q: fairway.BucketQueue) -> None:
    q.put(b"m")
    (lease,) = q.reserve()
    assert q.complete([lease, lease]) == ["done", "done"]


def test_a_verb_of_fair_queues_is_refused_by_name(q: fairway.BucketQueue) -> None:
    for verb in ("submit", "cancel", "tenants", "set_weight", "results", "wait", "explain"):
        with pytest.raises(fairway.WrongKind, match=verb) as caught:
            getattr(q, verb)
        assert caught.value.code == "wrong_kind"
    with pytest.raises(AttributeError):
        _ = q.nonsense  # pyright: ignore


def test_arguments_are_checked_before_anything_happens(q: fairway.BucketQueue) -> None:
    with pytest.raises(fairway.BadArgument, match=r"items\[1\]"):
        q.put_many([b"fine", "text"])  # pyright: ignore
    with pytest.raises(fairway.BadArgument, match="no argument 'tenant'"):
        q.put_many([{"payload": b"", "tenant": "acme"}])
    for settings in ({"bucket_rows": 0}, {"bucket_rows": 2001}, {"open_buckets": 1.5}, {"colour": 1}):
        with pytest.raises(fairway.BadArgument):
            q.configure(**settings)
    with pytest.raises(fairway.BadArgument):
        q.reserve(max=0)
    assert q.stats().ready == 0


@pytest.mark.parametrize("more", [{"kind": "heap"}, {"kind": "bucket", "host": False}])
def test_an_unfit_open_is_refused(more: dict) -> None:
    with pytest.raises(fairway.BadArgument):
        fairway.open(":memory:", **more)


def test_a_closed_queue_says_so(tmp_path: Path) -> None:
    q = fairway.open(tmp_path / "work.db", kind="bucket")
    told: list[str] = []

    def wait() -> None:
        try:
            q.reserve(wait_seconds=60)
        except fairway.Closed as error:
            told.append(error.code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    q.close()
    q.close()
    waiting.join(30)
    assert told == ["closed"]
    with pytest.raises(fairway.Closed):
        q.put(b"m")


def test_a_deleted_queue_takes_nothing_and_its_name_is_free(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with (
        fairway.open(path, "events", kind="bucket") as old,
        fairway.open(path, "events", kind="bucket") as other,
    ):
        old.put(b"old")
        (lease,) = other.reserve()
        old.delete()
        for call in (
            lambda: other.put(b"m"),
            other.reserve,
            other.stats,
            lambda: other.configure(bucket_rows=5),
        ):
            with pytest.raises(fairway.QueueDeleted):
                call()
        with pytest.raises(fairway.LeaseLost):
            other.complete(lease)
        with pytest.raises(fairway.NotFound):
            fairway.open(path, "events", kind="bucket", create=False)
        with fairway.open(path, "events", kind="bucket") as new:
            assert new.reserve() == [] and new.stats().ready == 0
            new.put(b"new")
            old.delete()  # an old handle never deletes the successor
            assert [one.payload for one in new.reserve(max=5)] == [b"new"]


def test_fair_and_bucket_queues_share_a_file_not_a_name(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with fairway.open(path, "fair") as fair, fairway.open(path, "events", kind="bucket") as events:
        fair.put(b"fair")
        events.put(b"bucket")
        assert [lease.payload for lease in fair.reserve(max=5)] == [b"fair"]
        assert [lease.payload for lease in events.reserve(max=5)] == [b"bucket"]
        with pytest.raises(fairway.BadArgument, match="fair queue"):
            fairway.open(path, "fair", kind="bucket")
        with pytest.raises(fairway.BadArgument, match="bucket"):
            fairway.open(path, "events")


def test_settings_reach_every_handle(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with fairway.open(path, kind="bucket") as one, fairway.open(path, kind="bucket") as two:
        assert one.configure(lease_seconds=0.2).lease_seconds == 0.2
        one.put(b"m")
        before = time.time()
        assert two.reserve()[0].deadline < before + 30


def test_threads_share_a_queue(q: fairway.BucketQueue) -> None:
    q.configure(bucket_rows=20, open_buckets=2)
    got: list[bytes] = []

    def produce(name: int) -> None:
        for n in range(15):
            q.put_many([b"%d.%d.%d" % (name, n, m) for m in range(3)])

    def consume() -> None:
        while leases := q.reserve(max=7, wait_seconds=1.0):
            assert set(q.complete(leases)) == {"done"}
            got.extend(lease.payload for lease in leases)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    while leases := q.reserve(max=50):
        q.complete(leases)
        got += [lease.payload for lease in leases]
    assert len(got) == 180 and len(set(got)) == 180


def test_repair_removes_what_is_finished(q: fairway.BucketQueue) -> None:
    q.configure(bucket_rows=10, seal_seconds=0.0)
    q.put_many([b"m"] * 35)
    while leases := q.reserve(max=50):
        q.complete(leases)
    until(lambda: q.stats().index_span == 0)
    assert q.stats().finished == 0


def test_a_queue_can_be_sent_to_another_process(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db", "events", kind="bucket") as q:
        q.put(b"m")
        with pickle.loads(pickle.dumps(q)) as same:
            assert [lease.payload for lease in same.reserve()] == [b"m"]
    with fairway.open(":memory:", kind="bucket") as q, pytest.raises(fairway.BadArgument):
        pickle.dumps(q)


@pytest.mark.real
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_a_node_of_its_own(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db", "events", kind="bucket") as q:
        q.put(b"before")
        child = os.fork()
        if child == 0:
            try:
                q.put_many([b"child"] * 3)
                q.close()
            finally:
                os._exit(0)
        q.put(b"parent")
        assert os.waitpid(child, 0)[1] == 0
        assert sorted(lease.payload for lease in q.reserve(max=9)) == [b"before", *[b"child"] * 3, b"parent"]


def test_the_async_form_has_the_same_verbs(tmp_path: Path) -> None:
    async def work() -> None:
        async with fairway.aio.open(tmp_path / "work.db", "events", kind="bucket") as q:
            ids = await q.put_many([b"one", b"two"])
            waiting = asyncio.create_task(q.reserve(max=2, wait_seconds=60))
            leases = await waiting
            assert {lease.id for lease in leases} == set(ids)
            assert await q.complete(leases[0]) == "done"
            assert await q.fail(leases[1], "no", retry=False) == "dead"
            assert [dead.payload async for dead in q.dead()] == [leases[1].payload]
            assert (await q.stats()).dead == 1
            with pytest.raises(fairway.WrongKind):
                _ = q.submit
            await q.delete()
            with pytest.raises(fairway.QueueDeleted):
                await q.put(b"m")

    asyncio.run(work())


def test_an_unknown_put_is_told_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a storage that cannot say makes a call unknown; it is never told that nothing happened."""
    monkeypatch.setattr("fairway.runtime.bucket.running.BUCKET_CALL_SECONDS_MAX", 0.2)
    with fairway.open(":memory:", kind="bucket") as q:
        q.put(b"first")
        storage = q._verbs._desk._storage
        execute = storage.execute

        def dumb(statement: s.Statement) -> object:
            if isinstance(statement, s.Put):
                return s.UNKNOWN
            return execute(statement)

        monkeypatch.setattr(storage, "execute", dumb)
        monkeypatch.setattr("fairway.runtime.bucket.running.run.__defaults__", (time.sleep, 0.2))
        with pytest.raises(fairway.OutcomeUnknown):
            q.put(b"second")
        monkeypatch.setattr(storage, "execute", execute)
        q.put(b"third")
        assert {lease.payload for lease in q.reserve(max=5)} == {b"first", b"third"}


def after_puts(monkeypatch: pytest.MonkeyPatch, q: fairway.BucketQueue, count: int, answer: object) -> None:
    """From the n-th put on, the storage answers in this way."""
    storage, left = q._verbs._desk._storage, [count]
    execute = storage.execute

    def failing(statement: s.Statement) -> object:
        left[0] -= isinstance(statement, s.Put)
        if not isinstance(statement, s.Put) or left[0] >= 0:
            return execute(statement)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(storage, "execute", failing)


def test_a_put_of_many_that_fails_says_what_became_of_each(
    q: fairway.BucketQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_puts(monkeypatch, q, 2, fairway.StoreFailed("the disk is full"))
    with pytest.raises(fairway.StoreFailed) as raised:
        q.put_many([b"%d" % n for n in range(200)])
    details = raised.value.details
    assert set(details["accepted"]) == {lease.id for lease in q.reserve(max=200)}
    assert (len(details["accepted"]), details["unknown"]) == (100, [])
    assert details["left"] == list(range(100, 200))


def test_a_put_of_many_that_times_out_says_what_became_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    with fairway.open(":memory:", kind="bucket") as q:
        after_puts(monkeypatch, q, 1, s.UNKNOWN)
        monkeypatch.setattr("fairway.runtime.bucket.running.run.__defaults__", (time.sleep, 0.2))
        with pytest.raises(fairway.OutcomeUnknown) as raised:
            q.put_many([{"payload": b"m", "delay_seconds": 86_400.0 * (n % 2)} for n in range(120)])
        details = raised.value.details
        assert (len(details["accepted"]), len(details["unknown"])) == (50, 10)
        assert details["left"] == list(range(1, 120, 2)), "those for tomorrow were not begun"
