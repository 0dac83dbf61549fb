"""The store thread: stores a group while the next fills, does what is due, rebuilds the engine after a failure.

Guards: one group is stored at a time, in order; an error here never vanishes: every caller gets it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from fairway.engine.closing import Closing
from fairway.engine.engine import Engine
from fairway.engine.lookups import Lookups
from fairway.errors import Closed, FairwayError, Fenced, GroupUnknown, StoreFailed
from fairway.limits import OWNER_CONFIRMED_SECONDS, SILENT_SECONDS
from fairway.model.stored import Group
from fairway.runtime.bell import Bell
from fairway.runtime.collecting import let_go
from fairway.runtime.host import Host
from fairway.runtime.pending import ours
from fairway.store.port import Store

_SETTLE_SECONDS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)  # pauses between tries to learn what became of a group
_SPIN_SECONDS = 0.001  # something due that does not go away must not keep a core busy


class Committer:
    """Runs a host's store thread."""

    def __init__(
        self,
        host: Host,
        store: Store,
        bell: Bell,
        load: Callable[[], Engine],
        after_commit: Callable[[], None],
    ) -> None:
        self._host = host
        self._store = store
        self._bell = bell
        self._load = load
        self._after_commit = after_commit
        host.commit = self.commit
        self._thread = threading.Thread(target=self._run, name=f"fairway store {host.name}", daemon=True)

    def start(self) -> None:
        """Load the engine, in the caller's thread so that it gets the error, then start the thread."""
        self._host.adopt(self._load())
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has stored what it had to and ended."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as error:
            self._host.stop(ours(error))
        finally:
            if self._host.stopped is not None and self._host.shelter is not None:
                self._host.shelter.host_stopped()  # again, if whoever stopped it was interrupted

    def _turn(self) -> bool:
        host = self._host
        self._execute_later()
        with host.lock:
            self._bell.heard()
            host.sleeping_until = 0.0
            if host.stopped is not None:
                return False
            engine = host.usable()
            closing, host.handed = host.handed, None
            orphan = host.led if host.leader is None else None
            if not host.storing and engine is not None:
                closing = host.next_group()
            if not host.storing and host.closed and not host.later:
                host.fail_all(Closed())
                host.ended = True
                return False
            if closing is None and orphan is None and not host.later:
                host.sleeping_until = math.inf if engine is None else engine.next_due
            rebuild = engine is None and not host.storing and host.wanted()
            doubtful = host.shelter is not None and not host.storing and bool(host.open)
        if closing is not None:
            self.commit(closing)
        elif orphan is not None:
            self._adopt_group(orphan)
        elif rebuild:
            self._rebuild()
        elif host.sleeping_until:
            sleep = max(_SPIN_SECONDS, host.sleeping_until - host.clock.now())
            self._bell.wait(min(sleep, SILENT_SECONDS) if doubtful else sleep)
            if doubtful:
                self._watch()
        return True

    def _watch(self) -> None:
        """Those who wait here for work wait in vain if another process hosts the queue meanwhile."""
        host = self._host
        now = time.monotonic()
        if now - host.confirmed > OWNER_CONFIRMED_SECONDS and not host.storing:
            if not self._store.owns(host.range_id):
                raise Fenced
            host.confirmed = now

    def _execute_later(self) -> None:
        """Calls that could not be executed by their callers."""
        host = self._host
        with host.lock:
            if host.usable() is None:
                return
            later, host.later = host.later, []
        for place, pending in enumerate(later):
            try:
                with host.lock:
                    wanted = None if host.dropped(pending) else host.take(pending)
                if isinstance(wanted, Lookups):
                    host.look(pending, wanted)
            except FairwayError as error:
                with host.lock:
                    pending.leave(None, error)
            except BaseException:  # this thread ends: those who wait are told so
                with host.lock:
                    host.later = later[place:] + host.later
                raise

    # -- storing

    def commit(self, closing: Closing) -> None:
        """Store a group and let its answers go; one that fails is told to those who wait for it.

        Without a group there are only answers, which may leave if nobody has taken over.
        """
        host = self._host
        started = time.monotonic()
        try:
            if closing.group is not None:
                self._store_group(closing.group)
            elif not self._store.owns(host.range_id):
                raise Fenced
        except StoreFailed as error:
            with host.lock:
                host.abandon_engine(error)
        except Exception as error:
            host.stop(ours(error), known=True)  # what became of the group, or the error says that it is not
        else:
            with host.lock:
                host.confirmed = started
                host.stored(closing)
            self._after_commit()

    def _adopt_group(self, closing: Closing) -> None:
        """A caller was interrupted while it stored its group: find out what became of it."""
        host = self._host
        stored = closing.group is not None and self._settled(closing.group, GroupUnknown())
        with host.lock:
            if stored:
                host.stored(closing)
            else:
                host.abandon_engine(None)

    def _store_group(self, group: Group) -> None:
        try:
            self._store.commit(group)
        except GroupUnknown as unknown:
            if not self._settled(group, unknown):
                raise StoreFailed from unknown

    def _settled(self, group: Group, unknown: GroupUnknown) -> bool:
        for pause in _SETTLE_SECONDS:
            time.sleep(pause)
            try:
                return self._store.settle(group)
            except (StoreFailed, GroupUnknown) as error:
                unknown.__cause__ = error
            except Fenced as fenced:
                raise fenced from unknown
        raise unknown

    def _rebuild(self) -> None:
        """A new engine from what is stored; if the store still fails, everybody hears of it and may try again."""
        host = self._host
        let_go()
        try:
            engine = self._load()
        except StoreFailed as error:
            with host.lock:
                host.fail_all(error)
            return
        host.adopt(engine)
