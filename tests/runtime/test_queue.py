"""The embedded queue as a user has it, in memory and on a SQLite file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import fairway
from fairway import limits
from tests.derived import Blob, Mode, Real, Text, Whole


def drained(q: fairway.Queue, **kwargs: object) -> list[tuple[str, bytes | None]]:
    taken = []
    while leases := q.reserve(100, **kwargs):  # type: ignore[arg-type]
        taken += [(lease.tenant, lease.payload) for lease in leases]
        q.complete(leases)
    return taken


def test_work_goes_in_and_results_come_out(q: fairway.Queue) -> None:
    sub = q.submit(
        [b"one", b"two", b"three"], tenant="acme", metadata={"mode": "preview"}, info=b"why", priority=3
    )
    assert (sub.state, sub.total, sub.tenant, sub.metadata) == ("active", 3, "acme", {"mode": "preview"})
    assert q.submission(sub.id) == sub
    leases = q.reserve(10)
    assert [(lease.submission, lease.index, lease.payload) for lease in leases] == [
        (sub.id, 0, b"one"), (sub.id, 1, b"two"), (sub.id, 2, b"three")
    ]  # fmt: skip
    assert {(lease.tenant, lease.info, lease.attempt) for lease in leases} == {("acme", b"why", 1)}
    assert leases[0].deadline > time.time() + 30
    assert q.complete(leases[2], result=b"3") == "done"
    assert q.complete(leases[:2], results=[b"1", None]) == ["done", "done"]
    assert q.complete(leases[2], result=b"again") == "already"
    assert q.wait(sub.id, 5).state == "completed"
    assert [(result.index, result.data) for result in q.results(sub)] == [(0, b"1"), (2, b"3")]


def test_fair_order(q: fairway.Queue) -> None:
    q.put_many([b"a1", b"a2", b"a3", b"a4"], tenant="a")
    q.put(b"b1", tenant="b")
    assert [payload for _, payload in drained(q)] == [b"a1", b"b1", b"a2", b"a3", b"a4"]


def test_a_strategy_is_a_value_a_block_or_a_text(q: fairway.Queue) -> None:
    q.put_many([b"1", b"2", b"3"])
    assert q.reserve(strategy=fairway.NewestFirst())[0].payload == b"3"
    assert q.reserve(strategy=fairway.OldestFirst)[0].payload == b"1"
    assert q.reserve(strategy="Fair")[0].payload == b"2"


def test_many_inline_payloads_of_many_sizes(q: fairway.Queue) -> None:
    payloads = [bytes([i % 251]) * (i * 37 % 9000) for i in range(500)]
    q.submit(payloads)
    assert [payload for _, payload in drained(q)] == payloads


def test_payloads_are_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    payloads = [bytes([i % 251]) * 3000 for i in range(200)]
    with fairway.open(path) as q:
        sub = q.submit(payloads, tenant="a")
        q.put(b"message", tenant="b")
    with fairway.open(f"file://{path}") as q:
        assert {payload for _, payload in drained(q)} == {*payloads, b"message"}
        assert q.submission(sub.id).state == "completed"


def test_one_billion_chunks_are_one_row(q: fairway.Queue) -> None:
    sub = q.submit(chunks=10**9, tenant="whale")
    leases = q.reserve(1000)
    assert [lease.index for lease in leases] == list(range(1000))
    assert leases[0].payload is None
    assert q.complete(leases) == ["done"] * 1000
    assert q.submission(sub.id).done == 1000


def test_no_chunks(q: fairway.Queue) -> None:
    sub = q.submit([])
    assert sub.state == "completed"
    assert q.submission(sub.id) == sub
    assert q.wait(sub) == sub
    assert list(q.results(sub)) == []


def test_a_key_is_submitted_once(q: fairway.Queue) -> None:
    first = q.submit([b"x"], tenant="a", key="order-17")
    assert q.submit([b"x"], tenant="a", key="order-17").id == first.id
    assert q.submit([b"x"], tenant="b", key="order-17").id != first.id
    with pytest.raises(fairway.KeyConflict):
        q.submit([b"y"], tenant="a", key="order-17")
    drained(q)
    assert q.submit([b"x"], tenant="a", key="order-17").state == "completed"


def test_a_key_with_a_given_fingerprint_keeps_the_first_content(q: fairway.Queue) -> None:
    first = q.put(b"first", key="k", fingerprint=b"same")
    assert q.put(b"second", key="k", fingerprint=b"same").id == first.id
    assert q.reserve()[0].payload == b"first"


def test_failures_back_off_and_die(q: fairway.Queue) -> None:
    sub = q.put(b"x", attempts_max=2)
    assert q.fail(q.reserve()[0], "first", delay_seconds=0) == "retrying"
    lease = q.reserve(wait_seconds=5)[0]
    assert lease.attempt == 2
    assert q.fail(lease, ValueError("second")) == "dead"
    dead = list(q.dead())
    assert [(chunk.submission, chunk.index, chunk.attempts, chunk.error) for chunk in dead] == [
        (sub.id, 0, 2, "ValueError: second")
    ]
    assert q.submission(sub.id).state == "failed"
    assert q.redrive(sub.id).state == "active"
    assert q.complete(q.reserve(wait_seconds=5)) == ["done"]
    assert q.submission(sub).state == "completed"
    assert list(q.dead()) == []


def test_dead_chunks_of_active_and_ended_submissions_are_listed(q: fairway.Queue) -> None:
    active = q.submit([b"a", b"b"], policy="dead_letter", attempts_max=1)
    ended = q.put(b"c", attempts_max=1)
    leases = {lease.payload: lease for lease in q.reserve(10)}
    q.fail([leases[b"a"], leases[b"c"]], "why")
    assert {(chunk.submission, chunk.index) for chunk in q.dead()} == {(active.id, 0), (ended.id, 0)}


def test_fail_fast_ends_the_submission(q: fairway.Queue) -> None:
    sub = q.submit([b"a", b"b", b"c"])
    leases = q.reserve(2)
    assert q.fail(leases[0], "broken", retry=False) == "dead"
    found = q.submission(sub.id)
    assert (found.state, found.error, found.error_index) == ("failed", "broken", 0)
    with pytest.raises(fairway.AlreadyEnded):
        q.complete(leases[1])
    assert q.complete([leases[1]]) == ["ended"]
    assert q.reserve() == []


def test_a_lease_that_ran_out_is_handed_out_again(q: fairway.Queue) -> None:
    q.put(b"x")
    first = q.reserve(lease_seconds=0.05)[0]
    second = q.reserve(wait_seconds=60)[0]
    assert second.attempt == 2
    with pytest.raises(fairway.LeaseLost):
        q.complete(first)
    assert q.complete(second.receipt) == "done"


def test_renew_and_release(q: fairway.Queue) -> None:
    q.put_many([b"x", b"y"])
    one, two = q.reserve(2, lease_seconds=60)
    renewed = q.renew(one, 600)
    assert isinstance(renewed, fairway.Lease)
    assert renewed.deadline > one.deadline + 500
    assert renewed.payload == one.payload
    assert q.release(two) == "released"
    assert [lease.index for lease in q.renew([renewed, two], 100)] == [0]  # type: ignore[union-attr]
    again = q.reserve()[0]
    assert (again.payload, again.attempt) == (two.payload, 1)


def test_delay_deadline_and_cancel(q: fairway.Queue) -> None:
    q.put(b"much later", delay_seconds=3600)
    dated = q.submit([b"x"], not_before=time.time() + 3600, deadline_seconds=0.1)
    assert q.reserve() == []
    started = time.monotonic()
    q.put(b"later", delay_seconds=0.2)
    assert q.reserve(wait_seconds=60)[0].payload == b"later"
    assert time.monotonic() - started >= 0.19
    found = q.wait(dated.id, 60)
    assert (found.state, found.error) == ("failed", "the deadline passed")
    sub = q.submit(chunks=10)
    assert q.cancel(sub).state == "cancelled"
    with pytest.raises(fairway.AlreadyEnded):
        q.cancel(sub)


def test_the_three_pauses(q: fairway.Queue) -> None:
    sub = q.submit([b"a"], tenant="a")
    for target in ({}, {"tenant": "a"}, {"submission": sub.id}):
        q.pause(**target)  # type: ignore[arg-type]
        assert q.reserve() == []
        q.resume(**target)  # type: ignore[arg-type]
    assert len(q.reserve()) == 1


def test_weights(q: fairway.Queue) -> None:
    q.put_many([b"x"] * 40, tenant="a", weight=3)
    q.put_many([b"x"] * 40, tenant="b")
    q.set_weight("b", 1)
    first = [lease.tenant for lease in q.reserve(40)]
    assert first.count("a") == 30
    assert {view.name: view.weight for view in q.tenants()} == {"a": 3.0, "b": 1.0}


def test_wait_times_out(q: fairway.Queue) -> None:
    sub = q.submit(chunks=1)
    with pytest.raises(fairway.WaitTimeout, match=r"within 0\.05 s"):
        q.wait(sub.id, 0.05)
    with pytest.raises(fairway.NotFound):
        q.submission(12345)
    with pytest.raises(fairway.NotFound):
        q.wait(12345, 1)
    with pytest.raises(fairway.NotFound):
        list(q.results(12345))


def test_listings(q: fairway.Queue) -> None:
    done = [q.submit([b"x"], tenant="a", metadata={"mode": "full", "n": i}) for i in range(3)]
    drained(q)
    cancelled = q.submit(chunks=1, tenant="b", metadata={"mode": "full"})
    q.cancel(cancelled)
    active = q.submit(chunks=1, tenant="a", metadata={"mode": "preview"})

    def ids(**kwargs: object) -> list[int]:
        return [found.id for found in q.submissions(**kwargs)]  # type: ignore[arg-type]

    assert ids() == [*(sub.id for sub in done), cancelled.id, active.id]
    assert ids(state="active") == [active.id]
    assert ids(state="completed") == [sub.id for sub in done]
    assert ids(state="ended") == [*(sub.id for sub in done), cancelled.id]
    assert ids(tenant="a") == [*(sub.id for sub in done), active.id]
    assert ids(metadata={"mode": "full"}) == [*(sub.id for sub in done), cancelled.id]
    assert ids(metadata={"mode": "full", "n": 1}) == [done[1].id]
    assert ids(metadata={"n": "1"}) == []
    assert next(q.submissions(state="completed")) == q.submission(done[0])


def test_named_reservations_come_back_until_they_are_trimmed(q: fairway.Queue) -> None:
    q.put_many([b"%d" % i for i in range(10)])
    first = q.reserve(4, consumer="nightly", seq=7)
    assert [lease.payload for lease in first] == [b"0", b"1", b"2", b"3"]
    q.complete(first[:1])
    again = q.reserve(4, consumer="nightly", seq=7)
    assert [(lease.receipt, lease.payload) for lease in again] == [
        (lease.receipt, lease.payload) for lease in first
    ]
    assert [(view.name, view.seqs) for view in q.consumers()] == [("nightly", [7])]
    with pytest.raises(fairway.ReservationOpen):
        q.trim("nightly", 7)
    q.trim("nightly", 7, complete=True)
    assert q.consumers()[0].seqs == []
    with pytest.raises(fairway.SeqTrimmed):
        q.reserve(consumer="nightly", seq=7)
    assert [lease.payload for lease in q.reserve(1, consumer="nightly", seq=8)] == [b"4"]


def test_configure(q: fairway.Queue) -> None:
    assert q.configure().lease_seconds == 60.0
    config = q.configure(lease_seconds=5, attempts_max=2, strategy=fairway.OldestFirst)
    assert (config.lease_seconds, config.attempts_max, config.strategy) == (5.0, 2, "OldestFirst")
    q.configure(strategy_locked=True)
    with pytest.raises(fairway.BadStrategy, match="locked"):
        q.reserve(strategy="Fair")
    assert q.configure().strategy_locked


def test_active_submissions_are_found_by_metadata_among_many(q: fairway.Queue) -> None:
    """More than a listing looks through in memory: the store's index is asked."""
    many = limits.LIST_WALK_RUNS + 1
    subs = q.submit_many(
        [{"chunks": 1, "tenant": f"t{i % 2}", "metadata": {"mode": "x", "part": i}} for i in range(many)]
    )
    rare = q.submit(chunks=1, tenant="t0", metadata={"mode": "rare"})

    def found(**wanted: object) -> list[int]:
        return [sub.id for sub in q.submissions(state="active", **wanted)]  # pyright: ignore[reportArgumentType]

    assert found(metadata={"mode": "rare"}) == [rare.id] == found(metadata={"mode": "rare"}, tenant="t0")
    assert found(metadata={"mode": "none"}) == found(metadata={"part": "1"}) == found(tenant="t2") == []
    assert found(metadata={"mode": "x", "part": 7}) == [subs[7].id]
    assert found(metadata={"mode": "x"}, tenant="t1") == [sub.id for sub in subs[1::2]] == found(tenant="t1")
    q.cancel(subs[7])
    assert found(metadata={"part": 7}) == [] and len(found()) == many
    q.redrive(subs[7])
    assert found(metadata={"part": 7}) == [subs[7].id] and found() == [*(sub.id for sub in subs), rare.id]


