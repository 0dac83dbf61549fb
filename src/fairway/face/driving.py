"""Driving: running the steps of a verb over a port, in a thread or in an event loop.

Guards: a verb that does not return gives back what it reserved; nobody would ever answer those leases.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol, TypeVar

from fairway.engine.commands import Command, Reserve, Reserved
from fairway.face.reads import Read
from fairway.face.steps import Ask, Do, Items, Listing, Steps

R = TypeVar("R")
T = TypeVar("T")


class Port(Protocol):
    """What a blocking queue stands on: an engine in this process, or a way to one."""

    def ask(self, command: Command | Read) -> Any: ...
    def unreceived(self, reserved: Reserved) -> None: ...
    def close(self) -> None: ...


class AsyncPort(Protocol):
    """What an awaiting queue stands on."""

    async def ask(self, command: Command | Read) -> Any: ...
    async def do(self, function: Callable[[], Any]) -> Any: ...
    def unreceived(self, reserved: Reserved) -> None: ...
    async def close(self) -> None: ...


def drive(steps: Steps[R], port: Port) -> R:
    reserved: Reserved | None = None
    try:
        step = next(steps)
        while True:
            try:
                value = port.ask(step.command) if type(step) is Ask else step.function()  # pyright: ignore[reportAttributeAccessIssue]
            except BaseException as error:
                step = steps.throw(error)
            else:
                if type(value) is Reserved and not _named(step):
                    reserved = value
                step = steps.send(value)
    except StopIteration as end:
        return end.value
    except BaseException:
        if reserved is not None:
            port.unreceived(reserved)
        raise


async def drive_async(steps: Steps[R], port: AsyncPort) -> R:
    reserved: Reserved | None = None
    try:
        step = next(steps)
        while True:
            try:
                value = await (port.ask(step.command) if isinstance(step, Ask) else port.do(step.function))
            except BaseException as error:
                step = steps.throw(error)
            else:
                if type(value) is Reserved and not _named(step):
                    reserved = value
                step = steps.send(value)
    except StopIteration as end:
        return end.value
    except BaseException:
        if reserved is not None:
            port.unreceived(reserved)
        raise


def iterate(listing: Listing[T], port: Port) -> Iterator[T]:
    try:
        step = next(listing, None)
        while step is not None:
            if isinstance(step, Items):
                yield from step.items
                step = next(listing, None)
            else:
                value = port.ask(step.command) if isinstance(step, Ask) else step.function()
                step = _sent(listing, value)
    finally:
        listing.close()


async def iterate_async(listing: Listing[T], port: AsyncPort) -> AsyncIterator[T]:
    try:
        step = next(listing, None)
        while step is not None:
            if isinstance(step, Items):
                for item in step.items:
                    yield item
                step = next(listing, None)
            else:
                value = await (port.ask(step.command) if isinstance(step, Ask) else port.do(step.function))
                step = _sent(listing, value)
    finally:
        listing.close()


def _sent(listing: Listing[T], value: Any) -> Ask | Do | Items[T] | None:
    try:
        return listing.send(value)
    except StopIteration:
        return None


def _named(step: Ask | Do) -> bool:
    """A named reservation is handed back to whoever asks for it again, so it is never given back."""
    return isinstance(step, Ask) and isinstance(step.command, Reserve) and bool(step.command.consumer)
