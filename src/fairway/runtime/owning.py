"""An owner: this process's part in a queue on Cassandra, as the one that works or as one that stands by.

Guards: a process works on a queue only while it holds the owner lease, and stops at its first fenced write; a call
keeps its number through every change, so it has one effect. A node of a server keeps no call that another node can
answer: whoever asked is told where, and whether the call may have had an effect.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fairway.errors import Closed, FairwayError, GroupUnknown, NotOwner, QueueDeleted, QueueHeld
from fairway.limits import OWNER_BEAT_SECONDS, OWNER_SILENT_SECONDS
from fairway.runtime.asked import Asked
from fairway.runtime.between import Between
from fairway.runtime.host import Host
from fairway.runtime.lanes import Lanes
from fairway.runtime.numbers import Numbers
from fairway.runtime.pending import Pending, copy_of, ours
from fairway.runtime.running import Running, Seat
from fairway.store.cassandra import Address, CassandraStore, Connection
from fairway.store.cassandra.owning import OwnerLease, Seen

_LOOK_SECONDS: Final = 0.25  # between two looks at who owns
_REST_SECONDS: Final = 1.0  # before one who stands by tries again what failed
_log: Final = logging.getLogger("fairway")


@dataclass(frozen=True)
class Node:
    """A process that answers others: where, and the connection that its queues share."""

    url: str
    connection: Connection


class Watch:
    """What one process has seen of a lease, by its own clock."""

    def __init__(self) -> None:
        self.seen: Seen | None = None
        self.beats = False  # its owner has moved while it was watched
        self._since = time.monotonic()

    def see(self, seen: Seen | None) -> None:
        if seen != self.seen:
            before = self.seen
            self.beats = before is not None and seen is not None and before.owner == seen.owner
            self.seen, self._since = seen, time.monotonic()

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self._since

    @property
    def free(self) -> bool:
        """Nobody owns it, or nothing was heard of its owner for too long."""
        held = self.seen is not None and bool(self.seen.owner)
        return not held or self.silent_seconds >= OWNER_SILENT_SECONDS


class Owner:
    """One queue on a cluster in this process. `way` is where calls go; what moves it runs in a thread of its own."""

    def __init__(self, address: Address, name: str, asked: Asked, node: Node | None = None) -> None:
        self._node = node
        self._watch = Watch()
        self._unsure = False  # whether what a former host of this process was last told to store is stored
        self.name = name
        self.hosters = 0
        self.stopped: FairwayError | None = None
        self._address, self._create, self._forget_leases = address, asked.create, asked.forget_leases
        self._standby, self._window_rows = asked.standby, asked.window_rows
        self._numbers, self._lanes = Numbers(), Lanes()
        self._between = Between(name, self._move, lambda: self.store)
        self.way: Host | Between = self._between
        self._running: Running | None = None
        self._wake, self._ending = threading.Event(), threading.Event()
        self._mover: threading.Thread | None = None
        self._heart: threading.Thread | None = None
        self._forked = False

    # -- for ports and the registry

    def start(self) -> None:
        """Connect, and own the queue or stand by; one who does not stand by gets the error."""
        connection = self._node.connection.share() if self._node else Connection.open(self._address)
        try:
            self.store = CassandraStore.open(connection, self.name, create=self._create)
        finally:
            connection.close()  # the store has its own share of it
        me = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        if self._node is not None:
            me = f"{me} {self._node.url}"
        self._lease = OwnerLease(self.store.connection, self.store.queue, me)
        try:
            if self._node is not None:
                self._watch.see(self._lease.look())  # so that the first call knows where to go
            self._heart = threading.Thread(target=self._beats, name=f"fairway beats {self.name}", daemon=True)
            self._heart.start()
            if not self._standby:
                self._own()
            self._mover = threading.Thread(target=self._run, name=f"fairway owner {self.name}", daemon=True)
            self._mover.start()
        except BaseException:
            self.close()
            raise

    @property
    def here(self) -> bool:
        """Whether this process works on the queue now."""
        return self._running is not None

    @property
    def elsewhere(self) -> str:
        """Where the process that works on the queue takes calls, as was seen last; "": here, nowhere, or unknown."""
        seen = self._watch.seen
        if self._running is not None or self._watch.free or seen is None or seen.owner == self._lease.me:
            return ""
        return seen.url

    def close(self) -> None:
        """Store what was executed, let the next owner in, then let go of everything."""
        with self._between.lock:
            self._between.closed = True
            self._between.fail(Closed())
        if self._forked:
            return
        self._ending.set()
        self._wake.set()
        if self._mover is not None and self._mover is not threading.current_thread():
            self._mover.join()
        running, self._running = self._running, None
        if running is not None:
            running.close()
        if self._heart is not None:
            self._heart.join()
        with suppress(FairwayError):
            self._lease.leave()
        self.store.close()

    # -- for the host

    def host_stopped(self) -> None:
        """The host in this process was fenced out or broke. Called from any thread, also more than once."""
        self._wake.set()

    def carry_on(self, pending: Pending) -> None:
        """A call of a host that was fenced out."""
        running = self._running
        if pending.numbered and not self._standby and running is not None and running.host.unsure:
            self._between.refuse(pending, _unsure())
        else:
            self._between.send(pending)

    # -- the lease

    def _beats(self) -> None:
        """Say that the owner is there. One that was deposed goes on until the fence stops it: that is certain."""
        while not self._ending.wait(OWNER_BEAT_SECONDS):
            with suppress(FairwayError):  # unknown or not sent: the next one tells
                if self._lease.epoch and not self._lease.beat():
                    self._lease.epoch = 0

    def _own(self) -> None:
        """Hold the lease and host. One who does not stand by gets NotOwner as soon as another is seen to live."""
        watch = self._watch = Watch()
        while not self._ending.is_set():
            watch.see(self._lease.look())  # also if it believes that it owns: it may have slept
            if self._lease.holds(watch.seen) or (watch.free and self._lease.claim(watch.seen)):
                return self._host()
            if watch.beats and not self._standby:
                raise _not_owner(watch)
            if self._node is not None and not watch.free:
                self._give_away(_not_owner(watch))
            self._ending.wait(_LOOK_SECONDS)
        raise Closed

    def _give_away(self, error: NotOwner) -> None:
        """Another process can answer what waits here. Of what this one may have stored nobody can say here."""
        with self._between.lock:
            waiting = self._between.take()
            for pending in waiting:
                own = pending.numbered and not pending.fixed
                pending.leave(None, _unsure() if own and self._unsure else copy_of(error))
            if waiting:
                # Their numbers are used by nobody any more: whoever is owner here next begins anew.
                self._numbers.__init__()
                self._lanes.__init__()

    def _host(self) -> None:
        try:
            seat = Seat(self._numbers, self._lanes, self)
            running = Running(self.name, self.store, self._forget_leases, seat, window_rows=self._window_rows)
        except BaseException:
            with suppress(FairwayError):
                self._lease.leave()  # another may be able to
            raise
        self._forget_leases, self._unsure = False, False
        self._running = running
        self.way = running.host

    # -- what moves it

    def _move(self) -> None:
        """There are calls and nobody to carry them out. Called under the lock of `between`."""
        if self.stopped is not None:
            self._between.fail(self.stopped)
        self._wake.set()

    def _run(self) -> None:
        while not self._ending.is_set():
            if not self._standby or self._running is not None:
                self._wake.wait()
            self._wake.clear()
            try:
                self._step()
            except BaseException as error:
                self._failed(ours(error))

    def _failed(self, error: FairwayError) -> None:
        if isinstance(error, QueueDeleted):
            self.stopped = error
            self._ending.set()
        elif self._standby and not isinstance(error, Closed):
            _log.warning("standing by for the queue %s: %s", self.name, error)
            self._ending.wait(_REST_SECONDS)
            return
        with self._between.lock:
            self._between.fail(error)

    def _step(self) -> None:
        self._retire()
        if self._ending.is_set():
            return
        with self._between.lock:
            idle = self._between.idle
        if self._running is None and (self._standby or not idle):
            self._own()
        if self._running is not None:
            with self._between.lock:
                waiting = self._between.take()
            for pending in waiting:
                pending.begin_again()
            self._running.host.resume(waiting)

    def _retire(self) -> None:
        """A host that stopped here gives its calls away."""
        running = self._running
        if running is None or running.host.stopped is None:
            return
        self.way = self._between
        running.host.come_to_rest()
        self._unsure = running.host.unsure
        running.host.evacuate()
        running.retire()
        self._watch, self._running = Watch(), None

    # -- fork

    def before_fork(self) -> Callable[[], None] | None:
        return lambda: None

    def forked(self, at_rest: bool) -> None:
        """In the child: the connections and the threads are the parent's, and so is the queue."""
        import ctypes

        self._forked = True
        if self._running is not None:
            self._running.forked()
        parent = os.getppid()
        error = QueueHeld(f"process {parent} opened this queue and forked this one; open it here", pid=parent)
        ctypes.pythonapi.Py_IncRef(
            ctypes.py_object(self)
        )  # ending it here could hang on a lock of the parent
        self._between = Between(self.name, lambda: self._between.fail(error), lambda: self.store)
        self.way = self._between
        self.stopped = error


def _not_owner(watch: Watch) -> NotOwner:
    owner = watch.seen.owner if watch.seen is not None else ""
    until = time.time() + max(0.0, OWNER_SILENT_SECONDS - watch.silent_seconds)
    return NotOwner(
        f"{owner} owns this queue; send the call there, or open it with standby=True to take its place",
        owner=owner,
        until=until,
    )


def _unsure() -> GroupUnknown:
    return GroupUnknown("another process took over while this was being stored; look before you repeat it")