def test_stats_and_explain(q: fairway.Queue) -> None:
    q.put_many([b"x"] * 5, tenant="a")
    q.complete(q.reserve(1))
    q.reserve(1)
    stats = q.stats()
    assert (stats.chunks_waiting, stats.chunks_leased, stats.submissions_active) == (3, 1, 4)
    assert (stats.queue, stats.paused) == ("default", False)
    assert "tenant 'a'" in q.explain("Fair")
    assert "NewestFirst" in q.explain(fairway.NewestFirst)


def test_events_tell_what_happened(q: fairway.Queue) -> None:
    sub = q.submit([b"a", b"b"], tenant="acme")
    q.complete(q.reserve(2))
    events = list(q.events())
    assert [(e.what, e.start, e.count) for e in events if e.submission == sub.id] == [
        ("submitted", 0, 2), ("reserved", 0, 2), ("completed", 0, 2), ("ended_completed", 0, 2)
    ]  # fmt: skip
    assert events[0].tenant == "acme"
    assert [event.what for event in q.events(after=events[0].number)] == [event.what for event in events[1:]]


def test_events_as_arrow(q: fairway.Queue) -> None:
    pytest.importorskip("pyarrow")
    assert q.events_arrow().num_rows == 0
    q.put_many([b"x"] * 300, tenant="acme")
    for lease in q.reserve(300):
        q.complete(lease)
    table = q.events_arrow()
    events = list(q.events())
    assert table.num_rows == len(events) > 900
    assert table.column("submission").to_pylist() == [event.submission for event in events]
    assert table.column("what").to_pylist() == [event.what for event in events]
    assert q.events_arrow(after=events[-1].number).num_rows == 0


