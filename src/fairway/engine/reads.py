"""Reads of the window as values: what is to be read, and what was found.

Guards: the engine itself never reads; between asking, reading and using the answer anything may happen.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fairway.engine.source import Rows
from fairway.engine.thaw import decode_described
from fairway.fair.levels import START, Level
from fairway.limits import PAGE_CHUNKS, READ_BYTES
from fairway.model.stored import Kind, StoredRun, Time
from fairway.model.submission import Described

ReadKind = Literal["main", "unpark", "ids", "due", "deadline", "scan", "slice", "fetch"]


class Answer(msgspec.Struct):
    """What was found, with what rows need to be made into runs."""

    rows: list[StoredRun] = []
    times: list[Time] = []
    described: dict[int, Described] = {}  # of active rows
    pages: dict[int, list[tuple[int, bytes]]] = {}  # of those that have several


class Read(msgspec.Struct):
    """One read; `ticket` ties the answer to the moment of asking."""

    kind: ReadKind
    limit: int = 0
    ticket: int = 0
    level: Level = START
    upto: Level | None = None
    tenant: str | None = None
    metadata: dict[str, str | int] = {}
    after: int = 0
    time: Time = (0.0, 0)
    ids: list[int] = []
    strategy: str = ""
    era: int = 0
    unseen: int = 0
    bytes_max: int = READ_BYTES  # of bodies; the row that reaches it is the last

    @property
    def name(self) -> str:
        """What it is for, whatever part of it is read."""
        return f"fetch {self.strategy}" if self.kind == "fetch" else self.kind

    @property
    def rows(self) -> int:
        """How many rows it asks for; 0: times, of which all are as easily read as some."""
        if self.kind in ("due", "deadline"):
            return 0
        return len(self.ids) if self.kind == "ids" else self.limit

    def more(self, answer: Answer) -> bool:
        """Whether there may be rows behind those that were found."""
        rows = answer.rows
        return len(rows) >= self.limit or sum(len(row.body) for row in rows) >= self.bytes_max

    def read(self, source: Rows) -> Answer:
        """Read it. Blocks on the store."""
        if self.kind in ("due", "deadline"):
            return Answer(times=source.times(self.kind, self.time, self.limit))
        if self.kind == "ids":
            rows = [run for id in self.ids if (run := source.run(id)) is not None]
        elif self.metadata:
            rows = source.listed(self.tenant, self.metadata, self.after, self.limit, self.bytes_max)
        else:
            rows = source.above(self.level, self.limit, self.upto, self.tenant, self.bytes_max)
        answer = Answer(rows)
        if self.kind not in ("scan", "slice"):
            fill(source, answer)
        return answer


def fill(source: Rows, answer: Answer) -> None:
    """Describe the active rows, and read their pages."""
    for row in answer.rows:
        if row.state == "active":
            described = answer.described[row.id] = decode_described(row.body)
            if described.total > PAGE_CHUNKS:
                pages = source.objects(Kind.PAGE, row.id)
                answer.pages[row.id] = [(part, body) for _, part, body in pages]
