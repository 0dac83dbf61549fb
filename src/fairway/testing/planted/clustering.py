"""Bugs of the Cassandra store: its fence, its log, the timestamps of its tables and the pages before its groups.

Guards: each is one forgotten condition, stamp or order in the shipped store; `fairway sim --store cassandra` finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fairway.errors import Fenced
from fairway.store.cassandra import connection, tables
from fairway.store.cassandra.fencing import Fencing
from fairway.store.cassandra.planning import Fence, Plan
from fairway.store.cassandra.tables import Tables
from fairway.testing.planted.planting import Bugs, wrong

CLUSTER_BUGS: Final[Bugs] = {}

# -- the fence

_statements, _store, _settle = connection.statements, Fencing.store, Fencing.settle


@wrong("the log is written without the number in its condition", connection, "statements", bugs=CLUSTER_BUGS)
def without_number(file: str) -> dict[str, str]:
    texts = dict(_statements(file))
    if "claim" in texts:
        texts["claim"] = texts["claim"].replace(" AND last = ?", "")
    return texts


@wrong("the log is written under whatever range id is there", Fencing, "store", bugs=CLUSTER_BUGS)
def of_whoever_owns(self: Fencing, fence: Fence, number: int, meta: bytes, plan: Plan, trim: int) -> None:
    mine, fence.range_id = fence.range_id, self.read().range_id
    try:
        _store(self, fence, number, meta, plan, trim)
    finally:
        fence.range_id = mine


@wrong("a settle believes a write that was not answered", Fencing, "settle", bugs=CLUSTER_BUGS)
def surely_stored(self: Fencing, range_id: int, number: int) -> bool:
    return True


@wrong("a settle believes a write that was refused", Fencing, "settle", bugs=CLUSTER_BUGS)
def surely_lost(self: Fencing, range_id: int, number: int) -> bool:
    return _settle(self, range_id, number) and False


@wrong("a number that is not stored is not burnt", Fencing, "settle", bugs=CLUSTER_BUGS)
def unburnt(self: Fencing, range_id: int, number: int) -> bool:
    fence = self.read()
    if fence.range_id != range_id or not number - 1 <= fence.last <= number:
        raise Fenced()
    return fence.last == number and fence.burnt != number


# -- the log and its pages


@wrong("pages are written after their group", Fencing, "store", bugs=CLUSTER_BUGS)
def pages_last(self: Fencing, fence: Fence, number: int, meta: bytes, plan: Plan, trim: int) -> None:
    later: list[Any] = []
    self._write_pages = lambda *given: later.append(given)  # type: ignore[method-assign]
    try:
        _store(self, fence, number, meta, plan, trim)
    finally:
        del self._write_pages
    for given in later:
        self._write_pages(*given)


@wrong("the log is trimmed before its groups are in the tables", Tables, "written", bugs=CLUSTER_BUGS)
def hopefully_written(self: Tables, last: int) -> int:
    self._under_way = [one for one in self._under_way if one.number > last]
    return last


@wrong("a new owner does not carry out the log", Fencing, "logged", bugs=CLUSTER_BUGS)
def nothing_logged(self: Fencing, after: int) -> list[Any]:
    return []


@wrong("the pages of the last group are swept", Fencing, "sweep", bugs=CLUSTER_BUGS)
def sweep_one_too_low(self: Fencing, fence: Fence) -> None:
    for range_id in range(fence.swept + 1, fence.range_id):
        self.drop_bundle(range_id, fence.last)


# -- the tables

_written_as, _cover = Tables._statements, Tables._cover


@wrong("writes into the tables do not carry their group's number", Tables, "_statements", bugs=CLUSTER_BUGS)
def of_no_group(self: Tables, number: int, writes: Sequence[Any]) -> Iterator[Any]:
    return _written_as(self, 1, writes)


@wrong("what was removed is covered for groups to come as well", Tables, "_cover", bugs=CLUSTER_BUGS)
def for_ever(self: Tables, number: int, ranges: Any) -> None:
    _cover(self, number + 100, ranges)


@wrong("a gap is as wide as what was removed, whatever lives in it", tables, "gaps", bugs=CLUSTER_BUGS)
def over_the_living(low: Any, live: Any, keys: Any) -> Any:
    return tables_gaps(low, [], keys)


tables_gaps = tables.gaps