@pytest.mark.parametrize("after", [2**48, 2**62, 2**63 - 1])
def test_no_event_comes_after_the_last_group_that_can_be(tmp_path: Path, after: int) -> None:
    """Places of a file are shared: those of its second queue begin above all of the first."""
    pytest.importorskip("pyarrow")
    with fairway.open(tmp_path / "w.db") as first, fairway.open(tmp_path / "w.db", "second") as second:
        for q in (first, second):
            q.put(b"x")
            assert list(q.events(after=after)) == [] and q.events_arrow(after=after).num_rows == 0


def test_events_as_arrow_without_pyarrow_says_what_to_install(
    q: fairway.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "fairway.face.arrow", raising=False)
    with pytest.raises(fairway.BadArgument, match=r"fairway\[arrow\]"):
        q.events_arrow()


def test_long_lists_are_cut_by_themselves(q: fairway.Queue) -> None:
    many = limits.CALL_OFFERS_MAX + 10
    made = q.submit_many([{"chunks": 2, "tenant": f"t{i % 7}"} for i in range(many)])
    assert len({sub.id for sub in made}) == many
    assert q.stats().chunks_waiting == 2 * many
    leases = q.reserve(limits.RESERVE_CHUNKS_MAX) + q.reserve(100)
    assert q.complete(leases) == ["done"] * (limits.RESERVE_CHUNKS_MAX + 100)
    assert len(list(q.submissions())) == many


