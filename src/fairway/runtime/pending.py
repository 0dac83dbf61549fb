"""Calls on their way: from their sending until their answer is received.

Guards: `notify` is called when the answer may leave, and not before; then `reply` or `error` says it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fairway.engine.commands import Call, Command, Reserve, Wait
from fairway.engine.draft import Draft
from fairway.errors import FairwayError, OurError
from fairway.face.reads import Read

Notify = Callable[["Pending"], None]


class Pending:
    """One call and what became of it. All fields are guarded by the host's lock until it has left."""

    __slots__ = (
        "box",
        "call",
        "command",
        "draft",
        "error",
        "left",
        "life",
        "lives",
        "lost",
        "notify",
        "reply",
        "until",
    )

    def __init__(self, command: Command | Read, notify: Notify, box: Any = None) -> None:
        self.command = command
        self.notify = notify
        self.box = box  # what `notify` needs: a lock, a future
        self.call: Call | None = None
        self.draft: Draft | None = None
        self.life = 0  # of the engine that `call` was made for
        self.lives = 1  # how many engines it was sent to
        self.until = 0.0  # when its wait is over, if it waits
        self.left = False
        self.lost = False  # its caller is gone
        self.reply: Any = None
        self.error: FairwayError | None = None

    def begin_again(self, now: float) -> None:
        """Its engine is gone and it had no effect: it is as if it had just been sent, with less time to wait."""
        self.draft = None
        self.life = 0
        self.lives += 1
        left = max(0.0, self.until - now)
        if self.until and isinstance(self.command, Reserve):
            self.command = msgspec.structs.replace(self.command, wait_seconds=left)
        elif self.until and isinstance(self.command, Wait):
            self.command = msgspec.structs.replace(self.command, seconds=left)

    def leave(self, reply: object, error: FairwayError | None) -> None:
        """Let the answer go. Called under the host's lock, so `notify` must be quick."""
        if not self.left:
            self.reply = reply
            self.error = error
            self.notify(self)
            self.left = True  # last: interrupted before, it is done again, and a second `notify` does no harm


def seconds_of(command: Command) -> float:
    """How long a command may wait."""
    if isinstance(command, Reserve):
        return command.wait_seconds
    return command.seconds if isinstance(command, Wait) else 0.0


def copy_of(error: FairwayError) -> FairwayError:
    """The same error for one more caller: a traceback belongs to one thread."""
    copy = type(error)(str(error), **error.details)
    copy.__cause__ = error
    return copy


def ours(error: BaseException) -> FairwayError:
    """What ended a thread, as an error that every caller can be given."""
    if isinstance(error, FairwayError):
        return error
    wrapped = OurError(f"Fairway stopped, nothing acknowledged is lost; open the queue again: {error!r}")
    wrapped.__cause__ = error
    return wrapped
