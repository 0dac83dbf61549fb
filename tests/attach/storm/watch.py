"""Reads the history of many processes while they write it: what was in flight when one died, and what its heir tries.

Guards: it knows only what stands in the history; a line that was cut off counts as never written.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from fairway.model.lease import Ticket
from fairway.testing.history import Begin, End, Line
from tests.kill.worker import CALLS_PER_LIFE, Again

_decode = msgspec.json.Decoder(Line).decode
_RECEIPTS_MAX = 10  # an heir does not spend its life on those of others
_SETTLES = ("complete", "fail", "release")

LeaseId = tuple[int, int, int, int]  # submission, index, epoch, count


def life_of(call: int) -> int:
    return call // CALLS_PER_LIFE


def whole_lines(body: bytes) -> tuple[list[Line], int]:
    """The lines that can be read, and how many cannot: those that a kill cut off."""
    lines: list[Line] = []
    cut = 0
    for raw in body.split(b"\n"):
        try:
            if raw:
                lines.append(_decode(raw))
        except msgspec.DecodeError:
            cut += 1
    return lines, cut


class Watch:
    """What is known at each moment."""

    def __init__(self, history: Path) -> None:
        self._history = history
        self._read_to = 0
        self._open: dict[int, Begin] = {}
        self._unknown: dict[tuple[int, int], tuple[int, Again]] = {}  # submits without an answer, and whose
        self._held: dict[LeaseId, tuple[int, Ticket]] = {}  # leases that nobody has answered for, and whose
        self.last: dict[tuple[int, str], float] = {}  # when each caller of each life last heard an answer
        self.calls = 0
        self.told: Counter[str] = Counter()

    def died(self, life: int) -> list[Begin]:
        """One was killed; gives its calls in flight. One that waits for work is not counted as one."""
        self.catch_up()
        calls = [call for call in self._open if life_of(call) == life]
        lines = [self._open.pop(call) for call in calls]
        return [line for line in lines if not line.args.get("wait_seconds")]

    def busy(self, life: int) -> bool:
        """Whether a call of this one is in flight that does not wait for work."""
        self.catch_up()
        return any(
            life_of(call) == life and not line.args.get("wait_seconds") for call, line in self._open.items()
        )

    def inherit(self, dead: int, heir: int) -> tuple[list[Again], list[Ticket]]:
        """What the heir tries again: submits of unknown outcome, and some receipts. Others are left to run out."""
        again = {number: one for number, (life, one) in self._unknown.items() if life == dead}
        for number, one in again.items():
            self._unknown[number] = (heir, one)
        mine = {id: ticket for id, (life, ticket) in self._held.items() if life == dead}
        for id in mine:
            del self._held[id]
        some = dict(list(mine.items())[-_RECEIPTS_MAX:])
        self._held.update({id: (heir, ticket) for id, ticket in some.items()})
        return list(again.values()), list(some.values())

    def unknown(self) -> list[Again]:
        """Submits whose outcome nobody knows, when all are dead."""
        return [one for _, one in self._unknown.values()]

    def catch_up(self) -> None:
        """Read what was written since, up to the last whole line."""
        with self._history.open("rb") as file:
            file.seek(self._read_to)
            body = file.read()
        end = body.rfind(b"\n") + 1
        self._read_to += end
        lines, cut = whole_lines(body[:end])
        self.told["lines cut off"] += cut
        for line in lines:
            if isinstance(line, Begin):
                self.calls += 1
                self._open[line.call] = line
                if line.op == "submit" and line.number:
                    self._submits(line)
            elif isinstance(line, End) and (begin := self._open.pop(line.call, None)) is not None:
                self.last[life_of(line.call), begin.who] = line.t
                self._answered(begin, line)

    def _submits(self, line: Begin) -> None:
        number = (line.client, line.number)
        self.told["submits tried again"] += number in self._unknown
        self._unknown[number] = (
            life_of(line.call),
            Again(line.args["verb"], line.args["offers"], *number),
        )

    def _answered(self, begin: Begin, end: End) -> None:
        life = life_of(begin.call)
        if end.error:
            self.told[f"error {end.error}"] += 1
        elif begin.op == "submit" and begin.number:
            self._unknown.pop((begin.client, begin.number), None)
        elif begin.op == "reserve":
            for submission, index, _, attempt in end.ok["spans"]:
                ticket = Ticket(submission, index, end.ok["epoch"], end.ok["count"], end.ok["seal"])
                self._held[submission, index, ticket.epoch, ticket.count] = (life, ticket)
                self.told["second and later attempts"] += attempt > 1
        elif begin.op in _SETTLES:
            for (epoch, count, spans), (outcome, _) in zip(
                begin.args["parts"], end.ok["outcomes"], strict=True
            ):
                self._held.pop((spans[0][0], spans[0][1], epoch, count), None)
                whose = "" if begin.who.startswith("consumer") and life else "drain "
                self.told[f"{whose}{begin.op} {outcome}"] += 1
