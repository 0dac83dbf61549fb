"""The socket and the ring pass the public suite; what is special about each is checked here."""

from __future__ import annotations

import errno
import os
import random
import socket
import stat
import struct
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairway.errors import BadArgument, RingCorrupt
from fairway.limits import FRAME_BYTES_MAX
from fairway.runtime.outbox import Outbox
from fairway.runtime.transport import pairing, rings, unix
from fairway.runtime.transport.framing import Splitter, join
from fairway.runtime.transport.port import PeerGone
from fairway.runtime.transport.unix import UnixConnection
from fairway.runtime.transport.wake import Wake
from fairway.testing.conformance.ends import Place, accepted, readable, received
from fairway.testing.conformance.transport import TransportConformance
from tests.ring.need import need_ring

FRAMES = [b"", b"a", b"four", b"\x00" * 9, b"", b"the end" * 3]


class TestUnix(TransportConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        path = str(tmp_path / "x.sock")
        return Place(lambda: unix.listen(path), lambda **bounds: plainly(path, **bounds))


class TestRing(TransportConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        need_ring()
        path = str(tmp_path / "x.sock")
        return Place(lambda: rings.listen(path), lambda **bounds: by_ring(path, **bounds), uses_the_ring)


class TestUnixWithAHostThatTakesRings(TransportConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        path = str(tmp_path / "x.sock")
        return Place(lambda: rings.listen(path), lambda **bounds: plainly(path, **bounds), uses_the_socket)


def plainly(path: str, **bounds: float) -> UnixConnection:
    return unix.connect(path, 5.0, lambda stream: UnixConnection(stream, **bounds))  # type: ignore[arg-type]


def by_ring(path: str, **bounds: float) -> UnixConnection:
    if not bounds:
        return rings.connect(path, 5.0)
    end = unix.connect(path, 5.0, lambda stream: rings.RingConnection(stream, **bounds))
    end.offer()  # type: ignore[attr-defined]
    return end


def uses_the_ring(end: object) -> None:
    assert isinstance(end, rings.RingConnection)
    assert end._out_on and end._in_on, "it still uses the socket"
    assert end._put and end._taken, "no frame went through the ring"


def uses_the_socket(end: object) -> None:
    assert not getattr(end, "_out_on", False) and not getattr(end, "_in_on", False)


# -- frames


def test_a_stream_cut_at_every_byte_gives_the_same_frames() -> None:
    stream = join(FRAMES)
    for cut in range(len(stream) + 1):
        splitter = Splitter()
        assert splitter.feed(stream[:cut]) + splitter.feed(stream[cut:]) == FRAMES
        assert not splitter.inside
    one_by_one = Splitter()
    assert [f for n in range(len(stream)) for f in one_by_one.feed(stream[n : n + 1])] == FRAMES
    half = Splitter()
    half.feed(stream[:-1])
    assert half.inside


def test_a_real_stream_cut_at_every_byte_gives_the_same_frames() -> None:
    stream = join(FRAMES)
    for cut in range(1, len(stream)):
        raw, end = pair()
        raw.sendall(stream[:cut])
        frames = end.receive()
        raw.sendall(stream[cut:])
        assert frames + end.receive() == FRAMES
        raw.close(), end.close()


@pytest.mark.parametrize("head", [FRAME_BYTES_MAX + 1, 2**32 - 1])
def test_a_frame_longer_than_the_bound_ends_the_connection_before_it_is_read(head: int) -> None:
    raw, end = pair()
    raw.sendall(struct.pack("<I", head) + b"x")
    with pytest.raises(PeerGone, match="bytes"):
        end.receive()
    raw.close(), end.close()


def test_a_frame_that_is_too_long_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix, "FRAME_BYTES_MAX", 10)
    raw, end = pair()
    with pytest.raises(ValueError, match="10 bytes"):
        end.send([b"x" * 11])
    assert end.left_bytes == 0
    raw.close(), end.close()


def test_a_stream_that_ends_inside_a_frame_says_so() -> None:
    raw, end = pair()
    raw.sendall(join([b"whole", b"torn"])[:-1])
    raw.close()
    assert end.receive() == [b"whole"]
    with pytest.raises(PeerGone, match="inside a frame"):
        end.receive()
    end.close()


def test_many_frames_are_one_write() -> None:
    raw, end = pair()
    counted = Counting(end)
    end.send([b"x" * n for n in range(200)])
    assert counted.writes == 1
    raw.close(), end.close()


# -- a peer that does not read


def test_who_reads_slowly_or_has_little_to_read_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix, "time", clock := SimpleNamespace(now=0.0, monotonic=lambda: clock.now))
    raw, end = pair(outbox_bytes_max=100_000, outbox_seconds_max=0.3)
    while end.send([b"x" * 50_000]) or end.left_bytes < 5_000_000:
        pass
    for _ in range(8):
        raw.recv(300_000)
        clock.now += 0.4
        end.flush()
    while end.left_bytes > 100_000:
        raw.recv(20_000)
        end.flush()
    assert end.left_bytes > 0
    clock.now += 0.4
    assert not end.flush()
    with pytest.raises(PeerGone, match="read none"):
        end.send([b"x" * 100_000])
    raw.close(), end.close()


def test_an_interrupted_write_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    raw, end = pair()

    class Interrupted:
        def __init__(self, inner: socket.socket) -> None:
            self.inner = inner

        def send(self, data: bytes) -> int:
            self.inner.send(data)
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    monkeypatch.setattr(end, "_socket", Interrupted(end._socket))
    with pytest.raises(KeyboardInterrupt):
        end.send([b"x"])
    raw.settimeout(10)
    assert raw.recv(100) == join([b"x"])
    assert raw.recv(100) == b""
    with pytest.raises(PeerGone):
        end.receive()
    raw.close(), end.close()


# -- gathering


def test_what_is_put_while_one_writes_goes_out_with_its_next_write() -> None:
    raw, end = pair()
    counted = Counting(end)
    entered, go_on = threading.Event(), threading.Event()
    counted.before = lambda: (entered.set(), go_on.wait(30))
    outbox = Outbox(end, lambda: None)
    outbox.put(b"first")
    leader = threading.Thread(target=outbox.flush)
    leader.start()
    assert entered.wait(30)
    for n in range(50):
        outbox.put(b"%d" % n)
        outbox.flush()  # returns at once: somebody is at it
    go_on.set()
    leader.join(30)
    assert counted.writes == 2
    other = UnixConnection(raw)
    assert received(other, 51) == [b"first", *(b"%d" % n for n in range(50))]
    other.close(), end.close()


def test_what_does_not_go_out_at_once_is_pushed_later() -> None:
    raw, end = pair()
    told: list[int] = []
    outbox = Outbox(end, lambda: told.append(1))
    for _ in range(20):
        outbox.put(b"x" * 100_000)
    outbox.flush()
    assert told == [1]
    other = UnixConnection(raw)
    assert received(other, 20, outbox.push) == [b"x" * 100_000] * 20
    other.close(), end.close()


def test_who_asks_whether_a_frame_has_left_is_told_when_it_has() -> None:
    raw, end = pair()
    counted = Counting(end)
    entered, go_on = threading.Event(), threading.Event()
    counted.before = lambda: (entered.set(), go_on.wait(30))
    told: list[int] = []
    outbox = Outbox(end, lambda: told.append(1))
    first = outbox.put(b"first")
    leader = threading.Thread(target=outbox.flush)
    leader.start()
    assert entered.wait(30)
    second = outbox.put(b"second")
    outbox.flush()  # returns at once: somebody is at it
    assert (first, second) == (1, 2) and not outbox.has_sent(second) and not told
    go_on.set()
    leader.join(30)
    assert outbox.has_sent(second) and told
    big = [outbox.put(b"x" * 100_000) for _ in range(20)][-1]
    outbox.flush()
    assert not outbox.has_sent(big)
    told.clear()
    other = UnixConnection(raw)
    received(other, 22, outbox.push)
    assert outbox.has_sent(big) and told
    other.close(), end.close()


def test_a_broken_connection_is_told_to_who_listens_not_to_who_sends() -> None:
    raw, end = pair()
    raw.close()
    outbox = Outbox(end, lambda: None)
    outbox.put(b"x")
    outbox.flush()
    assert readable(end)
    with pytest.raises(PeerGone):
        end.receive()
    end.close()


# -- who gets in


def test_the_file_is_private_and_goes_with_its_listener(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    old = unix.listen(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    new = unix.listen(str(path))  # a host that was replaced closes later than its successor listens
    old.close()
    end = unix.connect(str(path), 5.0)
    accepted(new).close()
    end.close()
    new.close()
    assert not path.exists()


def test_what_is_not_a_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    path.write_text("mine")
    with pytest.raises(OSError):
        unix.listen(str(path))
    assert path.read_text() == "mine"


def test_other_users_are_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "x.sock")
    listener = unix.listen(path)
    monkeypatch.setattr(unix, "_peer", lambda stream: (1, os.geteuid() + 1000))
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stranger.connect(path)
    assert readable(listener)
    assert listener.accept() is None
    stranger.settimeout(10)
    assert stranger.recv(1) == b""
    monkeypatch.undo()
    end = unix.connect(path, 5.0)
    friend = accepted(listener)
    assert (friend.peer_pid, friend.peer_uid) == (os.getpid(), os.geteuid())
    stranger.close(), end.close(), friend.close(), listener.close()


def test_long_paths_are_reached_through_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    path = str(folder / "work.db-default.1.sock")
    assert len(path) > 107
    listener = unix.listen(path)
    end = unix.connect(path, 5.0)
    accepted(listener).close()
    end.close()
    listener.close()
    assert not os.path.exists(path)
    with pytest.raises(BadArgument, match="too long"):
        unix.listen(str(folder / ("n" * 100)))


def test_a_wake_is_heard_once_and_never_lost() -> None:
    wake = Wake()
    for _ in range(100_000):  # more than a pipe holds
        wake.ring()
    assert readable(wake)
    while readable(wake, 0.0):
        wake.heard()
    wake.heard()
    wake.ring()
    assert readable(wake)
    wake.close()
    wake.close()
    wake.ring()


def pair(**bounds: float) -> tuple[socket.socket, UnixConnection]:
    """A plain socket and the connection at its other end."""
    raw, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return raw, UnixConnection(other, **bounds)


class Counting:
    """Counts the writes of a connection."""

    def __init__(self, connection: UnixConnection) -> None:
        self._socket = connection._socket
        self.writes = 0
        self.before = lambda: None
        connection._socket = self  # type: ignore[assignment]

    def send(self, data: bytes) -> int:
        self.writes += 1
        self.before()
        return self._socket.send(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._socket, name)


# -- what is special about rings


def switched(tmp_path: Path) -> tuple[rings.RingConnection, rings.RingConnection, unix.UnixListener]:
    """Two ends that have told one another that they use their rings."""
    need_ring()
    listener = rings.listen(str(tmp_path / "x.sock"))
    here = rings.connect(str(tmp_path / "x.sock"), 5.0)
    there = accepted(listener)
    assert isinstance(there, rings.RingConnection)
    here.send([b"1"])
    assert received(there, 1) == [b"1"]
    there.send([b"2"])
    assert received(here, 1) == [b"2"]
    here.send([b"3"])
    assert received(there, 1) == [b"3"]
    assert here._out_on and here._in_on and there._out_on and there._in_on
    return here, there, listener


def test_small_frames_use_no_socket_while_the_other_end_is_awake(tmp_path: Path) -> None:
    here, there, listener = switched(tmp_path)
    counted = Counting(here)
    for n in range(100):
        here.send([b"%d" % n])
    assert counted.writes == 1, "one wake-up, since the other end has not looked meanwhile"
    assert received(there, 100) == [b"%d" % n for n in range(100)]
    here.close(), there.close(), listener.close()


def test_frames_keep_their_order_whichever_way_they_take(tmp_path: Path) -> None:
    """Long, empty and small ones, and more than the ring takes, in bursts of every length."""
    here, there, listener = switched(tmp_path)
    dice = random.Random(3)
    sent: list[bytes] = []
    got: list[bytes] = []
    while len(sent) < 6000:
        sizes = [
            dice.choice((0, 1, 50, 50, 50, 5000, 16_384, 16_385, 40_000)) for _ in range(dice.randint(1, 60))
        ]
        burst = [len(sent).to_bytes(4, "little") * (size // 4) for size in sizes]
        sent += burst
        here.send(burst)
        if dice.random() < 0.3 and readable(there, 0.0):
            got += there.receive()
    got += received(there, len(sent) - len(got), here.flush)
    assert got == sent
    assert here._put > 500, "the ring was hardly used"
    here.close(), there.close(), listener.close()


def test_a_full_ring_is_no_end_and_is_used_again_when_it_is_read(tmp_path: Path) -> None:
    here, there, listener = switched(tmp_path)
    frames = [b"%07d" % n * 1000 for n in range(60)]  # three times the ring
    assert here.send(frames[:30]) in (True, False)
    here.send(frames[30:])
    assert here._owed > 0
    assert received(there, 60, here.flush) == frames
    put = here._put
    here.send([b"again"])
    assert received(there, 1) == [b"again"]
    assert here._put == put + 1 and here._owed == 0
    here.close(), there.close(), listener.close()


def test_a_host_that_cannot_use_the_rings_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_ring()
    monkeypatch.setattr(rings, "take_pair", lambda fds: None)
    listener = rings.listen(str(tmp_path / "x.sock"))
    here = rings.connect(str(tmp_path / "x.sock"), 5.0)
    here.send([b"hello", b"", b"x" * 20_000])
    there = accepted(listener)
    assert received(there, 3) == [b"hello", b"", b"x" * 20_000]
    there.send([b"welcome"])
    assert received(here, 1) == [b"welcome"]
    here.send([b"more"])
    assert received(there, 1) == [b"more"]
    assert not here._out_on
    here.close(), there.close(), listener.close()


@pytest.mark.parametrize("missing", ["posix_fallocate", "memfd_create"])
def test_who_has_no_memory_for_rings_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, missing: str
) -> None:
    """Shared memory is full, or no descriptor is left, when a process attaches."""
    need_ring()
    full = OSError(
        *((errno.ENOSPC, "No space") if missing == "posix_fallocate" else (errno.EMFILE, "Too many"))
    )

    def refuse(*_: object) -> int:
        raise full

    listener = rings.listen(str(tmp_path / "x.sock"))
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, missing, refuse)
    here = rings.connect(str(tmp_path / "x.sock"), 5.0)
    assert "no memory for rings, so the socket is used" in caplog.text
    there = accepted(listener)
    assert len(os.listdir("/proc/self/fd")) == before + 2, "a socket at each end, and nothing else"
    for n, (one, other) in enumerate([(here, there), (there, here)] * 3):
        one.send([b"%d" % n, b"", b"x" * 20_000])
        assert received(other, 3) == [b"%d" % n, b"", b"x" * 20_000]
    for end in (here, there):
        uses_the_socket(end)
    here.close(), there.close(), listener.close()


def test_memory_that_its_giver_could_take_away_is_not_used() -> None:
    need_ring()
    handles, fds = pairing.make_pair()
    with pytest.raises(OSError):
        os.ftruncate(fds[0], 0)
    bare = os.memfd_create("bare", os.MFD_ALLOW_SEALING)
    os.ftruncate(bare, os.fstat(fds[0]).st_size)
    os.pwrite(bare, os.pread(fds[0], 4096, 0), 0)
    assert pairing.take_pair([bare, fds[1]]) is None
    assert pairing.take_pair([fds[0]]) is None
    assert pairing.take_pair([]) is None
    taken = pairing.take_pair(fds)
    assert taken is not None
    pairing.let_go([*handles, *taken], [*fds, bare])


def test_no_descriptor_is_left_of_rings(tmp_path: Path) -> None:
    need_ring()
    before = len(os.listdir("/proc/self/fd"))
    here, there, listener = switched(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before + 3, "a socket at each end, and the listener"
    here.close(), there.close(), listener.close()
    listener = rings.listen(str(tmp_path / "x.sock"))
    here = rings.connect(str(tmp_path / "x.sock"), 5.0)
    there = accepted(listener)
    here.close(), there.close(), listener.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_damaged_ring_ends_the_connection(tmp_path: Path) -> None:
    here, there, listener = switched(tmp_path)
    assert here._out is not None
    frames = here._out

    class Damaged:
        def pop_many(self, *_: object) -> list[bytes]:
            raise RingCorrupt

        def __getattr__(self, name: str) -> object:
            return getattr(frames, name)

    there._in = Damaged()  # type: ignore[assignment]
    here.send([b"x"])
    assert readable(there)
    with pytest.raises(PeerGone, match="the ring failed"):
        there.receive()
    here.close(), there.close(), listener.close()


def test_what_an_abandoned_ring_holds_reaches_nobody(tmp_path: Path) -> None:
    """A host that was replaced never read it; the next one has rings of its own, and asks for nothing else."""
    here, there, listener = switched(tmp_path)
    here.send([b"a call that the old host never saw"])
    listener.close()
    heir = rings.listen(str(tmp_path / "x.sock"))
    again = rings.connect(str(tmp_path / "x.sock"), 5.0)
    inside = accepted(heir)
    again.send([b"hello"])
    assert received(inside, 1) == [b"hello"]
    assert inside.receive() == []
    for end in (here, there, again, inside, heir):
        end.close()
