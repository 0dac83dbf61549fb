"""A scripted port: verbs run against functions that answer their steps, and every step is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairway.face.driving import drive, iterate
from fairway.face.steps import Listing, Steps
from fairway.face.verbs import Verbs


class Script:
    """A port whose answers are given by the type of the command."""

    def __init__(self, **answers: Callable[[Any], Any]) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self.given_back: list[Any] = []

    def ask(self, command: Any) -> Any:
        self.asked.append(command)
        return self.answers[type(command).__name__](command)

    def unreceived(self, reserved: Any) -> None:
        self.given_back.append(reserved)

    def close(self) -> None: ...

    def run(self, steps: Steps[Any]) -> Any:
        return drive(steps, self)

    def all(self, listing: Listing[Any]) -> list[Any]:
        return list(iterate(listing, self))


def verbs(objects: Any = None, fetch: Any = None) -> Verbs:
    return Verbs(objects, iter(range(100, 200)).__next__, fetch)
