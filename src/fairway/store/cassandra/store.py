"""One queue on Cassandra: the writing half.

Guards: a group is stored by one conditional write that holds all it does; the tables follow from that log, and a read
sees every group that was stored before it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from uuid import UUID

from fairway.errors import Closed, Fenced, GroupUnknown, StoreFailed
from fairway.limits import CASSANDRA_LOG_GROUPS_MAX, CASSANDRA_PLACES_MAX, CASSANDRA_RANGE_ROWS
from fairway.model.stored import Group, Meta
from fairway.store.cassandra.connection import Connection
from fairway.store.cassandra.fencing import Fencing
from fairway.store.cassandra.lives import Place
from fairway.store.cassandra.opening import find_queue, prepare
from fairway.store.cassandra.places import ORDERED
from fairway.store.cassandra.planning import Fence, Plan, Planner
from fairway.store.cassandra.reading import Reading
from fairway.store.cassandra.tables import Tables


class CassandraStore(Reading):
    """A queue in a keyspace; several queues, and several owners in turn, may share it."""

    def __init__(self, connection: Connection, queue: UUID, number: int) -> None:
        self._fencing = Fencing(connection, queue)
        self._planner = Planner(connection, queue, number)
        self._tables = Tables(connection, queue)
        super().__init__(connection, queue, number, self._tables, self._fencing)
        self._lock = threading.Lock()  # for close beside a commit; commits come from one thread at a time
        self._fence: Fence | None = None  # ours: this handle took over
        self._places: dict[int, Place] = {}
        self._doubt: tuple[Group, Plan, int] | None = None
        self._paged: list[tuple[int, int]] = []  # (range id, number) of groups whose log is pages
        self._burnt = 0  # a group that is burnt and whose pages may be there; 0: none

    @classmethod
    def open(
        cls, connection: Connection, queue_name: str, *, create: bool = True, realm: str | None = None
    ) -> CassandraStore:
        """Find a queue on a cluster, or add it. The store shares the connection until it is closed."""
        prepare(connection, create)
        realm = connection.address.realm if realm is None else realm
        queue, number = find_queue(connection, queue_name, realm, create)
        return cls(connection.share(), queue, number)

    # -- the writing half: one thread at a time

    def take_over(self) -> Meta:
        with self._lock:
            self._ready()
            self._fence = None
            self._places.clear()
            self._paged.clear()
            self._burnt = 0
            fence = self._fencing.take_over()
            logged = self._fencing.logged(fence.written)
            self._paged += [where for _, _, paged in logged for where in paged]
            self._tables.begin_anew(fence.last, [(number, writes) for number, writes, _ in logged])
            self._tables.finish()
            with suppress(StoreFailed):  # if it matters, what is read next fails too
                self._tables.clear_front(fence.last)
            self._fencing.sweep(fence, range(fence.swept + 1, fence.range_id))
            self._fence = fence
            return Meta(self._number, fence.range_id, fence.last, fence.meta)

    def commit(self, group: Group) -> None:
        with self._lock:
            self._ready()
            fence = self._fence
            if fence is None or (group.range_id, group.number) != (fence.range_id, fence.last + 1):
                raise Fenced()
            if self._tables.waiting() >= CASSANDRA_LOG_GROUPS_MAX:
                self._tables.finish(CASSANDRA_LOG_GROUPS_MAX - 1)
            self._drop_burnt(fence)
            plan = self._plan(group, fence)
            trim = self._tables.written(fence.last)
            # The log of groups that leave it with this one; as part of this one it is removed, whatever happens.
            plan.writes += [("drop_log_pages", where) for where in self._paged if where[1] <= trim]
            try:
                self._fencing.store(fence, group.number, group.meta, plan, trim)
            except GroupUnknown:
                self._doubt = (group, plan, trim)
                raise
            except Fenced:
                self._fence = None
                raise
            self._stored(fence, group, plan, trim)

    def settle(self, group: Group) -> bool:
        with self._lock:
            self._ready()
            stored = self._fencing.settle(group.range_id, group.number)
            doubt, self._doubt = self._doubt, None
            fence = self._fence
            if fence is None or fence.last >= group.number:
                return stored
            if stored:
                if doubt is None or doubt[0] is not group:
                    raise Fenced()  # stored by a handle that was the owner before this one
                self._stored(fence, *doubt)
            else:
                fence.last = fence.burnt = self._burnt = group.number
                with suppress(StoreFailed):  # else before the next group, or the next owner does
                    self._drop_burnt(fence)
            return stored

    def _drop_burnt(self, fence: Fence) -> None:
        """Pages of a burnt group go before others come: a new owner looks for those of one group only."""
        if self._burnt:
            self._fencing.drop_bundle(fence.range_id, self._burnt)
            self._burnt = 0

    def _plan(self, group: Group, fence: Fence) -> Plan:
        """A plan must see every earlier group; most need to look up nothing and wait for nothing."""
        looks = bool(
            group.moves or group.purge or group.purge_keys or group.keys or group.purge_events_before > 0
        )
        looks = looks or any(end.id not in self._places for end in group.ends)
        if looks or any(row.id <= fence.top for row in group.rows):
            self._tables.finish()
        plan = self._planner.plan(group, fence, self._places)
        if sum(name in ORDERED for name, _ in plan.writes) >= CASSANDRA_RANGE_ROWS:
            self._tables.finish()
            plan.writes = self._tables.thin(plan.writes)
        return plan

    def _stored(self, fence: Fence, group: Group, plan: Plan, trim: int) -> None:
        """The group is in the log: from now on it is carried out, whatever happens."""
        fence.last, fence.meta, fence.top, fence.size = group.number, group.meta, plan.top, plan.size
        fence.journal_floor, fence.events_floor = plan.journal_floor, plan.events_floor
        fence.written, fence.swept = max(fence.written, trim), fence.range_id - 1
        for id, place in plan.places:
            self._places.pop(id, None)
            if place is not None:
                self._places[id] = place
        while len(self._places) > CASSANDRA_PLACES_MAX:
            del self._places[next(iter(self._places))]
        self._paged = [where for where in self._paged if where[1] > trim]
        if plan.paged:
            self._paged.append((fence.range_id, group.number))
        with suppress(StoreFailed):  # the next read or group finds out
            self._tables.begin(group.number, plan.writes)
            if self._tables.crowded():
                self._tables.finish()
                self._tables.clear(fence.last)

    # -- life

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            with suppress(StoreFailed):  # it is in the log
                self._tables.finish()
                if self._fence is not None:
                    self._tables.clear(self._fence.last, everything=True)
            self._closed = True
            self._connection.close()

    def _ready(self) -> None:
        if self._closed:
            raise Closed()
