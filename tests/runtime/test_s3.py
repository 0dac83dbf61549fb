"""Objects in an S3-compatible store: written, read, listed and removed over HTTP, through obstore's own S3 client."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import fairway
from fairway.errors import BadArgument, ObjectMissing, OurError
from fairway.runtime import objects
from fairway.runtime.objects import ObstoreObjects, ages, read, under
from fairway.runtime.removing import remove_objects
from tests.s3 import PAGE, Bucket, s3

pytestmark = pytest.mark.real


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A store that the URLs s3://bucket/... of this test mean."""
    monkeypatch.setattr(objects, "_stores", {})
    with s3() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        yield server


def test_objects_are_written_read_listed_and_removed(store: Bucket) -> None:
    where = ObstoreObjects()
    blobs = {f"s3://bucket/a/{at:03}": b"%d" % at for at in range(2 * PAGE + 1)}
    where.write(blobs)
    assert {f"s3://{name}": blob for name, (blob, _) in store.objects.items()} == blobs
    assert read("s3://bucket/a/007") == b"7"
    where.write({"s3://bucket/ab/1": b"another prefix", "s3://other/a/1": b"another bucket"})
    assert sorted(name for some in under("s3://bucket/a") for name in some) == [
        f"{at:03}" for at in range(2 * PAGE + 1)
    ]
    assert store.asked["LIST"] == 3, "page by page"
    assert all(abs(made - time.time()) < 600 for _, made in ages("s3://bucket/a"))
    where.remove([*blobs, "s3://bucket/never/there"])
    assert set(store.objects) == {"bucket/ab/1", "other/a/1"}
    with pytest.raises(ObjectMissing, match="s3://bucket/a/007"):
        read("s3://bucket/a/007")


def test_a_whole_bucket_is_a_prefix(store: Bucket) -> None:
    ObstoreObjects().write({f"s3://bucket/{at}": b"" for at in range(12)})
    names = sorted(str(at) for at in range(12))
    assert sorted(name for some in under("s3://bucket") for name in some) == names
    assert sorted(name for name, _ in ages("s3://bucket/")) == names
    remove_objects("s3://bucket", 11)
    assert set(store.objects) == {"bucket/11"}


def test_an_upload_never_replaces_an_object(store: Bucket) -> None:
    where = ObstoreObjects()
    assert where.upload("s3://bucket/in", [b"a", b"b"]).made == ["s3://bucket/in/0", "s3://bucket/in/1"]
    assert where.upload("s3://bucket/in", [b"a", b"b"]).made == [], "a repeat finds its own"
    with pytest.raises(BadArgument, match="there already with other content"):
        where.upload("s3://bucket/in", [b"a", b"c", b"d"])
    assert {name: blob for name, (blob, _) in store.objects.items()} == {
        "bucket/in/0": b"a",
        "bucket/in/1": b"b",
    }, "and what the refused one made is gone"


def test_a_queue_keeps_payloads_and_results_there(store: Bucket) -> None:
    with fairway.open(":memory:") as q:
        sub = q.submit((b"payload %d" % at for at in range(5)), objects="s3://bucket/in/job")
        for lease in q.reserve(5):
            assert lease.payload == b"payload %d" % lease.index
            q.complete(lease, lease.payload.upper())
        assert [result.read() for result in q.results(sub.id)] == [b"PAYLOAD %d" % at for at in range(5)]
        assert len(store.objects) == 10 and all(name.startswith("bucket/in/job/") for name in store.objects)


def test_a_store_that_refuses_us_is_named(store: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody-else")
    with pytest.raises(OurError, match="s3://bucket/x cannot be reached") as caught:
        ObstoreObjects().write({"s3://bucket/x": b""})
    assert not isinstance(caught.value, ObjectMissing) and store.objects == {}
