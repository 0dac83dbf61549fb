"""The sweeper: a slow thread that removes what is over, and copies the store's log beside the writer.

Guards: objects of a submission are removed before the submission, so a crash in between repeats and forgets nothing,
and only once nobody can be handed them again, by a consumer's name or a redrive; neither a busy log nor what may not
go yet, is damaged or cannot be reached puts off what is over; a sweep that fails is told of.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from fairway.engine.commands import Purge
from fairway.engine.progress import decode_end
from fairway.engine.purging import doom
from fairway.engine.thaw import decode_described
from fairway.errors import OurError, StateError, StoreCorrupt
from fairway.limits import SWEEP_ROWS_MAX
from fairway.model.config import QueueConfig
from fairway.model.stored import Time
from fairway.runtime.blocking import ask
from fairway.runtime.failing import Failing
from fairway.runtime.host import Host
from fairway.runtime.pending import ours
from fairway.runtime.removing import Removing
from fairway.store.port import Store

SWEEP_SECONDS: Final = 10.0  # how late what is over may leave
GIVE_UP_SECONDS: Final = (
    86_400.0  # objects that cannot be removed hold their submission for a day, not for ever
)
CHECKPOINT_BYTES: Final = 8 * 1024 * 1024  # whenever the log grew by so much it is copied beside the writer


class Sweeper:
    """Runs a host's slow thread."""

    def __init__(self, host: Host, store: Store) -> None:
        self._host = host
        self._store = store
        self._failing = Failing(host.name)
        self._objects = Removing(self._failing)
        self._poke = threading.Event()
        self._ending = False
        self._sweep_at = time.monotonic() + SWEEP_SECONDS
        self._wal_bytes = 0  # when the log was last copied
        self._checkpoint: Callable[[], bool] | None = getattr(store, "checkpoint", None)
        self._thread = threading.Thread(target=self._run, name=f"fairway sweeper {host.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, wait: bool = True) -> None:
        """End the thread; wait for it, unless what it removes just now may take its time."""
        self._ending = True
        self._poke.set()
        if wait and self._thread.is_alive():
            self._thread.join()

    def after_commit(self) -> None:
        """Called by the store thread: is the log long enough to be copied?"""
        size: int = getattr(self._store, "wal_bytes", 0)
        if size < self._wal_bytes:
            self._wal_bytes = 0  # the log began anew
        if size - self._wal_bytes > CHECKPOINT_BYTES:
            self._wal_bytes = size
            self._poke.set()

    def _run(self) -> None:
        try:
            while not self._ending:
                self._turn()
        except StateError:
            return  # closed or fenced: whoever calls hears of it
        except BaseException as error:
            self._host.stop(ours(error))

    def _turn(self) -> None:
        poked = self._poke.wait(max(0.0, self._sweep_at - time.monotonic()))
        self._poke.clear()
        if self._ending:
            return
        if poked and self._checkpoint is not None:
            self._try("copy its log", self._checkpoint)
        # By the clock, not by silence: under load the log is long all the time.
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            self.sweep()

    def _try(self, work: str, function: Callable[[], object]) -> None:
        """Do some work; if the store fails just now it can wait, and the others need not."""
        reason = None
        try:
            function()
        except OurError as error:
            reason = str(error)
        self._failing.tell(work, reason)

    def sweep(self) -> None:
        """Remove submissions, keys and events whose time is over, a group at a time."""
        for what, remove in (
            ("submissions", self._submissions),
            ("keys", self._keys),
            ("events", self._events),
        ):
            with self._host.lock:
                engine = self._host.usable()
                if engine is None or self._ending:
                    return
                config = engine.state.config
            now = self._host.clock.now()
            self._try(f"remove {what} that are over", partial(remove, config, now))

    def _submissions(self, config: QueueConfig, now: float) -> None:
        """All of them, one page after the other: those that may not go yet are passed over."""
        over = now - config.retention_seconds
        damage: str | None = None
        self._objects.begin()
        after: Time = (0.0, 0)
        while not self._ending:
            found = self._store.ended_before(over, SWEEP_ROWS_MAX, after)
            gone: list[int] = []
            for ended in self._doomed(found):
                try:
                    if self._may_go(ended, over):
                        gone.append(ended[1])
                except StoreCorrupt as error:
                    damage = damage or str(error)
            if gone:
                ask(self._host, Purge(gone, [], 0.0))
            if len(found) < SWEEP_ROWS_MAX:
                break
            after = found[-1]
        self._objects.end()
        self._failing.tell("read submissions that are over", damage)

    def _keys(self, _: QueueConfig, now: float) -> None:
        while not self._ending:
            keys = self._store.keys_expired(now, SWEEP_ROWS_MAX)
            if not keys or ask(self._host, Purge([], keys, 0.0)) == 0 or len(keys) < SWEEP_ROWS_MAX:
                return  # where none of them may go yet, asking again at once would not help

    def _events(self, config: QueueConfig, now: float) -> None:
        before = now - config.event_seconds
        oldest = self._store.events(0, 1)
        if oldest and oldest[0][1] < before:
            ask(self._host, Purge([], [], before))

    def _doomed(self, found: list[Time]) -> list[Time]:
        """Those that nobody may ask for again; the others are looked at the next time."""
        if not found:
            return found
        self._host.confirm()  # where another has taken over, the other knows who may ask
        with self._host.lock:
            engine = self._host.usable()
            doomed = set() if engine is None else set(doom(engine.state, [id for _, id in found]))
        return [ended for ended in found if ended[1] in doomed]

    def _may_go(self, ended: Time, over: float) -> bool:
        """Whether nothing of a submission is left outside of the store that can be removed."""
        at, id = ended
        run = self._store.run(id)
        if run is None or run.state == "active" or decode_end(run.end).at > over:
            return True  # it lived again since it was listed: what is asked to purge it sees that
        return self._objects.remove(decode_described(run.body), ended) or at < over - GIVE_UP_SECONDS
