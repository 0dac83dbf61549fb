"""Payloads and results by reference, through obstore on files and in memory."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway.runtime import objects

_fresh = itertools.count()


@pytest.fixture(params=["file", "memory"])
def prefix(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"file://{tmp_path}/data x"
        if request.param == "file"
        else f"memory://bucket{next(_fresh)}/some/where"
    )


def there(prefix: str) -> list[str]:
    return sorted(name for names in objects.under(prefix) for name in names)


def test_uploaded_payloads_come_back(q: fairway.Queue, prefix: str) -> None:
    payloads = [b"payload %d" % i for i in range(40)]
    sub = q.submit(iter(payloads), objects=prefix + "/", tenant="acme")
    assert sub.total == 40
    assert there(prefix) == sorted(map(str, range(40)))
    leases = q.reserve(100)
    assert [lease.payload for lease in leases] == payloads
    assert leases[3].object == f"{prefix}/3"
    assert q.payload(leases[3]) == payloads[3]
    assert pickle.loads(pickle.dumps(leases[5])).payload == payloads[5]


def test_payloads_that_are_there_already(q: fairway.Queue, prefix: str) -> None:
    objects.ObstoreObjects().write({f"{prefix}/{i}": b"%d" % i for i in range(3)})
    objects.ObstoreObjects().write({f"{prefix}/more/{i}": b"more %d" % i for i in range(2)})
    q.submit(chunks=3, objects=prefix, tenant="a")
    q.submit(objects=[(prefix, 1), (f"{prefix}/more", 2)], tenant="b")
    found = {(lease.tenant, lease.payload) for lease in q.reserve(10)}
    assert found == {("a", b"0"), ("a", b"1"), ("a", b"2"), ("b", b"0"), ("b", b"more 0"), ("b", b"more 1")}


def test_results_are_uploaded_and_collected(q: fairway.Queue, prefix: str) -> None:
    sub = q.submit([b"a", b"b", b"c"], objects=prefix)
    leases = q.reserve(3)
    assert q.complete(leases[1], result=b"B" * 5_000_000) == "done"
    assert q.complete([leases[0], leases[2]], results=[None, b"C"]) == ["done", "done"]
    results = list(q.results(sub))
    assert [(r.index, r.data is None) for r in results] == [(1, True), (2, True)]
    assert [r.read() for r in results] == [b"B" * 5_000_000, b"C"]
    assert q.read(results[1]) == b"C"
    assert str(results[0].object).startswith(f"{prefix}/1.out.")
    assert len(there(prefix)) == 5


def test_a_result_that_is_not_accepted_leaves_no_object(q: fairway.Queue, prefix: str) -> None:
    q.submit([b"a"], objects=prefix)
    first = q.reserve(lease_seconds=0.05)[0]
    second = q.reserve(wait_seconds=60)[0]
    with pytest.raises(fairway.LeaseLost):
        q.complete(first, result=b"late")
    assert there(prefix) == ["0"]
    q.complete(second, result=b"good")
    assert q.complete(second, result=b"again") == "already"
    assert len(there(prefix)) == 2
    assert [r.read() for r in q.results(second.submission)] == [b"good"]


def test_a_lease_that_is_named_twice_keeps_the_result_that_was_registered(
    q: fairway.Queue, prefix: str
) -> None:
    q.submit([b"a", b"b", b"c"], objects=prefix)
    one, two, three = q.reserve(3)
    assert q.complete([one, one, two], results=[b"A", b"no", b"B"]) == ["done", "already", "done"]
    # Inline results are registered before those that are objects.
    assert q.complete([three, three.receipt], results=[b"no", b"C"]) == ["already", "done"]
    assert [r.read() for r in q.results(one.submission)] == [b"A", b"B", b"C"]
    assert len(there(prefix)) == 5, "the object that lost against an inline result is gone"


def test_results_written_by_the_worker_itself(q: fairway.Queue, prefix: str) -> None:
    q.submit([b"a", b"b"], objects=prefix)
    leases = q.reserve(2)
    blobs = {lease.result_object(77) or "": lease.payload or b"" for lease in leases}
    objects.ObstoreObjects().write(blobs)
    assert q.complete(leases, by_reference=True, writer=77) == ["done", "done"]
    assert [r.read() for r in q.results(leases[0].submission)] == [b"a", b"b"]


def test_a_missing_object_is_named(q: fairway.Queue, prefix: str) -> None:
    q.submit(chunks=1, objects=prefix)
    (lease,) = q.reserve()
    for look in (lambda: lease.payload, lambda: q.payload(lease)):
        with pytest.raises(fairway.ObjectMissing, match=r"/0 is not there") as caught:
            look()
        assert caught.value.details["object"] == f"{prefix}/0"


def test_a_failed_upload_cleans_up_and_submits_nothing(q: fairway.Queue, prefix: str) -> None:
    def payloads() -> Iterator[bytes]:
        yield from (b"%d" % i for i in range(30))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        q.submit(payloads(), objects=prefix)
    with pytest.raises(fairway.BadArgument, match=r"payloads\[2\]"):
        q.submit([b"x", b"y", "text"], objects=prefix)  # type: ignore[list-item]
    assert there(prefix) == []
    assert q.stats().submissions_active == 0


def test_an_upload_is_taken_a_few_at_a_time(q: fairway.Queue, prefix: str) -> None:
    taken = 0

    def payloads() -> Iterator[bytes]:
        nonlocal taken
        for i in range(200):
            taken += 1
            if i == 100:
                assert len(there(prefix)) >= 100 - objects._AHEAD - objects._THREADS
            yield b"x"

    q.submit(payloads(), objects=prefix)
    assert taken == 200


def test_an_upload_never_replaces_and_never_removes_what_was_there(q: fairway.Queue, prefix: str) -> None:
    first = q.submit([b"a", b"b"], objects=prefix, key="k")
    # The same again, as after a lost answer: the same submission, and the objects stay.
    assert q.submit([b"a", b"b"], objects=prefix, key="k").id == first.id
    with pytest.raises(fairway.KeyConflict):
        q.submit([b"a", b"b", b"c"], objects=prefix, key="k")
    assert there(prefix) == ["0", "1"]
    with pytest.raises(fairway.BadArgument, match="other content"):
        q.submit([b"a", b"X"], objects=prefix)
    assert [lease.payload for lease in q.reserve(5)] == [b"a", b"b"]


def test_nothing_to_upload(q: fairway.Queue, prefix: str) -> None:
    assert q.submit([], objects=prefix).state == "completed"


def test_bad_arguments_upload_nothing(q: fairway.Queue, prefix: str) -> None:
    def payloads() -> Iterator[bytes]:
        raise AssertionError("it must not be iterated")
        yield b""

    with pytest.raises(fairway.BadArgument, match="weight"):
        q.submit(payloads(), objects=prefix, weight=1000)
    with pytest.raises(fairway.BadArgument, match="objects"):
        q.submit([b"x"], objects="nowhere://bucket/x")


def test_objects_with_await(prefix: str) -> None:
    async def work() -> None:
        async with fairway.aio.open(":memory:") as q:
            sub = await q.submit([b"a", b"b"], objects=prefix)
            leases = await q.reserve(2)
            with pytest.raises(fairway.BadArgument, match=r"await queue\.payload"):
                _ = leases[0].payload
            assert [await q.payload(lease) for lease in leases] == [b"a", b"b"]
            assert await q.complete(leases, results=[b"A", b"B"]) == ["done", "done"]
            assert [await q.read(result) async for result in q.results(sub)] == [b"A", b"B"]

    asyncio.run(work())
