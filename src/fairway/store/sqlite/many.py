"""Many rows by one statement.

Guards: what is done for many rows is what the statement does for each of them, in their order.

A statement that runs once for each row is looked up and put back each time, and a connection keeps the hundred that
were put back last: so a hundred rows would make it forget, and compile again, all others of a group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import apsw

_SIZES: Final = (50, 10)  # rows in one statement; the rest of them goes one by one
_ROW: Final = re.compile(r"\(\?(?:, \?)*\)")  # a row of values, in a statement that takes several


def run_many(connection: apsw.Connection, sql: str, values: Sequence[Sequence[Any]]) -> int:
    """Run a statement for each; how many rows changed."""
    before = connection.total_changes()
    at = 0
    if _ROW.search(sql):
        for size in _SIZES:
            while len(values) - at >= size:
                connection.execute(_repeated(sql, size), tuple(chain.from_iterable(values[at : at + size])))
                at += size
    if at < len(values):
        connection.executemany(sql, values[at:])
    return connection.total_changes() - before


def run_flat(connection: apsw.Connection, sql: str, width: int, values: Sequence[Any]) -> None:
    """Run a statement that inserts a row of `width` values, for all of them in a row."""
    at, end = 0, len(values)
    for size in (*_SIZES, 1):
        step = size * width
        text = _repeated(sql, size) if end - at >= step else ""
        while end - at >= step:
            connection.execute(text, values[at : at + step])
            at += step


@lru_cache(maxsize=64)
def _repeated(sql: str, n: int) -> str:
    """The statement with room for n rows where it has it for one."""
    return _ROW.sub(lambda row: ", ".join([row[0]] * n), sql)
