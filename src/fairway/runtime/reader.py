"""The reader: a thread that reads what the window wants from the store and makes plans in slices, while calls go on.

Guards: it is started when it is first wanted, so a small queue has none; the engine gets nothing that a later owner
stored; a read that fails is logged and told to it, and it wants it again after a pause; between two slices of a plan
whoever waits for the lock gets it.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from fairway.engine.engine import Engine
from fairway.engine.reads import Answer, Read
from fairway.errors import FairwayError, StateError
from fairway.runtime.collecting import Pause
from fairway.runtime.failing import Failing
from fairway.runtime.host import Host
from fairway.runtime.pending import ours
from fairway.store.port import Store

_HAND_OVER_SECONDS: Final = 0.001  # a lock that is taken again at once goes to nobody else


class Reader:
    """Runs a host's reads."""

    def __init__(self, host: Host, store: Store) -> None:
        self._host = host
        self._store = store
        self._poke = threading.Event()
        self._ending = False
        self._pause = Pause()
        self._failing = Failing(host.name)
        self._thread: threading.Thread | None = None
        host.want_reads = self._wanted

    def _wanted(self) -> None:
        """Called under the host's lock: the engine wants to read."""
        if self._thread is None and not self._ending:
            self._thread = threading.Thread(
                target=self._run, name=f"fairway reader {self._host.name}", daemon=True
            )
            self._thread.start()
        self._poke.set()

    def stop(self, wait: bool = True) -> None:
        """End the thread, after the read that it is at."""
        self._ending = True
        self._poke.set()
        if wait and self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ending:
                self._poke.wait()
                self._poke.clear()
                while not self._ending and self._round():
                    pass
        except StateError:
            return  # closed or fenced: whoever calls hears of it
        except BaseException as error:
            self._host.stop(ours(error))
        finally:
            self._pause.end()

    def _round(self) -> bool:
        """Make the reads that are wanted now, and a slice of a plan; False if nothing is wanted."""
        host = self._host
        with host.lock:
            engine = host.usable()
            if engine is None or not engine.wants_reads():
                self._pause.end(engine)
                return False
            if engine.builds:
                self._pause.begin()  # else the collector walks over the half-made plan many times
            host.whole = False
            reads = engine.begin_reads(host.clock.now())
            host.whole = True
            host.ring_if_answered()
            if not engine.builds:
                self._pause.end(engine)
        if not reads:
            time.sleep(_HAND_OVER_SECONDS)
        for read in reads:
            try:
                answer: Answer | FairwayError = read.read(self._store)
                host.confirm()
            except StateError:
                raise
            except FairwayError as error:
                answer = error
            reason = str(answer) if isinstance(answer, FairwayError) else None
            self._failing.tell(f"read its backlog ({read.name})", reason)
            self._tell(engine, read, answer)
        return True

    def _tell(self, engine: Engine, read: Read, answer: Answer | FairwayError) -> None:
        host = self._host
        with host.lock:
            if host.usable() is not engine:
                return  # rebuilt meanwhile: the new one asks for itself
            host.whole = False
            now = host.clock.now()
            if isinstance(answer, FairwayError):
                engine.read_failed(read, now, answer)
            else:
                engine.delivered(read, answer, now)
            host.whole = True
            host.ring_if_answered()
