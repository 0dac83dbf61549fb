"""Tables of cells with timestamps: a later one wins, a deletion wins over what is not later, whenever they arrive.

Guards: the same writes give the same rows in any order and however often they come, as in Cassandra.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Final

from fairway.testing.imagined.cql import Condition, Statement, keys_of

Key = tuple[Any, ...]
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
UNSET: Final = object()


class Row:
    """One row: when it was last put whole, and its cells."""

    __slots__ = ("cells", "put")

    def __init__(self) -> None:
        self.put = -1
        self.cells: dict[str, tuple[int, Any]] = {}

    def delete(self, stamp: int) -> None:
        """Everything that is not later than the deletion goes."""
        if self.put <= stamp:
            self.put = -1
        self.cells = {name: cell for name, cell in self.cells.items() if cell[0] > stamp}

    @property
    def there(self) -> bool:
        return self.put >= 0 or bool(self.cells)


class Partition:
    """Rows by clustering key, and the deletions that late writes must not get past."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.gone: dict[Key, int] = {}
        self.ranges: list[tuple[Callable[[Key], bool], int]] = []

    def put(self, key: Key, cells: dict[str, Any], stamp: int, whole: bool) -> None:
        if self.gone.get(key, -1) >= stamp or any(covers(key) and at >= stamp for covers, at in self.ranges):
            return
        row = self.rows.setdefault(key, Row())
        if whole:
            row.put = max(row.put, stamp)
        for name, value in cells.items():
            if row.cells.get(name, (-1, None))[0] <= stamp:
                row.cells[name] = (stamp, value)

    def drop(self, covers: Callable[[Key], bool], key: Key | None, stamp: int) -> None:
        if key is not None:
            self.gone[key] = max(self.gone.get(key, -1), stamp)
            keys = [key] if key in self.rows else []
        else:
            self.ranges.append((covers, stamp))
            keys = [key for key in self.rows if covers(key)]
        for one in keys:
            self.rows[one].delete(stamp)
            if not self.rows[one].there:
                del self.rows[one]


class Table:
    """One table."""

    def __init__(self, create: str) -> None:
        self.partition, self.clustering = keys_of(create)
        self.partitions: dict[Key, Partition] = {}

    def of(self, key: Key) -> Partition:
        return self.partitions.setdefault(key, Partition())

    # -- writing

    def put(self, statement: Statement, bound: Key, stamp: int) -> None:
        values = {
            name: slot.of(bound) for name, slot in zip(statement.columns, statement.values, strict=True)
        }
        partition, key = (
            tuple(values.pop(name) for name in names) for names in (self.partition, self.clustering)
        )
        cells = {name: value for name, value in values.items() if value is not UNSET}
        self.of(partition).put(key, cells, stamp, whole=True)

    def change(self, statement: Statement, bound: Key, stamp: int) -> None:
        partition, key = self._place(statement, bound)
        values = {
            name: slot.of(bound) for name, slot in zip(statement.columns, statement.values, strict=True)
        }
        for one in [key] if key is not None else self._listed(statement, bound):
            self.of(partition).put(one, values, stamp, whole=False)

    def drop(self, statement: Statement, bound: Key, stamp: int) -> None:
        partition, key = self._place(statement, bound)
        self.of(partition).drop(self._covers(statement, bound), key, stamp)

    # -- reading

    def read(self, statement: Statement, bound: Key) -> list[Key]:
        partition, _ = self._place(statement, bound)
        covers = self._covers(statement, bound)
        rows = self.of(partition).rows
        keys = sorted(key for key in rows if covers(key))
        if statement.descending:
            keys.reverse()
        if statement.limit is not None:
            keys = keys[: statement.limit.of(bound)]
        return [tuple(self._cells(statement, rows[key], key)) for key in keys]

    def _cells(self, statement: Statement, row: Row, key: Key) -> Iterator[Any]:
        for name in statement.columns:
            if name in self.clustering:
                yield key[self.clustering.index(name)]
            else:
                yield row.cells.get(name, (0, None))[1]

    def holds(self, statement: Statement, bound: Key) -> bool:
        """Whether the conditions of a conditional statement hold; columns of a row that is not there are null."""
        if statement.if_not_exists:
            values = {
                name: slot.of(bound) for name, slot in zip(statement.columns, statement.values, strict=True)
            }
            partition, key = (tuple(values[n] for n in names) for names in (self.partition, self.clustering))
            return key not in self.of(partition).rows
        partition, key = self._place(statement, bound)
        assert key is not None
        row = self.of(partition).rows.get(key) or Row()
        return all(
            row.cells.get(one.columns[0], (0, None))[1] == one.values[0].of(bound)
            for one in statement.only_if
        )

    # -- where

    def _place(self, statement: Statement, bound: Key) -> tuple[Key, Key | None]:
        """The partition, and the clustering key if the statement names one row."""
        equal = {
            one.columns[0]: one.values[0].of(bound)
            for one in statement.where
            if one.op == "=" and len(one.columns) == 1
        }
        partition = tuple(equal[name] for name in self.partition)
        whole = all(name in equal for name in self.clustering)
        return partition, tuple(equal[name] for name in self.clustering) if whole else None

    def _listed(self, statement: Statement, bound: Key) -> list[Key]:
        """The clustering keys of a statement that names several rows by a list."""
        (listed,) = (one for one in statement.where if one.op == "IN")
        assert [*listed.columns] == self.clustering, "only a key of one column is understood"
        return [(value,) for value in listed.values[0].of(bound)]

    def _covers(self, statement: Statement, bound: Key) -> Callable[[Key], bool]:
        """Whether a clustering key is meant."""
        tests = [
            self._test(one, bound) for one in statement.where if not set(one.columns) & set(self.partition)
        ]
        return lambda key: all(test(key) for test in tests)

    def _test(self, condition: Condition, bound: Key) -> Callable[[Key], bool]:
        places = [self.clustering.index(name) for name in condition.columns]
        if condition.op == "IN":
            wanted = set(condition.values[0].of(bound))
            return lambda key: key[places[0]] in wanted
        compare, values = _COMPARE[condition.op], tuple(slot.of(bound) for slot in condition.values)
        return lambda key: compare(tuple(key[place] for place in places), values)
