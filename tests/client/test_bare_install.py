"""What a client is without the extra `client`: one that blocks needs nothing of it, one of an event loop names it."""

from __future__ import annotations

import asyncio
import sys

import pytest

import fairway
import fairway.aio
from fairway import limits
from fairway.errors import NeedMissing

NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.delitem(sys.modules, "fairway.client.looping", raising=False)
    monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.0)


@pytest.mark.parametrize("kind", ["fair", "bucket"])
def test_an_event_loop_without_the_extra_is_told_what_to_install(kind: str) -> None:
    async def main() -> None:
        async with fairway.aio.open(NOBODY, kind=kind):  # pyright: ignore[reportArgumentType, reportCallIssue]
            raise AssertionError

    with pytest.raises(NeedMissing, match=r"fairway\[client\]"):
        asyncio.run(main())


@pytest.mark.parametrize("kind", ["fair", "bucket"])
def test_a_queue_that_blocks_asks_without_the_extra(kind: str) -> None:
    with pytest.raises(fairway.Unreachable):
        fairway.open(NOBODY, kind=kind)  # pyright: ignore[reportArgumentType, reportCallIssue]
