"""A store in front of which, or behind which, the owner's machine may stop at any call.

Guards: a stop comes between two store calls, never inside one: what the store did is done, what it did not is not.
"""

from __future__ import annotations

from typing import Any

from fairway.store.port import Store


class Stopped(BaseException):
    """The owner's machine stopped here; nothing in the engine may catch this."""


class Fuse:
    """Counts down over the edges of store calls; stops the machine when it has burnt down."""

    def __init__(self) -> None:
        self.left = -1  # -1: not lit

    def burn(self) -> None:
        if self.left == 0:
            self.left = -1
            raise Stopped
        if self.left > 0:
            self.left -= 1


class FusedStore:
    """A store whose every call burns the fuse before and after."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return (
                method  # what a store says of itself is no call, and must not look like one: it would be true
            )
        if name == "owns":
            return method  # asked behind a read, as one with it: a stop between the two is one behind both

        def call(*args: Any, **named: Any) -> Any:
            self._fuse.burn()
            answer = method(*args, **named)
            self._fuse.burn()
            return answer

        return call
