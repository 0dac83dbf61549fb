"""What `fairway.Ring` promises to one who uses it, without anybody dying."""

from __future__ import annotations

import array
import asyncio
import os
import pickle
import resource
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

import fairway
from fairway.errors import BadArgument, Closed, NotFound, NotRing, RingCrowded, RingForked, RingFull, TooLarge
from fairway.ring import native
from fairway.ring.face import Delivery, Ring
from tests.ring.victims import child, drain, wait_for

SIZE = 1 << 16
MESSAGE_MAX = SIZE // 4 - 16


@pytest.fixture
def ring(place: Path) -> Ring:
    with Ring.create(place / "ring", SIZE) as made:
        yield made


def test_the_public_name_is_this_class() -> None:
    assert fairway.Ring is Ring


def test_messages_come_out_whole_once_and_in_order_at_every_size_and_place(place: Path) -> None:
    """Blocks also lie across the end of the buffer: its memory goes on at its beginning."""
    with Ring.create(place / "ring", SIZE, crc=True) as ring:
        sizes = [n * 37 % 5000 for n in range(3000)]
        for n, size in enumerate(sizes):
            ring.put(bytes([n % 251]) * size)
            ring.put(b"%d" % n)
            assert ring.pop(0) == bytes([n % 251]) * size
            assert ring.pop(0) == b"%d" % n
        assert ring.stats().written > 3 * SIZE // 64


@pytest.mark.parametrize("size", [0, 1, 47, 48, 49, 64, MESSAGE_MAX - 1, MESSAGE_MAX])
def test_every_size_up_to_the_largest(ring: Ring, size: int) -> None:
    assert ring.message_bytes_max == MESSAGE_MAX
    message = os.urandom(size)
    ring.put(message)
    assert ring.pop(0) == message


def test_a_message_that_is_too_large_is_refused(ring: Ring) -> None:
    with pytest.raises(TooLarge, match=f"{MESSAGE_MAX + 1} bytes.*{MESSAGE_MAX} at most"):
        ring.put(bytes(MESSAGE_MAX + 1))
    with pytest.raises(TooLarge):
        ring.put_many([b"a", bytes(MESSAGE_MAX + 1)])
    assert drain(ring, 0) == [], "nor is what came before it"


def test_any_contiguous_buffer_goes_in(ring: Ring) -> None:
    for data in (b"abcd", bytearray(b"abcd"), memoryview(b"xabcdx")[1:5], array.array("I", b"abcd")):
        ring.put(data)
        assert ring.pop(0) == b"abcd"
    for wrong in ("text", 7, None, memoryview(b"abcd")[::2]):
        with pytest.raises(BadArgument, match="data"):
            ring.put(wrong)  # type: ignore[arg-type]


def test_get_into_fills_a_buffer_of_the_caller(ring: Ring) -> None:
    buffer = bytearray(10)
    ring.put_many([b"hello", b"a longer one", b"x"])
    assert ring.get_into(buffer) == 5
    assert bytes(buffer) == b"hello\0\0\0\0\0"
    with pytest.raises(BadArgument, match="12 bytes and the buffer 10"):
        ring.get_into(buffer)
    assert ring.get_into(bytearray(12)) == 12, "it was not lost"
    assert ring.get_into(buffer, 5) == 1
    assert ring.get_into(buffer, 0) is None
    with pytest.raises(BadArgument, match="writable"):
        ring.get_into(b"fixed")  # type: ignore[arg-type]


# -- time


def test_no_time_is_no_waiting(ring: Ring) -> None:
    assert ring.get(0) is None
    assert ring.pop(timeout=0) is None
    assert ring.pop_many(5, 0) == []
    assert not ring.get_many(5, timeout=0)
    for _ in range(4):
        ring.put(bytes(16000), 0)
    with pytest.raises(RingFull):
        ring.put(bytes(16000), 0)
    with pytest.raises(RingFull) as told:
        ring.put_many([b"", b"", bytes(16000)], timeout=0.05)
    assert told.value.details == {"put": 2}


