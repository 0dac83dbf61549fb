"""Shrinking: a failing simulation with as few steps as possible, told as a story.

Guards: what is left still fails the same check, and every step in it is needed or was too costly to try.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairway.testing.history import Begin, End, History, Note
from fairway.testing.simulate import STEPS, Simulation, simulate
from fairway.testing.violation import Violation, spoken

_TRIES_MAX = 400  # simulations; each takes some hundredths of a second
_STORY_LINES_MAX = 120  # beyond this only the lines that matter are told

Simulate = Callable[..., Simulation]


class Shrunk(msgspec.Struct):
    """A small simulation that fails, and the steps it consists of."""

    seed: int
    steps: list[int]
    violation: Violation
    history: History
    tries: int

    def story(self) -> str:
        """What happened, line by line; the lines that prove the violation are marked."""
        places = set(self.violation.places)
        lines = [line for line in range(1, len(self.history.lines)) if self._matters(line)]
        if len(lines) > _STORY_LINES_MAX:
            lines = [line for line in lines if line in places]
        told = [
            f"seed {self.seed}, {len(self.steps)} steps left: {self.violation.check}: {self.violation.what}"
        ]
        told += [f"{'>' if n in places else ' '} {n + 1:>5}  {spoken(self.history.lines[n])}" for n in lines]
        return "\n".join(told)

    def _matters(self, place: int) -> bool:
        line = self.history.lines[place]
        if place in self.violation.places or isinstance(line, Note):
            return True
        if isinstance(line, Begin):
            return line.who != "drainer"
        return isinstance(line, End) and not self._of_drainer(line.call)

    def _of_drainer(self, call: int) -> bool:
        who = self.history.memo.get("who")
        if who is None:
            who = self.history.memo["who"] = {
                line.call: line.who for line in self.history.lines if isinstance(line, Begin)
            }
        return who.get(call) == "drainer"


def shrink(
    seed: int, steps: int = STEPS, *, run: Simulate = simulate, check: str = "", tries_max: int = _TRIES_MAX
) -> Shrunk | None:
    """Leave out steps while the same check fails (the first one, unless it is named); None if none fails."""
    whole = run(seed, steps, keep=range(steps))
    failed = [violation.check for violation in whole.outcome.violations]
    if not failed or (check and check not in failed):
        return None
    check = check or failed[0]
    kept, best = list(range(steps)), whole
    size, tries = max(1, steps // 2), 0
    while tries < tries_max:
        start, shrunk = 0, False
        while start < len(kept) and tries < tries_max:
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            attempt = run(seed, steps, keep=fewer)
            if any(violation.check == check for violation in attempt.outcome.violations):
                kept, best, shrunk = fewer, attempt, True
            else:
                start += size
        if size == 1 and not shrunk:
            break
        size = max(1, size // 2)
    violation = next(v for v in best.outcome.violations if v.check == check)
    return Shrunk(seed, kept, violation, best.recorder.history(), tries)