def test_bad_calls_change_nothing(q: fairway.Queue) -> None:
    with pytest.raises(fairway.BadArgument):
        q.put_many([b"x", "text"])  # type: ignore[list-item]
    with pytest.raises(fairway.BadArgument):
        q.submit_many([{"chunks": 1}, {"chunks": -1}])
    assert q.stats().submissions_active == 0
    assert list(q.events()) == []


def test_values_of_derived_types_are_taken_for_what_they_are(q: fairway.Queue) -> None:
    """As libraries and Enums have them: each was once an error of the engine, or of the group it came into."""
    q.configure(attempts_max=Whole(3), lease_seconds=Real(30))
    q.set_weight(Text("acme"), Real(2))
    told = {Text("mode"): Mode.PREVIEW, "n": Whole(4)}
    job = q.submit([Blob(b"one")], tenant=Text("acme"), metadata=told, info=Blob(b"why"), key=Text("k"))
    assert q.submit([b"one"], tenant="acme", metadata=told, info=b"why", key="k") == job
    assert list(q.submissions(metadata={"mode": Mode.PREVIEW, "n": 4})) == [job]
    (lease,) = q.reserve(
        strategy=fairway.SelectOnly("mode", Mode.PREVIEW, fairway.Fair), consumer=Text("c"), seq=1
    )
    assert (lease.tenant, lease.payload) == ("acme", b"one")
    q.complete(lease, result=Blob(b"done"))
    assert [result.data for result in q.results(job)] == [b"done"]
    assert q.configure().attempts_max == 3


