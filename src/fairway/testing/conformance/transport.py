"""What every transport must do: subclass `TransportConformance`, say how to listen and connect, run it with pytest.

Guards: a transport is a transport when it passes this suite; neither end relies on anything that is not checked here.

    class TestMyTransport(TransportConformance):
        @pytest.fixture
        def place(self, tmp_path):
            return Place(lambda: my.listen(tmp_path / "x"), lambda **bounds: my.connect(tmp_path / "x", **bounds))
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from fairway.runtime.transport.port import Connection, Listener, PeerGone
from fairway.testing.conformance.ends import (
    PATIENCE_SECONDS,
    Pair,
    Place,
    accepted,
    frame_of,
    frames_until_the_end,
    readable,
    received,
    talk_first,
    talk_second,
    victim,
)

VICTIMS = pytest.mark.parametrize("listens", [False, True], ids=["who connected", "who listened"])


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

    @pytest.fixture(params=["at first", "after some talk"])
    def pair(self, request: pytest.FixtureRequest, place: Place, listener: Listener) -> Iterator[Pair]:
        here = place.connect()
        there = accepted(listener)
        if request.param != "at first":
            self._talk(place, here, there)
        yield Pair(here, there)
        here.close()
        there.close()

    @staticmethod
    def _talk(place: Place, here: Connection, there: Connection) -> None:
        second = threading.Thread(target=talk_first, args=(here,))
        second.start()
        talk_second(there)
        second.join(PATIENCE_SECONDS)
        place.talked(here)
        place.talked(there)

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

    def test_who_has_much_to_read_and_reads_nothing_is_cut_off(
        self, place: Place, listener: Listener
    ) -> None:
        here = place.connect(outbox_bytes_max=100_000, outbox_seconds_max=0.1)
        there = accepted(listener)
        self._talk(place, here, there)
        until = time.monotonic() + PATIENCE_SECONDS
        with pytest.raises(PeerGone, match="read none"):
            while here.left_bytes < 200_000:
                here.send([b"x" * 4000])
            while time.monotonic() < until:
                here.flush()
                time.sleep(0.02)
        assert frames_until_the_end(there), "what was sent before is received"
        here.close()
        there.close()

    def test_who_reads_slowly_is_not_cut_off(self, place: Place, listener: Listener) -> None:
        here = place.connect(outbox_bytes_max=100_000, outbox_seconds_max=0.5)
        there = accepted(listener)
        self._talk(place, here, there)
        frames = [*(frame_of(n) for n in range(16)), os.urandom(700_000)]  # one call: it is not late yet
        assert not here.send(frames)
        got: list[bytes] = []
        while here.left_bytes > 100_000:
            time.sleep(0.6)  # longer than it may read nothing
            assert readable(there)
            got += there.receive()
            here.flush()
        got += received(there, len(frames) - len(got), here.flush)
        assert got == frames
        here.close()
        there.close()

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

    # -- kills, of either side, with frames under way

    @pytest.mark.real
    @VICTIMS
    def test_a_process_that_was_killed_is_seen_to_be_gone(self, place: Place, listens: bool) -> None:
        with victim(place, listens, lambda end, tell: None) as other:
            here = other.here
            assert here.peer_pid in (0, other.pid)
            assert here.peer_pid == 0 or here.peer_alive()
            other.kill()
            assert readable(here)
            assert frames_until_the_end(here) == []
            until = time.monotonic() + PATIENCE_SECONDS
            # Before it is waited for: nobody may do that.
            while here.peer_alive() and time.monotonic() < until:
                time.sleep(0.01)
            assert not here.peer_alive()
            os.waitpid(other.pid, 0)
            assert not here.peer_alive()

    @pytest.mark.real
    @VICTIMS
    def test_what_a_killed_process_had_sent_is_received_first(self, place: Place, listens: bool) -> None:
        def act(end: Connection, tell: Callable[[], None]) -> None:
            assert end.send([frame_of(n) for n in range(40)])
            tell()

        with victim(place, listens, act) as other:
            other.wait_for_word()
            other.kill()
            os.waitpid(other.pid, 0)
            assert frames_until_the_end(other.here) == [frame_of(n) for n in range(40)]

    @pytest.mark.real
    @VICTIMS
    def test_a_process_that_is_killed_while_it_sends_leaves_whole_frames_in_order(
        self, place: Place, listens: bool
    ) -> None:
        def act(end: Connection, tell: Callable[[], None]) -> None:
            n = 0
            while True:
                end.send([frame_of(n + k) for k in range(5)])
                n += 5
                while not end.flush():
                    time.sleep(0.001)

        for kill_after in (1, 100, 1000):
            with victim(place, listens, act) as other:
                got = received(other.here, kill_after)
                other.kill()
                os.waitpid(other.pid, 0)
                got += frames_until_the_end(other.here)
                assert len(got) >= kill_after
                assert got == [frame_of(n) for n in range(len(got))]

    @pytest.mark.real
    @VICTIMS
    def test_what_a_killed_process_never_read_holds_nobody_up(self, place: Place, listens: bool) -> None:
        with victim(place, listens, lambda end, tell: None) as other:
            other.here.send([frame_of(n) for n in range(40)])
            other.kill()
            os.waitpid(other.pid, 0)
            with pytest.raises(PeerGone):
                for _ in range(1000):
                    other.here.send([b"x" * 1000])
        with victim(place, listens, lambda end, tell: end.send([b"anew"])) as other:
            assert received(other.here, 1) == [b"anew"], "nothing is left of the one before"

    # -- calls and answers

    def test_calls_are_answered_under_their_numbers_whoever_is_first(self, pair: Pair) -> None:
        """Many are under way at a time, of all sizes, and those that came last are answered first."""
        calls = {n: n.to_bytes(4, "little") + frame_of(n) for n in range(400)}

        def answer() -> None:
            for _ in range(0, len(calls), 20):
                for call in reversed(received(pair.there, 20)):
                    pair.there.send([call[:4] + call[4:][::-1]])
                while not pair.there.flush():
                    time.sleep(0.001)

        host = threading.Thread(target=answer)
        host.start()
        for first in range(0, len(calls), 20):
            pair.here.send([calls[n] for n in range(first, first + 20)])
            answers = received(pair.here, 20, pair.here.flush)
            found = {int.from_bytes(one[:4], "little"): one[4:] for one in answers}
            assert found == {n: calls[n][4:][::-1] for n in range(first, first + 20)} and len(answers) == 20
        host.join(PATIENCE_SECONDS)
        assert not host.is_alive()

    @pytest.mark.real
    def test_what_a_host_that_died_left_unanswered_goes_to_the_next(self, place: Place) -> None:
        """Its answers that were sent are received; its calls reach nobody but by being sent again."""
        calls = [n.to_bytes(4, "little") + frame_of(n) for n in range(20)]

        def act(end: Connection, tell: Callable[[], None]) -> None:
            tell()
            read = received(end, 12)
            end.send([call[:4] for call in read[:7]])
            tell()

        with victim(place, True, act) as host:
            host.wait_for_word()  # it has heard all of the talk before
            host.here.send(calls)
            host.wait_for_word()
            host.kill()
            os.waitpid(host.pid, 0)
            answered = frames_until_the_end(host.here)
            assert answered == [call[:4] for call in calls[:7]]
            listener = place.listen()
            here = place.connect()
            there = accepted(listener)
            self._talk(place, here, there)
            here.send(calls[7:])
            assert received(there, 13) == calls[7:], "and nothing of the connection before"
            there.send([call[:4] for call in calls[7:]])
            assert answered + received(here, 13) == [call[:4] for call in calls]
            for end in (here, there, listener):
                end.close()

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
