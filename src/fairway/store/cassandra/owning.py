"""The owner lease of a queue: who tries to own it, and whether it still says so.

Guards: no clock is compared: a watcher that sees no beat for a while *by its own clock* may claim, on the condition
that nothing has moved since. The lease only decides who tries; the range id decides who may write.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from fairway.errors import GroupUnknown
from fairway.store.cassandra.connection import Connection


@dataclass(frozen=True)
class Seen:
    """The lease at one look. No owner: it left. An owner that can be asked by others has its URL after its name."""

    owner: str
    epoch: int
    beat: int

    @property
    def url(self) -> str:
        """Where the owner takes calls of others; "" if it does not."""
        return self.owner.partition(" ")[2]


class OwnerLease:
    """The lease of one queue, as one process sees it."""

    def __init__(self, connection: Connection, queue: UUID, me: str) -> None:
        self.me = me
        self.epoch = 0  # under which this process owns; 0: it does not
        self._beat = 0
        self._connection, self._queue = connection, queue

    def look(self) -> Seen | None:
        """The lease, decided; None if the queue never had an owner."""
        found = self._connection.read("owner", (self._queue,))
        return Seen(*found[0]) if found else None

    def holds(self, seen: Seen | None) -> bool:
        """Whether this process is the owner in what was seen; if it is not, it knows so from now on."""
        if seen is None or (seen.owner, seen.epoch) != (self.me, self.epoch):
            self.epoch = 0
        return self.epoch > 0

    def claim(self, seen: Seen | None) -> bool:
        """Become the owner if the lease is as it was seen. An unknown outcome is settled by looking."""
        try:
            if seen is None:
                self._connection.conditional(("first_owner", (self._queue, self.me)))
            else:
                values = (self.me, seen.epoch + 1, 0, self._queue, seen.owner, seen.epoch, seen.beat)
                self._connection.conditional(("become_owner", values))
        except GroupUnknown:
            pass
        now = self.look()
        if now is None or now.owner != self.me:
            return False
        self.epoch, self._beat = now.epoch, now.beat
        return True

    def beat(self) -> bool:
        """Say that the owner is there; False if it is not the owner any more."""
        self._beat += 1
        values = (self._beat, self._queue, self.me, self.epoch)
        applied, _ = self._connection.conditional(("beat", values))
        return applied

    def leave(self) -> None:
        """Let the next one in at once. If that fails it waits a little."""
        if self.epoch:
            self._connection.conditional(("leave", (self._beat + 1, self._queue, self.me, self.epoch)))
            self.epoch = 0
