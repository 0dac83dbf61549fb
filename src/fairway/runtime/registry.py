"""Which queues this process has open: opening one twice shares its host.

Guards: a file and queue has at most one host in this process, and one that is closing is closed before it is opened.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable

from fairway.runtime.host import Host
from fairway.runtime.running import Running, close_all

Key = tuple[str, str]


class _Entry:
    """One file and queue: who has it, under a lock of its own, since loading takes its time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: Running | None = None
        self.users = 0


class Registry:
    """Running queues by (file, queue)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, _Entry] = {}

    def enter(self, key: Key, start: Callable[[], Running]) -> tuple[Host, Callable[[], None]]:
        """The host of a queue, started if it is the first use, and the function that ends this use."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            if entry.running is not None and entry.running.host.stopped is not None:
                self._close(entry)  # fenced or broken: the next one begins anew
            if entry.running is None:
                entry.running = start()
            running = entry.running
            entry.users += 1
            return running.host, lambda: self._leave(entry, running)

    def _leave(self, entry: _Entry, running: Running) -> None:
        if running.orphaned:
            return
        with entry.lock:
            if entry.running is running:
                entry.users -= 1
                if not entry.users:
                    self._close(entry)

    def _close(self, entry: _Entry) -> None:
        running, entry.running, entry.users = entry.running, None, 0
        if running is not None:
            running.close()


registry = Registry()


def _after_fork() -> None:
    """A child has none of its parent's queues."""
    registry.__init__()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
