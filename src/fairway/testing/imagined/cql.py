"""Understanding the named statements of the store: the part of CQL that they use, and no more.

Guards: a statement that is not understood is an error, never a guess.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_TOKEN: Final = re.compile(r"\s*(<=|>=|[=<>(),*?{}:]|'[^']*'|0x[0-9a-f]*|-?\d+|\w+)")
_OPS: Final = ("=", "<", "<=", ">", ">=", "IN")


class Slot(msgspec.Struct, frozen=True):
    """A value in a statement: the n-th that is bound, or one that stands there."""

    place: int = -1
    literal: Any = None

    def of(self, bound: tuple[Any, ...]) -> Any:
        return bound[self.place] if self.place >= 0 else self.literal


class Condition(msgspec.Struct, frozen=True):
    """One or several columns compared with as many values; with IN, one with a list."""

    columns: tuple[str, ...]
    op: str
    values: tuple[Slot, ...]


class Statement(msgspec.Struct):
    """One statement, understood."""

    verb: str
    table: str = ""
    columns: list[str] = []
    values: list[Slot] = []
    where: list[Condition] = []
    only_if: list[Condition] = []
    if_not_exists: bool = False
    stamp: Slot | None = None
    limit: Slot | None = None
    descending: bool = False


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = [found.strip() for found in _TOKEN.findall(text)]
        self.at = 0
        self.bound = 0

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        """Whether these words come next; then they are passed."""
        if self.tokens[self.at : self.at + len(words)] != list(words):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise ValueError(f"{' '.join(words)} is not in its place, but {self.tokens[self.at :]}")

    def slot(self) -> Slot:
        token = self.next()
        if token == "?":
            self.bound += 1
            return Slot(self.bound - 1)
        if token.startswith("0x"):
            return Slot(literal=bytes.fromhex(token[2:]))
        return Slot(literal=token[1:-1] if token.startswith("'") else int(token))

    def names(self) -> list[str]:
        """Names in brackets."""
        self.expect("(")
        found = [self.next()]
        while self.take(","):
            found.append(self.next())
        self.expect(")")
        return found

    def slots(self) -> list[Slot]:
        self.expect("(")
        found = [self.slot()]
        while self.take(","):
            found.append(self.slot())
        self.expect(")")
        return found

    def conditions(self) -> list[Condition]:
        found = [self._condition()]
        while self.take("AND"):
            found.append(self._condition())
        return found

    def _condition(self) -> Condition:
        several = self.peek() == "("
        columns = self.names() if several else [self.next()]
        op = self.next()
        if op not in _OPS:
            raise ValueError(f"{op} is no comparison")
        return Condition(tuple(columns), op, tuple(self.slots() if several else [self.slot()]))


def understand(text: str) -> Statement:
    """A statement from its text."""
    reader = _Reader(text)
    verb = reader.next()
    statement = {"INSERT": _insert, "DELETE": _delete, "UPDATE": _update, "SELECT": _select}[verb](reader)
    if reader.peek():
        raise ValueError(f"{reader.tokens[reader.at :]} is not understood")
    return statement


def _stamp(reader: _Reader) -> Slot | None:
    return reader.slot() if reader.take("USING", "TIMESTAMP") else None


def _insert(reader: _Reader) -> Statement:
    reader.expect("INTO")
    statement = Statement("put", reader.next(), reader.names())
    reader.expect("VALUES")
    statement.values = reader.slots()
    statement.if_not_exists = reader.take("IF", "NOT", "EXISTS")
    statement.stamp = _stamp(reader)
    return statement


def _delete(reader: _Reader) -> Statement:
    reader.expect("FROM")
    statement = Statement("drop", reader.next())
    statement.stamp = _stamp(reader)
    reader.expect("WHERE")
    statement.where = reader.conditions()
    statement.only_if = reader.conditions() if reader.take("IF") else []
    return statement


def _update(reader: _Reader) -> Statement:
    statement = Statement("change", reader.next())
    statement.stamp = _stamp(reader)
    reader.expect("SET")
    while True:
        statement.columns.append(reader.next())
        reader.expect("=")
        statement.values.append(reader.slot())
        if not reader.take(","):
            break
    reader.expect("WHERE")
    statement.where = reader.conditions()
    statement.only_if = reader.conditions() if reader.take("IF") else []
    return statement


def _select(reader: _Reader) -> Statement:
    statement = Statement("read", columns=[reader.next()])
    while reader.take(","):
        statement.columns.append(reader.next())
    reader.expect("FROM")
    statement.table = reader.next()
    reader.expect("WHERE")
    statement.where = reader.conditions()
    if reader.take("ORDER", "BY"):
        statement.descending = True
        reader.at += 2
        while reader.take(","):
            reader.at += 2
    statement.limit = reader.slot() if reader.take("LIMIT") else None
    return statement


def keys_of(create: str) -> tuple[list[str], list[str]]:
    """The partition's and the clustering columns of a table that is made by this text."""
    reader = _Reader(create[create.index("PRIMARY") :].split("WITH")[0])
    reader.expect("PRIMARY", "KEY", "(")
    partition = reader.names()
    clustering: list[str] = []
    while reader.take(","):
        clustering.append(reader.next())
    return partition, clustering