def test_a_wait_ends_when_its_time_is_up_and_not_before(ring: Ring) -> None:
    began = time.monotonic()
    assert ring.pop(0.15) is None
    assert 0.149 <= time.monotonic() - began < 10
    assert ring.get_into(bytearray(4), 0.01) is None


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_time_that_is_none_is_refused(ring: Ring, timeout: object) -> None:
    with pytest.raises(BadArgument, match="timeout"):
        ring.pop(timeout)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="timeout"):
        ring.put(b"x", timeout)  # type: ignore[arg-type]


@pytest.mark.real
def test_who_sleeps_is_woken_by_another_process(ring: Ring) -> None:
    def answer() -> None:
        other = Ring.attach(ring.path)
        for _ in range(200):
            other.put(other.pop(30) or b"nothing came")

    pid = child(answer)
    for n in range(200):
        ring.put(b"%d" % n)
        while (back := ring.pop(30)) != b"%d" % n:
            assert back is not None, "an answer never came"
            ring.put(back)  # its own question, taken back: let the other have it
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.real
def test_a_writer_that_waits_for_room_is_woken(ring: Ring) -> None:
    def write() -> None:
        other = Ring.attach(ring.path)
        for n in range(3000):
            other.put(n.to_bytes(4, "little") * 250)

    pid = child(write)
    for n in range(3000):
        assert ring.pop(30) == n.to_bytes(4, "little") * 250
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.real
def test_an_idle_ring_wakes_hardly_ever(ring: Ring) -> None:
    """20 ms, 40 ms ... and then once a second: eight sleeps in two and a half seconds, and as much again for chance."""
    before = resource.getrusage(resource.RUSAGE_THREAD)
    assert ring.pop(2.5) is None
    after = resource.getrusage(resource.RUSAGE_THREAD)
    slept = after.ru_nvcsw - before.ru_nvcsw
    assert 1 <= slept <= 16, f"it slept {slept} times"
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.5, f"{spent:.2f} s of CPU time for doing nothing"


# -- leases


def test_a_lease_is_over_when_it_is_acknowledged(ring: Ring) -> None:
    ring.put(b"work")
    lease = ring.get()
    assert lease is not None and lease.payload == b"work" and len(lease) == 1
    assert ring.stats().blocks[0].doing == "reading"
    assert lease.ack()
    assert not lease.ack()
    assert not lease.release()
    assert not ring.stats().blocks
    assert ring.pop(0) is None


def test_a_lease_that_is_given_back_comes_again_before_later_messages(ring: Ring) -> None:
    ring.put_many([b"first", b"second"])
    lease = ring.get()
    assert lease is not None and lease.release()
    assert ring.pop_many(5, 0) == [b"first", b"second"]
    assert ring.stats().redelivered == 1


def test_with_acknowledges_unless_the_work_failed(ring: Ring) -> None:
    ring.put_many([b"a", b"b", b"c"])
    with ring.get_many(2) as batch:
        assert batch.payloads == [b"a", b"b"]
    with pytest.raises(ZeroDivisionError), ring.get() as lease:
        assert lease.payload == b"c"
        _ = 1 / 0
    assert drain(ring, 0) == [b"c"]


def test_a_lease_that_is_dropped_or_whose_ring_is_closed_goes_back(ring: Ring) -> None:
    ring.put_many([b"a", b"b"])
    lease = ring.get()
    del lease
    assert ring.stats().waiting == 2
    other = Ring.attach(ring.path)
    kept = other.get_many(2)
    other.close()
    with pytest.raises(Closed):
        kept.ack()
    assert sorted(drain(ring, 0)) == [b"a", b"b"]


def test_at_most_once_acknowledges_as_it_hands_out(place: Path) -> None:
    with Ring.create(place / "ring", SIZE, delivery="at_most_once") as ring:
        ring.put_many([b"a", b"b", b"c"])
        lease = ring.get()
        assert lease is not None and lease.payload == b"a"
        assert not lease.release()
        assert ring.get_many(9).payloads == [b"b", b"c"]
        assert ring.pop(0) is None
        stats = ring.stats()
        assert stats.tail == stats.written and stats.delivery == "at_most_once"


# -- places, threads, forks


