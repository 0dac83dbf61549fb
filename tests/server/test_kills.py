"""Processes of a server are killed under load: callers repeat what was not answered, and nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest

import fairway
from fairway.testing.checker import check_history
from fairway.testing.facts import facts_of
from fairway.testing.history import Begin, End, Header, History, load
from fairway.testing.violation import Violation
from fairway.testing.witness import witnesses_of
from tests.kill.counting import acknowledged, on_a_call
from tests.kill.recorded import Lines, Recorded, ticket_of
from tests.kill.worker import Consumer, Producer, judged_later, result_of
from tests.proving import Kept, number
from tests.ring.need import need_ring
from tests.server.broken import Broken
from tests.server.live import Served, served, until

pytestmark = pytest.mark.real

KILLS = 8
LONG_KILLS = number("SERVER_KILLS", 1_200)  # in `make proof`, in storms of STORM_KILLS
LONG_RING_KILLS = number("SERVER_RING_KILLS", 300)
LONG_ENGINE_EVERY = 6
STORM_KILLS = 100
SLICE_KILLS = 12  # of a storm besides, whose history is short enough to be published
LONG_REST_SECONDS = 0.02  # of a caller after each step: processes start sooner, and histories are shorter
SEED = 5
HTTP_PROCESSES = 3  # so that one answers while others start
ENGINE_EVERY = 4  # of so many kills one hits the engine's process
DRAIN_SECONDS = 120.0
BURIED_SECONDS = 3.0  # the engine hears of a death at once, and may be busy


class Load:
    """Producers and consumers, each with a client of its own, every call recorded."""

    def __init__(self, url: str, lines: Lines, rest_seconds: float = 0.0) -> None:
        self.url, self.lines, self.rest_seconds = url, lines, rest_seconds
        self.stop = threading.Event()
        self.failed: list[BaseException] = []
        self.calls = 0
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for n in range(2):
            self._run(lambda recorded, n=n: Producer(recorded, n, 5)._produce)
        for n in range(3):
            self._run(lambda recorded, n=n: Consumer(recorded, n, 5)._consume)

    def _run(self, make: Callable[[Recorded], Callable[[], None]]) -> None:
        def loop() -> None:
            try:
                with fairway.open(self.url) as q:
                    step = make(Recorded(q, self.lines, 1))
                    while not self.stop.is_set():
                        with judged_later():
                            step()
                        self.calls += 1
                        self.stop.wait(self.rest_seconds)
            except BaseException as error:
                self.failed.append(error)

        self._threads.append(threading.Thread(target=loop))
        self._threads[-1].start()

    def wait_for(self, calls: int) -> None:
        """Until so many steps were made in all: on a busy machine a few kills are over before much was done."""
        until = time.monotonic() + 120
        while self.calls < calls:
            assert time.monotonic() < until, f"{self.calls} steps: {self.failed}"
            time.sleep(0.05)

    def end(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()
        assert not self.failed, self.failed


def kill_some(
    server: Served, load: Load, lines: Lines, dice: random.Random, kills: range, engine_every: int
) -> dict[str, list[float]]:
    """Kill one process after another, each when callers got on since the last; gives when, of each part."""
    times: dict[str, list[float]] = {"engine": [], "http": []}
    for n in kills:
        before = load.calls
        give_up = time.monotonic() + 60
        while load.calls < before + 20:
            assert time.monotonic() < give_up, (
                f"no calls after kill {n}: {load.failed} {server.log.read_text()[-3000:]}"
            )
            time.sleep(0.01)
        time.sleep(dice.random() * 0.2)
        part = "engine" if n % engine_every == engine_every - 1 else "http"
        found = server.wait_for(part, 1)
        victim = dice.choice(found)
        times[part].append(lines.now())
        os.kill(victim, signal.SIGKILL)
        if part == "engine":
            lines.started(life=n)
            server.wait_for(part, 1, {victim})
        else:
            until_gone(victim)
    server.wait_for("http", HTTP_PROCESSES)
    return times


def until_gone(pid: int) -> None:
    """Until the server has noticed a death; before, the process could be found and killed again."""
    until(lambda: not Path(f"/proc/{pid}").exists())


def drain(url: str, lines: Lines) -> None:
    with fairway.open(url) as q:
        recorded = Recorded(q, lines, 2)
        lines.note("drain")
        give_up = time.monotonic() + DRAIN_SECONDS
        while (stats := q.stats()).submissions_active or stats.chunks_leased:
            assert time.monotonic() < give_up, f"not drained: {stats}"
            leases = recorded.reserve("drain", 500, 30.0, 0.5)
            if leases:
                receipts = [ticket_of(lease) for lease in leases]
                recorded.complete("drain", receipts, [result_of(one, "drain") for one in receipts])
        lines.note("drained")
        recorded.census("drain")
        for one in list(q.submissions()):
            with suppress(fairway.FairwayError):
                recorded.show("drain", one.id)
                recorded.results("drain", one.id)


def judge(history: History) -> list[Violation]:
    """What is proven to be wrong.

    A reservation whose answer was lost with its process is seen by nobody: there the counts of those that were seen
    have a gap. Nothing is said of turns and waits beside one: its chunks were out, and its turns were charged.
    If it ran out, which a lease of a fifth of a second does on a busy machine, it was an attempt.
    """
    seen = facts_of(history).deliveries
    gaps = [
        (a.low, b.high + BURIED_SECONDS)
        for a, b in pairwise(seen)
        if a.receipt[0] != b.receipt[0] or b.receipt[1] != a.receipt[1] + 1
    ]
    history.memo["witnesses"] = {
        id: witness
        for id, witness in witnesses_of(history).items()
        if not any(low < witness.hand.request.end_t and witness.accepted.begin_t < high for low, high in gaps)
    }
    return [one for one in check_history(history) if not _ran_out_unseen(one, history, gaps)]


def _ran_out_unseen(one: Violation, history: History, gaps: list[tuple[float, float]]) -> bool:
    """Whether a lease that nobody saw may have been the attempt that is one too many, or the last."""
    lines = [history.lines[place] for place in one.places]
    if one.check == "attempts_are_counted":
        told = re.search(r"came as attempt (\d+) after \d+, not \d+ to (\d+)$", one.what)
        if told is None or int(told[1]) <= int(told[2]):
            return False
        times = [line.t for line in lines if isinstance(line, Begin | End)]
        first, last = min(times), max(times)
    elif one.check == "ends_have_a_cause" and one.what.endswith("failed by itself"):
        (shown,) = [line.ok for line in lines if isinstance(line, End)]
        if not isinstance(shown, dict) or shown["error"] != "the lease ran out":
            return False
        first, last = shown["created"], shown["ended"]
    else:
        return False
    return any(low < last and first < high for low, high in gaps)


def rings(server: Served) -> bool:
    """Whether an HTTP process talks to the engine through shared memory; one that nobody called yet does not."""
    return any("/memfd:fairway" in Path(f"/proc/{pid}/maps").read_text() for pid in server.children("http"))


def test_kills_of_http_processes_and_of_the_engine_lose_and_double_nothing(tmp_path: Path) -> None:
    seen = Counter[str]()
    storm(tmp_path, range(KILLS), ENGINE_EVERY, seen=seen)
    assert (seen["http"], seen["engine"]) == (KILLS - KILLS // ENGINE_EVERY, KILLS // ENGINE_EVERY)


def test_kills_over_the_ring_lose_and_double_nothing(tmp_path: Path) -> None:
    need_ring()
    storm(tmp_path, range(2), 2, "ring")


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_a_thousand_kills_of_http_processes_and_two_hundred_of_the_engine(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    storms(tmp_path, LONG_KILLS, "socket", record_proof)


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_hundreds_of_kills_over_the_ring(tmp_path: Path, record_proof: Callable[..., None]) -> None:
    need_ring()
    storms(tmp_path, LONG_RING_KILLS, "ring", record_proof)


def storms(folder: Path, kills: int, transport: str, record: Callable[..., None]) -> None:
    """Storms one after the other, each with its seed, in one row of the proof; kills are counted through them all."""
    seen, kept = Counter[str](), Kept(f"storms, of {SLICE_KILLS} kills")
    firsts = range(0, kills, STORM_KILLS)
    storms = [range(first, min(first + STORM_KILLS, kills)) for first in firsts]
    storms.append(range(kills, kills + SLICE_KILLS))
    seeds = range(SEED, SEED + len(storms))
    try:
        for seed, part in zip(seeds, storms, strict=True):
            (folder / str(seed)).mkdir()
            storm(folder / str(seed), part, LONG_ENGINE_EVERY, transport, seed, LONG_REST_SECONDS, seen, kept)
            print(f"seed {seed}: {dict(seen)}", flush=True)
        every = kills + SLICE_KILLS
        assert (seen["http"], seen["engine"]) == (
            every - every // LONG_ENGINE_EVERY,
            every // LONG_ENGINE_EVERY,
        )
    finally:
        record(
            "processes of a server killed" + (", over the ring" if transport == "ring" else ""),
            operations=seen["operations"],
            faults=seen["hits"],
            lost=seen["violations"],
            seed=f"{SEED} to {seeds[-1]}",
            note=f"{seen['http']:,} kills of HTTP processes, {seen['engine']:,} of the engine; counted are those of an"
            " HTTP process that broke off a call it had, and those of the engine with any call in flight",
            **kept.told(),
        )


def storm(
    folder: Path,
    kills: range,
    engine_every: int,
    transport: str = "socket",
    seed: int = SEED,
    rest_seconds: float = 0.0,
    seen: Counter[str] | None = None,
    kept: Kept | None = None,
) -> None:
    history = folder / "history.jsonl"
    lines = Lines(history, time.time() - time.monotonic(), 0)
    lines.write(Header(drained=True, origin={"seed": seed}))
    lines.started(life=0)
    broken = Broken(lines.now)
    asked = ("--workers", str(HTTP_PROCESSES), "--queue", "default", "--transport", transport)
    with served(folder, *asked) as server, broken.watched():
        load_ = Load(server.url, lines, rest_seconds)
        load_.start()
        try:
            times = kill_some(server, load_, lines, random.Random(seed), kills, engine_every)
            until = time.monotonic() + 30
            while rings(server) is not (transport == "ring"):
                assert time.monotonic() < until, "it is not the transport that was asked for"
                time.sleep(0.1)
            load_.wait_for(200)
        finally:
            load_.end()
        drain(server.url, lines)
        assert server.stop() == 0
    lines.close()
    found = load(history)
    violations = judge(found)
    hit = broken.met_by(times["http"]) + on_a_call(found, times["engine"])
    if seen is not None:
        seen.update({part: len(made) for part, made in times.items()})
        seen.update(operations=acknowledged(found), hits=hit, violations=len(violations))
    if kept is not None:
        kept.add(found)
    assert not violations, "\n".join(violation.story(found) for violation in violations[:5])
    assert hit > len(kills) / 10, "few kills met a call"
    done = [request for request in found.of("complete") if request.answered]
    assert len(done) > 20
    refused = [line.error for line in found.lines if isinstance(line, End) and line.error]
    assert not refused, "no call may be refused with an error"


def test_a_server_of_several_processes_ends_whole_and_leaves_nobody_behind(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2", "--queue", "default") as server:
        server.ready()
        pids = [*server.wait_for("engine", 1), *server.wait_for("http", 2)]
        with fairway.open(server.url, "new-one") as q:
            q.put(b"x")
            assert len(q.reserve()) == 1
        assert server.stop() == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_any_process_tells_the_calls_of_all_and_none_of_those_that_died(tmp_path: Path) -> None:
    def waits() -> set[float]:
        """What several scrapes say; each may be answered by another process."""
        found = set()
        for _ in range(8):
            page = httpx2.get(f"{server.url}/metrics", trust_env=False, timeout=60).text
            found |= {float(n) for n in re.findall(r'^fairway_http_calls{kind="wait"} (\S+)$', page, re.M)}
        return found

    def wait() -> None:
        with suppress(httpx2.TransportError):
            url = f"{server.url}/v1/queues/default/reserve"
            httpx2.post(url, json={"wait_seconds": 60}, trust_env=False, timeout=90)

    with served(tmp_path, "--workers", "2", "--queue", "default") as server:
        server.ready()
        threads = [threading.Thread(target=wait) for _ in range(5)]
        for thread in threads:
            thread.start()
        until(lambda: waits() == {5.0})
        processes = server.wait_for("http", 2)
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        server.wait_for("http", 2, set(processes))
        server.ready()
        until(lambda: waits() == {0.0})
        assert server.stop() == 0


def test_a_signal_to_all_processes_at_once_ends_the_engine_last(tmp_path: Path) -> None:
    """As Ctrl-C and service managers send it: the others need the engine until they have answered."""
    with served(tmp_path, "--workers", "1") as server:
        server.ready()
        with fairway.open(server.url) as q:
            q.put(b"x")
            (engine,), (http,) = server.wait_for("engine", 1), server.wait_for("http", 1)
            os.kill(engine, signal.SIGTERM)
            os.kill(engine, signal.SIGINT)
            os.kill(http, signal.SIGSTOP)  # it is not done with its callers yet
            time.sleep(1.0)  # in which the engine would end, and another be started
            assert server.children("engine") == [engine]
            os.kill(http, signal.SIGCONT)
            assert [lease.payload for lease in q.reserve(wait_seconds=20)] == [b"x"]
            assert server.children("engine") == [engine]
        assert server.stop() == 0
    assert not os.path.exists(f"/proc/{engine}")


def test_processes_of_a_killed_server_end_too(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "1", "--queue", "default") as server:
        server.ready()
        pids = [*server.wait_for("engine", 1), *server.wait_for("http", 1)]
        server.process.kill()
        server.process.wait()
        until = time.monotonic() + 60
        while [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
            assert time.monotonic() < until
            time.sleep(0.1)
    with fairway.open(tmp_path / "work.db", create=False) as q:
        assert q.stats().submissions_active == 0


def test_a_queue_that_is_to_be_there_is_never_missing_while_the_engine_begins(tmp_path: Path) -> None:
    """Its process is held up: who asks meanwhile waits, and so does who asks whether all is ready."""
    with served(tmp_path, "--workers", "1", "--queue", "mine") as server:
        (engine,) = server.wait_for("engine", 1)
        os.kill(engine, signal.SIGSTOP)
        told: list[tuple[str, int]] = []

        def ask(path: str) -> None:
            with httpx2.Client(base_url=server.url, trust_env=False, timeout=120) as http:
                told.append((path, http.get(path).status_code))

        threads = [
            threading.Thread(target=ask, args=(path,)) for path in ("/v1/queues/mine/stats", "/readyz")
        ]
        try:
            ask("/healthz")
            for thread in threads:
                thread.start()
            time.sleep(0.5)
        finally:
            os.kill(engine, signal.SIGCONT)
        for thread in threads:
            thread.join()
        assert sorted(told) == [("/healthz", 200), ("/readyz", 200), ("/v1/queues/mine/stats", 200)]


def test_one_process_does_all_and_a_restart_remembers(tmp_path: Path) -> None:
    with served(tmp_path, "--queue", "default") as server:
        with fairway.open(server.url) as q:
            id = q.put(b"kept").id
        assert server.stop() == 0
    with served(tmp_path, environ={"FAIRWAY_LOG_LEVEL": "warning"}) as server, fairway.open(server.url) as q:
        assert q.submission(id).state == "active"
        assert q.reserve()[0].payload == b"kept"
