"""The sweeper: a slow thread that removes what is over, and copies the store's log beside the writer.

Guards: objects of a submission are removed before the submission, so a crash in between repeats and forgets nothing,
and only once nobody can be handed them again, by a consumer's name or a redrive; a busy log does not put off what is
over.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Final

from fairway.engine.commands import Purge
from fairway.engine.progress import decode_end
from fairway.engine.purging import doom
from fairway.engine.thaw import decode_described
from fairway.errors import FairwayError, OurError, StateError
from fairway.limits import SWEEP_ROWS_MAX
from fairway.runtime import objects
from fairway.runtime.blocking import ask
from fairway.runtime.host import Host
from fairway.runtime.pending import ours
from fairway.store.port import Store

SWEEP_SECONDS: Final = 10.0  # how late what is over may leave
GIVE_UP_SECONDS: Final = (
    86_400.0  # objects that cannot be removed hold their submission for a day, not for ever
)
CHECKPOINT_BYTES: Final = 8 * 1024 * 1024  # whenever the log grew by so much it is copied beside the writer
_log: Final = logging.getLogger("fairway")
_NAME: Final = re.compile(r"(\d+)(\.out\.[0-9a-f.]+)?")


class Sweeper:
    """Runs a host's slow thread."""

    def __init__(self, host: Host, store: Store) -> None:
        self._host = host
        self._store = store
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
        try:
            if poked and self._checkpoint is not None:
                self._checkpoint()
            # By the clock, not by silence: under load the log is long all the time.
            if time.monotonic() >= self._sweep_at:
                self._sweep_at = time.monotonic() + SWEEP_SECONDS
                self.sweep()
        except OurError:
            return  # the store or an object store fails just now; what is over can wait

    def sweep(self) -> None:
        """Remove submissions, keys and events whose time is over, a group at a time."""
        while not self._ending:
            with self._host.lock:
                engine = self._host.usable()
                if engine is None:
                    return
                config = engine.state.config
            now = self._host.clock.now()
            ids = self._store.ended_before(now - config.retention_seconds, SWEEP_ROWS_MAX)
            keys = self._store.keys_expired(now, SWEEP_ROWS_MAX)
            events_before = now - config.event_seconds
            oldest = self._store.events(0, 1)
            if not ids and not keys and not (oldest and oldest[0][1] < events_before):
                return
            ids = self._doomed(ids)
            kept = [id for id in ids if not self._remove_objects(id, now - config.retention_seconds)]
            if kept:
                given_up = self._store.ended_before(
                    now - config.retention_seconds - GIVE_UP_SECONDS, SWEEP_ROWS_MAX
                )
                kept = [id for id in kept if id not in given_up]
            purge = Purge([id for id in ids if id not in kept], keys, max(0.0, events_before))
            if ask(self._host, purge) == 0:
                return  # nothing that is over may go yet: asking again at once would not help
            if kept or (len(ids) < SWEEP_ROWS_MAX and len(keys) < SWEEP_ROWS_MAX):
                return

    def _doomed(self, ids: list[int]) -> list[int]:
        """Those that nobody may ask for again; the others are looked at the next time."""
        if not ids:
            return ids
        self._host.confirm()  # where another has taken over, the other knows who may ask
        with self._host.lock:
            engine = self._host.usable()
            return [] if engine is None else doom(engine.state, ids)

    def _remove_objects(self, id: int, ended_before: float) -> bool:
        """Remove the objects of a submission, if that was asked for; False if they cannot be reached now."""
        run = self._store.run(id)
        if run is None or run.state == "active" or decode_end(run.end).at > ended_before:
            return True  # it lived again since it was listed: what is asked to purge it sees that
        described = decode_described(run.body)
        try:
            for prefix, count in described.segments if described.delete_objects else ():
                remove_objects(prefix, count)
        except FairwayError as error:
            _log.warning("the objects of submission %d cannot be removed now: %s", id, error)
            return False
        return True


def remove_objects(prefix: str, count: int) -> None:
    """Remove the payloads 0..count-1 under a prefix, and every result of theirs; other objects stay."""
    store = objects.ObstoreObjects()
    for names in objects.under(prefix):
        ours = [f"{prefix}/{name}" for name in names if (m := _NAME.fullmatch(name)) and int(m[1]) < count]
        store.remove(ours)
