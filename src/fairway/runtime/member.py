"""A member: this process's part in a queue that several processes share, as its host or attached to it.

Guards: a call keeps its number however often the host changes, so it has one effect; and every call ends, in an
answer or in an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairway.errors import Closed, FairwayError, Fenced, HostStuck, NoHost, QueueHeld
from fairway.limits import HOST_WAIT_SECONDS, SILENT_SECONDS, STUCK_SECONDS, WINDOW_ROWS
from fairway.runtime.attached import Attached
from fairway.runtime.between import Between
from fairway.runtime.door import Record
from fairway.runtime.entrance import Claim, Entrance
from fairway.runtime.lanes import Lanes
from fairway.runtime.numbers import Numbers
from fairway.runtime.pending import Pending, ours
from fairway.runtime.transport.port import PeerGone, PeerSilent
from fairway.store.sqlite import SqliteStore

if TYPE_CHECKING:  # who is attached does without the engine, and is often a process that lives for one call
    from fairway.runtime.host import Host
    from fairway.runtime.running import Running

_POLL_SECONDS = 0.02  # between two looks at who hosts
_FORK_SECONDS = 5.0  # a fork waits so long for statements under way

_unusable: set[str] = set()  # files on which SQLite was at work when this process was forked


class _Link:
    """One attachment, as the member sees it."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.way: Attached | None = None
        self.lost = False


