"""Bugs of the SQLite store: its transactions, its fence and what it syncs.

Guards: each is one forgotten condition or one transaction that is two; the conformance suite of stores finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from fairway.errors import Fenced
from fairway.model.stored import Group
from fairway.store.sqlite import store, writing
from fairway.store.sqlite.connections import rows, transaction
from fairway.store.sqlite.store import SqliteStore
from fairway.store.sqlite.translate import translate
from fairway.testing.planted.planting import Bugs, plant, wrong

FILE_BUGS: Final[Bugs] = {}

# -- one transaction


@wrong("a group is not one transaction", store, "transaction", here=True, bugs=FILE_BUGS)
@contextmanager
def each_by_itself(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    try:
        yield connection
    except apsw.Error as error:
        raise translate(error) from error


_commit = SqliteStore.commit


@wrong("the journal is cut before its group is stored", SqliteStore, "commit", bugs=FILE_BUGS)
def cut_first(self: SqliteStore, group: Group) -> None:
    start, _ = writing.places(self._queue)
    with transaction(self._ready(group.sync)) as connection:
        connection.execute(writing._SQL["trim_journal"], (start, start + group.journal_floor))
    _commit(self, group)


@wrong("what a group purges leaves before it is stored", SqliteStore, "commit", bugs=FILE_BUGS)
def purge_first(self: SqliteStore, group: Group) -> None:
    with transaction(self._ready(group.sync)) as connection:
        writing._purge(connection, self._queue, group.purge)
    _commit(self, group)


# -- the fence


def _claim(without: str) -> dict[str, str]:
    """The statements of the store, with a part of a group's condition left out of its claim."""
    claim = writing._SQL["claim"]
    assert without in claim
    return {**writing._SQL, "claim": claim.replace(without, "")}


for _what, _part in (("group number", " AND number = ?3 - 1"), ("range id", " AND range_id = ?2")):
    plant(f"the {_what} is not in the claim", writing, "_SQL", _claim(_part), here=True, bugs=FILE_BUGS)


@wrong("a settle believes a commit that failed", SqliteStore, "_settled", bugs=FILE_BUGS)
def surely_lost(self: SqliteStore, connection: apsw.Connection, group: Group) -> bool:
    return False


@wrong("a number that was not stored is not burnt", SqliteStore, "_settled", bugs=FILE_BUGS)
def unburnt(self: SqliteStore, connection: apsw.Connection, group: Group) -> bool:
    range_id, number, burnt = rows(connection, store._SQL["fence"], (self._queue,))[0]
    if range_id != group.range_id or not group.number - 1 <= number <= group.number:
        raise Fenced()
    return number == group.number and burnt != number


@wrong("a settle does not look who owns", SqliteStore, "_settled", bugs=FILE_BUGS)
def whoever_owns(self: SqliteStore, connection: apsw.Connection, group: Group) -> bool:
    _, number, burnt = rows(connection, store._SQL["fence"], (self._queue,))[0]
    if number < group.number:
        connection.execute(store._SQL["burn"], (self._queue, group.number))
    return number == group.number and burnt != number
