"""Producers ten times faster than consumers: memory stays bounded, refusals are typed, nothing acknowledged is lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx2
import msgspec
import pytest

import fairway
from fairway import limits
from tests.proving import number
from tests.server.live import live
from tests.soak.gauges import MIB, look

pytestmark = pytest.mark.real

SHORT_SECONDS = 2.0
LONG_SECONDS = number("OVERLOAD_SECONDS", 60)
TIMES = 10
MESSAGES_MAX = 50_000_000  # marks of one byte, made as the run goes on
WINDOW_ROWS = 500
ROWS_MAX = 4 * WINDOW_ROWS  # the window, what is read to fill it, and what five threads have under way
BACKLOG_MIN = 4 * ROWS_MAX
BATCH = 100
ANSWERS_MIN = 20  # of each kind
PAYLOAD_BYTES = 200
MEMORY_BYTES_MAX = (
    256 * MIB
)  # more than before: caches of 64 MiB for payloads and for pages, and what Python keeps
DRAIN_SECONDS = 3600.0
PATIENCE_SECONDS = 60.0


class Marks:
    """Which messages were acknowledged, and which were delivered: one byte each, whatever they are."""

    def __init__(self) -> None:
        self.acked, self.seen = bytearray(), bytearray()
        self._next = 0
        self._lock = threading.Lock()

    def take(self, many: int) -> range:
        """Numbers that no other message has."""
        with self._lock:
            first, self._next = self._next, self._next + many
            for marks in (self.acked, self.seen):
                marks.extend(bytes(many))
            assert self._next < MESSAGES_MAX
            return range(first, first + many)

    def ack(self, numbers: range) -> None:
        self.acked[numbers.start : numbers.stop] = b"\1" * len(numbers)

    def see(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            self.seen[int(payload.split()[0])] += 1

    @property
    def lost(self) -> int:
        return sum(acked and not seen for acked, seen in zip(self.acked, self.seen, strict=True))

    @property
    def twice(self) -> int:
        return sum(seen > 1 for seen in self.seen)

    @property
    def uninvited(self) -> int:
        """Delivered though their caller was told that nothing was done."""
        return sum(seen and not acked for acked, seen in zip(self.acked, self.seen, strict=True))


def payload_of(number: int) -> bytes:
    return b"%d " % number + bytes(PAYLOAD_BYTES)


class Crowd:
    """Threads that do the same until they are told to stop."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.failed: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def add(self, many: int, do: Callable[[], None]) -> None:
        def repeat() -> None:
            try:
                while not self.over.is_set():
                    do()
            except BaseException as error:
                self.failed.append(error)
                self.over.set()

        self._threads += [threading.Thread(target=repeat) for _ in range(many)]

    def run(self, seconds: float, enough: Callable[[], bool]) -> None:
        """So long, and on a machine that is busy with other things until enough has happened."""
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + seconds
        while not self.over.wait(0.1):
            now = time.monotonic()
            if (enough() and now > end) or now > end + PATIENCE_SECONDS:
                break
        self.over.set()
        for thread in self._threads:
            thread.join()
        assert not self.failed, self.failed


def work(q: fairway.Queue, marks: Marks, most: int) -> int:
    leases = q.reserve(most, wait_seconds=0.1)
    if leases:
        marks.see([lease.payload or b"" for lease in leases])
        assert set(q.complete(leases)) == {"done"}
    return len(leases)


def drain(q: fairway.Queue, marks: Marks) -> None:
    give_up = time.monotonic() + DRAIN_SECONDS
    while q.stats().submissions_active:
        assert time.monotonic() < give_up, q.stats()
        work(q, marks, 1000)


class Most(msgspec.Struct):
    """The most there ever were of what must stay bounded, and of what need not."""

    backlog: int = 0
    rows: int = 0  # in memory
    grown_bytes: int = 0

    def __str__(self) -> str:
        grown = f"{self.grown_bytes / MIB:.0f} MiB"
        return f"at most {self.backlog:,} waiting, {self.rows:,} of them in memory, which grew by {grown}"


def embedded(path: Path, seconds: float) -> tuple[Marks, Most]:
    marks, crowd, most, handed = Marks(), Crowd(), Most(), [0]
    with fairway.open(path, window_rows=WINDOW_ROWS) as q:

        def put() -> None:
            numbers = marks.take(BATCH)
            q.put_many([payload_of(number) for number in numbers])
            marks.ack(numbers)

        def take_one_of_ten() -> None:
            # It never takes more than a tenth of what was put, however the machine shares its cores.
            if handed[0] * TIMES < len(marks.acked):
                handed[0] += work(q, marks, BATCH)
            else:
                time.sleep(0.005)

        def watch() -> bool:
            most.grown_bytes = max(most.grown_bytes, look(path, 0.0).memory_bytes - before)
            most.backlog = max(most.backlog, q.stats().chunks_waiting)
            host = q._port._member.way
            with host.lock:
                most.rows = max(most.rows, len(host.usable().state.runs))
            return most.backlog > BACKLOG_MIN and handed[0] > 0

        q.put_many([bytes(PAYLOAD_BYTES)] * BATCH)  # caches and threads are there before memory is compared
        q.complete(q.reserve(BATCH))
        before = look(path, 0.0).memory_bytes
        crowd.add(4, put)
        crowd.add(1, take_one_of_ten)
        crowd.run(seconds, watch)
        assert handed[0] > 0
        drain(q, marks)
    return marks, most


