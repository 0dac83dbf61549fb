"""Where rows lie: shards, typed pairs of metadata, keys of objects, and the statements that write them.

Guards: a row is looked for in the partition it was written to, for ever: these functions never change.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairway.limits import (
    CASSANDRA_EVENTS_BITS,
    CASSANDRA_LEVEL_SHARDS,
    CASSANDRA_RUN_SHARDS,
    CASSANDRA_SHARD_BITS,
)

DUE, DEADLINE, EXPIRES, DEAD = 1, 2, 4, 5  # the times that rows are found by
LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
IN_ROWS: Final = 100  # ids in one statement
GONE: Final = 2**40  # the timestamp of a large page's removal: above that of every try to write it

# The table of each write and how many of its values, after the queue, name the partition.
PARTITION: Final[dict[str, tuple[str, int]]] = {
    "put_run": ("runs", 1),
    "put_life": ("runs", 1),
    "put_lives": ("runs", 1),
    "drop_run": ("runs", 1),
    "put_level": ("levels", 1),
    "drop_level": ("levels", 1),
    "put_pair": ("pairs", 1),
    "drop_pair": ("pairs", 1),
    "put_time": ("times", 2),
    "drop_time": ("times", 2),
    "put_ending": ("endings", 1),
    "drop_ending": ("endings", 1),
    "put_result": ("results", 1),
    "drop_results": ("results", 1),
    "put_object": ("objects", 1),
    "drop_object": ("objects", 1),
    "put_key": ("keys", 2),
    "drop_key": ("keys", 2),
    "put_journal": ("journal", 0),
    "drop_journal": ("journal", 0),
    "put_events": ("events", 1),
    "drop_events": ("events", 1),
    "drop_page": ("bundles", 2),
    "drop_log_pages": ("bundles", 2),
    "clear_runs": ("runs", 1),
    "clear_levels": ("levels", 1),
    "clear_times": ("times", 2),
    "clear_endings": ("endings", 1),
    "clear_objects": ("objects", 1),
}
# Writes with which payload pages come or go.
PAGED: Final = frozenset({"put_run", "drop_run", "clear_runs", "drop_page"})
# Tables that are read in order: rows removed from them are cleared by range before they are many.
ORDERED: Final = frozenset({"drop_run", "drop_level", "drop_time", "drop_ending", "drop_object"})

_pair = msgspec.msgpack.Encoder().encode


def run_shard(id: int) -> int:
    """The partition of a run: those submitted at about the same time share one."""
    return (id >> CASSANDRA_SHARD_BITS) % CASSANDRA_RUN_SHARDS


def level_shard(id: int) -> int:
    """The partition of a run's place."""
    return (id >> CASSANDRA_SHARD_BITS) % CASSANDRA_LEVEL_SHARDS


def time_shard(what: int, at: float) -> int:
    """The partition of a time; those of active runs, and of the few that failed, have one."""
    return shard_at(at) if what == EXPIRES else 0


def time_shards(what: int) -> range:
    return range(CASSANDRA_LEVEL_SHARDS if what == EXPIRES else 1)


def shard_at(at: float) -> int:
    """The partition of a time of which there are many."""
    return int(at / 4.0) % CASSANDRA_LEVEL_SHARDS


def time_of(what: int, at: float, id: int, tenant: str = "", key: str = "") -> tuple[Any, ...]:
    """The values of a row in `times`, after the queue."""
    return what, time_shard(what, at), at, id, tenant, key


def pair(key: str, value: str | int) -> bytes:
    """One pair of metadata as a partition's name: the text "1" and the integer 1 are two values."""
    return _pair((key, value))


def object_key(key: str | int) -> tuple[int, int, str]:
    """The columns of an object's key: integers sort before texts."""
    return (0, key, "") if isinstance(key, int) else (1, 0, key)


def block(number: int) -> int:
    """The partition of a group's events."""
    return number >> CASSANDRA_EVENTS_BITS
