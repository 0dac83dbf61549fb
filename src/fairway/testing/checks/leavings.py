"""Leavings: what is over leaves nothing in the store.

Guards: a queue that runs for years does not grow by what nobody can ask for any more.
"""

from __future__ import annotations

from fairway.testing.history import History, Note
from fairway.testing.violation import Violation


def check_nothing_is_left(history: History) -> list[Violation]:
    """Drained, a store has no lease record and no progress; swept, nothing at all of a submission that is gone."""
    return [_violation(place, note) for place, note in history.notes if note.args.get("left")]


def _violation(place: int, note: Note) -> Violation:
    left = ", ".join(f"{many} {name}" for name, many in sorted(note.args["left"].items()))
    return Violation("nothing_is_left", f"{left} in the store of a queue that is {note.what}", (place,))
