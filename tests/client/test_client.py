"""A queue behind a server is the same `Queue`: opening, errors, loops, forks, other processes, objects."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import pickle
import threading
import time
from pathlib import Path

import pytest

import fairway
from fairway import limits
from fairway.client.address import Address
from tests.server.live import Live, live

_names = itertools.count()


@pytest.fixture
def name() -> str:
    return f"of-client-{next(_names)}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://", "url must be"),
        ("http://host:port", "url must be"),
        ("http://host:0", "url must be"),
        ("http://[::1", "url must be"),
        ("http://[host]:7420", "url must be"),
        ("http://my host:7420", "url must be"),
        ("http://host:7420, http://other host:7420", "url must be"),
        ("http://bücher.example", "ASCII"),
        ("http://host/path", "without a path"),
        ("https://host?x=1", "without a path"),
        ("http://user:secret@host", "never in the URL"),
        (["http://a", "work.db"], "url must be"),
        (["http://h"] * (limits.NODES_MAX + 1), "addresses"),
    ],
)
def test_a_bad_address_is_refused_with_reasons(url: object, message: str) -> None:
    with pytest.raises(fairway.BadArgument, match=message) as told:
        fairway.open(url)  # type: ignore[arg-type]
    assert "secret" not in str(told.value)


def test_a_token_is_not_sent_in_the_clear_beyond_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fairway.BadArgument, match="plain http"):
        Address.of("http://example.com", "default", "fw_x_y")
    assert Address.of("https://example.com", "default", "fw_x_y").token
    assert Address.of("http://127.0.0.1:1", "default", "fw_x_y").token
    monkeypatch.setenv("FAIRWAY_PLAIN_HTTP", "1")
    assert Address.of("http://example.com", "default", "fw_x_y").token
    monkeypatch.setenv("FAIRWAY_TOKEN", "fw_from_environment")
    assert Address.of("http://localhost", "default", None).token == "fw_from_environment"


def test_a_token_goes_with_a_server_only(tmp_path: Path) -> None:
    with pytest.raises(fairway.BadArgument, match="token goes with a server"):
        fairway.open(tmp_path / "w.db", token="fw_x_y")
    with pytest.raises(fairway.BadArgument, match="forget_leases"):
        fairway.open("http://127.0.0.1:9", forget_leases=True)


def test_a_queue_that_is_not_there_is_made_or_refused(server: Live, name: str) -> None:
    with pytest.raises(fairway.NotFound):
        fairway.open(server.url, name, create=False)
    with fairway.open(server.url, name) as q:
        assert q.stats().queue == name
    fairway.open(server.url, name, create=False).close()


def test_errors_come_back_as_the_classes_they_were(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        reader = server.token("read")
        with pytest.raises(fairway.Unauthorized):
            fairway.open(server.url)
        with pytest.raises(fairway.Unauthorized):
            fairway.open(server.url, token=reader + "x")
        with fairway.open(server.url, token=reader) as q:
            with pytest.raises(fairway.Forbidden):
                q.put(b"x")
            with pytest.raises(fairway.NotFound):
                q.submission(1)
            assert q.stats().submissions_active == 0
        with pytest.raises(fairway.Forbidden):
            fairway.open(server.url, "other", token=server.token("read", queues=("default",)))


def test_closed_is_closed(server: Live, name: str) -> None:
    q = fairway.open(server.url, name)
    q.close()
    q.close()
    with pytest.raises(fairway.Closed):
        q.put(b"x")


def test_a_closed_client_is_forgotten_by_the_server(server: Live, name: str) -> None:
    with fairway.open(server.url, name) as q:
        q.put(b"x")
        engine = server.hosting._held  # it is hosted here
        assert name in engine
        member = _member(server, name)
        before = len(member.way.engine.state.clients)
    assert len(member.way.engine.state.clients) < before


def _member(server: Live, name: str):  # type: ignore[no-untyped-def]
    from fairway.runtime.registry import registry

    return registry._entries[os.path.realpath(server.settings.store), name].member


def test_threads_share_a_client(server: Live, name: str) -> None:
    with fairway.open(server.url, name) as q:
        seen: list[bytes | None] = []

        def run(who: int) -> None:
            for i in range(10):
                q.put(b"%d.%d" % (who, i))
            while leases := q.reserve(3):
                q.complete(leases)
                seen.extend(lease.payload for lease in leases)

        threads = [threading.Thread(target=run, args=(who,)) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == sorted(b"%d.%d" % (who, i) for who in range(6) for i in range(10))  # type: ignore[type-var]


def test_a_forked_child_has_numbers_and_connections_of_its_own(server: Live, name: str) -> None:
    with fairway.open(server.url, name) as q:
        q.put(b"parent")
        child = multiprocessing.get_context("fork").Process(target=_puts, args=(q,))
        child.start()
        q.put(b"parent too")
        child.join()
        assert child.exitcode == 0
        assert q.stats().submissions_active == 12


def _puts(q: fairway.Queue) -> None:
    for _ in range(10):
        q.put(b"child")
    os._exit(0)


def test_a_queue_sent_to_another_process_is_opened_there(server: Live, name: str) -> None:
    with fairway.open(server.url, name) as q, pickle.loads(pickle.dumps(q)) as again:
        again.put(b"x")
        assert q.stats().submissions_active == 1


def test_the_verbs_with_await(server: Live, name: str) -> None:
    async def run() -> None:
        async with fairway.aio.open(server.url, name) as q:
            made = await asyncio.gather(*(q.put(b"%d" % i) for i in range(150)))
            assert len({sub.id for sub in made}) == 150
            waiting = [asyncio.create_task(q.wait(sub.id, 30)) for sub in made[:20]]
            leases = await q.reserve(200)
            assert {lease.payload for lease in leases} == {b"%d" % i for i in range(150)}
            await q.complete(leases, results=[b"r"] * 150)
            assert {one.state for one in await asyncio.gather(*waiting)} == {"completed"}
            assert [result.data async for result in q.results(made[0])] == [b"r"]
            assert len([one async for one in q.submissions()]) == 150

    asyncio.run(run())


def test_a_cancelled_reserve_leaves_no_lease(server: Live, name: str) -> None:
    async def run() -> None:
        async with fairway.aio.open(server.url, name) as q:
            waits = [asyncio.create_task(q.reserve(wait_seconds=30)) for _ in range(10)]
            while (await q.stats()).waiters < 10:
                await asyncio.sleep(0.02)
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            await q.put_many([b"x"] * 5)
            until = time.monotonic() + 60
            while (stats := await q.stats()).waiters or stats.chunks_leased:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
            assert (await q.stats()).chunks_waiting == 5

    asyncio.run(run())


def test_payloads_as_objects_are_read_and_written_by_the_worker_itself(
    server: Live, name: str, tmp_path: Path
) -> None:
    folder = Path(server.settings.objects[0].removeprefix("file://")) / name
    folder.mkdir()
    with fairway.open(server.url, name) as q:
        sub = q.submit((b"%d" % i for i in range(5)), objects=f"file://{folder}/in")
        leases = q.reserve(5)
        assert [lease.payload for lease in leases] == [b"%d" % i for i in range(5)]
        q.complete(leases, results=[b"out"] * 5)
        assert {result.read() for result in q.results(sub)} == {b"out"}
        with pytest.raises(fairway.Forbidden, match="roots"):
            q.submit(chunks=1, objects="file:///etc")


@pytest.mark.parametrize(
    "bound", ["fairway.server.payloads.ANSWER_BYTES_MAX", "fairway.limits.CALLER_UNREAD_BYTES_MAX"]
)
def test_more_payload_than_one_answer_holds_comes_in_several(
    server: Live, name: str, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(bound, 200_000)
    payloads = [bytes([i]) * 60_000 for i in range(20)]
    with fairway.open(server.url, name) as q:
        q.submit(payloads)
        assert [lease.payload for lease in q.reserve(20)] == payloads


def test_a_long_wait_is_cut_into_polls(server: Live, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POLL_SECONDS", 0.2)
    with fairway.open(server.url, name) as q:
        since = time.monotonic()
        assert q.reserve(wait_seconds=0.7) == []
        assert time.monotonic() - since >= 0.65
        sub = q.submit(chunks=1)
        with pytest.raises(fairway.WaitTimeout):
            q.wait(sub, 0.5)
