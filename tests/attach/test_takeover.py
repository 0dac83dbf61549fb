"""The host ends, dies, is stopped or held up: another process takes its place, and every call has one effect."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import fairway
from fairway.limits import SILENT_SECONDS
from fairway.runtime import hearing
from tests.attach.conftest import over_both
from tests.attach.member_script import Child, ChildError, wait_until

pytestmark = pytest.mark.real


def payloads(path: Path) -> Counter[bytes]:
    """Everything that waits, taken out."""
    found: Counter[bytes] = Counter()
    with fairway.open(path) as q:
        while leases := q.reserve(max=1000):
            found.update(lease.payload for lease in leases)
            q.complete(leases)
    return found


def grown(child: Child, count: int) -> None:
    """Wait until so many more are there."""
    before = child.do("q.stats().submissions_active")
    wait_until(lambda: child.do("q.stats().submissions_active") > before + count)


@over_both
def test_when_the_host_closes_another_takes_over_and_waits_for_no_silence(tmp_path: Path) -> None:
    """A clean end is not a silence: for that these two wait longer than for any answer."""
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        assert (host.way, other.way) == ("Host", "Attached")
        waiting = other.begin("q.reserve(wait_seconds=600)[0].payload.decode()")
        wait_until(lambda: host.do("q.stats().waiters") == 1)
        host.do("q.close()")
        other.do("q.put(b'x').id")
        assert other.result(waiting) == "x"
        assert other.way == "Host"


@over_both
def test_a_program_that_ends_hands_its_queue_on(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        host.do("put_many('a', 20)")
        assert host.end() == 0
        assert other.do("q.stats().chunks_waiting") == 20
        assert other.way == "Host"


@over_both
def test_calls_in_flight_survive_the_death_of_their_host_and_have_one_effect(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, ExitStack() as stack:
        others = [stack.enter_context(Child.opened(path)) for _ in range(3)]
        puts = [(other, other.begin(f"put_until_enough('p{i}')")) for i, other in enumerate(others)]
        waits = [(other, other.begin("len(q.reserve(wait_seconds=600))")) for other in others]
        wait_until(lambda: host.do("q.stats().submissions_active") > 50)
        host.kill()
        grown(others[0], 100)
        ids = []
        for other, ticket in puts:
            other.do("enough()")
            ids.append(other.result(ticket))
        assert [other.result(ticket) for other, ticket in waits] == [1, 1, 1]
        assert sorted(other.way for other in others) == ["Attached", "Attached", "Host"]
    with fairway.open(path, forget_leases=True):
        pass
    assert len({id for some in ids for id in some}) == sum(map(len, ids))
    assert payloads(path) == Counter(
        f"p{i}-{j}".encode() for i, some in enumerate(ids) for j in range(len(some))
    )


@over_both
@pytest.mark.parametrize("answered", [False, True])
def test_a_host_that_dies_after_a_commit_and_before_the_answer(tmp_path: Path, answered: bool) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        other.do("put_many('first', 1)")  # it has a number now
        wait = other.begin("[(l.payload.decode(), l.attempt) for l in q.reserve(max=5, wait_seconds=600)]")
        assert other.result(wait) == [["first-0", 1]]
        wait = other.begin("[(l.payload.decode(), l.attempt) for l in q.reserve(max=5, wait_seconds=600)]")
        wait_until(lambda: host.do("q.stats().waiters") == 1)
        host.do("die_after_commit()")
        put = (host if answered else other).begin("put_many('x', 1)")
        assert other.result(wait) == [["x-0", 1]]
        if not answered:
            assert len(other.result(put)) == 1
        assert other.way == "Host"
        assert other.do("[q.stats().chunks_waiting, q.stats().chunks_leased]") == [0, 2]


def test_hosts_killed_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with ExitStack() as stack:
        children = [stack.enter_context(Child.opened(path)) for _ in range(4)]
        last = children[-1]
        ticket = last.begin("put_until_enough('p')")
        for child in children[:-1]:
            grown(last, 50)
            child.kill()
        grown(last, 50)
        last.do("enough()")
        ids = last.result(ticket)
        assert last.way == "Host"
    assert payloads(path) == Counter(f"p-{j}".encode() for j in range(len(ids)))


def test_a_stopped_host_is_replaced_and_comes_back_as_a_client(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        wait = host.begin("q.reserve(wait_seconds=600)[0].payload.decode()")
        wait_until(lambda: other.do("q.stats().waiters") == 1)
        host.signal(signal.SIGSTOP)
        other.do("heed_silence(True)")
        puts = host.begin("put_many('of the stopped', 5)")
        assert other.do("put_many('x', 1)")
        assert other.do("connects()") == 1, "who was silent on one connection is not asked on another"
        assert other.way == "Host"
        assert other.do("q.reserve()[0].payload.decode()") == "x-0"
        host.signal(signal.SIGCONT)
        assert len(host.result(puts)) == 5
        assert host.result(wait) == "of the stopped-0"
        assert (host.way, other.way) == ("Attached", "Host")
        assert other.do("q.stats().chunks_waiting") == host.do("q.stats().chunks_waiting") == 4


def test_a_wait_in_a_host_that_was_replaced_goes_on_at_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        wait = host.begin("q.reserve(wait_seconds=600)[0].payload.decode()")
        wait_until(lambda: other.do("q.stats().waiters") == 1)
        host.signal(signal.SIGSTOP)
        other.do("heed_silence(True)")
        assert other.do("q.stats().chunks_waiting") == 0
        assert other.way == "Host"
        host.signal(signal.SIGCONT)
        time.sleep(0.1)
        other.do("put_many('x', 1)")
        assert host.result(wait) == "x-0"


def test_a_host_that_was_replaced_never_reads_from_its_old_engine(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        host.do("put_many('a', 1)")
        host.signal(signal.SIGSTOP)
        other.do("heed_silence(True)")
        asked = host.begin("q.stats().chunks_waiting")
        other.do("put_many('b', 2)")
        host.signal(signal.SIGCONT)
        assert host.result(asked) == 3
        assert host.do("len(q.reserve(max=10))") == 3
        assert host.way == "Attached"


def test_a_host_whose_interpreter_is_held_is_replaced_and_comes_back_as_a_client(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        with pipe(tmp_path / "held") as told, pipe(tmp_path / "go on") as go_on:
            held = host.begin(f"hold_gil({str(tmp_path / 'held')!r}, {str(tmp_path / 'go on')!r})")
            assert os.read(told, 100) == b"held\n"
            other.do("heed_silence(True)")
            other.do("put_many('x', 3)")
            assert other.way == "Host", "it waited for the interpreter of the other process"
            os.write(go_on, b"\n")
            host.result(held)
        assert host.do("put_many('y', 2)")
        assert host.way == "Attached"
        assert other.do("q.stats().chunks_waiting") == 5


@contextmanager
def pipe(path: Path) -> Iterator[int]:
    """A named pipe. It is open for both sides, so nobody waits for who opens the other end."""
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR)
    try:
        yield fd
    finally:
        os.close(fd)


def test_a_host_stopped_inside_a_transaction_is_named_until_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "SILENT_SECONDS", SILENT_SECONDS)
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        other.do("put_many('a', 1)")
        host.do(f"begin_write({str(path)!r})")
        host.signal(signal.SIGSTOP)
        other.do("heed_silence(True)")
        for _ in range(2):
            with pytest.raises(ChildError) as told:
                other.do("q.put(b'x').id")
            assert told.value.kind == "HostStuck"
            assert told.value.details["pid"] == host.pid
            assert f"process {host.pid}" in told.value.text
        with pytest.raises(fairway.HostStuck):
            fairway.open(path)
        host.signal(signal.SIGCONT)
        host.do("end_write()")
        assert other.do("q.put(b'y').id")
        assert "y" in [p.decode() for p in payloads(path)]


def test_a_host_stopped_inside_a_transaction_and_killed_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, Child.opened(path) as other:
        host.do(f"begin_write({str(path)!r})")
        host.signal(signal.SIGSTOP)
        other.do("heed_silence(True)")
        call = other.begin("q.put(b'x').id")
        with pytest.raises(ChildError, match="HostStuck"):
            other.result(call)
        host.kill()
        assert other.do("q.put(b'y').id")
        assert other.way == "Host"
