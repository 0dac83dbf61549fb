"""The queues of a file as a whole: their names, and how one is deleted.

Guards: a deleted queue's number is never given again, so nothing that was kept of it can be taken for another's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from fairway.limits import READER_CACHE_KIB, SWEEP_ROWS_MAX
from fairway.store.sqlite.connections import close_quietly, connect, fold, leave, rows, set_sync, transaction
from fairway.store.sqlite.doubt import write_log_again
from fairway.store.sqlite.opening import inspect
from fairway.store.sqlite.seals import damaged
from fairway.store.sqlite.statements import load, steps
from fairway.store.sqlite.translate import translate
from fairway.store.sqlite.writing import json_list, places

_SQL: Final = load("queues.sql")
_LISTS: Final = ("remove_runs", "remove_pages", "remove_results")
_OF_QUEUE: Final = ("remove_metadata", "remove_objects", "remove_keys", "remove_events")


def check_file(path: str) -> dict[str, int]:
    """NotFairway and its like, if a file that is there is not one whose queues can be opened; else their names."""
    inspect(os.path.realpath(path), None, len(steps()))
    return names(path)


def names(path: str) -> dict[str, int]:
    """The queues of a file by name, with their numbers; none if there is no file."""
    if not _begun(path):
        return {}
    with _connected(path) as connection:
        return dict(rows(connection, _SQL["names"], ()))


def bucket_names(path: str) -> list[str]:
    """The bucket queues of a file; none if there is no file."""
    if not _begun(path):
        return []
    with _connected(path) as connection:
        known = rows(connection, _SQL["has_buckets"], ())
        found = rows(connection, _SQL["bucket_names"], ()) if known else []
    for name, sound in found:
        if not sound:
            raise damaged(f"name {name}".encode())
    return [name for name, _ in found]


def bury(path: str, name: str) -> bool:
    """Delete a queue: from now on nobody finds it or owns it. `sweep` removes what is left. False: there is none."""
    with _writing(path) as connection, transaction(connection):
        return bool(rows(connection, _SQL["bury"], (name,)))


def sweep(path: str) -> int:
    """Remove what deleted queues left, some at a time so that others can write in between; how many submissions."""
    with _connected(path) as connection:
        buried = [queue for (queue,) in rows(connection, _SQL["buried"], ())]
    if not buried:
        return 0
    with _writing(path) as connection:
        return sum(_remove(connection, queue) for queue in buried)


def _remove(connection: apsw.Connection, queue: int) -> int:
    removed = 0
    while ids := [id for (id,) in rows(connection, _SQL["some_ids"], (queue, SWEEP_ROWS_MAX))]:
        with transaction(connection):
            listed = json_list(ids)
            for name in _LISTS:
                connection.execute(_SQL[name], (listed,))
            connection.execute(_SQL["remove_levels"], (queue, listed))
            connection.execute(_SQL["remove_ends"], (queue, listed))
        removed += len(ids)
    with transaction(connection):
        for name in _OF_QUEUE:
            connection.execute(_SQL[name], (queue,))
        connection.execute(_SQL["remove_journal"], places(queue))
    return removed


def _begun(path: str) -> bool:
    """Whether there is a file with something in it; one that was just made has no tables yet."""
    return os.path.exists(path) and os.path.getsize(path) > 0


@contextmanager
def _connected(path: str) -> Iterator[apsw.Connection]:
    """For reading."""
    try:
        connection = connect(path, None, READER_CACHE_KIB)
        try:
            yield connection
        finally:
            leave(connection)
    except apsw.Error as error:
        raise translate(error) from error


@contextmanager
def _writing(path: str) -> Iterator[apsw.Connection]:
    """For changes that are on the disk when they are told."""
    try:
        connection = connect(path, None, READER_CACHE_KIB)
        try:
            set_sync(connection, True)
            write_log_again(connection, os.path.realpath(path), None)
            yield connection
        except BaseException:
            close_quietly(connection)
            raise
        fold(connection)
    except apsw.Error as error:
        raise translate(error) from error
