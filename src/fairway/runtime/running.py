"""A running queue: host, store thread, sweeper, and the service to other processes, started and ended together.

Guards: after `close` everything that was acknowledged is stored and nothing of the queue is held.
"""

from __future__ import annotations

import atexit
import os
import weakref
from dataclasses import dataclass

from fairway.errors import QueueHeld
from fairway.limits import WINDOW_ROWS
from fairway.runtime.bell import Bell
from fairway.runtime.clock import Clock
from fairway.runtime.collecting import let_go
from fairway.runtime.committer import Committer
from fairway.runtime.executing import Shelter
from fairway.runtime.host import Host
from fairway.runtime.lanes import Lanes
from fairway.runtime.loading import load
from fairway.runtime.numbers import Numbers
from fairway.runtime.reader import Reader
from fairway.runtime.serving import Serving
from fairway.runtime.sweeper import Sweeper
from fairway.runtime.transport.port import Listener
from fairway.store.port import Store

_alone: weakref.WeakSet[Running] = weakref.WeakSet()


@dataclass(frozen=True)
class Seat:
    """What a host needs of the member it belongs to. Without a listener it serves this process only."""

    numbers: Numbers
    lanes: Lanes
    shelter: Shelter
    listener: Listener | None = None
    generation: int = 0


class Running:
    """One queue, hosted in this process. Without a seat no other process can reach it, and the store is its own."""

    def __init__(
        self,
        name: str,
        store: Store,
        forget_leases: bool = False,
        seat: Seat | None = None,
        window_rows: int = WINDOW_ROWS,
    ) -> None:
        clock, bell = Clock(), Bell()
        self.store = store
        self._seat = seat
        self.host = Host(name, store, clock, bell.ring)
        self.way = self.host
        self.serving: Serving | None = None
        if seat is not None:
            self.host.numbers, self.host.lanes, self.host.shelter = seat.numbers, seat.lanes, seat.shelter
            if seat.listener is not None:
                self.serving = Serving(self.host, seat.listener, seat.generation)
        self._sweeper = Sweeper(self.host, store)
        self._reader = Reader(self.host, store)
        # Only the first load may forget leases: those that a rebuild finds were given out by this process.
        first = [forget_leases]
        self._committer = Committer(
            self.host,
            store,
            bell,
            lambda: load(name, store, clock, first.pop() if first else False, self.host.last_id, window_rows),
            self._sweeper.after_commit,
        )
        try:
            if self.serving is not None:
                self.serving.start()  # before the load: others see that it lives
            self._committer.start()
        except BaseException:
            self.cut_off()
            raise
        self._sweeper.start()
        if seat is None:
            _alone.add(self)

    @property
    def name(self) -> str:
        return self.host.name

    def close(self) -> None:
        """Store what was executed, then let go of everything."""
        if self._orphaned():
            return
        if self.serving is not None:
            self.serving.stop(bye=True)
        self.host.say_goodbye()
        self._sweeper.stop()
        self._committer.join()
        self._reader.stop()
        if self.host.stopped is not None:
            self.host.evacuate()
        if self._seat is None:
            self.store.close()
        self._forget()

    def cut_off(self) -> None:
        """Other processes look for another host."""
        serving, self.serving = self.serving, None
        if serving is not None:
            serving.stop(bye=False)

    def retire(self) -> None:
        """After the host has stopped: end its threads. The sweeper ends by itself, it may be removing objects."""
        self._sweeper.stop(wait=False)
        self._committer.join()
        self._reader.stop()
        self._forget()

    def _forget(self) -> None:
        self.host.engine = None
        let_go()
        _alone.discard(self)

    # -- fork

    def _orphaned(self) -> bool:
        return type(self.host.stopped) is QueueHeld

    def forked(self) -> None:
        """In a forked child: the threads are gone and what is in memory belongs to the parent."""
        import ctypes

        parent = os.getppid()
        self.host.orphan(
            QueueHeld(f"process {parent} opened this queue and forked this one; use it there", pid=parent)
        )
        if self.serving is not None:
            self.serving.forked()
        # Ending it here could hang on a lock that a thread of the parent held, so it is never let go of.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


def _after_fork() -> None:
    for running in list(_alone):
        running.forked()
    _alone.clear()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    """At the end of the process: what was executed is stored."""
    for running in list(_alone):
        running.close()
