"""MaxSimultaneous is never exceeded: by many threads, over a restart and a takeover, and after a cancel."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import fairway
from tests.attach.member_script import LIVELY_SECONDS, Child, wait_until

MOST = 3
STRATEGY = f'MaxSimultaneous("tenant", {MOST}, Fair)'
TENANTS = ["a", "b", "c", "d"]
THREADS = 64
HAMMER_SECONDS = 2.0
CALL_SECONDS = 0.01
LEASE_SECONDS = 3.0  # a worker holds a chunk for about CALL_SECONDS


class Gauge:
    """How many are at work for each tenant, and the most there ever were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: set[tuple[str, float, object]] = (
            set()
        )  # each until its lease ends, and something of its own
        self.most: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    @contextmanager
    def at_work(self, leases: list[tuple[str, float]]) -> Iterator[None]:
        """Tenants, and when their leases end: a worker that was held up for longer has nothing any more."""
        mine = {(tenant, deadline - 0.1, object()) for tenant, deadline in leases}
        with self._lock:
            self._now |= mine
            live = Counter(tenant for tenant, end, _ in self._now if time.time() < end)
            for tenant, _ in leases:
                self.calls[tenant] += 1
                self.most[tenant] = max(self.most[tenant], live[tenant])
        try:
            yield
        finally:
            with self._lock:
                self._now -= mine

    def reached(self) -> bool:
        """Whether every tenant had as many at work as it may, and often."""
        with self._lock:
            return all(self.most[one] >= MOST and self.calls[one] > 10 * MOST for one in TENANTS)

    def begin_again(self) -> Counter[str]:
        """Forget the most that were seen, and give it."""
        with self._lock:
            most, self.most, self.calls = self.most, Counter(), Counter()
            return most


# -- threads


def hammer(q: fairway.Queue, gauge: Gauge, meanwhile: Callable[[], None], strategies: list[str]) -> None:
    """Many threads reserve some, count themselves in and out, and give back in every way."""
    began = time.monotonic()
    over = threading.Event()
    errors: list[BaseException] = []

    def work(i: int) -> None:
        dice = random.Random(i)
        try:
            while not over.is_set():
                leases = q.reserve(
                    dice.randint(1, 4), strategy=strategies[i % len(strategies)], wait_seconds=0.2
                )
                with gauge.at_work([(lease.tenant, lease.deadline) for lease in leases]):
                    time.sleep(dice.random() / 500)
                first, rest = leases[:1], leases[1:]
                q.complete(first)
                dice.choice([q.complete, q.release, lambda some: q.fail(some, delay_seconds=0.0)])(rest)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    while (spent := time.monotonic() - began) < HAMMER_SECONDS or (
        not gauge.reached() and spent < LIVELY_SECONDS
    ):
        meanwhile()
    over.set()
    for thread in threads:
        thread.join(LIVELY_SECONDS)
        assert not thread.is_alive()
    assert errors == []


def rest() -> None:
    time.sleep(0.05)


def nothing_leaked(q: fairway.Queue) -> None:
    """All came back: nothing is out, and one reserve gets exactly what the limit allows."""
    assert q.stats().chunks_leased == 0
    leases = q.reserve(1000, strategy=STRATEGY)
    assert Counter(lease.tenant for lease in leases) == dict.fromkeys(TENANTS, MOST)


def test_64_threads_never_have_more_than_the_limit_at_work(q: fairway.Queue) -> None:
    for tenant in TENANTS:
        q.submit(chunks=100_000, tenant=tenant, attempts_max=1000)
    gauge = Gauge()
    hammer(q, gauge, rest, [STRATEGY])
    assert gauge.most == dict.fromkeys(TENANTS, MOST), "never above it, and reached"
    assert min(gauge.calls.values()) > 10 * MOST
    nothing_leaked(q)


