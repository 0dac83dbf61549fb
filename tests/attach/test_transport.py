"""The Unix transport passes the public suite; what is special about it is checked here."""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from pathlib import Path

import pytest

from fairway.errors import BadArgument
from fairway.limits import FRAME_BYTES_MAX
from fairway.runtime.outbox import Outbox
from fairway.runtime.transport import unix
from fairway.runtime.transport.framing import Splitter, join
from fairway.runtime.transport.port import PeerGone
from fairway.runtime.transport.unix import UnixConnection
from fairway.runtime.transport.wake import Wake
from fairway.testing.conformance.transport import Place, TransportConformance, accepted, readable, received

FRAMES = [b"", b"a", b"four", b"\x00" * 9, b"", b"the end" * 3]


class TestUnix(TransportConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        path = str(tmp_path / "x.sock")
        return Place(lambda: unix.listen(path), lambda: unix.connect(path, 5.0))


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


def test_who_has_much_to_read_and_reads_nothing_is_cut_off() -> None:
    raw, end = pair(outbox_bytes_max=100_000, outbox_seconds_max=0.1)
    while end.send([b"x" * 50_000]) or end.left_bytes < 200_000:
        pass
    with pytest.raises(PeerGone, match="read none"):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            end.flush()
            time.sleep(0.02)
    assert raw.recv(1)
    raw.close(), end.close()


def test_who_reads_slowly_or_has_little_to_read_is_not_cut_off() -> None:
    raw, end = pair(outbox_bytes_max=100_000, outbox_seconds_max=0.3)
    while end.send([b"x" * 50_000]) or end.left_bytes < 5_000_000:
        pass
    for _ in range(8):
        raw.recv(300_000)
        time.sleep(0.1)
        end.flush()
    while end.left_bytes > 100_000:
        raw.recv(20_000)
        end.flush()
    assert end.left_bytes > 0
    time.sleep(0.4)
    assert not end.flush()
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