def test_a_queue_that_is_filled_ten_times_faster_than_emptied_stays_in_memory_and_drains(
    tmp_path: Path,
) -> None:
    marks, most = embedded(tmp_path / "work.db", SHORT_SECONDS)
    print(f"{len(marks.acked):,} messages, {most}")
    assert (marks.lost, marks.twice, marks.uninvited) == (0, 0, 0)
    assert_bounded(most, marks)


def assert_bounded(most: Most, marks: Marks) -> None:
    """What is in memory is the window, what is leased and what is being stored, however long the backlog is."""
    assert most.backlog > BACKLOG_MIN, "the backlog was never much longer than the window"
    assert most.rows < ROWS_MAX, most
    assert most.grown_bytes < MEMORY_BYTES_MAX + 4 * len(marks.acked), most


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_an_overload_that_lasts_stays_in_memory_and_drains(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    marks, most = embedded(tmp_path / "work.db", LONG_SECONDS)
    record_proof(
        "overload at 10 x, embedded",
        operations=3 * sum(marks.acked),
        lost=marks.lost + marks.twice + marks.uninvited,
        note=str(most),
    )
    assert (marks.lost, marks.twice, marks.uninvited) == (0, 0, 0)
    assert_bounded(most, marks)


def through_a_server(folder: Path, seconds: float) -> tuple[Marks, Counter[str], int]:
    """The marks, what callers were answered, and by how much memory grew.

    At least TIMES as many messages are offered as are taken while the producers run.
    """
    marks, crowd, answers, grown, taken = Marks(), Crowd(), Counter[str](), [0], [0]
    lock = threading.Lock()
    with live(folder) as server, server.http() as http, fairway.open(server.url) as q:

        def put() -> None:
            numbers = marks.take(1)
            answer = http.post(
                "/v1/queues/default/messages",
                content=payload_of(numbers.start),
                headers={"Content-Type": "application/octet-stream"},
            )
            if answer.status_code == httpx2.codes.CREATED:
                marks.ack(numbers)
            else:
                assert answer.headers["retry-after"] == str(limits.RETRY_AFTER_SECONDS), answer.text
                time.sleep(0.002)  # a rude caller comes again at once, though it was told to wait
            with lock:
                answers[str(answer.status_code) if answer.is_success else answer.json()["error"]["code"]] += 1

        def take() -> None:
            # It never takes more than a tenth of what was offered, however the machine shares its cores.
            if taken[0] * TIMES < answers.total():
                taken[0] += work(q, marks, 5)
            time.sleep(0.05)

        def watch() -> bool:
            grown[0] = max(grown[0], look(folder / "work.db", 0.0).memory_bytes - before)
            return answers["201"] > ANSWERS_MIN < answers.total() - answers["201"]

        before = look(folder / "work.db", 0.0).memory_bytes
        crowd.add(4 * TIMES, put)
        crowd.add(1, take)
        crowd.run(seconds, watch)
        assert 0 < taken[0] * TIMES <= answers.total() + 5 * TIMES
        drain(q, marks)
    return marks, answers, grown[0]


@pytest.fixture(params=["busy", "too_many_calls"])
def refusal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server that takes on few calls at a time, in all or of one caller, so that a few dozen are too many."""
    monkeypatch.setattr(limits, "CALLS_MAX", 6 if request.param == "busy" else 8)
    monkeypatch.setattr(limits, "CALLER_CALLS_MAX", 6)
    return request.param


def test_a_server_with_too_many_callers_refuses_with_typed_errors_and_loses_nothing(
    tmp_path: Path, refusal: str
) -> None:
    marks, answers, grown = through_a_server(tmp_path, SHORT_SECONDS)
    print(f"{dict(answers)}, memory grew by {grown / MIB:.0f} MiB")
    assert set(answers) == {"201", refusal}
    assert answers["201"] > ANSWERS_MIN < answers[refusal]
    assert (marks.lost, marks.twice, marks.uninvited) == (0, 0, 0)
    assert grown < MEMORY_BYTES_MAX


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_a_server_under_a_lasting_overload_loses_nothing(
    tmp_path: Path, refusal: str, record_proof: Callable[..., None]
) -> None:
    marks, answers, grown = through_a_server(tmp_path, LONG_SECONDS)
    record_proof(
        f"overload at 10 x, through a server that says {refusal}",
        operations=3 * sum(marks.acked),
        lost=marks.lost + marks.twice + marks.uninvited,
        note=f"{answers[refusal]:,} of {answers.total():,} calls were refused; memory grew by {grown / MIB:.0f} MiB",
    )
    assert set(answers) == {"201", refusal}
    assert (marks.lost, marks.twice, marks.uninvited) == (0, 0, 0)
    assert grown < MEMORY_BYTES_MAX + len(marks.acked) * 4
