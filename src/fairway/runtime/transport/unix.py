"""Unix sockets: the transport between processes of one user on one machine.

Guards: only processes of the same user (or root) get in; a write never blocks; an interrupted write ends the
connection, since nobody could tell how much of it went out.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from fairway.errors import BadArgument
from fairway.limits import FRAME_BYTES_MAX, OUTBOX_BYTES_MAX, OUTBOX_SECONDS_MAX
from fairway.runtime.transport.framing import Splitter, join
from fairway.runtime.transport.port import PeerGone

_READ_BYTES: Final = 256 * 1024  # about what the kernel keeps for a socket
_PATH_BYTES_MAX: Final = (
    107  # what the address of a Unix socket has room for on Linux, the smallest but BSD's
)
_BACKLOG: Final = 512  # processes may knock while the host loads


class UnixConnection:
    """One end of a stream socket."""

    def __init__(
        self,
        stream: socket.socket,
        outbox_bytes_max: int | None = None,
        outbox_seconds_max: float | None = None,
        envelope_bytes: int = 0,
    ) -> None:
        stream.setblocking(False)
        self._socket = stream
        self._envelope = envelope_bytes  # what another transport adds to a frame
        self._splitter = Splitter(FRAME_BYTES_MAX + envelope_bytes)
        self._left: deque[memoryview] = deque()
        self._left_bytes = 0
        self._bytes_max = OUTBOX_BYTES_MAX if outbox_bytes_max is None else outbox_bytes_max
        self._seconds_max = OUTBOX_SECONDS_MAX if outbox_seconds_max is None else outbox_seconds_max
        self._moved = 0.0  # when the peer last took something, or nothing was left
        self.peer_pid, self.peer_uid = _peer(stream)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def left_bytes(self) -> int:
        return self._left_bytes

    def send(self, frames: Sequence[bytes]) -> bool:
        for frame in frames:
            if len(frame) > FRAME_BYTES_MAX + self._envelope:
                raise ValueError(f"a frame has at most {FRAME_BYTES_MAX} bytes")
        try:
            data = memoryview(join(frames))
            if not self._left:
                self._moved = time.monotonic()
            self._left.append(data)
            self._left_bytes += len(data)
            return self._write()
        except BaseException:
            self._cut_for_sure()
            raise

    def flush(self) -> bool:
        try:
            return self._write()
        except BaseException:
            self._cut_for_sure()
            raise

    def _write(self) -> bool:
        try:
            while self._left:
                piece = self._left[0]
                sent = self._socket.send(piece)
                self._left_bytes -= sent
                self._moved = time.monotonic()
                if sent < len(piece):
                    self._left[0] = piece[sent:]
                else:
                    self._left.popleft()
        except BlockingIOError:
            self._check_reader()
            return False
        except OSError as error:
            raise PeerGone(f"the connection broke: {error.strerror}") from error
        return True

    def _check_reader(self) -> None:
        still = time.monotonic() - self._moved
        if self._left_bytes > self._bytes_max and still > self._seconds_max:
            raise PeerGone(f"{self._left_bytes} bytes wait and the peer read none of them for {still:.1f} s")

    def receive(self) -> list[bytes]:
        try:
            data = self._read()
        except BlockingIOError:
            return []
        except OSError as error:
            raise PeerGone(f"the connection broke: {error.strerror}") from error
        if not data:
            raise PeerGone(
                "the connection ended inside a frame" if self._splitter.inside else "the connection ended"
            )
        return self._splitter.feed(data)

    def _read(self) -> bytes:
        return self._socket.recv(_READ_BYTES)

    def peer_alive(self) -> bool:
        return _alive(self.peer_pid)

    def cut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _cut_for_sure(self) -> None:
        """Whoever presses Ctrl-C once may press it twice."""
        while True:
            try:
                return self.cut()
            except KeyboardInterrupt:
                continue

    def close(self) -> None:
        self._socket.close()


class UnixListener:
    """A bound socket and its file."""

    def __init__(
        self, path: str, stream: socket.socket, make: Callable[[socket.socket], UnixConnection]
    ) -> None:
        stream.setblocking(False)
        self._make = make
        self._path = path
        self._socket = stream
        self._file = _identity(path)

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> UnixConnection | None:
        while True:
            try:
                stream, _ = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return None
            connection = self._make(stream)
            if connection.peer_uid in (None, os.geteuid(), 0):
                return connection
            connection.close()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._socket.close()
            # Another host may have put its own file there meanwhile.
            if self._file is not None and _identity(self._path) == self._file:
                with suppress(OSError):
                    os.unlink(self._path)

    def abandon(self) -> None:
        self._socket.close()


def listen(path: str, make: Callable[[socket.socket], UnixConnection] = UnixConnection) -> UnixListener:
    """Bind a path and listen; what a dead host left there is removed."""
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if stat.S_ISSOCK(_mode(path)):
            os.unlink(path)
        with _address(path) as address:
            stream.bind(address)
        os.chmod(path, 0o600)  # before anybody can connect
        stream.listen(_BACKLOG)
        return UnixListener(path, stream, make)
    except BaseException:
        stream.close()
        raise


def connect(
    path: str, timeout: float, make: Callable[[socket.socket], UnixConnection] = UnixConnection
) -> UnixConnection:
    """Connect to who listens at a path. Raises PeerGone if nobody does."""
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.settimeout(timeout)
        with _address(path) as address:
            stream.connect(address)
        return make(stream)
    except OSError as error:
        stream.close()
        raise PeerGone(f"nobody answers at {path}: {error}") from error
    except BaseException:
        stream.close()
        raise


@contextmanager
def _address(path: str):
    """The path as an address; a long one is reached through its folder."""
    if len(os.fsencode(path)) <= _PATH_BYTES_MAX:
        yield path
        return
    folder, name = os.path.split(path)
    fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{fd}/{name}"
        if not sys.platform.startswith("linux") or len(os.fsencode(short)) > _PATH_BYTES_MAX:
            raise BadArgument(f"url: the path is too long to be shared by processes: {path}", argument="url")
        yield short
    finally:
        os.close(fd)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return 0


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _peer(stream: socket.socket) -> tuple[int, int | None]:
    """Process and user at the other end, where the system says."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, None
    found = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", found)
    return pid, uid


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(pid)  # unlike a signal it tells a process that ended and was not waited for
            try:
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                return not poll.poll(0)
            finally:
                os.close(fd)
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
