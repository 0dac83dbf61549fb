"""What a disk may answer instead of doing what it was asked: input or output error, no space, half of a write.

Guards: a plan hits the call it names and as many of those after it as it says, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import apsw

CHANGES: Final = ("write", "truncate", "sync", "delete")


class Call(NamedTuple):
    """One call of SQLite to its file layer: open, read, write, truncate, sync, size, delete or access."""

    number: int  # from 1
    operation: str
    path: str


class Fault(NamedTuple):
    """The error of a call; a write may have got a part of its bytes through."""

    error: type[apsw.Error]
    part: float = 0.0


Plan = Callable[[Call], Fault | None]


def input_output_error(first: int, many: int = 1) -> Plan:
    """Calls first, first + 1, ... fail, whatever they are."""

    def plan(call: Call) -> Fault | None:
        if not first <= call.number < first + many:
            return None
        return Fault(apsw.CantOpenError if call.operation == "open" else apsw.IOError)

    return plan


def no_space(first: int, many: int) -> Plan:
    """From call `first` to `first + many` nothing more fits."""

    def plan(call: Call) -> Fault | None:
        hit = call.operation in ("write", "truncate") and first <= call.number < first + many
        return Fault(apsw.FullError) if hit else None

    return plan


def short_write(first: int, error: type[apsw.Error] = apsw.IOError) -> Plan:
    """The first write from call `first` on gets half of its bytes through."""
    done: list[int] = []

    def plan(call: Call) -> Fault | None:
        if call.operation != "write" or call.number < first or done:
            return None
        done.append(call.number)
        return Fault(error, 0.5)

    return plan


def one_failed_sync(first: int) -> Plan:
    """The first sync from call `first` on fails; other handles on its file are told by their own next one."""
    done: list[int] = []

    def plan(call: Call) -> Fault | None:
        if call.operation != "sync" or call.number < first or done:
            return None
        done.append(call.number)
        return Fault(apsw.IOError)

    return plan


def failed_sync(suffix: str = "-wal") -> Plan:
    """Every sync of such a file fails."""

    def plan(call: Call) -> Fault | None:
        return Fault(apsw.IOError) if call.operation == "sync" and call.path.endswith(suffix) else None

    return plan
