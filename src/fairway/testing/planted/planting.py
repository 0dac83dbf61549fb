"""Planting: a shipped function is replaced by a wrong one, for a while, wherever it is used.

Guards: the shipped code knows nothing of it; after `planted` everything is as it was, whatever happened inside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

import msgspec

W = TypeVar("W", bound=Callable[..., Any])


class Swap(msgspec.Struct):
    """One attribute of a module or class, and what stands there instead."""

    owner: Any
    name: str
    wrong: Any
    here: bool  # only in this module, though others may have the same function

    def places(self) -> list[tuple[Any, str]]:
        """Every place where the right one is bound: other modules have it by import."""
        if self.here or not isinstance(self.owner, ModuleType):
            return [(self.owner, self.name)]
        right = vars(self.owner)[self.name]
        modules = [module for name, module in sys.modules.items() if _is_shipped(name)]
        return [
            (module, name) for module in modules for name, value in vars(module).items() if value is right
        ]


def _is_shipped(module: str) -> bool:
    # The wrong functions stand beside the right ones here, and call them.
    return module.startswith("fairway.") and not module.startswith(__package__ or "")


Bugs = dict[str, list[Swap]]
BUGS: Bugs = {}
"""Every bug that is planted above the stores, by the sentence that names it; those of a store stand in its module."""


def wrong(bug: str, owner: Any, name: str, *, here: bool = False, bugs: Bugs = BUGS) -> Callable[[W], W]:
    """The function below stands for `owner.name` while the bug is planted."""

    def register(function: W) -> W:
        plant(bug, owner, name, function, here=here, bugs=bugs)
        return function

    return register


def plant(bug: str, owner: Any, name: str, value: Any, *, here: bool = False, bugs: Bugs = BUGS) -> None:
    """As `wrong`, for a value that is no function, or that stands in several places."""
    assert name in vars(owner), f"{owner} has no {name}: the bug {bug!r} would change nothing"
    bugs.setdefault(bug, []).append(Swap(owner, name, value, here))


@contextmanager
def planted(bug: str, bugs: Bugs = BUGS) -> Iterator[None]:
    """The bug is there until the end of the block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for swap in bugs[bug]:
            for owner, name in swap.places():
                before.append((owner, name, vars(owner)[name]))
                setattr(owner, name, swap.wrong)
        yield
    finally:
        for owner, name, right in reversed(before):
            setattr(owner, name, right)
