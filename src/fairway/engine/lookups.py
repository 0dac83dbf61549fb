"""Lookups: what a call needs from the store before it is executed.

Guards: the engine itself never reads; what it is given may be older than what it knows, never the other way round.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from fairway.engine.progress import decode_progress
from fairway.engine.sheets import parts_of
from fairway.engine.source import Source
from fairway.limits import LIST_ROWS_MAX, PAGE_CHUNKS
from fairway.model.stored import KeyRow, Kind, StoredRun
from fairway.model.submission import Described

_described = msgspec.msgpack.Decoder(Described).decode


class Listing(Protocol):
    """Which active runs are listed (commands.ListActive)."""

    @property
    def tenant(self) -> str | None: ...
    @property
    def metadata(self) -> dict[str, str | int]: ...
    @property
    def after(self) -> int: ...
    @property
    def limit(self) -> int: ...


class Found(msgspec.Struct):
    """What was found; what is not there is left out. An active run comes with all its pages."""

    ticket: int = 0
    runs: dict[int, StoredRun] = {}
    keys: dict[tuple[str, str], KeyRow] = {}
    pages: dict[tuple[int, int], bytes] = {}  # by submission and stored part
    listed: list[StoredRun] = []  # active runs in id order
    more: bool = False  # there are more behind them
    above: int | None = (
        None  # runs with higher ids may have been stored after they were read; None: nothing was listed
    )

    @property
    def lodges(self) -> bool:
        """Whether a run that was found may come into memory: then it must be this owner's own."""
        return any(run.state == "active" for run in self.runs.values())


class Lookups(msgspec.Struct):
    """What to look for; `ticket` ties the answer to the moment of asking."""

    ticket: int
    runs: list[int] = []
    keys: list[tuple[str, str]] = []
    whole: list[int] = []  # runs with all their pages and their key
    pages: list[tuple[int, int]] = []  # submission and page
    listing: Listing | None = None
    slack: int = 0  # rows that may turn out to have ended
    above: int = 0  # the highest id that is stored
    dead: bool = False  # active runs with dead chunks

    def read(self, source: Source) -> Found:
        """Look everything up."""
        runs = {run.id: run for id in (*self.runs, *self.whole) if (run := source.run(id)) is not None}
        wanted, places = list(self.pages), list(self.keys)
        for id in self.whole:
            if id in runs:
                described = _described(runs[id].body)
                many = -(-described.total // PAGE_CHUNKS) if described.total > PAGE_CHUNKS else 0
                wanted += [(id, page) for page in range(many)]
                places += [(described.tenant, described.key)] if described.key else []
        keys = {where: row for where in places if (row := source.key(*where)) is not None}
        pages = {(id, part): body for id, page in wanted for part, body in parts_of(source.object, id, page)}
        found = Found(self.ticket, runs, keys, pages)
        if self.listing is not None:
            given, limit = self.listing, min(self.listing.limit, LIST_ROWS_MAX) + 1 + self.slack
            found.listed = source.listed(given.tenant, _pairs(given.metadata), given.after, limit)
            found.more = len(found.listed) == limit
            found.above = self.above
        if self.dead:
            ids = [int(key) for key, _, body in source.objects(Kind.PROGRESS) if decode_progress(body).dead]
            found.listed = [
                run for id in ids if (run := source.run(id)) is not None and run.state == "active"
            ]
        for run in (*runs.values(), *found.listed):
            if run.state == "active" and _described(run.body).total > PAGE_CHUNKS:
                for _, part, body in source.objects(Kind.PAGE, run.id):
                    pages[run.id, part] = body
        return found


def _pairs(metadata: dict[str, str | int]) -> dict[str, str | int]:
    """A filter on `tenant` is no metadata of a store; the engine compares it."""
    return {key: value for key, value in metadata.items() if key != "tenant"}
