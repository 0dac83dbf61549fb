"""Writing plans into the tables, each write stamped with the number of its group.

Guards: a later group wins over an earlier one in every row, whenever and however often they are written; so writes
may be repeated, come late, or come from a former owner, and change nothing. No clock is involved.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import inf
from typing import Any, Final

from cassandra.cluster import ResponseFuture
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, Statement

from fairway.errors import StoreFailed
from fairway.limits import (
    CASSANDRA_BATCH_BYTES,
    CASSANDRA_BATCH_ROWS,
    CASSANDRA_FRONT_ROWS,
    CASSANDRA_GAP_ROWS_MAX,
    CASSANDRA_IN_FLIGHT_MAX,
    CASSANDRA_LEVEL_SHARDS,
    CASSANDRA_RANGES_MAX,
    CASSANDRA_TOMBSTONES_MAX,
)
from fairway.model.stored import Kind
from fairway.store.cassandra.connection import Connection
from fairway.store.cassandra.gaps import Key, gaps
from fairway.store.cassandra.joining import Ranges, Stretch
from fairway.store.cassandra.lives import ROW_BYTES, Write
from fairway.store.cassandra.places import DEADLINE, DUE, GONE, HIGHEST, LOWEST, ORDERED, PAGED, PARTITION
from fairway.store.cassandra.translate import translate

_TRIES: Final = 4
_LOWEST: Final[dict[str, Key]] = {
    "runs": (LOWEST,),
    "levels": (LOWEST, LOWEST),
    "times": (-1.0, LOWEST, "", ""),
    "endings": (-1.0, LOWEST, -1),
    "objects": (-1, LOWEST, "", -1),
}

_HIGHEST: Final[dict[str, Key]] = {
    "levels": (HIGHEST, HIGHEST),
    "times": (inf, HIGHEST, "", ""),
    "objects": (2, HIGHEST, "", 2**31 - 1),
}

Partition = tuple[str, tuple[Any, ...]]
# What a new owner reads in order.
_RELOADED: Final[tuple[Partition, ...]] = (
    *(("levels", (shard,)) for shard in range(CASSANDRA_LEVEL_SHARDS)),
    *(("objects", (int(kind),)) for kind in Kind if kind != Kind.PAGE),
    *(("times", (what, 0)) for what in (DUE, DEADLINE)),
)
# How whole rows of a table are read between two of its keys, and written again.
_AGAIN: Final = {
    "levels": ("levels_above", "put_level"),
    "objects": ("objects_within", "put_object"),
    "times": ("times_between", "put_time"),
}


class Writing:
    """One group on its way into the tables."""

    def __init__(self, number: int, writes: Sequence[Write]) -> None:
        self.number = number
        self.pages = any(name in PAGED for name, _ in writes)  # whether payload pages come or go with it
        self.sent: list[tuple[Statement, ResponseFuture]] = []
        self.failed: BaseException | None = StoreFailed("it was not sent")  # None: all of it was


class Tables:
    """The tables of one queue. `begin` comes from one thread at a time, `finish` from any."""

    def __init__(self, connection: Connection, queue: object) -> None:
        self._connection, self._queue = connection, queue
        self._lock = threading.Lock()
        self._under_way: list[Writing] = []
        self._begun: int | None = None  # the last group that was begun; None: this is not the owner
        self._dropped: dict[Partition, list[Key]] = defaultdict(list)
        self._ranges: dict[Partition, Ranges] = defaultdict(Ranges)  # of what a reload reads

    # -- writing

    def begin(self, number: int, writes: Sequence[Write]) -> None:
        """Start to write a group that is stored; several may be under way."""
        with self._lock:
            self._begun = max(number, self._begun or 0)
            self._under_way.append(Writing(number, writes))
            self._send(self._under_way[-1], writes)

    def begin_anew(self, last: int, groups: Sequence[tuple[int, Sequence[Write]]]) -> None:
        """A new owner writes what is left in the log, up to its last group; what it had under way is part of that.

        Not before the log is read: until then, and if that fails, reads wait for what was under way.
        """
        with self._lock:
            self._dropped.clear()
            self._ranges.clear()
            self._begun = last
            self._under_way = [Writing(number, writes) for number, writes in groups]
            for writing, (_, writes) in zip(self._under_way, groups, strict=True):
                self._send(writing, writes)

    def _send(self, writing: Writing, writes: Sequence[Write]) -> None:
        try:
            for statement in self._statements(writing.number, writes):
                if len(writing.sent) >= CASSANDRA_IN_FLIGHT_MAX:
                    writing.sent[-CASSANDRA_IN_FLIGHT_MAX][1]._event.wait()
                writing.sent.append((statement, self._connection.send(statement)))
            writing.failed = None
        except BaseException as error:
            writing.failed = error
            raise

    def waiting(self) -> int:
        """How many groups are not known to be in the tables."""
        return len(self._under_way)

    def finish(self, left: int = 0) -> int | None:
        """Wait until no more than so many groups are under way. What failed is repeated, then raised.

        If none is left, every group up to the number that it gives is in the tables; None if this is not the owner.
        """
        with self._lock:
            self._finish(left)
            return self._begun

    def finish_pages(self) -> None:
        """Wait until no group is under way with which payload pages come or go; later ones may be."""
        with self._lock:
            last = max((place for place, one in enumerate(self._under_way, 1) if one.pages), default=0)
            self._finish(len(self._under_way) - last)

    def _finish(self, left: int) -> None:
        while len(self._under_way) > left:
            self._end(self._under_way[0])
            self._under_way.pop(0)

    def written(self, last: int) -> int:
        """Every group up to this one is in the tables, if `last` is the last that was begun."""
        with self._lock:
            while self._under_way and all(future._event.is_set() for _, future in self._under_way[0].sent):
                try:
                    self._end(self._under_way[0])
                except StoreFailed:
                    break
                self._under_way.pop(0)
            return self._under_way[0].number - 1 if self._under_way else last

    def _end(self, writing: Writing) -> None:
        if writing.failed is not None:
            raise StoreFailed(
                "a group is stored and not yet in the tables; repeat the call"
            ) from writing.failed
        for place, (statement, future) in enumerate(writing.sent):
            for left in range(_TRIES, -1, -1):
                try:
                    future.result()
                    break
                except Exception as error:
                    if not left:
                        raise StoreFailed(
                            f"group {writing.number} is stored and cannot be written into the tables "
                            f"({type(error).__name__}: {error}); nothing new is taken until it can"
                        ) from translate(error)
                    future = self._connection.send(statement)
                    writing.sent[place] = (statement, future)

    def _statements(self, number: int, writes: Sequence[Write]) -> Iterator[Statement]:
        """The writes of a group as few messages: those of one partition together."""
        partitions: dict[Partition, list[tuple[str, tuple[Any, ...], int]]] = defaultdict(list)
        for name, values in writes:
            table, width = PARTITION[name]
            where = (table, tuple(values[:width]))
            if name == "put_lives":
                shard, ids, *life = values
                told = (2 * number + 1, *life, self._queue, shard, ids)
                partitions[where].append((name, told, len(ids) * _weight(life)))
            elif name.startswith("put"):
                told = (self._queue, *map(_told, values), 2 * number + 1)
                partitions[where].append((name, told, _weight(values)))
            else:
                stamp = GONE if table == "bundles" else 2 * number
                partitions[where].append((name, (stamp, self._queue, *values), ROW_BYTES))
                if name in ORDERED:
                    self._dropped[where].append(tuple(values[width:]))
                elif name.startswith("clear"):
                    self._made(where, tuple(values[width:]))
        for rows in partitions.values():
            yield from self._batches(rows)

    def _batches(self, rows: Sequence[tuple[str, tuple[Any, ...], int]]) -> Iterator[Statement]:
        bound, weight = self._connection.bound, 0
        some: list[Statement] = []
        for name, values, size in rows:
            if some and (len(some) >= CASSANDRA_BATCH_ROWS or weight + size > CASSANDRA_BATCH_BYTES):
                yield _together(some)
                some, weight = [], 0
            some.append(bound(name, values))
            weight += size
        yield _together(some)

    # -- clearing

    def crowded(self) -> bool:
        """Whether so much was removed that reads would feel it."""
        return bool(self._crowded()) or self._scattered()

    def _scattered(self) -> bool:
        """Whether it was removed in so many places."""
        return sum(len(ranges) - 1 for ranges in self._ranges.values() if ranges) >= CASSANDRA_RANGES_MAX

    def _made(self, where: Partition, ends: Key) -> None:
        if _reloaded(where):
            self._ranges[where].made(ends[: len(ends) // 2], ends[len(ends) // 2 :])

    def _crowded(self) -> list[Partition]:
        """Partitions to be cleared: what a reload reads is counted together, everything else by itself."""
        many = [where for where, keys in self._dropped.items() if len(keys) >= CASSANDRA_TOMBSTONES_MAX]
        reloaded = [where for where in self._dropped if _reloaded(where)]
        if sum(len(self._dropped[where]) for where in reloaded) >= CASSANDRA_TOMBSTONES_MAX:
            return list({*many, *reloaded})
        return many

    def clear(self, number: int, everything: bool = False) -> None:
        """Where much was removed, cover it with few ranges. Everything up to `number` must be in the tables."""
        wanted = list(self._dropped) if everything else self._crowded()
        dropped = {where: sorted(set(self._dropped[where])) for where in wanted}
        found = self._gaps(dropped, frozenset())
        self._cover(number, found)
        for where, some in found.items():
            for after, upto in some:
                self._made(where, (*after, *upto))
        for where in wanted:
            del self._dropped[where]
        if self._scattered():
            self._join(number)

    def _join(self, number: int) -> None:
        """One range in place of many, below the rows that stay between them."""
        for where, ranges in self._ranges.items():
            stretch = ranges.stretch() if len(ranges) > 1 else None
            while stretch is not None:
                if self._rewritten(number, where, stretch):
                    self._cover(number, {where: [(stretch.after, stretch.upto)]})
                    stretch = ranges.joined(stretch)
                else:
                    ranges.kept(stretch)
                    stretch = None

    def _rewritten(self, number: int, where: Partition, stretch: Stretch) -> bool:
        """Write what is there again, later than any removal up to `number`; not if it is too much."""
        (table, partition), limit = where, stretch.rows_max + 1
        read, put = _AGAIN[table]
        there = self._connection.read(read, (self._queue, *partition, *stretch.after, *stretch.upto, limit))
        if len(there) == limit:
            return False
        stamp = 2 * number + 1
        self._write_all(
            [[(put, (self._queue, *partition, *map(_told, row), stamp), _weight(row)) for row in there]]
        )
        return True

    def clear_front(self, number: int) -> None:
        """Cover what former owners removed before and among the first rows, of which nobody remembers where it was.

        Everything up to `number` must be in the tables.
        """
        limit = CASSANDRA_FRONT_ROWS + 1
        bounds = [(*_LOWEST[where[0]], *_HIGHEST[where[0]], limit) for where in _RELOADED]
        found: dict[Partition, list[tuple[Key, Key]]] = {}
        for where, live in zip(_RELOADED, self._ask(("between", _RELOADED, bounds)), strict=True):
            table = where[0]
            after = [_LOWEST[table], *live[:CASSANDRA_FRONT_ROWS]]
            upto = [_before(key) for key in live]
            if len(live) < limit:
                upto.append(_HIGHEST[table])
            found[where] = [(low, high) for low, high in zip(after, upto, strict=False) if low < high]
        self._cover(number, found)

    def thin(self, writes: Sequence[Write]) -> list[Write]:
        """The same writes, with ranges in place of many removals. Everything before them must be in the tables."""
        leaving: dict[Partition, dict[Key, Write]] = defaultdict(dict)
        for write in writes:
            if write[0] in ORDERED:
                table, width = PARTITION[write[0]]
                leaving[table, tuple(write[1][:width])][tuple(write[1][width:])] = write
        dropped = {where: sorted(keys) for where, keys in leaving.items()}
        gone = {(where, key) for where, keys in dropped.items() for key in keys}
        kept = [write for write in writes if write[0] not in ORDERED]
        for where, ranges in self._gaps(dropped, gone).items():
            keys, ones = dropped[where], leaving[where]
            for after, upto in ranges:
                some = keys[bisect_right(keys, after) : bisect_right(keys, upto)]
                if len(some) > 1:
                    kept.append((f"clear_{where[0]}", (*where[1], *after, *upto)))
                    for key in some:
                        del ones[key]
            kept += ones.values()
        return kept

    def _cover(self, number: int, ranges: Mapping[Partition, list[tuple[Key, Key]]]) -> None:
        stamp = 2 * number
        self._write_all(
            [
                (f"clear_{table}", (stamp, self._queue, *part, *after, *upto), ROW_BYTES)
                for after, upto in some
            ]
            for (table, part), some in ranges.items()
        )

    def _write_all(self, partitions: Iterable[list[tuple[str, tuple[Any, ...], int]]]) -> None:
        """Write rows, those of each partition together, and wait for them."""
        sent: list[ResponseFuture] = []
        try:
            for statement in (one for rows in partitions if rows for one in self._batches(rows)):
                if len(sent) >= CASSANDRA_IN_FLIGHT_MAX:
                    sent[-CASSANDRA_IN_FLIGHT_MAX].result()
                sent.append(self._connection.send(statement))
            for future in sent:
                future.result()
        except Exception as error:
            raise StoreFailed("what was removed is covered with a later group") from translate(error)

    def _gaps(
        self, dropped: Mapping[Partition, list[Key]], gone: Set[tuple[Partition, Key]]
    ) -> dict[Partition, list[tuple[Key, Key]]]:
        """Ranges that hold nothing but what was dropped. What is there and in `gone` is about to leave."""
        wheres = list(dropped)
        # Of what is about to leave, only rows that lie close together are worth a look.
        limits = [min(CASSANDRA_GAP_ROWS_MAX, 4 * len(dropped[where]) if gone else inf) for where in wheres]
        firsts = [dropped[where][0] for where in wheres]
        bounds = [
            (*_before(first), *dropped[where][-1], int(limit))
            for where, first, limit in zip(wheres, firsts, limits, strict=True)
        ]
        found: dict[Partition, list[tuple[Key, Key]]] = {}
        told = self._ask(("below", wheres, firsts), ("between", wheres, bounds))
        belows, rows = told[: len(wheres)], told[len(wheres) :]
        for where, below, live, limit in zip(wheres, belows, rows, limits, strict=True):
            keys, low = dropped[where], below[0] if below else _LOWEST[where[0]]
            if len(live) == limit:
                keys = [key for key in keys if key < live[-1]]  # only so far is it known what is there
            found[where] = gaps(low, [key for key in live if (where, key) not in gone], keys)
        return found

    def _ask(self, *questions: tuple[str, Sequence[Partition], Sequence[tuple[Any, ...]]]) -> list[list[Key]]:
        """The keys that are there, of each partition, all asked at once."""
        wanted = [
            (f"{table}_{what}", (self._queue, *partition, *some))
            for what, wheres, values in questions
            for (table, partition), some in zip(wheres, values, strict=True)
        ]
        return [[tuple(row) for row in rows] for rows in self._connection.read_many(wanted)]


def _reloaded(where: Partition) -> bool:
    """Whether a reload reads this partition."""
    return where in _RELOADED


def _before(key: Key) -> Key:
    """The last key that can be before another: the last whole number in it is one less."""
    at = max(place for place, value in enumerate(key) if isinstance(value, int))
    return (*key[:at], key[at] - 1, *key[at + 1 :])


def _told(value: Any) -> Any:
    """A null would be stored as a tombstone."""
    return UNSET_VALUE if value is None else value


def _weight(values: Sequence[Any]) -> int:
    return ROW_BYTES + sum(len(value) for value in values if isinstance(value, (bytes, str)))


def _together(statements: list[Statement]) -> Statement:
    if len(statements) == 1:
        return statements[0]
    batch = BatchStatement(BatchType.UNLOGGED)
    batch.add_all(statements, [()] * len(statements))
    return batch
