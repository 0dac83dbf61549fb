"""The line before a bucket queue: one looks for all who wait, and nothing that was taken is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

import fairway
from fairway import limits
from fairway.server.line import Line


class Shelf:
    """What a line needs of a queue: messages that are taken in order, and every look counted."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.looks: list[tuple[int, float | None]] = []
        self.back: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None
        self.line = Line(self, lambda leases: self.back.extend(one.receipt for one in leases))  # type: ignore[arg-type]

    async def reserve(self, max: int = 1, *, lease_seconds: float | None = None) -> list[Any]:
        self.looks.append((max, lease_seconds))
        taken, self.messages = self.messages[:max], self.messages[max:]
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return [SimpleNamespace(receipt=one) for one in taken]

    async def got(self, max: int = 1, lease: float | None = None, wait: float = 3600.0) -> list[str]:
        return [one.receipt for one in await self.line.reserve(max, lease, wait)]

    async def waiting(self, many: int, *given: Any) -> list[asyncio.Task[list[str]]]:
        before = len(self.line._waiting)
        tasks = [asyncio.ensure_future(self.got(*given)) for _ in range(many)]
        while len(self.line._waiting) < before + many:
            await asyncio.sleep(0)
        return tasks


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 120))


def test_ten_thousand_who_wait_look_as_often_as_one_and_are_served_in_order() -> None:
    async def main() -> None:
        shelf, began = Shelf(), time.monotonic()
        first = await shelf.waiting(1)
        tasks = first + await shelf.waiting(9_999)
        await asyncio.sleep(1.0)
        assert len(shelf.looks) <= 3 + (time.monotonic() - began) / limits.BUCKET_POLL_SECONDS_MAX
        shelf.looks.clear()
        shelf.messages = [str(n) for n in range(10_000)]
        shelf.line.wake()
        assert await asyncio.gather(*tasks) == [[str(n)] for n in range(10_000)]
        assert len(shelf.looks) < 10_000 / limits.LINE_MESSAGES_MAX + 3, "one look serves many"

    run(main())


def test_leases_are_as_long_and_as_many_as_each_caller_asked_for() -> None:
    async def main() -> None:
        shelf = Shelf()
        (one,) = await shelf.waiting(1, 2, 30.0)
        (other,) = await shelf.waiting(1, 1, 60.0)
        (third,) = await shelf.waiting(1, 2, 30.0)
        shelf.looks.clear()
        shelf.messages = list("abcdef")
        shelf.line.wake()
        assert (await one, await third, await other) == (["a", "b"], ["c", "d"], ["e"])
        assert [look for look in shelf.looks if look[1] == 60.0] == [(1, 60.0)]
        assert shelf.messages == ["f"] and not shelf.back

    run(main())


@pytest.mark.parametrize("others", [0, 1])
def test_what_is_taken_for_a_caller_who_goes_is_handed_on_or_goes_back(others: int) -> None:
    async def main() -> None:
        shelf = Shelf()
        (gone,) = await shelf.waiting(1)
        tasks = await shelf.waiting(others)
        shelf.open.clear()
        shelf.messages = ["a", "b"]
        shelf.line.wake()
        while shelf.messages[:1] == ["a"]:  # until it is taken, and not told
            await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait((gone,))
        shelf.open.set()
        told = [await task for task in tasks]
        while len(told) + len(shelf.back) + len(shelf.messages) < 2:
            await asyncio.sleep(0)
        assert told == [["a"]][:others]
        assert [*shelf.back, *shelf.messages] == (["b"] if others else ["a", "b"])

    run(main())


def test_a_caller_who_goes_in_the_moment_he_is_told_gives_back() -> None:
    async def main() -> None:
        shelf = Shelf()
        (gone,) = await shelf.waiting(1)
        (waiter,) = shelf.line._waiting
        waiter.tell([SimpleNamespace(receipt="a")])  # type: ignore[list-item]
        gone.cancel()
        await asyncio.wait((gone,))
        assert gone.cancelled() and shelf.back == ["a"]

    run(main())


def test_nobody_waits_beyond_his_time_and_the_first_look_is_his_own() -> None:
    async def main() -> None:
        shelf = Shelf()
        assert await shelf.got(1, None, 0.0) == [] and await shelf.got(1, None, 0.05) == []
        shelf.messages = ["a"]
        assert await shelf.got(1, None, 0.0) == ["a"]
        assert not shelf.line._waiting

    run(main())


def test_an_error_is_told_to_those_who_wait_and_the_line_goes_on() -> None:
    async def main() -> None:
        shelf = Shelf()
        tasks = await shelf.waiting(3)
        shelf.error = fairway.QueueDeleted()
        shelf.line.wake()
        for task in tasks:
            with pytest.raises(fairway.QueueDeleted):
                await task
        shelf.error = None
        (again,) = await shelf.waiting(1)
        shelf.messages = ["a"]
        shelf.line.wake()
        assert await again == ["a"]
        (last,) = await shelf.waiting(1)
        await shelf.line.end(fairway.Closed())
        with pytest.raises(fairway.Closed):
            await last
        with pytest.raises(fairway.Closed):
            await shelf.got()

    run(main())