def test_64_threads_with_different_strategies_that_have_the_limit_share_it() -> None:
    with fairway.open(":memory:") as q:
        for tenant in TENANTS:
            q.submit(chunks=100_000, tenant=tenant, attempts_max=1000, metadata={"mode": "x"})
        gauge = Gauge()
        hammer(
            q,
            gauge,
            rest,
            [
                STRATEGY,
                f'MaxSimultaneous("tenant", {MOST}, Random)',
                f'SelectOnly("mode", "x", MaxSimultaneous("tenant", {MOST}, NewestFirst))',
                f'OrElse(MaxSimultaneous("tenant", 1, OldestFirst), MaxSimultaneous("tenant", {MOST}, Fair))',
            ],
        )
        assert gauge.most == dict.fromkeys(TENANTS, MOST)
        nothing_leaked(q)


def test_64_threads_keep_to_the_limit_while_submissions_are_cancelled_and_redriven() -> None:
    with fairway.open(":memory:") as q:
        dice = random.Random(1)
        live = [
            q.submit(chunks=10_000, tenant=tenant, attempts_max=1000).id for tenant in TENANTS for _ in "12"
        ]

        def steer() -> None:
            time.sleep(0.01)
            id = dice.choice(live)
            q.cancel(id)
            if dice.random() < 0.5:
                q.redrive(id)
            else:
                live.remove(id)
                live.append(q.submit(chunks=10_000, tenant=q.submission(id).tenant, attempts_max=1000).id)

        gauge = Gauge()
        hammer(q, gauge, steer, [STRATEGY])
        assert gauge.most == dict.fromkeys(TENANTS, MOST)
        nothing_leaked(q)


def test_each_thread_is_a_consumer_that_a_percentage_counts(q: fairway.Queue) -> None:
    q.submit(chunks=100, tenant="a")
    all_asked = threading.Barrier(7, timeout=LIVELY_SECONDS)

    def look() -> None:
        q.reserve(strategy='SelectOnly("mode", "none", Fair)')
        all_asked.wait()  # a thread that is over may give its number to the next

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    all_asked.wait()
    assert len(q.reserve(9, strategy='MaxSimultaneous("tenant", "50%", Fair)')) == 3, "half of 7"
    for thread in threads:
        thread.join()


# -- cancel and restart


@pytest.mark.parametrize("answer", ["complete", "fail", "release"])
def test_leases_of_a_cancelled_submission_count_until_they_are_answered(
    q: fairway.Queue, answer: str
) -> None:
    cancelled = q.submit(chunks=MOST, tenant="a")
    held = q.reserve(MOST, strategy=STRATEGY)
    q.submit(chunks=9, tenant="a")
    q.cancel(cancelled)
    assert q.reserve(9, strategy=STRATEGY) == []
    for lease in held:
        assert getattr(q, answer)([lease]) == ["ended"]
        assert len(q.reserve(9, strategy=STRATEGY)) == 1, "one came free, and no more"


def test_leases_of_a_cancelled_submission_count_until_they_run_out(q: fairway.Queue) -> None:
    cancelled = q.submit(chunks=MOST, tenant="a")
    held = q.reserve(MOST, strategy=STRATEGY, lease_seconds=1.0)
    q.submit(chunks=9, tenant="a")
    q.cancel(cancelled)
    found = q.reserve(9, strategy=STRATEGY, wait_seconds=LIVELY_SECONDS)
    assert len(found) == MOST
    assert time.time() >= held[0].deadline - 0.1, "not before they ran out"


@pytest.mark.parametrize("cancelled", [False, True], ids=["active", "cancelled"])
def test_leases_count_across_a_restart(tmp_path: Path, cancelled: bool) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        first = q.submit(chunks=2, tenant="a")
        held = [lease.receipt for lease in q.reserve(2, strategy=STRATEGY)]
        q.submit(chunks=9, tenant="a")
        if cancelled:
            q.cancel(first)
    with fairway.open(tmp_path / "work.db") as q:
        later = q.reserve(9, strategy=STRATEGY)
        assert len(later) == MOST - 2
        assert q.complete(held) == ["ended" if cancelled else "done"] * 2
        assert len(q.reserve(9, strategy=STRATEGY)) == 2
        q.complete(later)
        assert len(q.reserve(9, strategy=STRATEGY)) == 1


# -- processes


