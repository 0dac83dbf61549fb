"""The fenced log and the tables that follow from it: crashes in between, late writes, large groups, removed rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fairway.errors import Fenced, GroupUnknown, StoreFailed
from fairway.limits import CASSANDRA_LOG_GROUPS_MAX
from fairway.model.stored import Kind, Put, ResultPage, Row
from fairway.store.cassandra import CassandraStore, Connection
from fairway.testing.conformance import Owner, everything

pytestmark = pytest.mark.real
LARGE = bytes(range(256)) * 20

Handle = Callable[[], CassandraStore]


@pytest.fixture
def handle(connection: Connection) -> Iterator[Handle]:
    """Handles on one queue of this test."""
    realm, opened = uuid.uuid4().hex, list[CassandraStore]()

    def handle() -> CassandraStore:
        opened.append(CassandraStore.open(connection, "q", realm=realm))
        return opened[-1]

    yield handle
    for store in opened:
        store.close()


def _crash_before_tables(store: CassandraStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store._tables, "begin", lambda number, writes: None)


def _parts(owner: Owner) -> dict[str, Any]:
    return {
        "rows": [owner.row(n, n, "acme", metadata={"k": n}, pages=(b"p", LARGE)) for n in (1, 2, 3)],
        "ends": [owner.end(1, 1)],
        "results": [ResultPage(owner.id(1), 0, LARGE)],
        "puts": [Put(kind, 1, 0, b"o") for kind in Kind],
        "journal": b"j",
        "events": b"e",
        "event_time": 1.0,
    }


def test_a_group_that_is_in_the_log_only_is_carried_out_by_the_next_owner(
    handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(handle())
    _crash_before_tables(owner.store, monkeypatch)
    owner.write(meta=b"m", **_parts(owner))
    assert owner.active() == [], "nothing of it is in the tables"
    other = Owner(handle())
    assert (other.meta.number, other.meta.body, other.active()) == (1, b"m", [2, 3])
    found = everything(other.store, [owner.id(n) for n in (1, 2, 3)])
    assert found["results"][0] == [ResultPage(owner.id(1), 0, LARGE)]
    assert found["pages"][owner.id(2), 1] == LARGE and len(found["pages"]) == 6
    assert (found["journal"], found["events"]) == ([(1, b"j")], [(1, 1.0, b"e")])
    other.write(rows=[other.row(4, 4)])
    assert other.active() == [2, 3, 4]


def test_a_group_too_large_for_the_log_goes_before_it_and_its_pages_leave(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    owner = Owner(handle())
    store = owner.store
    assert isinstance(store, CassandraStore)
    _crash_before_tables(store, monkeypatch)
    many = [Row(owner.id(n), n, "t", 0.0, {}, LARGE[:1000]) for n in range(1, 700)]
    owner.write(rows=many)
    where = (store.queue, owner.meta.range_id, 1)
    assert len(connection.read("log_pages", where)) > 1
    other = Owner(handle())
    assert other.active() == list(range(1, 700))
    for _ in range(2):
        other.write(meta=b"on")
    other.store.last_number()
    assert connection.read("log_pages", where) == []
    assert Owner(handle()).active() == list(range(1, 700))


def test_pages_of_a_group_that_is_not_stored_are_swept(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    owner = Owner(handle())
    store = owner.store
    assert isinstance(store, CassandraStore)

    def lost(*parts: Any) -> Any:
        raise GroupUnknown

    def pages(range_id: int, number: int) -> list[Any]:
        return connection.read("pages_of", (store.queue, range_id, number, [0, 1, 2]))

    with monkeypatch.context() as patch:
        patch.setattr(connection, "conditional", lost)
        group = owner.group(rows=[owner.row(1, pages=(LARGE,))])
        with pytest.raises(GroupUnknown):
            store.commit(group)
    mine = owner.meta.range_id
    assert len(pages(mine, 1)) == 1
    assert store.settle(group) is False
    assert pages(mine, 1) == [], "its owner found out"
    with monkeypatch.context() as patch:
        patch.setattr(connection, "conditional", lost)
        with pytest.raises(GroupUnknown):
            store.commit(_next(owner, 2))
    assert len(pages(mine, 2)) == 2
    Owner(handle())
    assert pages(mine, 2) == [], "its owner died, the next one removed them"
    late = ("put_page", (store.queue, mine, 2, 0, b"late", 1))
    connection.send(connection.bound(*late)).result()
    assert pages(mine, 2) == [], "and a late one stays dead"


def _next(owner: Owner, number: int) -> Any:
    owner.number = number - 1
    return owner.group(rows=[owner.row(2, pages=(LARGE, LARGE))])


def test_an_unknown_group_that_is_stored_is_found_and_carried_out(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    owner = Owner(handle())
    real = connection.conditional

    def answer_lost(*parts: Any) -> Any:
        real(*parts)
        raise GroupUnknown

    group = owner.group(rows=[owner.row(1)])
    with monkeypatch.context() as patch:
        patch.setattr(connection, "conditional", answer_lost)
        with pytest.raises(GroupUnknown):
            owner.store.commit(group)
    assert owner.store.settle(group) is True
    assert owner.active() == [1]
    owner.number = 1
    owner.write(ends=[owner.end(1)])
    assert owner.active() == []


def test_late_writes_of_a_former_group_change_nothing(
    handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(handle())
    store = owner.store
    assert isinstance(store, CassandraStore)
    kept: list[tuple[int, Any]] = []
    real = store._tables.begin

    def begin(number: int, writes: Any) -> None:
        kept.append((number, list(writes)))
        real(number, kept[-1][1])

    monkeypatch.setattr(store._tables, "begin", begin)
    owner.write(
        rows=[owner.row(1, 5, metadata={"k": "v"}), owner.row(2, 6)], puts=[Put(Kind.HOLD, 1, 0, b"old")]
    )
    owner.write(ends=[owner.end(1, 5, failed=1)], puts=[Put(Kind.HOLD, 1, 0, b"new")])
    owner.write(purge=[owner.id(1)], journal=b"j")
    ids = [owner.id(1), owner.id(2)]
    before = everything(store, ids)
    for number, writes in kept * 2:
        real(number, writes)
    assert everything(store, ids) == before
    assert before["runs"][0] is None and owner.active() == [2]
    assert store.object(Kind.HOLD, 1, 0) == b"new"


class _Failing:
    """A write that a node refuses."""

    class _Event:
        def wait(self) -> None: ...
        def is_set(self) -> bool:
            return True

    _event = _Event()

    def result(self) -> None:
        raise RuntimeError("the tables are on fire")


def test_tables_that_fail_bound_the_log_and_say_so(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    owner = Owner(handle())
    with monkeypatch.context() as patch:
        patch.setattr(connection, "send", lambda statement: _Failing())
        stored = 0
        with pytest.raises(StoreFailed, match=r"group 1 is stored and cannot be written.*on fire"):
            for n in range(1, 20):
                owner.write(rows=[owner.row(n, n)])
                stored = n
        assert stored == CASSANDRA_LOG_GROUPS_MAX
        with pytest.raises(StoreFailed, match="on fire"):
            owner.store.run(owner.id(1))
    assert owner.active() == list(range(1, stored + 1)), "nothing that was stored is lost"
    owner.write(rows=[owner.row(99, 99)])


def test_a_group_of_a_handle_that_was_replaced_is_fenced_before_it_touches_anything(handle: Handle) -> None:
    old = Owner(handle())
    new = Owner(handle())
    new.write(rows=[new.row(1)])
    with pytest.raises(Fenced):
        old.write(rows=[old.row(2)], puts=[Put(Kind.HOLD, 1, 0, b"old")])
    assert new.active() == [1] and new.store.object(Kind.HOLD, 1, 0) is None
