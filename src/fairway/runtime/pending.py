"""A call under way: sent, and its answer not yet with the caller.

Guards: its answer leaves once; a number it has been given stays with it, whichever engine answers it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from fairway.engine.commands import Call, Command, Part, Release, Reserve, Reserved, Wait
from fairway.engine.draft import Draft
from fairway.engine.lookups import Lookups
from fairway.errors import FairwayError, OurError
from fairway.face.reads import Read

Notify = Callable[["Pending"], None]


class Pending:
    """One call and what became of it. All fields are guarded by the lock of whoever carries it until it has left."""

    __slots__ = (
        "box",
        "call",
        "command",
        "draft",
        "error",
        "fixed",
        "left",
        "life",
        "lives",
        "lost",
        "notify",
        "remote",
        "reply",
        "until",
        "wanted",
    )

    def __init__(
        self, command: Command | Read, notify: Notify, box: Any = None, call: Call | None = None
    ) -> None:
        self.command = command
        self.notify = notify
        self.box = box  # what `notify` needs: a lock, a future
        self.call = call  # with its number, if it was given one
        self.remote = call is not None  # another process numbers it, and sends it again if it hears nothing
        self.fixed = False  # its number is the caller's own, who repeats it: it is never given another
        self.draft: Draft | None = None
        self.life = 0  # of the engine that it was looked up for
        self.wanted: Lookups | None = None  # what is being looked up for it
        self.lives = 1  # how many engines it was sent to
        self.until = 0.0  # when its wait is over, if it waits; monotonic
        self.left = False
        self.lost = False  # its caller is gone
        self.reply: Any = None
        self.error: FairwayError | None = None

    def arm(self) -> None:
        """It is sent for the first time: from now on its wait runs, whoever it is sent to next."""
        seconds = seconds_of(self.command)
        if seconds and not self.until:
            self.until = time.monotonic() + seconds

    def begin_again(self) -> None:
        """Its engine is gone: it is as if it had just been sent, with less time to wait."""
        self.draft = None
        self.life = 0
        if self.call is not None:
            self.lives += 1
        left = max(0.0, self.until - time.monotonic())
        if self.until and isinstance(self.command, Reserve):
            self.command = msgspec.structs.replace(self.command, wait_seconds=left)
        elif self.until and isinstance(self.command, Wait):
            self.command = msgspec.structs.replace(self.command, seconds=left)
        if self.call is None or isinstance(self.command, Read):
            return
        if self.call.number or self.remote:
            self.call = msgspec.structs.replace(self.call, command=self.command)
        else:
            self.call = None

    @property
    def needed(self) -> bool:
        """Whether anybody needs it still; a reserve may have leases already, which are found by its number."""
        return not self.lost or (isinstance(self.command, Reserve) and self.numbered)

    @property
    def numbered(self) -> bool:
        """Whether it goes by a number: it may have been carried out, and what became of it is found by that."""
        return self.call is not None and self.call.number > 0

    def forsake(self) -> None:
        """Its caller is gone, and will never ask again: nothing is waited for any more."""
        self.lost, self.until = True, 0.0
        if isinstance(self.command, Reserve):
            self.command = msgspec.structs.replace(self.command, wait_seconds=0.0)

    def leave(self, reply: object, error: FairwayError | None) -> None:
        """Let the answer go. Called under the carrier's lock, so `notify` must be quick."""
        if not self.left:
            self.reply = reply
            self.error = error
            self.notify(self)
            self.left = True  # last: interrupted before, it is done again, and a second `notify` does no harm


def seconds_of(command: Command | Read) -> float:
    """How long a command may wait."""
    if isinstance(command, Reserve):
        return command.wait_seconds
    return command.seconds if isinstance(command, Wait) else 0.0


def giving_back(reserved: Reserved) -> Pending:
    """A call that nobody waits for: leases that reached nobody go back uncounted."""
    spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
    return Pending(Release([Part(reserved.epoch, reserved.count, reserved.seal, spans)]), _nobody)


def to_give_back(command: object, reply: object) -> bool:
    """Whether an answer that nobody receives holds leases; named ones are handed out again when asked for."""
    return type(reply) is Reserved and bool(reply.spans) and not getattr(command, "consumer", "")


def _nobody(pending: Pending) -> None:
    """Nobody waits for this answer."""


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
