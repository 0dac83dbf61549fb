"""Through the door: finding out who hosts a queue, or becoming the one who does.

Guards: a generation is claimed by one process, and its socket listens before anybody can read of it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from fairway.errors import QueueHeld, StoreFailed
from fairway.runtime import wire
from fairway.runtime.door import Door, Record
from fairway.runtime.transport import choosing, rings
from fairway.runtime.transport.port import Connection, Listener

_CONNECT_SECONDS = 3.0  # the backlog of a stopped host may be full


@dataclass(frozen=True)
class Claim:
    """This process is to host a generation; others may connect already."""

    generation: int
    listener: Listener


class Entrance:
    """The door of one file and queue, and the sockets beside it."""

    def __init__(self, path: str, name: str, transport: str = "socket") -> None:
        self._transport = transport
        self._folder, file = os.path.split(path)
        self._prefix = f"{file}-{name}"
        self.door = Door(f"{path}-{name}.lock")

    def enter(self, may_host: bool, replace: int) -> Claim | Record | None:
        """A claim, or who hosts; None: nobody does, and this one may not. `replace` is a generation to pass over."""
        with self.door.entered():
            record = self.door.read()
            if record is not None and record.generation != replace and self.door.held(record.generation):
                if record.version != wire.VERSION:
                    raise QueueHeld(
                        f"process {record.pid} hosts this queue with another version of Fairway; close it there",
                        pid=record.pid,
                    )
                return record
            return self._claim(record) if may_host else None

    def last(self) -> Record | None:
        """Who hosts or was the last to."""
        with self.door.entered():
            return self.door.read()

    def _claim(self, last: Record | None) -> Claim:
        generation = last.generation + 1 if last is not None else 1
        while not self.door.hold(generation):
            generation += 1  # the record was lost, its host was not
        try:
            if last is not None:
                self._remove(last)
            name = f"{self._prefix}.{generation}.sock"
            listener = _listen(os.path.join(self._folder, name))
            try:
                self.door.write(Record(generation, os.getpid(), name, wire.VERSION))
            except BaseException:
                listener.close()
                raise
        except BaseException:
            self.door.free(generation)
            raise
        return Claim(generation, listener)

    def connect(self, host: Record) -> Connection:
        """A connection to a host. Raises PeerGone."""
        path = os.path.join(self._folder, os.path.basename(host.socket))
        return choosing.connect(self._transport, path, _CONNECT_SECONDS)

    def _remove(self, last: Record) -> None:
        """The socket that a dead host left."""
        name = os.path.basename(last.socket)
        if name.startswith(self._prefix) and name.endswith(".sock"):
            with suppress(OSError):
                os.unlink(os.path.join(self._folder, name))


def _listen(path: str) -> Listener:
    try:
        return rings.listen(path)  # which takes both
    except OSError as error:
        raise StoreFailed(
            f"no socket can be made at {path} ({error.strerror}); use a local file system"
        ) from error
