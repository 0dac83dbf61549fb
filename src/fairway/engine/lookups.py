"""Lookups: what a call needs from the store before it is executed.

Guards: the engine itself never reads; what it is given may be older than what it knows, never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from fairway.limits import PAGE_CHUNKS
from fairway.model.stored import KeyRow, Kind, StoredRun
from fairway.model.submission import Described

_described = msgspec.msgpack.Decoder(Described).decode


class Source(Protocol):
    """The part of a store that is read for the engine."""

    def active(self) -> Iterator[StoredRun]: ...
    def objects(self, kind: Kind) -> Iterator[tuple[str | int, int, bytes]]: ...
    def journal(self) -> Iterator[tuple[int, bytes]]: ...
    def run(self, id: int) -> StoredRun | None: ...
    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None: ...
    def key(self, tenant: str, key: str) -> KeyRow | None: ...


class Found(msgspec.Struct):
    """What was found; what is not there is left out."""

    ticket: int = 0
    runs: dict[int, StoredRun] = {}
    keys: dict[tuple[str, str], KeyRow] = {}
    pages: dict[tuple[int, int], bytes] = {}


class Lookups(msgspec.Struct):
    """What to look for; `ticket` ties the answer to the moment of asking."""

    ticket: int
    runs: list[int] = []
    keys: list[tuple[str, str]] = []
    whole: list[int] = []  # runs with all their pages and their key
    pages: list[tuple[int, int]] = []

    def read(self, source: Source) -> Found:
        """Look everything up."""
        runs = {run.id: run for id in (*self.runs, *self.whole) if (run := source.run(id)) is not None}
        wanted, places = list(self.pages), list(self.keys)
        for id in self.whole:
            if id in runs:
                described = _described(runs[id].body)
                parts = -(-described.total // PAGE_CHUNKS) if described.total > PAGE_CHUNKS else 0
                wanted += [(id, part) for part in range(parts)]
                places += [(described.tenant, described.key)] if described.key else []
        keys = {where: row for where in places if (row := source.key(*where)) is not None}
        pages = {
            (id, part): body
            for id, part in wanted
            if (body := source.object(Kind.PAGE, id, part)) is not None
        }
        return Found(self.ticket, runs, keys, pages)
