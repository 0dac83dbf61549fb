"""A running queue: host, store thread, sweeper and lock file, started and ended together.

Guards: after `close` everything that was acknowledged is stored and nothing of the queue is held.
"""

from __future__ import annotations

import os
import weakref

from fairway.errors import QueueHeld
from fairway.runtime.bell import Bell
from fairway.runtime.clock import Clock
from fairway.runtime.committer import Committer
from fairway.runtime.host import Host
from fairway.runtime.loading import let_go, load
from fairway.runtime.lockfile import LockFile
from fairway.runtime.sweeper import Sweeper
from fairway.store.port import Store

_running: weakref.WeakSet[Running] = weakref.WeakSet()


class Running:
    """One queue, hosted in this process."""

    def __init__(self, name: str, store: Store, lock: LockFile | None, forget_leases: bool = False) -> None:
        clock, bell = Clock(), Bell()
        self._store = store
        self._lock = lock
        self.orphaned = False  # it belongs to a parent of this process
        self.host = Host(name, store, clock, bell.ring)
        self._sweeper = Sweeper(self.host, store)
        # Only the first load may forget leases: those that a rebuild finds were given out by this process.
        first = [forget_leases]
        self._committer = Committer(
            self.host,
            store,
            bell,
            lambda: load(name, store, clock, first.pop() if first else False, self.host.last_id),
            self._sweeper.after_commit,
        )
        self._committer.start()
        self._sweeper.start()
        _running.add(self)

    def close(self) -> None:
        """Store what was executed, then let go of everything."""
        if self.orphaned:
            return
        self.host.say_goodbye()
        self._sweeper.stop()
        self._committer.join()
        self._store.close()
        self.host.engine = None
        let_go()
        if self._lock is not None:
            self._lock.release()
        _running.discard(self)

    def forked(self) -> None:
        """In a forked child: the threads are gone and the file belongs to the parent, so this must never be used."""
        import ctypes

        self.orphaned = True
        parent = os.getppid()
        self.host.orphan(
            QueueHeld(f"process {parent} opened this queue and forked this one; use it there", pid=parent)
        )
        # Closing the store here could hang on a lock that a thread of the parent held, so it is never let go of.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._store))


def _after_fork() -> None:
    for running in list(_running):
        running.forked()
    _running.clear()


os.register_at_fork(after_in_child=_after_fork)


def close_all() -> None:
    """At the end of the process: what was executed is stored."""
    for running in list(_running):
        running.close()
