"""One queue on a shelf: the port in its plainest form.

Guards: reads are snapshots taken under the shelf's lock; faults happen here, between the owner and the shelf.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import islice, takewhile

from fairway.errors import BadArgument, Closed, GroupUnknown, StoreFailed
from fairway.limits import QUEUE_NAME_BYTES_MAX
from fairway.model.stored import Group, KeyRow, Kind, Meta, ResultPage, StoredRun, Time, until_bytes
from fairway.store.memory.shelf import Fault, Shelf
from fairway.store.memory.state import Level, State


class MemoryStore:
    """A handle on one queue of a shelf; several handles, one after the other the owner, may share a shelf."""

    def __init__(self, shelf: Shelf, queue_name: str) -> None:
        self._shelf, self._name = shelf, queue_name
        self._closed = False

    @classmethod
    def open(cls, queue_name: str, shelf: Shelf | None = None) -> MemoryStore:
        """A queue on a shelf, or on a new one that nobody else sees."""
        if not queue_name or len(queue_name.encode()) > QUEUE_NAME_BYTES_MAX:
            raise BadArgument(f"queue: a name of 1 to {QUEUE_NAME_BYTES_MAX} bytes; got {queue_name!r}.")
        shelf = shelf or Shelf(keeps_synced=False)
        shelf.queue(queue_name)
        return cls(shelf, queue_name)

    # -- the writing half
    def take_over(self) -> Meta:
        self._state()
        state = self._shelf.take_over(self._name)
        return Meta(state.queue, state.range_id, state.number, state.meta)

    def commit(self, group: Group) -> None:
        self._state()
        fault = self._shelf.faults(group)
        if fault is Fault.FAIL:
            raise StoreFailed()
        if fault not in (Fault.LATE, Fault.UNKNOWN_LOST):
            self._shelf.store(self._name, group)
        if fault in (Fault.LATE, Fault.ECHO):
            self._shelf.put_off(self._name, group)
        if fault not in (Fault.OK, Fault.ECHO):
            raise GroupUnknown()

    def settle(self, group: Group) -> bool:
        self._state()
        return self._shelf.settle(self._name, group)

    def last_number(self) -> int:
        return self._state().number

    def owns(self, range_id: int) -> bool:
        return self._state().range_id == range_id

    # -- read at a start
    def active(self) -> Iterator[StoredRun]:
        with self._shelf.lock:
            state = self._state()
            levels = sorted((state.passes[id], id) for id in state.rows if state.is_active(id))
            return iter([_stored(state, id) for _, id in levels])

    def objects(self, kind: Kind, key: int | None = None) -> Iterator[tuple[str | int, int, bytes]]:
        if key is not None:
            with self._shelf.lock:
                parts = dict(self._state().objects.get((kind, key), {}))
            return iter([(key, part, parts[part]) for part in sorted(parts)])
        with self._shelf.lock:
            held = self._state().objects.items()
            found = [(key, *one) for (its, key), parts in held if its == kind for one in parts.items()]
        return iter(sorted(found, key=lambda object: (isinstance(object[0], str), object[0], object[1])))

    def journal(self) -> Iterator[tuple[int, bytes]]:
        with self._shelf.lock:
            return iter(sorted(self._state().journal.items()))

    # -- read at any time
    def run(self, id: int) -> StoredRun | None:
        with self._shelf.lock:
            state = self._state()
            return _stored(state, id, progress=True) if id in state.rows else None

    @property
    def deletes_by_range(self) -> bool:
        return self._state().by_range

    def above(
        self,
        level: Level,
        limit: int,
        upto: Level | None = None,
        tenant: str | None = None,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        with self._shelf.lock:
            state = self._state()
            order = state.sorted()
            above = islice(order, bisect_right(order, level), None)
            inside = above if upto is None else takewhile(lambda place: place <= upto, above)
            found = (_at(state, place, tenant) for place in inside if place in state.places)
            return list(until_bytes(islice((run for run in found if run is not None), limit), bytes_max))

    def listed(
        self,
        tenant: str | None,
        metadata: dict[str, str | int],
        after: int,
        limit: int,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        with self._shelf.lock:
            state = self._state()
            ids = sorted(
                id
                for id, row in state.rows.items()
                if id > after
                and id not in state.ends
                and tenant in (None, row.tenant)
                and all(_same(row.metadata.get(key), value) for key, value in metadata.items())
            )
            return list(until_bytes((_stored(state, id, progress=True) for id in ids[:limit]), bytes_max))

    def times(self, what: str, after: Time, limit: int) -> list[Time]:
        with self._shelf.lock:
            state = self._state()
            given = (
                (row.due if what == "due" else row.deadline, row.id)
                for row in state.rows.values()
                if row.id not in state.ends
            )
            return nsmallest(limit, [time for time in given if time[0] > 0 and time > after])

    def ended(
        self, state: str, tenant: str | None, metadata: dict[str, str | int], after: int, limit: int
    ) -> list[StoredRun]:
        def matches(held: State, id: int) -> bool:
            row, end = held.rows[id], held.ends[id]
            has = all(_same(row.metadata.get(key), value) for key, value in metadata.items())
            return has and state in ("", end.state) and tenant in (None, row.tenant)

        with self._shelf.lock:
            held = self._state()
            found = sorted(id for id in held.ends if id > after and matches(held, id))
            return [_stored(held, id) for id in found[:limit]]

    def ended_before(self, at: float, limit: int, after: Time = (0.0, 0)) -> list[Time]:
        with self._shelf.lock:
            found = [(end.at, end.id) for end in self._state().ends.values() if end.at < at]
        return nsmallest(limit, [time for time in found if time > after])

    def ended_failed(self, after: int, limit: int) -> list[StoredRun]:
        with self._shelf.lock:
            state = self._state()
            found = sorted(end.id for end in state.ends.values() if end.failed > 0 and end.id > after)
            return [_stored(state, id) for id in found[:limit]]

    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None:
        return self._state().objects.get((kind, key), {}).get(part)

    def pages(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        with self._shelf.lock:
            rows = self._state().rows
            there = [(id, page) for id, page in wanted if id in rows and 0 <= page < len(rows[id].pages)]
            return {(id, page): rows[id].pages[page] for id, page in there}

    def results(self, id: int, first_min: int, limit: int, bytes_max: int | None = None) -> list[ResultPage]:
        with self._shelf.lock:
            found = sorted(self._state().results.get(id, {}).items())
        pages = (ResultPage(id, first, body) for (first, _), body in found if first >= first_min)
        return list(until_bytes(islice(pages, limit), bytes_max))

    def key(self, tenant: str, key: str) -> KeyRow | None:
        return self._state().keys.get((tenant, key))

    def keys_expired(self, at: float, limit: int) -> list[tuple[str, str]]:
        with self._shelf.lock:
            keys = self._state().keys.values()
            found = sorted((key.expires, key.tenant, key.key) for key in keys if 0 < key.expires < at)
        return [(tenant, key) for _, tenant, key in found[:limit]]

    def events(self, after: int, limit: int) -> list[tuple[int, float, bytes]]:
        with self._shelf.lock:
            found = sorted(item for item in self._state().events.items() if item[0] > after)
        return [(number, time, body) for number, (time, body) in found[:limit]]

    def size_bytes(self) -> int:
        with self._shelf.lock:
            state = self._state()
            total = sum(len(row.body) + sum(map(len, row.pages)) for row in state.rows.values())
            total += sum(len(end.body) for end in state.ends.values())
            total += sum(len(body) for _, body in state.events.values())
            bodies = (*state.results.values(), *state.objects.values(), state.journal)
            return total + sum(sum(map(len, part.values())) for part in bodies)

    def checkpoint(self) -> bool:
        """Nothing to do: there is no log."""
        return True

    def close(self) -> None:
        self._closed = True

    def _state(self) -> State:
        if self._closed:
            raise Closed()
        return self._shelf.queue(self._name)


def _stored(state: State, id: int, progress: bool = False) -> StoredRun:
    row, end = state.rows[id], state.ends.get(id)
    if end is not None:
        return StoredRun(id, state.passes[id], row.tenant, row.body, end.state, end.body)
    body = state.objects.get((Kind.PROGRESS, id), {}).get(0, b"") if progress else b""
    return StoredRun(id, state.passes[id], row.tenant, row.body, progress=body)


def _at(state: State, place: Level, tenant: str | None) -> StoredRun | None:
    """What stands in a place; None if a tenant is given and it is not an active run of that tenant."""
    pass_, id = place
    if id not in state.rows or state.passes[id] != pass_:
        return None if tenant is not None else StoredRun(id, pass_, "", b"", "left")
    if tenant is not None and (id in state.ends or state.rows[id].tenant != tenant):
        return None
    return _stored(state, id, progress=True)


def _same(one: str | int | None, other: str | int) -> bool:
    """Equal and of one type: the text "1" and the integer 1 are two values."""
    return type(one) is type(other) and one == other
