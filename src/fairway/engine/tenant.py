"""Tenants in memory: their counts and flags; turns are in fair.turns."""

from __future__ import annotations


class Tenant:
    """A tenant that has submissions, a turn, a weight of its own or a pause."""

    __slots__ = (
        "as_of", "away", "handed", "leased", "marked", "name", "paused", "runs", "submissions", "waiting"
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.paused = False
        self.runs: dict[int, None] = {}  # ids of active ones in memory; the runs themselves know their tenant
        self.submissions = 0  # active ones, wherever they are
        self.away = 0  # chunks waiting in runs that are not in memory
        self.waiting = 0  # chunks neither done, dead nor leased; paused, delayed and backing-off ones too
        self.leased = 0  # also leases of ended submissions, until they are answered or run out
        self.handed = 0  # chunks, since the start
        self.as_of = 0
        self.marked = False  # it is in State.dirty, so it need not be marked again
