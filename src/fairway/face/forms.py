"""The two forms of an open queue, blocking and awaiting, and what makes a method of either from a verb.

Guards: both forms of a kind have the same verbs with the same arguments and docstrings.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from fairway.errors import BadArgument
from fairway.face.driving import AsyncPort, Port, drive, drive_async, iterate, iterate_async
from fairway.face.steps import Listing, Steps

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _told(call: Callable[..., Any], verb: Callable[..., Any], owner: str, shape: str = "{}") -> Any:
    """Give a made function the name, docstring and signature of its verb, and what it returns."""
    update_wrapper(call, verb)
    told = inspect.signature(verb)
    inner = str(told.return_annotation).partition("[")[2].removesuffix("]")
    call.__signature__ = told.replace(return_annotation=shape.format(inner))  # pyright: ignore[reportFunctionMemberAccess]
    call.__annotations__ = {**verb.__annotations__, "return": shape.format(inner)}
    call.__qualname__ = f"{owner}.{verb.__name__}"
    return call


def blocking(verb: Callable[Concatenate[Any, P], Steps[R]]) -> Callable[Concatenate[Any, P], R]:
    def call(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return drive(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "Queue")


def listing(verb: Callable[Concatenate[Any, P], Listing[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    def call(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iterate(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "Queue", "Iterator[{}]")


def awaiting(verb: Callable[Concatenate[Any, P], Steps[R]]) -> Callable[Concatenate[Any, P], Awaitable[R]]:
    async def call(self: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await drive_async(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "AsyncQueue")


def streaming(
    verb: Callable[Concatenate[Any, P], Listing[T]],
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    def call(self: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return iterate_async(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "AsyncQueue", "AsyncIterator[{}]")


class Blocking:
    """A queue for threads: its verbs over a port, to be closed or used as a context manager."""

    def __init__(
        self,
        name: str,
        verbs: object,
        port: Port,
        again: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
    ) -> None:
        self.name = name
        self._verbs = verbs
        self._port = port
        self._again = again  # what opens it in another process

    def close(self) -> None:
        """Let go of the queue. Closing again does nothing."""
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Sent to another process, a queue is opened there."""
        if self._again is None:
            raise BadArgument("a queue in memory cannot be sent to another process; use a file")
        return self._again

    def __repr__(self) -> str:
        return f"<fairway.{type(self).__name__} {self.name!r}>"


class Awaiting:
    """A queue for one event loop."""

    def __init__(self, name: str, verbs: object, port: AsyncPort) -> None:
        self.name = name
        self._verbs = verbs
        self._port = port

    async def close(self) -> None:
        """Let go of the queue. Closing again does nothing."""
        await self._port.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __reduce__(self) -> NoReturn:
        raise BadArgument(
            "a queue of an event loop cannot be sent to another process; send its path and open it there"
        )

    def __repr__(self) -> str:
        return f"<fairway.{type(self).__name__} {self.name!r}>"
