"""The ring as a transport: a Unix socket whose small frames go through shared memory once both ends have it.

Guards: frames keep their order whichever way they take; whoever waits on the socket is woken by it. The socket is
who the other is, whether it lives, and the way of everything that does not fit.
"""

from __future__ import annotations

import array
import logging
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fairway.errors import FairwayError
from fairway.limits import FRAME_BYTES_MAX, RING_DRAIN_BYTES_MAX, RING_FRAME_BYTES_MAX, RING_TRANSPORT_BYTES
from fairway.ring.native import BUILT, Handle, missing
from fairway.runtime.transport import unix
from fairway.runtime.transport.framing import join
from fairway.runtime.transport.pairing import let_go, make_pair, take_pair
from fairway.runtime.transport.port import PeerGone
from fairway.runtime.transport.unix import UnixConnection

_log: Final = logging.getLogger("fairway")
_OFFER: Final = b"fairway ring 1"
# The first byte of every frame in the socket once a ring was offered.
_PLAIN, _COUNTED, _WAKE, _SWITCH = (bytes([n]) for n in range(4))
_COUNT_BYTES: Final = 8
_ENVELOPE_BYTES: Final = 1 + _COUNT_BYTES
_READ_BYTES: Final = 256 * 1024
_BATCH: Final = 1024
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # not every system has it
_FDS: Final = 2


