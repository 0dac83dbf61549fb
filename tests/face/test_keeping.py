"""Payload pages are kept open for the next reservation, within a bound."""

from __future__ import annotations

import pytest

from fairway.engine.commands import Reserve, Reserved, Settled
from fairway.face import keeping
from fairway.face.keeping import KeptPages
from fairway.face.reads import ReadPages
from fairway.model.page import payload_pages
from fairway.model.submission import Described
from tests.face.script import Script, verbs

PAYLOADS = [bytes([i]) * 1200 for i in range(30)]
PAGES, STARTS = payload_pages(PAYLOADS)
RUN = Described("acme", 30, {}, b"", page_starts=STARTS)
ALONE = Described("acme", 1, {}, b"", page_starts=(0,))


def kept_bytes(kept: KeptPages) -> int:
    return sum(size for _, size in kept._pages.values())


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptPages:
    """It has room for three pages of two payloads of a thousand bytes."""
    monkeypatch.setattr(keeping, "KEPT_PAGE_BYTES_MAX", 3 * (2000 + 2 * keeping._OBJECT_BYTES))
    return KeptPages()


def test_a_page_is_read_once_and_serves_many_reservations() -> None:
    pages = {(5, n): page for n, page in enumerate(PAGES)}
    next_chunk = iter(range(30))
    script = Script(
        Reserve=lambda command: Reserved(3, 4, 6, 99.0, [(5, next(next_chunk), 1, 1)], {5: RUN}),
        ReadPages=lambda command: {where: pages[where] for where in command.wanted},
    )
    face = verbs()
    for i in range(30):
        (lease,) = script.run(face.reserve())
        assert lease.payload == PAYLOADS[i]
    read = [where for command in script.asked if isinstance(command, ReadPages) for where in command.wanted]
    assert read == sorted(pages), "each page once"


def test_a_damaged_page_is_read_again() -> None:
    """A read that failed says nothing about the next one."""
    asked: list[list[tuple[int, int]]] = []

    def read(command: ReadPages) -> dict[tuple[int, int], bytes]:
        asked.append(command.wanted)
        return {(5, 0): PAGES[0][:-1] if len(asked) == 1 else PAGES[0]}

    script = Script(
        Reserve=lambda command: Reserved(
            3, 4, 6, 99.0, [(5, 0, 1, 1), (8, 0, 1, 1)], {5: RUN, 8: Described("b", 1)}
        ),
        ReadPages=read,
        Fail=lambda command: Settled([("retrying", 1)]),
    )
    face = verbs()
    assert [lease.submission for lease in script.run(face.reserve(2))] == [8]
    assert [lease.payload for lease in script.run(face.reserve(2))] == [PAYLOADS[0], None]
    assert asked == [[(5, 0)]] * 2


def test_a_message_is_not_kept() -> None:
    (page,), _ = payload_pages([b"once"])
    script = Script(
        Reserve=lambda command: Reserved(3, 4, 6, 99.0, [(5, 0, 1, 1)], {5: ALONE}),
        ReadPages=lambda command: {(5, 0): page},
    )
    face = verbs()
    for _ in range(2):
        assert [lease.payload for lease in script.run(face.reserve())] == [b"once"]
    assert [type(command) for command in script.asked] == [Reserve, ReadPages] * 2


def test_what_was_used_longest_ago_goes(kept: KeptPages) -> None:
    page = [bytes(1000)] * 2
    for n in range(3):
        kept.keep((n, 0), page, 2000)
    assert list(kept.find([(0, 0), (9, 0)])) == [(0, 0)]
    kept.keep((3, 0), page, 2000)
    kept.keep((3, 0), page, 2000)
    assert sorted(kept.find([(n, 0) for n in range(4)])) == [(0, 0), (2, 0), (3, 0)]
    assert kept._bytes == kept_bytes(kept) == keeping.KEPT_PAGE_BYTES_MAX


def test_a_page_that_is_larger_than_all_is_not_kept(kept: KeptPages) -> None:
    kept.keep((1, 0), [bytes(9000)] * 2, 18000)
    assert not kept.find([(1, 0)]) and kept._bytes == 0


def test_nobody_waits_for_another(kept: KeptPages) -> None:
    """Also not a child of a fork that happened meanwhile."""
    kept.keep((1, 0), [bytes(1000)] * 2, 2000)
    with kept._lock:
        assert kept.find([(1, 0)]) == {}
        kept.keep((2, 0), [bytes(1000)] * 2, 2000)
    assert list(kept.find([(1, 0), (2, 0)])) == [(1, 0)]
