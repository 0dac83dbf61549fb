"""Copying a file while others write to it.

Guards: the copy is the file at one moment, whole on the disk and found sound by SQLite, or an error was raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import apsw

from fairway.limits import BACKUP_STEP_PAGES
from fairway.store.sqlite.connections import leave, set_sync
from fairway.store.sqlite.looking import moment
from fairway.store.sqlite.opening import check
from fairway.store.sqlite.translate import translate

Tell = Callable[[int, int], None]  # pages done, pages in all


def copy(path: str, to: str, tell: Tell) -> None:
    """Fill the empty file `to` with a copy; it needs no log beside it."""
    source = moment(path)
    try:
        target = apsw.Connection(to, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            set_sync(target, True)
            _pages(source, target, tell)
            # The header says that there is a log; a backup is one file.
            target.pragma("journal_mode", "delete")
            check(to, target)
        finally:
            target.close(True)
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        leave(source)
    _sync(to)


def _pages(source: apsw.Connection, target: apsw.Connection, tell: Tell) -> None:
    # The source's transaction stays open throughout, so no commit of others makes SQLite start anew.
    with target.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step(BACKUP_STEP_PAGES)
            tell(backup.page_count - backup.remaining, backup.page_count)


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
