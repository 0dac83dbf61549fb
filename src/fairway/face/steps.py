"""Steps: what a verb needs from outside while it runs.

Guards: a verb does no I/O: it yields a step and is sent the value, so it serves threads and event loops.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from fairway.engine.commands import Command
from fairway.face.reads import Read

R = TypeVar("R")
T = TypeVar("T")


class Ask:
    """Send a command or a read to the queue; its reply comes back."""

    __slots__ = ("command",)

    def __init__(self, command: Command | Read) -> None:
        self.command = command


class Do:
    """Run a function that blocks (object stores); its value comes back."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function


class Items(Generic[T]):
    """Hand items to the caller of a listing; nothing comes back."""

    __slots__ = ("items",)

    def __init__(self, items: list[T]) -> None:
        self.items = items


Steps = Generator[Ask | Do, Any, R]
"""A verb under way; it returns R."""

Listing = Generator[Ask | Do | Items[T], Any, None]
"""A listing under way; it hands out T page by page."""
