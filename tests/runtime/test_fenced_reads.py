"""A host that was replaced while it read: what the next owner stored never reaches its engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import fairway
from fairway.engine.engine import Engine
from fairway.errors import Fenced
from fairway.runtime.host import Host
from fairway.runtime.running import Running
from fairway.store.memory import MemoryStore
from fairway.store.memory.shelf import Shelf
from tests.runtime.running import queue_on, running


class Reads(MemoryStore):
    """A store on which something happens just before a read is answered."""

    before: Callable[[], None] | None = None

    def _happens(self) -> None:
        if self.before is not None:
            happen, self.before = self.before, None
            happen()

    def above(self, *args: Any, **named: Any) -> Any:
        self._happens()
        return super().above(*args, **named)

    def run(self, id: int) -> Any:
        self._happens()
        return super().run(id)


@pytest.fixture
def taken_in(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the runs that any engine took in from reads."""
    ids: list[int] = []
    delivered, execute = Engine.delivered, Engine.execute

    def watch_delivered(self: Engine, read: Any, answer: Any, now: float) -> None:
        ids.extend(row.id for row in answer.rows)
        delivered(self, read, answer, now)

    def watch_execute(self: Engine, call: Any, now: float, found: Any = None) -> Any:
        ids.extend(found.runs if found is not None else ())
        return execute(self, call, now, found)

    monkeypatch.setattr(Engine, "delivered", watch_delivered)
    monkeypatch.setattr(Engine, "execute", watch_execute)
    return ids


def replaced(shelf: Shelf, taken_in: list[int]) -> list[int]:
    """Another owner hands everything out, and puts more; gives the ids of what it put."""
    with running(shelf) as (q, _):
        assert q.reserve(max=100, lease_seconds=600)
        ids = [q.put(b"later").id for _ in range(3)]
    taken_in.clear()
    return ids


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_host_that_was_replaced_takes_nothing_in_that_the_next_one_stored(
    taken_in: list[int], monkeypatch: pytest.MonkeyPatch, confirmed: bool
) -> None:
    shelf = Shelf()
    store = Reads.open("default", shelf)
    run = Running("default", store, window_rows=2)
    if not confirmed:
        monkeypatch.setattr(run.host, "confirm", lambda: None)
    with queue_on(run) as q:
        for _ in range(6):
            q.put(b"x")
        store.before = lambda: replaced(shelf, taken_in) and None
        with pytest.raises(Fenced):
            for _ in range(6):  # what is in memory may be handed out before the window reads on
                q.reserve(max=6, wait_seconds=10)
        assert store.before is None, "the window read"
    assert bool(taken_in) is not confirmed, "without the question it would have taken them in"


def test_a_call_that_names_a_run_of_the_next_owner_is_fenced(taken_in: list[int]) -> None:
    shelf = Shelf()
    store = Reads.open("default", shelf)
    with queue_on(Running("default", store, window_rows=2)) as q:
        q.put_many([b"x"] * 6)
        later = replaced(shelf, taken_in)
        with pytest.raises(fairway.FairwayError) as told:
            q.pause(submission=later[0])
        assert isinstance(told.value, Fenced)
    assert later[0] not in taken_in


def test_nobody_is_told_what_a_refused_group_would_have_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group is refused, and the host has not stopped yet: a read that comes just then waits for its end."""
    told: list[object] = []
    stop = Host.stop

    def read(q: fairway.Queue) -> None:
        try:
            told.append(q.stats().chunks_waiting)
        except fairway.FairwayError as error:
            told.append(type(error))

    with running(Shelf()) as (q, one):
        assert q.put(b"first").id
        store: Any = one.store
        reader = threading.Thread(target=read, args=(q,))

        def commit(group: object) -> None:
            raise Fenced

        def watched(self: Host, *args: Any, **named: Any) -> None:
            reader.start()
            reader.join(0.5)
            stop(self, *args, **named)

        monkeypatch.setattr(store, "commit", commit)
        monkeypatch.setattr(Host, "stop", watched)
        with pytest.raises(fairway.FairwayError):
            q.put(b"refused")
        reader.join(30)
        monkeypatch.undo()
    assert told and told != [2], "it was told of a message that was never stored"