class Stub:
    """A server that is called for a tenant, takes its time, and counts who calls at the same time."""

    def __init__(self) -> None:
        self.gauge = Gauge()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(ConnectionError), connection, connection.makefile("rw") as lines:
            for line in lines:
                tenant, deadline = line.split()
                with self.gauge.at_work([(tenant, float(deadline))]):
                    time.sleep(CALL_SECONDS)
                lines.write("ok\n")
                lines.flush()

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(LIVELY_SECONDS)


def work_for(q: fairway.Queue, port: int, threads: int) -> None:
    """What a worker process does until it is killed: reserve under the limit, call the server, complete."""

    def work() -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rw") as lines:
            while True:
                leases = q.reserve(strategy=STRATEGY, lease_seconds=LEASE_SECONDS, wait_seconds=1.0)
                # A host may have died between the lease and its answer: what is half over is not begun.
                if leases and leases[0].deadline - time.time() > LEASE_SECONDS / 2:
                    lines.write(f"{leases[0].tenant} {leases[0].deadline}\n")
                    lines.flush()
                    assert lines.readline() == "ok\n"
                q.complete(leases)

    for _ in range(threads):
        threading.Thread(target=work, daemon=True).start()


class Crew:
    """Worker processes on one file, always as many."""

    def __init__(self, path: Path, port: int, stack: ExitStack) -> None:
        self._path, self._port, self._stack = path, port, stack
        self.workers: list[Child] = []

    def hire(self) -> None:
        worker = self._stack.enter_context(Child.opened(self._path))
        worker.do(f"__import__('{__name__}', fromlist=['x']).work_for(q, {self._port}, 6)")
        self.workers.append(worker)

    def kill_the_host(self) -> None:
        """Kill -9 the process that owns the queue."""
        (host,) = [worker for worker in self.workers if worker.way == "Host"]
        self.workers.remove(host)
        host.kill()

    def ways(self) -> list[str]:
        return sorted(worker.way for worker in self.workers)


@pytest.mark.real
def test_workers_in_four_processes_keep_to_the_limit_while_their_hosts_are_killed(tmp_path: Path) -> None:
    with Stub() as stub, ExitStack() as stack:
        gauge = stub.gauge

        def all_reached() -> bool:
            return all(gauge.most[tenant] >= MOST and gauge.calls[tenant] > 20 for tenant in TENANTS)

        crew = Crew(tmp_path / "work.db", stub.port, stack)
        for _ in range(4):
            crew.hire()
        crew.workers[0].do(
            f"[q.submit(chunks=100_000, tenant=tenant, attempts_max=1000).id for tenant in {TENANTS}]"
        )
        seen: list[dict[str, int]] = []
        for killed in range(3):
            wait_until(all_reached)  # also: what the dead had is free again, and nothing is held for good
            seen.append(dict(gauge.begin_again()))
            if killed < 2:
                crew.kill_the_host()
                crew.hire()
                wait_until(lambda: crew.ways() == ["Attached", "Attached", "Attached", "Host"])
        time.sleep(LEASE_SECONDS)  # over the time when the last leases of the dead run out
        assert seen == [dict.fromkeys(TENANTS, MOST)] * 3, "never above the limit, and reached each time"
        assert max(gauge.begin_again().values()) <= MOST


@pytest.mark.real
@pytest.mark.parametrize("over", ["takeover", "restart"])
def test_the_leases_of_a_killed_process_count_until_they_run_out(tmp_path: Path, over: str) -> None:
    path = tmp_path / "work.db"
    limit = 'MaxSimultaneous("tenant", 1, Fair)'
    reserve = f"[[l.index, l.deadline] for l in q.reserve(9, strategy={limit!r}, %s)]"
    with ExitStack() as stack:
        host = stack.enter_context(Child.opened(path))
        other = stack.enter_context(Child.opened(path)) if over == "takeover" else None
        host.do("q.submit(chunks=9, tenant='a').id")
        ((_, deadline),) = host.do(reserve % f"lease_seconds={LEASE_SECONDS}")
        host.kill()
        other = other or stack.enter_context(Child.opened(path))
        found: list[Any] = other.do(reserve % "wait_seconds=60")
        assert other.way == "Host"
        assert len(found) == 1, "one, when the other's time is over"
        assert time.time() >= deadline - 0.1
