"""A client's calls have one effect, whatever is lost on the way; leases that went back are not worked on."""

from __future__ import annotations

import asyncio
import itertools
import random
import time

import pytest

import fairway
from fairway import aio, limits
from fairway.client import wire
from fairway.engine.commands import Complete, Register, Reserve, Submit
from tests.client.proxy import Proxy
from tests.server.live import Live

_names = itertools.count()


@pytest.fixture
def name() -> str:
    return f"lost-{next(_names)}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_PAUSE_SECONDS", 0.01)


def of(request: bytes, kind: type) -> bool:
    """Whether a request carries a command of this kind."""
    body = request.partition(b"\r\n\r\n")[2]
    return bool(body) and b"/call " in request.split(b"\r\n")[0] and type(wire.asked(body).command) is kind


def once(kind: type, what: str):
    left = [what]
    return lambda request: left.pop() if left and of(request, kind) else ""


@pytest.mark.parametrize("what", ["request", "answer"])
@pytest.mark.parametrize("kind", [Register, Submit, Complete])
def test_a_call_whose_answer_is_lost_has_one_effect(server: Live, name: str, kind: type, what: str) -> None:
    with Proxy(server.port, once(kind, what)) as proxy, fairway.open(proxy.url, name) as q:
        sub = q.submit([b"a", b"b"])
        assert q.complete(q.reserve(2), results=[b"1", b"2"]) == ["done", "done"]
        assert proxy.lost == [what]
        assert [found.id for found in q.submissions()] == [sub.id]
        assert [result.data for result in q.results(sub)] == [b"1", b"2"]


@pytest.mark.parametrize("waits", [0.0, 5.0])
@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_reserve_whose_answer_is_lost_is_confirmed_or_made_anew(
    server: Live, name: str, what: str, waits: float
) -> None:
    with Proxy(server.port, once(Reserve, what)) as proxy, fairway.open(proxy.url, name) as q:
        q.put_many([b"x"] * 3)
        leases = q.reserve(2, wait_seconds=waits)
        assert proxy.lost == [what]
        assert len(leases) == 2 and {lease.payload for lease in leases} == {b"x"}
        assert q.complete(leases) == ["done", "done"]
        # Nothing is left behind: what was handed out first is what came, or has gone back.
        assert (q.stats().chunks_leased, q.stats().chunks_waiting) == (0, 1)


def test_leases_that_went_back_meanwhile_are_not_given_to_the_caller(server: Live, name: str) -> None:
    """The answer is lost, and before the client asks again its leases are released and taken by another."""
    with fairway.open(server.url, name) as other:
        taken: list[fairway.Lease] = []

        def lose(request: bytes) -> str:
            if not of(request, Reserve) or proxy.lost:
                return ""
            return "answer"

        with Proxy(server.port, lose) as proxy, fairway.open(proxy.url, name) as q:
            other.put_many([b"a", b"b"])
            found: list[fairway.Lease] = []
            core = q._port._core  # type: ignore[attr-defined]
            repeat = core._repeat

            def steal(asked, seconds):  # type: ignore[no-untyped-def]
                answer = yield from repeat(asked, seconds)
                if isinstance(asked.command, Reserve) and answer[2] and not taken:
                    part = answer[0]
                    for submission, start, _count, _ in part.spans:
                        from fairway.model.lease import Ticket

                        other.release(Ticket(submission, start, part.epoch, part.count, part.seal).text())
                    taken.extend(other.reserve(1))
                return answer

            core._repeat = steal
            found = q.reserve(2)
            assert len(taken) == 1
            assert taken[0].payload not in [lease.payload for lease in found]


def test_a_storm_of_losses_loses_and_repeats_nothing(server: Live, name: str) -> None:
    dice = random.Random(7)

    def lose(request: bytes) -> str:
        return dice.choice(["", "", "", "request", "answer"])

    with Proxy(server.port, lose) as proxy:
        with fairway.open(proxy.url, name) as q:
            made = [q.put(b"%d" % i).id for i in range(40)]
            seen: list[bytes | None] = []
            until = time.monotonic() + 60
            while len(seen) < 40 and time.monotonic() < until:
                leases = q.reserve(7, lease_seconds=30)
                for lease, outcome in zip(leases, q.complete(leases), strict=True):
                    assert outcome == "done"
                    seen.append(lease.payload)
            proxy.lose = lambda request: ""
            assert len(set(made)) == 40
            assert sorted(seen) == sorted(b"%d" % i for i in range(40))  # type: ignore[type-var]
            assert {found.state for found in q.submissions()} == {"completed"}
        assert len(proxy.lost) > 10


def test_a_server_that_is_not_there_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.2)
    with pytest.raises(fairway.Unreachable, match=r"no server answered .* nothing was sent, so"):
        fairway.open("http://127.0.0.1:9", "default")

    async def awaiting() -> None:
        async with aio.open("http://127.0.0.1:9", "default"):
            pass

    with pytest.raises(fairway.Unreachable, match="nothing was sent, so"):
        asyncio.run(awaiting())


def test_a_server_that_does_not_answer_leaves_it_open_whether_a_call_had_an_effect(
    server: Live, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Proxy(server.port, lambda request: "") as proxy, fairway.open(proxy.url, name) as q:
        proxy.lose = lambda request: "answer"
        monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.2)
        with pytest.raises(fairway.Unreachable, match="only when it is repeated"):
            q.put(b"x")
        proxy.lose = lambda request: ""
        assert q.stats().submissions_active == 1


def test_a_list_of_nodes_goes_round_those_that_are_down(server: Live, name: str) -> None:
    for _ in range(4):
        with fairway.open(["http://127.0.0.1:9", server.url], name) as q:
            assert q.put(b"x").state == "active"
    with fairway.open(f"http://127.0.0.1:9,{server.url}", name) as q:
        assert q.stats().submissions_active == 4
