"""Drafts: answers that exist but may not leave before their group is stored."""

from __future__ import annotations

from collections.abc import Callable

from fairway.engine.commands import Reply
from fairway.errors import FairwayError


class Draft:
    """The answer to one call: `reply` or `error` once `answered`; the runtime lets it leave.

    Guards: `leave` is called once, after the draft's group and every earlier one is stored.
    """

    __slots__ = ("answered", "error", "on_leave", "reply", "waits")

    def __init__(self) -> None:
        self.answered = False
        self.reply: Reply = None
        self.error: FairwayError | None = None
        self.waits: object = None  # what it waits for, if it is not answered at once
        self.on_leave: Callable[[Draft], None] | None = None

    def leave(self) -> None:
        if self.on_leave is not None:
            self.on_leave(self)