def test_a_full_pool_names_the_owners(place: Path) -> None:
    with Ring.create(place / "ring", SIZE) as ring:
        others = [Ring.attach(ring.path) for _ in range(255)]
        with pytest.raises(RingCrowded, match=f"256 places.*: {os.getpid()} \\(256\\); close"):
            Ring.attach(ring.path)
        others.pop().close()
        Ring.attach(ring.path).close()
        for one in others:
            one.close()


def test_a_handle_without_a_place_looks_and_does_nothing_else(ring: Ring) -> None:
    ring.put(b"here")
    with Ring.look(ring.path) as looks:
        assert looks.stats().waiting == 1 and len(looks.stats().owners) == 1 and looks.recover() == 0
        for use in (lambda: looks.put(b"x"), lambda: looks.pop(0), lambda: looks.get(0), lambda: looks.arm()):
            with pytest.raises(BadArgument, match="can only look"):
                use()
    assert ring.pop(0) == b"here"


def test_none_is_put_if_one_can_never_be(ring: Ring) -> None:
    with pytest.raises(TooLarge):
        ring.put_many([b"a", b"b", bytes(ring.message_bytes_max + 1), b"c"])
    with pytest.raises(BadArgument):
        ring.put_many([b"a", "text"])
    assert ring.pop(0) is None


