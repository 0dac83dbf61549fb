"""What every transport must do: subclass `TransportConformance`, say how to listen and connect, run it with pytest.

Guards: a transport is a transport when it passes this suite; neither end relies on anything that is not checked here.

    class TestMyTransport(TransportConformance):
        @pytest.fixture
        def place(self, tmp_path):
            return Place(lambda: my.listen(tmp_path / "x"), lambda: my.connect(tmp_path / "x", 5.0))
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from fairway.runtime.transport.port import Connection, Listener, PeerGone

_PATIENCE_SECONDS = 30.0  # a busy machine is not a reason to fail


@dataclass(frozen=True)
class Place:
    """Where a test listens and connects."""

    listen: Callable[[], Listener]
    connect: Callable[[], Connection]


@dataclass(frozen=True)
class Pair:
    """Both ends of one connection."""

    here: Connection
    there: Connection


def readable(end: Connection | Listener, seconds: float = _PATIENCE_SECONDS) -> bool:
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
    until = time.monotonic() + _PATIENCE_SECONDS
    while len(frames) < count and time.monotonic() < until:
        if readable(connection, 0.05):
            frames += connection.receive()
        also()
    return frames


class TransportConformance:
    """The suite. A fixture of the subclass must give a `Place`."""

    @pytest.fixture
    def place(self) -> Place:
        pytest.fail("give a fixture `place` that says how to listen and connect")

    @pytest.fixture
    def listener(self, place: Place) -> Iterator[Listener]:
        listener = place.listen()
        yield listener
        listener.close()

    @pytest.fixture
    def pair(self, place: Place, listener: Listener) -> Iterator[Pair]:
        here = place.connect()
        there = accepted(listener)
        yield Pair(here, there)
        here.close()
        there.close()

    # -- frames

    @pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 65_535, 65_536, 3_000_001])
    def test_a_frame_arrives_as_it_was_sent(self, pair: Pair, size: int) -> None:
        frame = os.urandom(size)
        pair.here.send([frame])
        assert received(pair.there, 1, pair.here.flush) == [frame]

    def test_frames_arrive_in_order_however_they_were_gathered(self, pair: Pair) -> None:
        frames = [bytes([n % 251]) * (n % 40) for n in range(500)]
        for start in range(0, 500, 7):
            pair.here.send(frames[start : start + 7])
        assert received(pair.there, 500, pair.here.flush) == frames

    def test_both_ends_speak_at_once(self, pair: Pair) -> None:
        pair.here.send([b"from here"])
        pair.there.send([b"from there"])
        assert received(pair.there, 1) == [b"from here"]
        assert received(pair.here, 1) == [b"from there"]

    def test_nothing_there_is_no_frames_and_no_waiting(self, pair: Pair) -> None:
        assert pair.here.receive() == []
        assert not readable(pair.here, 0.0)
        pair.there.send([b"x"])
        assert readable(pair.here)
        assert pair.here.receive() == [b"x"]
        assert not readable(pair.here, 0.0)

    def test_no_frames_are_nothing(self, pair: Pair) -> None:
        assert pair.here.send([])
        pair.here.send([b"after"])
        assert received(pair.there, 1) == [b"after"]

    # -- a peer that does not read

    def test_a_send_never_blocks_and_what_is_left_goes_out_later(self, pair: Pair) -> None:
        frame, sent = os.urandom(100_000), 1
        while pair.here.send([frame]):
            sent += 1
        assert pair.here.left_bytes > 0
        assert not pair.here.flush()
        assert received(pair.there, sent, pair.here.flush) == [frame] * sent
        assert pair.here.flush()
        assert pair.here.left_bytes == 0

    # -- ends

    def test_what_was_sent_before_the_end_is_received_first(self, pair: Pair) -> None:
        pair.here.send([b"one", b"two"])
        pair.here.close()
        pair.here.close()
        assert received(pair.there, 2) == [b"one", b"two"]
        assert readable(pair.there)
        with pytest.raises(PeerGone):
            pair.there.receive()

    def test_sending_to_one_who_is_gone_says_so(self, pair: Pair) -> None:
        pair.there.close()
        with pytest.raises(PeerGone):
            for _ in range(100):
                pair.here.send([b"x" * 10_000])

    @pytest.mark.parametrize("mine", [True, False])
    def test_a_cut_from_another_thread_wakes_who_listens(self, pair: Pair, mine: bool) -> None:
        cutter = threading.Timer(0.05, (pair.here if mine else pair.there).cut)
        cutter.start()
        assert readable(pair.here)
        with pytest.raises(PeerGone):
            pair.here.receive()
        cutter.join()

    @pytest.mark.real
    def test_a_process_that_was_killed_is_seen_to_be_gone(self, place: Place, listener: Listener) -> None:
        child = os.fork()
        if child == 0:  # pragma: no cover
            connection = place.connect()
            connection.send([b"here"])
            signal.pause()
            os._exit(0)
        connection = accepted(listener)
        assert received(connection, 1) == [b"here"]
        assert connection.peer_pid in (0, child)
        assert connection.peer_pid == 0 or connection.peer_alive()
        os.kill(child, signal.SIGKILL)
        assert readable(connection)
        with pytest.raises(PeerGone):
            connection.receive()
        until = time.monotonic() + _PATIENCE_SECONDS
        while (
            connection.peer_alive() and time.monotonic() < until
        ):  # before it is waited for: nobody may do that
            time.sleep(0.01)
        assert not connection.peer_alive()
        os.waitpid(child, 0)
        assert not connection.peer_alive()
        connection.close()

    # -- listeners

    def test_nobody_there_is_none(self, listener: Listener) -> None:
        assert listener.accept() is None
        assert not readable(listener, 0.0)

    def test_those_who_come_before_anybody_looks_wait_in_turn(self, place: Place, listener: Listener) -> None:
        ends = [place.connect() for _ in range(20)]
        for n, end in enumerate(ends):
            end.send([b"%d" % n])
        inside = [accepted(listener) for _ in ends]
        assert [received(end, 1) for end in inside] == [[b"%d" % n] for n in range(20)]
        for end in (*ends, *inside):
            end.close()

    def test_nobody_listens(self, place: Place) -> None:
        with pytest.raises(PeerGone):
            place.connect()
        listener = place.listen()
        listener.close()
        listener.close()
        with pytest.raises(PeerGone):
            place.connect()

    def test_a_place_can_be_listened_at_again(self, place: Place) -> None:
        place.listen().abandon()  # as a host that died would leave it
        listener = place.listen()
        end = place.connect()
        accepted(listener).close()
        end.close()
        listener.close()
