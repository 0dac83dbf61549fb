"""Streams that another node makes: what breaks off is not taken for the whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from fairway.server.asking import Cut
from fairway.server.handing import _relayed


def answer(breaks: bool) -> httpx2.Response:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one\n"
        if breaks:
            raise httpx2.ReadError("the node is gone")

    return httpx2.Response(200, content=parts())


def got(parts: AsyncIterator[bytes]) -> list[bytes]:
    async def every() -> list[bytes]:
        return [part async for part in parts]

    return asyncio.run(every())


def test_results_that_break_off_between_nodes_do_not_end_as_if_they_were_whole() -> None:
    with pytest.raises(Cut):
        got(_relayed(answer(breaks=True), lambda: True, endless=False))
    with pytest.raises(Cut):
        got(_relayed(answer(breaks=False), lambda: False, endless=False))
    assert got(_relayed(answer(breaks=False), lambda: True, endless=False)) == [b"one\n"]


def test_events_end_anywhere_for_their_client_comes_again() -> None:
    assert got(_relayed(answer(breaks=True), lambda: True, endless=True)) == [b"one\n"]
    assert got(_relayed(answer(breaks=False), lambda: False, endless=True)) == []
