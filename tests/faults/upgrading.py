"""A program that opens copies of a file, and is killed before the 1st, 2nd, 3rd ... statement of opening it.

Guards: a kill is SIGKILL to a process of its own, from inside SQLite, so nothing is rolled back or closed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import apsw

from fairway.store.sqlite import SqliteStore, opening

_connect = opening.connect


def open_and_die(path: Path, statement: int) -> None:
    """Open a file; the process ends before this statement, if there are so many."""
    left = [statement]

    def trace(cursor: object, sql: str, bindings: object) -> bool:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def connect(path: str, vfs: str | None, cache_kib: int) -> apsw.Connection:
        connection = _connect(path, vfs, cache_kib)
        connection.exec_trace = trace
        return connection

    opening.connect = connect
    SqliteStore.open(path, "default").close()


def main(old: Path, folder: Path) -> None:
    statement, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        statement += 1
        path = folder / f"{statement}.db"
        shutil.copy(old, path)
        child = os.fork()
        if child == 0:
            try:
                open_and_die(path, statement)
            finally:
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(statement - 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
