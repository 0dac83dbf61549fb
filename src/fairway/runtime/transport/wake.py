"""A wake-up call for a thread that sleeps on file descriptors.

Guards: a ring is never lost, and a hundred rings before the sleeper looks are one.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress


class Wake:
    """`fileno` is readable from a ring until it is heard."""

    __slots__ = ("_lock", "_read", "_write")

    def __init__(self) -> None:
        self._lock = (
            threading.Lock()
        )  # a ring must never go into a descriptor that was closed and is another's now
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        return self._read

    def ring(self) -> None:
        """From any thread; also when it is full or closed already."""
        with self._lock:
            if self._write >= 0:
                with suppress(OSError):
                    os.write(self._write, b"\0")

    def heard(self) -> None:
        with suppress(OSError):
            os.read(self._read, 4096)

    def close(self) -> None:
        """Let go; idempotent."""
        with self._lock:
            self.abandon()

    def abandon(self) -> None:
        """In a forked child, where the lock may be held by a thread that does not exist: let go."""
        fds, self._write, self._read = (self._write, self._read), -1, -1
        for fd in fds:
            if fd >= 0:
                os.close(fd)