def test_several_tasks_on_one_handle_are_all_woken(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause after which one looks again by itself is far off: only the bell can wake them."""
    monkeypatch.setattr("fairway.ring.face.RING_LISTEN_SECONDS", 600.0)

    async def all_of_them() -> list[bytes | None]:
        with Ring.attach(ring.path) as other:
            tasks = [asyncio.create_task(ring.pop_soon(600.0)) for _ in range(3)]
            await asyncio.sleep(0.1)
            other.put_many([b"1", b"2"])
            await asyncio.wait_for(asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED), 60)
            other.put(b"3")
            return await asyncio.wait_for(asyncio.gather(*tasks), 60)

    assert sorted(filter(None, asyncio.run(all_of_them()))) == [b"1", b"2", b"3"]


def test_what_lies_where_the_bell_should_be_is_told(ring: Ring) -> None:
    Path(f"{ring.path}.bell").write_text("mine")
    with pytest.raises(NotRing, match="bell is in the way"):
        ring.fileno()


def test_an_extension_that_does_not_load_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "C compiler" in str(native.missing())
    monkeypatch.setattr(native, "REASON", "no such symbol")
    assert "does not load here (no such symbol)" in str(native.missing())


def test_a_missing_folder_is_named(place: Path) -> None:
    with pytest.raises(NotFound, match=f"no folder {place}/none"):
        Ring.create(place / "none" / "ring", SIZE)


@pytest.mark.real
def test_a_forked_child_never_uses_its_parents_place(ring: Ring) -> None:
    ring.put(b"for the parent")
    lease = ring.get()

    def act() -> None:
        for use in (lambda: ring.put(b"x"), lambda: ring.pop(0), lambda: lease.ack(), lambda: ring.stats()):
            with pytest.raises(RingForked, match="attach"):
                use()
        ring.close()
        own = Ring.attach(ring.path)
        own.put(b"from the child")
        with pytest.raises(Closed):
            ring.put(b"x")

    pid = child(act)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(ring.stats().blocks) == 1, "the parent still holds its lease"
    assert lease.ack()
    assert ring.pop(5) == b"from the child"


def test_closing_wakes_a_thread_that_waits(ring: Ring) -> None:
    told: list[BaseException] = []

    def wait() -> None:
        try:
            ring.pop()
        except Closed as error:
            told.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    ring.close()
    for thread in threads:
        thread.join(30)
    assert len(told) == 3
    with pytest.raises(Closed):
        ring.stats()


@pytest.mark.real
def test_a_signal_ends_a_wait(ring: Ring) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            ring.pop()
    finally:
        signal.signal(signal.SIGALRM, old)
    ring.put(b"x")
    assert ring.pop(0) == b"x"


def test_threads_share_a_handle(ring: Ring) -> None:
    got: list[bytes] = []

    def take() -> None:
        while (message := ring.pop(30)) != b"end":
            got.append(message or b"?")

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    ring.put_many([b"%d" % n for n in range(2000)])
    ring.put_many([b"end"] * 3)
    for thread in threads:
        thread.join(30)
    assert sorted(got) == sorted(b"%d" % n for n in range(2000))


def test_it_travels_by_pickle_and_attaches_there(ring: Ring) -> None:
    ring.put(b"x")
    with pickle.loads(pickle.dumps(ring)) as other:
        assert other.pop(0) == b"x"


# -- event loops


@pytest.mark.real
def test_an_event_loop_hears_of_a_put_in_another_process(ring: Ring) -> None:
    async def act() -> list[bytes | None]:
        heard, tell = os.pipe()

        async def beat() -> None:
            while True:
                os.write(tell, b"!")
                await asyncio.sleep(0.01)

        def put() -> None:
            for n in range(3):
                for _ in range(5):  # a loop that stood still while it waits would get nothing
                    os.read(heard, 1)
                Ring.attach(ring.path).put(b"%d" % n)

        beating = asyncio.ensure_future(beat())
        pid = child(put)
        found = [await ring.pop_soon(30) for _ in range(3)]
        beating.cancel()
        os.waitpid(pid, 0)
        os.close(heard), os.close(tell)
        return found

    assert asyncio.run(act()) == [b"0", b"1", b"2"]


def test_an_event_loop_waits_no_longer_than_told(ring: Ring) -> None:
    assert asyncio.run(ring.pop_soon(0.05)) is None
    ring.put(b"x")
    assert asyncio.run(ring.pop_soon(0)) == b"x"


# -- making and finding


def test_a_ring_is_private_and_whole_before_it_has_a_name(place: Path) -> None:
    with Ring.create(place / "ring", SIZE):
        mode = (place / "ring").stat()
        assert stat.S_IMODE(mode.st_mode) == 0o600
        assert mode.st_blocks * 512 >= mode.st_size, "all of its memory is there"
        with pytest.raises(BadArgument, match="there already"):
            Ring.create(place / "ring", SIZE)
        assert [path.name for path in place.iterdir()] == ["ring"]


def test_a_name_without_a_slash_lies_in_shared_memory() -> None:
    name = f"fairway-test-{os.getpid()}"
    with Ring.create(name, SIZE) as ring:
        assert ring.path == f"/dev/shm/{name}"
        with Ring.attach(name) as other:
            other.put(b"x")
        assert ring.pop(0) == b"x"
        assert not ring.stats().crc
    Ring.remove(name)
    Ring.remove(name)
    with pytest.raises(NotFound, match="create it first"):
        Ring.attach(name)


def test_a_file_on_a_disk_has_checksums_by_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.ring.places.in_memory", lambda path: False)
    with Ring.create(place / "ring", SIZE) as ring:
        assert ring.stats().crc


@pytest.mark.parametrize("size", [0, 65535, 65537, 1 << 15, 3 << 15, 1 << 37, -65536, 65536.0, "64k", True])
def test_a_size_that_no_ring_has_is_refused(place: Path, size: object) -> None:
    with pytest.raises(BadArgument, match="size"):
        Ring.create(place / "ring", size)  # type: ignore[arg-type]
    assert not list(place.iterdir())


@pytest.mark.parametrize("delivery", ["exactly_once", "", None])
def test_a_delivery_that_nobody_can_give_is_refused(place: Path, delivery: Delivery) -> None:
    with pytest.raises(BadArgument, match="delivery"):
        Ring.create(place / "ring", SIZE, delivery=delivery)


def test_reports_say_who_did_what(ring: Ring) -> None:
    ring.put_many([b"a", b"b" * 100])
    ring.pop(0)
    stats = ring.stats()
    (owner,) = stats.owners
    assert (owner.pid, owner.process, owner.puts, owner.gets) == (os.getpid(), "alive", 2, 1)
    assert (stats.waiting, stats.waiting_bytes, stats.size) == (1, 128, SIZE)
    wait_for(lambda: ring.stats().owners[0].idle_seconds > 0.01)