class RingConnection(UnixConnection):
    """One end. It begins as a plain socket and stays one if no ring is offered or taken."""

    def __init__(self, stream: socket.socket, **bounds: float | None) -> None:
        super().__init__(stream, envelope_bytes=_ENVELOPE_BYTES, **bounds)  # type: ignore[arg-type]
        self._undecided = True  # the first frame says whether the other end offers rings
        self._enveloped = False
        self._fds: list[int] = []
        self._out: Handle | None = None
        self._in: Handle | None = None
        self._may_switch = False  # the other end reads our ring
        self._out_on = self._in_on = False
        self._put = 0  # frames that went through our ring
        self._owed = 0  # frames that took the socket since; our ring must say so before it is used again
        self._taken = 0  # frames that came through their ring
        self._early = 0  # frames that came through the socket, of which their ring has not told yet
        self._late: deque[tuple[int, bytes]] = deque()  # frames of the socket that wait for their turn
        self._held: deque[bytes] = deque()  # messages of the ring that wait for a frame of the socket
        self._over = False

    def offer(self) -> None:
        """Give the other end two rings; it may take them. For the end that connects, before anything else."""
        try:
            handles, fds = make_pair()
        except (FairwayError, OSError) as error:
            _log.warning("no memory for rings, so the socket is used: %s", error)
            self._undecided = False
            return
        try:
            self._out, self._in = handles
            self._in.arm()
            socket.send_fds(self._socket, [join([_OFFER])], fds)
        except OSError as error:
            raise PeerGone(f"the connection broke: {error.strerror}") from error
        finally:
            let_go([], fds)
        self._undecided, self._enveloped = False, True

    # -- sending

    def send(self, frames: Sequence[bytes]) -> bool:
        for frame in frames:
            if len(frame) > FRAME_BYTES_MAX:
                raise ValueError(f"a frame has at most {FRAME_BYTES_MAX} bytes")
        if self._over:
            raise PeerGone("the connection was cut")
        if not self._enveloped:
            return super().send(frames)
        try:
            if self._may_switch and not self._out_on:
                super().send([_SWITCH])
                self._out_on = True
            if self._out is None or not self._out_on:
                return super().send([_PLAIN + frame for frame in frames]) if frames else not self.left_bytes
            self._both_ways(self._out, frames)
            return not self.left_bytes
        except FairwayError as error:
            self._cut_for_sure()
            raise error if isinstance(error, PeerGone) else PeerGone(f"the ring failed: {error}") from error
        except BaseException:
            self._cut_for_sure()
            raise

    def _both_ways(self, ring: Handle, frames: Sequence[bytes]) -> None:
        """What the ring takes goes through it; a frame that is too long for it, or all when it is full, do not."""
        at = 0
        while at < len(frames):
            at += self._through_ring(ring, frames, at)
            if ring.disarm() and not self.left_bytes:
                super().send([_WAKE])  # with bytes left in the socket it is awake, or will be
            end = len(frames) if at < len(frames) and _fits(frames[at]) else at + 1
            head = _COUNTED + self._put.to_bytes(_COUNT_BYTES, "little")
            rest = [head + frame for frame in frames[at:end]]
            if rest:
                self._owed += len(rest)
                super().send(rest)
            at = end

    def _through_ring(self, ring: Handle, frames: Sequence[bytes], at: int) -> int:
        """Put what the ring takes; how many frames that were."""
        if self._owed:
            self._owed -= ring.put_some([b""] * min(self._owed, _BATCH), 0)
            if self._owed:
                return 0
        end = next((n for n in range(at, len(frames)) if not _fits(frames[n])), len(frames))
        done = ring.put_some(list(frames[at:end]), 0)
        self._put += done
        return done

    # -- receiving

    def _read(self) -> bytes:
        if not self._undecided:
            return super()._read()
        # Like socket.recv_fds, but descriptors that come must not live on in programs that this one starts.
        room = socket.CMSG_SPACE(_FDS * array.array("i").itemsize)
        data, ancillary, _, _ = self._socket.recvmsg(_READ_BYTES, room, _CLOSE_ON_EXEC)
        for level, kind, body in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found = array.array("i")
                found.frombytes(body[: len(body) - len(body) % found.itemsize])
                self._fds += found
        return data

    def receive(self) -> list[bytes]:
        gone: PeerGone | None = None
        try:
            came = super().receive()
        except PeerGone as error:
            if self._in is None or not self._in_on:
                raise
            came, gone = [], error
        if self._undecided and came:
            came = self._decide(came)
        if not self._enveloped:
            return came
        try:
            frames = self._ordered(came)
        except PeerGone:
            raise
        except FairwayError as error:
            raise PeerGone(f"the ring failed: {error}") from error
        if gone is not None and not frames:
            raise gone  # what was sent before the end has been received
        return frames

    def _decide(self, came: list[bytes]) -> list[bytes]:
        self._undecided = False
        if came[0] != _OFFER:
            let_go([], self._fds)
            self._fds = []
            return came
        self._enveloped = True
        pair = take_pair(self._fds)
        let_go([], self._fds)
        self._fds = []
        if pair is not None:
            self._in, self._out = pair
            self._in.arm()
            self._may_switch = True
            with suppress(PeerGone):  # whoever has gone already may have said something before
                self.send([])  # this end receives and sends in one thread, so it may
        return came[1:]

    def _ordered(self, came: list[bytes]) -> list[bytes]:
        """Frames of both ways in the order in which they were sent."""
        frames: list[bytes] = []
        for frame in came:
            kind = frame[:1]
            if kind == _PLAIN:
                frames.append(frame[1:])
            elif kind == _COUNTED:
                count = int.from_bytes(frame[1:_ENVELOPE_BYTES], "little")
                self._late.append((count, frame[_ENVELOPE_BYTES:]))
            elif kind == _SWITCH:
                self._in_on = self._may_switch = True
            elif kind != _WAKE:
                frames.append(frame)  # of a host that turned us away before it read our offer
        if self._in is not None and self._in_on:
            self._drain(self._in, frames)
        return frames

    def _drain(self, ring: Handle, frames: list[bytes]) -> None:
        """Until the ring is empty and whoever puts next must wake us: else nobody would."""
        rounds = 0
        while True:
            messages = ring.pop_many(_BATCH, 0)
            if messages and not self._late and not self._held and b"" not in messages:
                self._taken += len(messages)
                frames += messages
            else:
                self._held += messages
                self._merge(frames)
            if not messages and ring.arm():
                return
            rounds += 1
            if rounds * RING_TRANSPORT_BYTES > RING_DRAIN_BYTES_MAX:
                raise PeerGone("the peer fills its ring faster than it can be emptied")

    def _merge(self, frames: list[bytes]) -> None:
        while True:
            while self._late and self._late[0][0] == self._taken:
                frames.append(self._late.popleft()[1])
                self._early += 1
            if not self._held:
                return
            if self._held[0]:
                frames.append(self._held.popleft())
                self._taken += 1
            elif self._early:  # an empty message stands for a frame that took the socket
                self._held.popleft()
                self._early -= 1
            else:
                return

    # -- ends

    def cut(self) -> None:
        self._over = True
        super().cut()

    def close(self) -> None:
        super().close()
        fds, self._fds = self._fds, []
        with suppress(OSError):
            let_go([ring for ring in (self._out, self._in) if ring is not None], fds)


def _fits(frame: bytes) -> bool:
    """Whether a frame may go through a ring, where an empty message is no frame."""
    return 0 < len(frame) <= RING_FRAME_BYTES_MAX


def listen(path: str) -> unix.UnixListener:
    """Listen for those who offer rings and for those who do not."""
    return unix.listen(path, RingConnection)


def connect(path: str, timeout: float) -> RingConnection:
    """Connect and offer rings. Raises PeerGone, or RingMissing where the extension is not built."""
    if not BUILT:
        raise missing()
    connection = unix.connect(path, timeout, RingConnection)
    assert isinstance(connection, RingConnection)
    try:
        connection.offer()
    except BaseException:
        connection.close()
        raise
    return connection
