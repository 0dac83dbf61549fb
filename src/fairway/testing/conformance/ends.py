"""Both ends of a connection for the transport suite: in one process, and with another process that is killed.

Guards: nothing here waits for a time where it can wait for a sign; whoever was forked ends with its test.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from fairway.runtime.transport.port import Connection, Listener, PeerGone

PATIENCE_SECONDS = 30.0  # a busy machine is not a reason to fail


@dataclass(frozen=True)
class Place:
    """Where a test listens and connects.

    `connect` takes `outbox_bytes_max` and `outbox_seconds_max`, after which a peer that reads nothing is cut off.
    `talked` asserts what must be true of an end when both have heard of one another: that it uses what it is for.
    """

    listen: Callable[[], Listener]
    connect: Callable[..., Connection]
    talked: Callable[[Connection], object] = lambda end: None


@dataclass(frozen=True)
class Pair:
    """Both ends of one connection."""

    here: Connection
    there: Connection


@dataclass(frozen=True)
class Victim:
    """A process at the other end, which is killed at the end of a test if not before."""

    pid: int
    here: Connection
    told: int  # readable when it has come to where it says so

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait_for_word(self) -> None:
        assert select.select([self.told], [], [], PATIENCE_SECONDS)[0]
        assert os.read(self.told, 1) == b"!", "it ended by itself"


def readable(end: Connection | Listener, seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether the descriptor becomes readable in time."""
    return bool(select.select([end.fileno()], [], [], seconds)[0])


def accepted(listener: Listener) -> Connection:
    """Who connected; it must be somebody."""
    assert readable(listener)
    connection = listener.accept()
    assert connection is not None
    return connection


def received(connection: Connection, count: int, also: Callable[[], object] = lambda: None) -> list[bytes]:
    """So many frames, with something else done meanwhile."""
    frames: list[bytes] = []
    until = time.monotonic() + PATIENCE_SECONDS
    while len(frames) < count and time.monotonic() < until:
        if readable(connection, 0.05):
            frames += connection.receive()
        also()
    return frames


def talk_first(end: Connection) -> None:
    """Some transports are ready only when both ends have heard of one another."""
    end.send([b"one"])
    assert received(end, 1) == [b"two"]
    end.send([b"three"])


def talk_second(end: Connection) -> None:
    assert received(end, 1) == [b"one"]
    end.send([b"two"])
    assert received(end, 1) == [b"three"]


@contextmanager
def victim(
    place: Place, listens: bool, act: Callable[[Connection, Callable[[], None]], object]
) -> Iterator[Victim]:
    """Another process that listens or connects, talks, and then does something with its end; and this end."""
    (told, tell), (wait, go) = os.pipe(), os.pipe()
    listener = None if listens else place.listen()
    pid = os.fork()
    if pid == 0:  # pragma: no cover
        try:
            if listens:
                end = accepted(place.listen())
                talk_second(end)
            else:
                end = place.connect()
                talk_first(end)
            os.read(wait, 1)
            act(end, lambda: _say(tell))
            signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    here: Connection | None = None
    try:
        here = _connected(place) if listener is None else accepted(listener)
        (talk_first if listener is None else talk_second)(here)
        place.talked(here)
        os.write(go, b"!")
        yield Victim(pid, here, told)
    finally:
        if here is not None:
            here.close()
        for fd in (told, wait, go):
            os.close(fd)
        if listener is not None:
            listener.close()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _say(fd: int) -> None:
    os.write(fd, b"!")


def _connected(place: Place) -> Connection:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return place.connect()
        except PeerGone:
            assert time.monotonic() < until, "it never listened"
            time.sleep(0.01)


def frames_until_the_end(end: Connection) -> list[bytes]:
    """All that comes before the other is seen to be gone, which must be soon."""
    frames: list[bytes] = []
    until = time.monotonic() + PATIENCE_SECONDS
    with suppress(PeerGone):
        while time.monotonic() < until:
            assert readable(end)
            frames += end.receive()
        pytest.fail("nobody said that the other is gone")
    return frames


def frame_of(n: int) -> bytes:
    """Of many sizes, small ones, empty ones and long ones; it says which it is."""
    size = (8, 60, 700, 0, 8, 5000, 8, 20_000)[n % 8]
    return n.to_bytes(4, "little") * (size // 4)