class Member:
    """One file and queue in this process. `way` is where calls go; what moves it runs in a thread of its own."""

    def __init__(
        self,
        path: str,
        name: str,
        forget_leases: bool = False,
        window_rows: int = WINDOW_ROWS,
        transport: str = "socket",
    ) -> None:
        self.path = path
        self._window_rows = window_rows
        self.name = name
        self.transport = transport
        self.hosters = 0  # open handles that may host
        self.stopped: FairwayError | None = None  # it is broken; open it again
        self._forget_leases = forget_leases
        self._numbers, self._lanes = Numbers(), Lanes()
        self._store: SqliteStore | None = None
        self._store_lock = threading.Lock()
        self._between = Between(name, self._move, self._open_store)
        self.way: Host | Attached | Between = self._between
        self._running: Running | None = None
        self._generation = 0  # that is hosted here
        self._silent = 0  # a generation whose host says nothing
        self._stuck = False  # and holds the file's write lock, when last asked
        self._mover: threading.Thread | None = None
        self._entrance: Entrance

    # -- for ports and the registry

    @property
    def store(self) -> SqliteStore:
        """The file, for reading."""
        return self._open_store()

    def start(self) -> None:
        """Attach or host, in the caller's thread so that it gets the error."""
        if self.path in _unusable:
            raise _forked_at_work()
        self._open_store()  # first: beside a file that is none of ours nothing is made
        try:
            self._entrance = Entrance(self.path, self.name, self.transport)
            self._find(0.0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Store what was executed or let it be answered, then let go of everything."""
        with self._between.lock:
            self._between.closed = True
            self._between.fail(Closed())
            mover = self._mover
        if mover is not None and mover is not threading.current_thread():
            mover.join()
        way, running = self.way, self._running
        if isinstance(way, Attached):
            way.close(goodbye=True)
        elif running is not None and way is running.host:
            running.close()
            self._entrance.door.free(self._generation)
        with self._store_lock:
            if self._store is not None:
                self._store.close()
        if hasattr(self, "_entrance"):
            self._entrance.door.close()

    # -- what moves it

    def host_stopped(self) -> None:
        """The host in this process was fenced out or broke. Called from any thread, also more than once."""
        with self._between.lock:
            self._move()

    def carry_on(self, pending: Pending) -> None:
        """A call of a host that was fenced out."""
        self._between.send(pending)

    def _lost(self, link: _Link, reason: str, pendings: list[Pending]) -> None:
        """The connection to the host is gone, or was when these calls came."""
        with self._between.lock:
            link.lost = True
            if self.way is link.way:
                self.way = self._between
                self._silent = link.generation if reason == "silent" else 0
            self._move()
        for pending in pendings:
            self._between.send(pending)

    def _move(self) -> None:
        """See to it that the thread runs. Called under the lock of `between`."""
        if self._mover is None and not self._between.closed:
            self._mover = threading.Thread(target=self._run, name=f"fairway member {self.name}", daemon=True)
            self._mover.start()

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except BaseException as error:
            with self._between.lock:
                self._mover = None
                self._between.fail(ours(error))

    def _step(self) -> bool:
        self._retire()
        if self.way is self._between:
            self._find(HOST_WAIT_SECONDS)
        with self._between.lock:
            waiting, way = self._between.take(), self.way
            if not waiting:
                at_rest = way is not self._between and not self._host_has_stopped()
                if at_rest:
                    self._mover = None
                return not at_rest
        for pending in waiting:
            pending.begin_again()
        if self._running is not None and way is self._running.host:
            self._running.host.resume(waiting)
        else:
            for pending in waiting:
                way.send(pending)
        return True

    def _host_has_stopped(self) -> bool:
        return self._running is not None and self._running.host.stopped is not None

    def _retire(self) -> None:
        """A host that stopped here: others may follow it, and its calls go where this process goes next."""
        running = self._running
        if running is None or running.host.stopped is None:
            return
        running.cut_off()
        self._entrance.door.free(self._generation)
        self._running = None
        if isinstance(running.host.stopped, Fenced):
            self.way = self._between
            running.host.come_to_rest()
            running.host.evacuate()
        else:
            self.stopped = running.host.stopped
        running.retire()

    # -- who hosts

    def _find(self, patience_seconds: float) -> None:
        """Attach to the host, or become it. One who may not host waits so long for another."""
        until = time.monotonic() + patience_seconds
        refused: tuple[int, float] = (0, 0.0)  # a generation that lets nobody in, and since when
        self._check_stuck()
        while True:
            if self._between.closed:
                raise Closed
            try:
                # Who may not host does not pass a silent host over: if nobody replaces it, it is the host again when
                # it goes on.
                found = self._entrance.enter(self.hosters > 0, self._silent if self.hosters else 0)
            except QueueHeld:
                if time.monotonic() >= until:
                    raise
                time.sleep(_POLL_SECONDS)  # many want in at once, on a machine that has too much to do
                continue
            if isinstance(found, Claim):
                return self._host(found)
            if found is None:
                if time.monotonic() >= until:
                    raise NoHost
                time.sleep(_POLL_SECONDS)
                continue
            try:
                return self._attach(found)
            except PeerSilent:
                self._found_silent(found, until)
            except PeerGone:
                now = time.monotonic()
                if refused[0] != found.generation:
                    refused = (found.generation, now)
                elif now - refused[1] > SILENT_SECONDS:
                    self._found_silent(found, until)
                time.sleep(_POLL_SECONDS)

    def _found_silent(self, host: Record, until: float) -> None:
        if self.hosters:
            self._silent = host.generation
            self._check_stuck()
        elif time.monotonic() >= until:
            raise NoHost(
                f"process {host.pid} hosts this queue and does not answer; continue or end it", pid=host.pid
            )

    def _check_stuck(self) -> None:
        """A silent host can be replaced, unless it holds the file's write lock."""
        if not self._silent or not self.hosters:
            return
        host = self._entrance.last()
        if host is None or host.generation != self._silent:
            self._stuck = False  # it was replaced already
        elif not self.store.free_to_write(STUCK_SECONDS):
            self._stuck = True
            raise HostStuck(
                f"process {host.pid} hosts this queue and is stopped inside a transaction; continue or end it, "
                "then call again. Whether this call had an effect is known only then",
                pid=host.pid,
            )
        elif self._stuck:
            self._stuck, self._silent = False, 0  # it went on: perhaps it answers now

    def _attach(self, host: Record) -> None:
        link = _Link(host.generation)
        way = link.way = Attached(
            self.name,
            self._entrance.connect(host),
            self._numbers,
            self._open_store,
            lambda reason, pendings: self._lost(link, reason, pendings),
            self._lanes,
        )
        way.start()
        with self._between.lock:
            if link.lost:
                raise PeerGone
            self._silent = 0
            self.way = way  # before calls are handed over: who gives one up must find it

    def _host(self, claim: Claim) -> None:
        from fairway.runtime.running import Running, Seat

        try:
            seat = Seat(self._numbers, self._lanes, self, claim.listener, claim.generation)
            running = Running(self.name, self.store, self._forget_leases, seat, self._window_rows)
        except BaseException:
            claim.listener.close()
            self._entrance.door.free(claim.generation)
            raise
        self._forget_leases, self._silent = False, 0
        self._generation, self._running = claim.generation, running
        self.way = running.host

    def _open_store(self) -> SqliteStore:
        store = self._store
        if store is not None:
            return store
        with self._store_lock:
            if self._store is None:
                self._store = SqliteStore.open(self.path, self.name)
            return self._store

    # -- fork

    def before_fork(self) -> Callable[[], None] | None:
        """Bring the store to rest; gives what the parent does afterwards. None: it did not come to rest."""
        if not self._store_lock.acquire(timeout=_FORK_SECONDS):
            return None
        store = self._store
        if store is not None and not store.hold_still(_FORK_SECONDS):
            self._store_lock.release()
            return None
        return lambda: self._after_fork_in_parent(store)

    def _after_fork_in_parent(self, store: SqliteStore | None) -> None:
        if store is not None:
            store.go_on()
        self._store_lock.release()

    def forked(self, at_rest: bool) -> None:
        """In the child: nothing of the parent's is used; the first call goes through the door."""
        way, running, store = self.way, self._running, self._store
        if isinstance(way, Attached):
            way.forked()
        if running is not None:
            running.forked()
        if hasattr(self, "_entrance"):
            self._entrance.door.forked()
        self._numbers, self._lanes = Numbers(), Lanes()
        self._between = Between(self.name, self._move, self._open_store)
        self.way = self._between
        self._running, self._mover = None, None
        self._generation = self._silent = 0
        self._store_lock = threading.Lock()
        if at_rest and store is not None:
            store.leave_to_parent()
            self._store = None
        elif not at_rest:
            self._refuse_child()

    def _refuse_child(self) -> None:
        """SQLite was at work in another thread and cannot be used on this file in this process any more."""
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._store))
        self._store = None
        _unusable.add(self.path)
        self._between = Between(self.name, lambda: self._between.fail(_forked_at_work()), self._open_store)
        self.way = self._between


def _forked_at_work() -> QueueHeld:
    return QueueHeld(
        "this process was forked while the queue was at work; spawn it, or fork when the queue rests"
    )
