"""Payloads that go out with a reservation: those that were reserved, and of a page of others nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.client import wire
from fairway.engine.commands import Fail, Reserved, Settled
from fairway.face.keeping import KeptPages
from fairway.face.leasing import leases_of
from fairway.face.reads import ReadPages
from fairway.model.lease import Lease
from fairway.model.page import payload_pages
from fairway.model.submission import Described
from fairway.server import payloads
from fairway.server.admission import Admission
from fairway.server.held import Held
from tests.face.script import Script
from tests.server.live import live

TENANTS, CHUNKS, BYTES = 20, 300, 200
PAYLOADS = [b"%200d" % i for i in range(CHUNKS)]
PAGES, STARTS = payload_pages(PAYLOADS)
RUN = Described("acme", CHUNKS, {}, b"", page_starts=STARTS)
STORED = {(5, n): page for n, page in enumerate(PAGES)}


class Port:
    """A port over pages, which notes what was read."""

    def __init__(self, pages: dict[tuple[int, int], bytes]) -> None:
        self.pages = pages
        self.read: list[tuple[int, int]] = []

    async def ask(self, command: ReadPages) -> dict[tuple[int, int], bytes]:
        self.read += command.wanted
        return {where: self.pages[where] for where in command.wanted if where in self.pages}


def bundled(port: Any, kept: KeptPages, *spans: tuple[int, int]) -> tuple[Reserved, wire.Pages]:
    reserved = Reserved(3, 4, 6, 99.0, [(5, start, count, 1) for start, count in spans], {5: RUN})
    held = Held(Admission())
    reserved, pages, whole = asyncio.run(payloads.bundled(port, reserved, held, kept))
    assert whole
    assert held.size == sum(map(len, pages.values())), "what is sent is what counts"
    return reserved, pages


def received(
    reserved: Reserved, pages: wire.Pages, kept: KeptPages | None = None
) -> tuple[list[Lease], list[int]]:
    """What a client that got them makes of it: leases, and the chunks that it fails as damaged."""
    script = Script(
        ReadPages=lambda command: {where: pages[where] for where in command.wanted if where in pages},
        Fail=lambda command: Settled([("retrying", len(command.parts[0].spans))]),
    )
    leases = script.run(leases_of(reserved, None, kept))
    failed = [index for c in script.asked if isinstance(c, Fail) for _, index, _ in c.parts[0].spans]
    return leases, failed


def test_of_a_page_of_which_little_is_reserved_only_that_is_sent() -> None:
    reserved, pages = bundled(Port(STORED), KeptPages(), (0, 1), (50, 2), (120, 1))
    assert sum(map(len, pages.values())) < 4 * BYTES * 2 < len(PAGES[0])
    leases, failed = received(reserved, pages)
    assert [lease.payload for lease in leases] == [PAYLOADS[i] for i in (0, 50, 51, 120)]
    assert not failed


def test_a_page_that_is_reserved_for_the_most_part_is_sent_as_it_is_stored() -> None:
    reserved, pages = bundled(Port(STORED), KeptPages(), (0, CHUNKS))
    assert pages == STORED
    assert [lease.payload for lease in received(reserved, pages)[0]] == PAYLOADS


def test_a_page_of_which_others_will_want_more_is_read_once() -> None:
    port, kept = Port(STORED), KeptPages()
    for index in range(10):
        reserved, pages = bundled(port, kept, (index, 1))
        assert [lease.payload for lease in received(reserved, pages)[0]] == [PAYLOADS[index]]
    assert port.read == [(5, 0)]


def test_what_a_client_keeps_for_its_next_reservation_is_no_part_of_a_page() -> None:
    port, kept = Port(STORED), KeptPages()
    for index in range(0, 6, 2):
        reserved, pages = bundled(port, KeptPages(), (index, 2))
        leases, failed = received(reserved, pages, kept)
        assert [lease.payload for lease in leases] == PAYLOADS[index : index + 2]
        assert not failed


@pytest.mark.parametrize("damage", ["altered", "gone", "another's"])
def test_damage_in_a_page_fails_the_chunk_that_wants_it(damage: str) -> None:
    pages = dict(STORED)
    if damage == "altered":
        pages[5, 0] = pages[5, 0][:-1] + b"!"
    elif damage == "gone":
        del pages[5, 0]
    else:
        pages[5, 0] = payload_pages(PAYLOADS[:2])[0][0]  # whole, and shorter
    port, kept = Port(pages), KeptPages()
    for _ in range(2):  # the second finds what the first one kept
        leases, failed = received(*bundled(port, kept, (3, 1), (STARTS[1], 1)))
        assert [lease.index for lease in leases] == [STARTS[1]]
        assert failed == [3]


@pytest.mark.real
def test_tenants_that_take_turns_cost_an_answer_their_payloads_and_no_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = []
    answering = wire.answering

    def counting(reply: object, pages: wire.Pages | None = None) -> bytes:
        answer = answering(reply, pages)
        if isinstance(reply, Reserved) and reply.spans:
            answers.append(len(answer))
        return answer

    monkeypatch.setattr(wire, "answering", counting)
    with live(tmp_path) as server, fairway.open(server.url) as queue:
        for tenant in range(TENANTS):
            queue.submit([b"%d %200d" % (tenant, i) for i in range(CHUNKS)], tenant=f"t{tenant}")
        for turn in range(CHUNKS // 10):
            leases = queue.reserve(max=TENANTS)
            assert sorted(lease.payload for lease in leases) == sorted(
                b"%d %200d" % (tenant, turn) for tenant in range(TENANTS)
            )
            queue.complete(leases)
    assert len(answers) == CHUNKS // 10
    assert max(answers) < TENANTS * BYTES * 3
