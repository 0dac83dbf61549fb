"""Hosting: the process that owns the engines of a place's queues, or stands by for them.

Guards: every queue is hosted from the start on, so that deadlines and retries are seen to without callers; on a cluster
also those that other nodes make.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from fairway.errors import FairwayError, NotFound
from fairway.face import checks
from fairway.limits import NODE_NAMES_SECONDS
from fairway.server.places import FilePlace, Place

_log: Final = logging.getLogger("fairway.server")


class Hosting:
    """The queues of one place, open in this process. Every method blocks; any thread may call them."""

    def __init__(self, place: Place | str) -> None:
        self._place: Place = FilePlace(place) if isinstance(place, str) else place
        self._ending = threading.Event()
        self._watching: threading.Thread | None = None
        self._lock = threading.Lock()
        self._held: dict[str, Callable[[], None]] = {}

    def start(self, made: Iterable[str] = ()) -> None:
        """Host what is there, and make the queues that are to be there."""
        known = self.names()
        if known and not self._place.shared:
            self._place.sweep()  # a deletion that was interrupted; on a cluster `_watch` sees to it
        for name in sorted({*known, *made}):
            try:
                self.host(name, create=True)
            except FairwayError as error:
                if name not in known:
                    raise
                _log.error(
                    "queue %s cannot be hosted: %s", name, error
                )  # one that is broken does not end the others
        if self._place.shared:
            self._watching = threading.Thread(target=self._watch, name="fairway names", daemon=True)
            self._watching.start()

    def names(self) -> dict[str, int]:
        """The queues, with their numbers."""
        return self._place.names()

    def host(self, name: str, create: bool = False) -> bool:
        """See to it that a queue is hosted; True if it was made."""
        checks.queue_name(name)
        with self._lock:
            if name in self._held:
                return False
            known = name in self.names()
            if not known and not create:
                raise no_queue(name)
            _, self._held[name] = self._place.enter(name, create, True)
            return not known

    def drop(self, name: str) -> None:
        """Delete a queue with all that is in it."""
        with self._lock:
            let_go = self._held.pop(name, None)
            if let_go is not None:
                let_go()
            if name not in self.names() or not self._place.bury(name):
                raise no_queue(name)
        try:
            self._place.sweep()
        except FairwayError as error:
            if not self._place.shared:
                raise
            _log.warning("what queue %s held is removed later: %s", name, error)

    def _watch(self) -> None:
        """Stand by for what other nodes make, and let go of what they delete."""
        while not self._ending.wait(NODE_NAMES_SECONDS):
            try:
                known = self.names()
                for name in known.keys() - self._held.keys():
                    self.host(name)
                for name in self._held.keys() - known.keys():
                    self._let_go(name)
                self._place.sweep()
            except FairwayError as error:
                _log.warning("queues of other nodes cannot be seen to: %s", error)

    def _let_go(self, name: str) -> None:
        with self._lock:
            let_go = self._held.pop(name, None) if name not in self.names() else None
        if let_go is not None:
            let_go()

    def close(self) -> None:
        self._ending.set()
        if self._watching is not None:
            self._watching.join()
        with self._lock:
            held, self._held = self._held, {}
        for let_go in held.values():
            let_go()


def no_queue(name: str) -> NotFound:
    how = f"make it with PUT /v1/queues/{name} or `fairway queue create URL --queue {name}`"
    return NotFound(f"this server has no queue {name!r}; {how}", queue=name)
