"""A queue that nobody hosts, as its file tells it: every verb that only looks works on it.

Guards: nothing is taken over and nothing is stored; what would change the queue is refused.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

from fairway.engine.commands import READS, Call, Command, Configure, Reserved, Wait
from fairway.engine.state import Start
from fairway.engine.steering import config_dict
from fairway.errors import Closed, NoHost
from fairway.face import checks
from fairway.face.queue import Queue
from fairway.face.reads import Read, ReadPages
from fairway.face.verbs import Verbs
from fairway.runtime.clock import Clock
from fairway.runtime.loading import load_sound
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.reading import answer
from fairway.store.sqlite.looking import Look


def look(path: str | os.PathLike[str], queue: str = "default") -> Queue:
    """The queue as it stands in the file at this moment, as a host that starts now would see it."""
    return Queue(
        checks.queue_name(queue),
        Verbs(ObstoreObjects(), lambda: 0, read),
        LookPort(os.path.realpath(path), queue),
    )


class LookPort:
    """Answers from one moment of a file."""

    def __init__(self, path: str, name: str) -> None:
        self._clock = Clock()
        self._store: Look | None = Look(path, name)
        try:
            start = Start(name, secrets.randbits(32), secrets.randbits(64), self._clock.now())
            # An engine that no group of is ever closed: what is due happens in its memory and nowhere else.
            self._engine = load_sound(self._store, self._store.meta, start, self._clock)
        except BaseException:
            self._store.close()
            raise

    def ask(self, command: Command | Read) -> Any:
        store = self._store
        if store is None:
            raise Closed
        if isinstance(command, ReadPages):
            return store.pages(command.wanted)
        if isinstance(command, Read):
            return answer(store, command)  # pyright: ignore[reportArgumentType]
        if isinstance(command, Configure) and not command.changes:
            return config_dict(self._engine.state.config)
        if not isinstance(command, READS) or isinstance(command, Wait):
            raise NoHost
        call = Call(command)
        wanted = self._engine.lookups(call)
        found = None if wanted is None else wanted.read(store)
        draft = self._engine.execute(call, self._clock.now(), found)
        while not draft.answered and self._engine.wants_reads():  # it waits for its plan, or for its search
            for part in self._engine.begin_reads(self._clock.now()):
                self._engine.delivered(part, part.read(store), self._clock.now())
        assert draft.answered
        if draft.error is not None:
            raise draft.error
        return draft.reply

    def unreceived(self, reserved: Reserved) -> None:
        """Nothing is ever reserved here."""

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()
