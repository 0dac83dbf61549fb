"""Planning a group: what it writes into the tables, worked out before it is stored.

Guards: a plan depends on nothing but the group and what was stored before it, and it is what the log keeps; so
whoever carries it out, and however often, writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairway.limits import CASSANDRA_STRETCH_IDS_MAX, INLINE_PAGE_BYTES_MAX
from fairway.model.stored import Group, KeyRow, Kind
from fairway.store.cassandra.connection import Connection, Wanted
from fairway.store.cassandra.endings import endings, without
from fairway.store.cassandra.lives import Lives, Place, StoredRow, Write, inline
from fairway.store.cassandra.places import EXPIRES, IN_ROWS, block, object_key, run_shard, time_of
from fairway.store.lives import misfit

_RUN_KINDS: Final = (Kind.PROGRESS, Kind.PAGE)
_STRETCH_IDS: Final = 4  # fewer are read by a list


class Fence(msgspec.Struct):
    """The fence of a queue, as it was last read or written."""

    range_id: int
    last: int
    nonce: object
    burnt: int
    written: int  # groups up to this one are in the tables
    swept: int  # owners up to this one have left no pages behind
    top: int  # no run has a higher id
    size: int  # bytes, about
    journal_floor: int
    events_floor: int
    meta: bytes


class Plan(msgspec.Struct):
    """What a group does: its writes, its large pages, and what changes in the fence and in memory."""

    writes: list[Write]
    pages: list[bytes]
    top: int
    size: int
    journal_floor: int
    events_floor: int
    places: list[tuple[int, Place | None]]
    paged: bool = False  # it is so large that its log is pages


class Planner:
    """Plans for one queue. `places` are remembered active runs."""

    def __init__(self, connection: Connection, queue: object, number: int) -> None:
        self._connection, self._queue, self._number = connection, queue, number

    def plan(self, group: Group, fence: Fence, places: Mapping[int, Place]) -> Plan:
        stored = self._look(group, fence.top, places)
        lives = Lives(group, self._number, places, stored)
        plan = Plan([], [], fence.top, fence.size, fence.journal_floor, fence.events_floor, [])
        plan.top = max([fence.top, *lives.rows])
        plan.places = list(lives.places())
        plan.writes += lives.writes(self._bundle(group, plan))
        plan.writes += endings(group.number, lives.ended())
        plan.writes += without(self._connection, self._queue, lives.left())
        results = self._results(group, plan, lives.purged)
        plan.size += sum(len(row.body) + sum(map(len, row.pages)) for row in group.rows) + results
        self._purge(lives.purged - lives.rows.keys(), stored, plan)
        self._purge_objects(sorted(lives.purged), plan)
        self._objects(group, lives.purged, plan)
        self._keys(group, plan)
        self._logs(group, plan)
        return plan

    # -- what must be known

    def _look(self, group: Group, top: int, places: Mapping[int, Place]) -> dict[int, StoredRow]:
        """Runs that the group is about and that are not remembered, or must be known whole."""
        wanted = {row.id for row in group.rows if row.id <= top}
        wanted |= {move.id for move in group.moves} | set(group.purge)
        wanted |= {end.id for end in group.ends if end.id not in places}
        return self.runs(wanted - {row.id for row in group.rows if row.id > top})

    def runs(self, ids: Iterable[int]) -> dict[int, StoredRow]:
        """Runs by id; what is not there is left out."""
        wanted = set(ids)
        found = self._connection.read_many(by_shard("runs_of", self._queue, wanted))
        return {row[0]: StoredRow.of(row) for rows in found for row in rows if row[0] in wanted}

    # -- pages

    def _bundle(self, group: Group, plan: Plan) -> dict[int, tuple[int, int, int]]:
        """Large payload pages go before the group; where those of each run begin."""
        where: dict[int, tuple[int, int, int]] = {}
        for row in group.rows:
            outside = row.pages[1:] if inline(row) else row.pages
            if outside:
                where[row.id] = (group.range_id, group.number, len(plan.pages))
                plan.pages += outside
        return where

    def _results(self, group: Group, plan: Plan, purged: set[int]) -> int:
        """Pages of results; gives how many bytes they are."""
        if len({(page.id, page.first) for page in group.results}) != len(group.results):
            raise misfit("two result pages have one place")
        size = 0
        for page in group.results:
            if page.id in purged:
                continue
            body: bytes | None = page.body
            where = (0, 0)
            if len(page.body) > INLINE_PAGE_BYTES_MAX:
                body, where = None, (group.range_id, len(plan.pages))
                plan.pages.append(page.body)
            size += len(page.body)
            values = (page.id, page.first, group.number, body, *where, len(page.body))
            plan.writes.append(("put_result", values))
        return size

    # -- what leaves for good

    def _purge(self, purged: set[int], stored: Mapping[int, StoredRow], plan: Plan) -> None:
        ids = sorted(purged)
        results = self._connection.read_many([("result_places", (self._queue, id)) for id in ids])
        for id, places in zip(ids, results, strict=True):
            row = stored[id]
            plan.size -= row.size + sum(place[4] for place in places)
            outside = row.pages - (row.page is not None)
            pages = [(row.from_range, row.from_number, row.from_page + n) for n in range(outside)]
            pages += [(range_id, number, page) for _, number, range_id, page, _ in places if range_id]
            plan.writes += [("drop_page", page) for page in pages]
            plan.writes.append(("drop_results", (id,)))

    def _purge_objects(self, ids: Sequence[int], plan: Plan) -> None:
        for kind in _RUN_KINDS if ids else ():
            for rows in self._connection.read_many(in_lists("objects_of", (self._queue, kind), ids)):
                plan.writes += [("drop_object", (kind, 0, id, "", part)) for id, part, _ in rows]

    # -- small things

    def _objects(self, group: Group, purged: set[int], plan: Plan) -> None:
        """Removals go first: what a group puts is there after it."""
        values: dict[tuple[Any, ...], bytes | None] = {}
        for drop in group.drops:
            values[(int(drop.kind), *object_key(drop.key), drop.part)] = None
        for put in group.puts:
            values[(int(put.kind), *object_key(put.key), put.part)] = put.body
        for key, body in values.items():
            if body is None or (key[0] in _RUN_KINDS and key[1] == 0 and key[2] in purged):
                plan.writes.append(("drop_object", key))
            else:
                plan.writes.append(("put_object", (*key, body)))

    def _keys(self, group: Group, plan: Plan) -> None:
        new = {(key.tenant, key.key): key for key in group.keys}
        wanted = list(dict.fromkeys([*new, *group.purge_keys]))
        for where, old in zip(wanted, self.keys(wanted), strict=True):
            key = new.get(where)
            if key is not None:
                plan.writes.append(("put_key", (*where, key.id, key.fingerprint, key.expires)))
                if key.expires > 0:
                    plan.writes.append(("put_time", time_of(EXPIRES, key.expires, 0, *where)))
            elif old is not None and old.expires > 0:
                plan.writes.append(("drop_key", where))
            if old is not None and old.expires > 0 and (key is None or key.expires != old.expires):
                plan.writes.append(("drop_time", time_of(EXPIRES, old.expires, 0, *where)))

    def keys(self, wanted: Sequence[tuple[str, str]]) -> list[KeyRow | None]:
        """Keys by (tenant, key), in the order asked for."""
        found = self._connection.read_many([("key", (self._queue, *where)) for where in wanted])
        return [KeyRow(*where, *rows[0]) if rows else None for where, rows in zip(wanted, found, strict=True)]

    def _logs(self, group: Group, plan: Plan) -> None:
        """The journal and the events, and what leaves them."""
        if group.journal and group.number >= group.journal_floor:
            plan.writes.append(("put_journal", (group.number, group.journal)))
        floor = min(group.journal_floor, group.number + 1)
        if floor > plan.journal_floor:
            plan.journal_floor = floor
            plan.writes.append(("drop_journal", (floor,)))
        if group.purge_events_before > 0:
            self._purge_events(group, plan)
        if group.events:
            values = (block(group.number), group.number, group.event_time, group.events)
            plan.writes.append(("put_events", values))

    def _purge_events(self, group: Group, plan: Plan) -> None:
        """Times rise with numbers, so the first block that keeps everything is the last that is looked at."""
        low = group.number
        for where in range(block(plan.events_floor), block(group.number) + 1):
            rows = self._connection.read("event_times", (self._queue, where))
            over = [number for number, at in rows if at < group.purge_events_before]
            kept = [number for number, at in rows if at >= group.purge_events_before]
            plan.writes += [("drop_events", (where, number)) for number in over]
            low = min([low, *kept])
            if kept and not over:
                break
        plan.events_floor = max(plan.events_floor, low)


def by_shard(name: str, queue: object, ids: Iterable[int]) -> Iterator[Wanted]:
    """Reads of runs by id, some per partition; others may be among what they find.

    Messages of one submit have ids in a row, and a node finds them so at a third of the cost of a list.
    """
    shards: dict[int, list[int]] = {}
    for id in ids:
        shards.setdefault(run_shard(id), []).append(id)
    for shard, some in shards.items():
        rest: list[int] = []
        for stretch in stretches(sorted(some)):
            if len(stretch) < _STRETCH_IDS:
                rest += stretch
            else:
                yield f"{name}_range", (queue, shard, stretch[0], stretch[-1])
        yield from in_lists(name, (queue, shard), rest)


def stretches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Rising ids, cut where more than one is missing between two, and where it gets long."""
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or ids[end] - ids[end - 1] > 2 or end - start >= CASSANDRA_STRETCH_IDS_MAX:
            yield ids[start:end]
            start = end


def in_lists(name: str, values: Sequence[Any], ids: Sequence[int]) -> Iterator[Wanted]:
    """Reads of many ids, a list at a time."""
    for start in range(0, len(ids), IN_ROWS):
        yield name, (*values, ids[start : start + IN_ROWS])
