"""Streams that another node makes: what breaks off is not taken for the whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from fairway.server.admission import Admission
from fairway.server.asking import Cut
from fairway.server.handing import _relayed, _whole
from fairway.server.held import Held


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


@pytest.mark.parametrize("breaks", [False, True])
def test_what_another_node_answers_counts_for_its_caller_as_it_comes(breaks: bool) -> None:
    admission, seen = Admission(), []

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(3):
            seen.append(admission.unread_bytes)
            yield bytes(100)
        if breaks:
            raise httpx2.ReadError("the node is gone")

    async def whole() -> bytes:
        return await _whole(httpx2.Response(200, content=parts()), Held(admission, "one"))

    if breaks:
        with pytest.raises(httpx2.ReadError):
            asyncio.run(whole())
    else:
        assert asyncio.run(whole()) == bytes(300)
    assert seen == [0, 100, 200]
    assert admission.unread_bytes == (0 if breaks else 300)