def test_a_forged_receipt_is_lost(q: fairway.Queue) -> None:
    q.put(b"x")
    receipt = q.reserve()[0].receipt
    forged = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    with pytest.raises(fairway.FairwayError):
        q.complete(forged)
    assert q.complete(receipt) == "done"


def test_two_queues_in_one_file_are_two(tmp_path: Path) -> None:
    with (
        fairway.open(tmp_path / "w.db", queue="one") as one,
        fairway.open(tmp_path / "w.db", queue="two") as two,
    ):
        one.put(b"1")
        two.put(b"2")
        assert [lease.payload for lease in one.reserve(5)] == [b"1"]
        assert [lease.payload for lease in two.reserve(5)] == [b"2"]


def test_waiting_reserves_get_work_as_it_comes(q: fairway.Queue) -> None:
    started = time.monotonic()
    assert q.reserve(wait_seconds=0.1) == []
    assert time.monotonic() - started >= 0.09


def test_what_is_due_happens_without_a_call(q: fairway.Queue) -> None:
    q.submit(chunks=1)
    (lease,) = q.reserve(lease_seconds=0.1)
    dated = q.submit(chunks=1, tenant="b", not_before=time.time() + 3600, deadline_seconds=0.5)
    due = {(lease.submission, "expired"), (dated.id, "ended_failed")}
    deadline = time.monotonic() + 30
    told: set[tuple[int, str]] = set()
    while not due <= told and time.monotonic() < deadline:
        time.sleep(0.02)
        told = {(event.submission, event.what) for event in q.events()}
    assert due <= told


def test_times_that_memory_has_no_room_for_are_read_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TIMES_ROWS", 2)
    with fairway.open(tmp_path / "queue.db", window_rows=1) as q:
        soon = time.time() + 0.5
        q.submit_many([{"payloads": [b"%d" % i], "not_before": soon + i / 100} for i in range(30)])
        taken = []
        while leases := q.reserve(100, wait_seconds=5):
            taken += [lease.payload for lease in leases]
            q.complete(leases)
            if len(taken) == 30:
                break
    assert sorted(taken, key=int) == [b"%d" % i for i in range(30)]
