"""The group that is being filled: rows, records, events and drafts that leave together.

Guards: a draft in it leaves only when it is stored.
"""

from __future__ import annotations

from fairway.engine.draft import Draft
from fairway.engine.progress import Usual
from fairway.engine.records import Record
from fairway.model.event import Happened, What
from fairway.model.stored import Drop, End, KeyRow, Move, Put, ResultPage, Row


class Filling:
    """What the next group will hold."""

    __slots__ = (
        "calls",
        "drafts",
        "drops",
        "ends",
        "events",
        "keys",
        "left",
        "moves",
        "purge",
        "purge_events_before",
        "purge_keys",
        "puts",
        "records",
        "results",
        "rows",
        "sync",
        "usual",
        "usual_body",
    )

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.moves: list[Move] = []
        self.ends: list[End] = []
        self.left: list[int] = []  # ended runs that left memory
        self.keys: list[KeyRow] = []
        self.results: list[ResultPage] = []
        self.records: list[Record] = []
        self.events: list[Happened] = []
        self.puts: list[Put] = []
        self.drops: list[Drop] = []
        self.purge: list[int] = []
        self.purge_keys: list[tuple[str, str]] = []
        self.purge_events_before = 0.0
        self.drafts: list[Draft] = []
        self.calls = 0
        self.sync = False
        self.usual: Usual | None = None  # the last end that was like others, and its body
        self.usual_body = b""

    def tell(self, what: What, now: float, span: tuple[int, ...], detail: str) -> None:
        """One more thing of a kind that often happens to many submissions in a row."""
        last = self.events[-1] if self.events else None
        if last is not None and last.what is what and last.time == now and last.detail == detail:
            last.spans.append(span)
        else:
            self.events.append(Happened(what, now, [span], detail=detail))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store."""
        return not (
            self.records or self.rows or self.ends or self.moves or self.keys or self.results or self.events
            or self.purge or self.purge_keys or self.purge_events_before
        )  # fmt: skip
