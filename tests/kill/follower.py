"""Reads what a killed process wrote: which calls were in flight, and what the next process should try again.

Guards: it knows only what stands in the history; a line that was cut off counts as never written.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import msgspec

from fairway.model.lease import Ticket
from fairway.testing.history import Begin, End, Line
from tests.kill.worker import Again

_decode = msgspec.json.Decoder(Line).decode
_RECEIPTS_MAX = 60  # a process does not spend its life on those of others
_SETTLES = ("complete", "fail", "release")

LeaseId = tuple[int, int, int, int]  # submission, index, epoch, count


class Follower:
    """What is known after each kill."""

    def __init__(self, history: Path) -> None:
        self._history = history
        self._read_to = 0
        self._unknown: dict[tuple[int, int], Again] = {}  # submits without an answer
        self._held: dict[LeaseId, Ticket] = {}  # leases of which nobody knows how they ended
        self.calls = 0
        self.told: Counter[str] = Counter()

    def catch_up(self) -> list[Begin]:
        """Read what was written since; gives the calls in flight. One that waits for work is not counted as one."""
        open_: dict[int, Begin] = {}
        inherited = set(self._held)
        for line in self._lines():
            if isinstance(line, Begin):
                self.calls += 1
                open_[line.call] = line
                if line.op == "submit" and line.number:
                    self._submits(line)
            elif isinstance(line, End):
                self._answered(open_.pop(line.call), line, inherited)
        return [line for line in open_.values() if not line.args.get("wait_seconds")]

    def unknown(self) -> list[Again]:
        """Submits whose outcome nobody knows."""
        return list(self._unknown.values())

    def receipts(self) -> list[Ticket]:
        """Receipts for the next process: some of those that are open. The others are left to run out."""
        self._held = dict(list(self._held.items())[-_RECEIPTS_MAX::2])
        return list(self._held.values())

    def _lines(self) -> list[Line]:
        """The new lines; one that is not whole is cut off: its call was never made, or its answer never seen."""
        with self._history.open("rb") as file:
            file.seek(self._read_to)
            body = file.read()
        whole = body[: body.rfind(b"\n") + 1]
        self._read_to += len(whole)
        if len(whole) < len(body):
            self.told["lines cut off"] += 1
            os.truncate(self._history, self._read_to)
        return [_decode(line) for line in whole.splitlines()]

    def _submits(self, line: Begin) -> None:
        number = (line.client, line.number)
        self.told["submits tried again"] += number in self._unknown
        self._unknown[number] = Again(line.args["verb"], line.args["offers"], *number)

    def _answered(self, begin: Begin, end: End, inherited: set[LeaseId]) -> None:
        if end.error:
            self.told[f"error {end.error}"] += 1
        elif begin.op == "submit" and begin.number:
            del self._unknown[begin.client, begin.number]
        elif begin.op == "reserve":
            for submission, index, _, attempt in end.ok["spans"]:
                ticket = Ticket(submission, index, end.ok["epoch"], end.ok["count"], end.ok["seal"])
                self._held[submission, index, ticket.epoch, ticket.count] = ticket
                self.told["second and later attempts"] += attempt > 1
        elif begin.op in _SETTLES:
            for id, (outcome, _) in zip(_leases(begin), end.ok["outcomes"], strict=True):
                self._held.pop(id, None)
                whose = "old receipt " if id in inherited else ""
                self.told[f"{whose}{begin.op} {outcome}"] += 1


def _leases(line: Begin) -> list[LeaseId]:
    return [(spans[0][0], spans[0][1], epoch, count) for epoch, count, spans in line.args["parts"]]
