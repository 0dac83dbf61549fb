"""The outbox of an attached process: any number of threads put frames, one at a time sends them all.

Guards: frames go out in the order they were put; what is put while one thread writes goes out with its next write.
Who must not go on before a frame has left asks `has_sent`, and is told when it has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fairway.runtime.transport.port import Connection, PeerGone

_END_SECONDS = 1.0  # a write never blocks; one that was interrupted may never say that it is over


class Outbox:
    """Frames on their way into a connection."""

    def __init__(self, connection: Connection, ring: Callable[[], None]) -> None:
        self._connection = connection
        # Called when the connection takes no more just now, so that somebody must `push`, and when it has taken what
        # was asked for with `has_sent`.
        self._ring = ring
        self._lock = threading.Lock()
        self._frames: list[bytes] = []
        self._taken = 0  # frames that a thread took to send them
        self._sent = 0  # frames that left
        self._awaited = False
        self._busy = False
        self._over = False

    def put(self, frame: bytes) -> int:
        """Add a frame, which `flush` sends; gives its number."""
        with self._lock:
            self._frames.append(frame)
            return self._taken + len(self._frames)

    def has_sent(self, number: int) -> bool:
        """Whether this frame and all before it have left; if not, `ring` is called when they have."""
        with self._lock:
            self._awaited = self._awaited or self._sent < number
            return self._sent >= number

    def flush(self) -> None:
        """Send what was put, unless another thread is at it: then it sends this too."""
        try:
            while True:
                with self._lock:
                    if self._busy or self._over or not self._frames:
                        return
                    self._busy = True
                    frames, self._frames = self._frames, []
                    self._taken += len(frames)
                self._write(frames)
        except PeerGone:
            return  # whoever receives hears of it, and tells everybody
        except BaseException:
            # Frames of others may be lost with this one's; cut off, they are all sent again by number.
            self._cut_for_sure()
            raise

    def push(self) -> None:
        """The connection takes more: send what is left of earlier frames. Raises PeerGone."""
        with self._lock:
            if self._busy or self._over:
                return
            self._busy = True
        self._write([])
        self.flush()

    def _write(self, frames: list[bytes]) -> None:
        try:
            if not (self._connection.send(frames) if frames else self._connection.flush()):
                self._ring()
                return
            with self._lock:
                self._sent = self._taken
                awaited, self._awaited = self._awaited, False
            if awaited:
                self._ring()
        except PeerGone:
            self._connection.cut()
            raise
        finally:
            self._busy = False

    def end(self) -> None:
        """Cut the connection; from here on nobody uses it, so that it can be closed."""
        self._connection.cut()
        until = time.monotonic() + _END_SECONDS
        while True:
            with self._lock:
                self._over = True
                if not self._busy or time.monotonic() > until:
                    return
            time.sleep(0.001)

    def _cut_for_sure(self) -> None:
        while True:
            try:
                return self._connection.cut()
            except KeyboardInterrupt:
                continue
