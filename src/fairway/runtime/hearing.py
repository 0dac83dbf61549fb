"""Hearing: what the host says, and whether it says anything.

Guards: a host counts as silent after so much time in which this process itself ran and heard nothing; a process
that was stopped first reads what came meanwhile.
"""

from __future__ import annotations

import select
import time
from typing import Final

import msgspec

from fairway.limits import BEAT_SECONDS, SILENT_SECONDS
from fairway.runtime import wire
from fairway.runtime.outbox import Outbox
from fairway.runtime.transport.port import Connection, PeerGone, PeerSilent
from fairway.runtime.transport.wake import Wake

_READ: Final = select.POLLIN | select.POLLHUP | select.POLLERR


class Hearing:
    """Used by the one thread that receives."""

    def __init__(self, connection: Connection) -> None:
        self.wake = Wake()
        self.bye = False  # the host said that it ends
        self._connection = connection
        self._silent = 0.0
        self._fd = connection.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(self.wake.fileno(), select.POLLIN)
        self._writing = False
        self._early: list[wire.ToAttached] = []

    def first(self) -> wire.ToAttached:
        """The first word; the others come with `next`. Raises PeerGone or PeerSilent."""
        while not self._early:
            self._early = self._hear(self._wait() & _READ)
        return self._early.pop(0)

    def next(self, outbox: Outbox) -> list[wire.ToAttached]:
        """What came, perhaps nothing; meanwhile what is left in the outbox goes out. Raises as `first`."""
        early, self._early = self._early, []
        if early:
            return early
        if self.bye:
            raise PeerGone("the host ended")
        left = self._connection.left_bytes > 0
        if left != self._writing:
            self._writing = left
            self._poll.modify(self._fd, select.POLLIN | (select.POLLOUT if left else 0))
        events = self._wait()
        if events & select.POLLOUT:
            outbox.push()
        return self._hear(events & _READ)

    def _wait(self) -> int:
        before = time.monotonic()
        found = dict(self._poll.poll(BEAT_SECONDS * 1000))
        if self.wake.fileno() in found:
            self.wake.heard()
        events = found.get(self._fd, 0)
        if events & _READ:
            self._silent = 0.0
        else:
            # However long this took by the clock: a stopped process does not listen.
            self._silent += min(time.monotonic() - before, BEAT_SECONDS)
            if self._silent >= SILENT_SECONDS:
                raise PeerSilent(f"the host said nothing for {SILENT_SECONDS} s")
        return events

    def _hear(self, readable: int) -> list[wire.ToAttached]:
        if not readable:
            return []
        try:
            messages = [wire.at_attached(frame) for frame in self._connection.receive()]
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise PeerGone(f"what the host said cannot be understood: {error}") from error
        return messages

    def close(self) -> None:
        self.wake.close()
