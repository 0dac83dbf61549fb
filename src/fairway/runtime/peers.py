"""Peers: the processes attached to a host, with what each has asked and not yet received.

Guards: leases that left for a process and are not known to have arrived are never forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from fairway.engine.commands import Call, Reserve, Reserved
from fairway.runtime import wire
from fairway.runtime.host import Host
from fairway.runtime.pending import Pending
from fairway.runtime.transport.port import Connection, PeerGone

Request = tuple[int, int]  # (client, number)


class Peer:
    """One connection. Used by the serving thread alone."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.fd = connection.fileno()
        self.welcome = False  # its Hello was accepted
        self.gone = False
        self.writing = False  # something is left to write
        self.out: list[bytes] = []  # frames of this turn
        self.open: dict[int, Pending] = {}  # by tag
        self.unreceived: dict[int, tuple[Request, Reserved]] = {}  # by tag: leases sent, and not yet Got
        self.pid = 0  # as its Hello said
        self.rejoin_until = 0.0

    def answered(self, tag: int, pending: Pending) -> None:
        """Its answer is being sent."""
        reply, command = pending.reply, pending.command
        if type(reply) is Reserved and reply.spans and not (type(command) is Reserve and command.consumer):
            self.unreceived[tag] = (request_of(pending.call), reply)

    def hear_the_rest(self) -> None:
        """Which leases it said it had before it went: a write hears of an end before what was said is read."""
        self.connection.cut()  # nothing more comes
        with suppress(PeerGone):
            while self.unreceived:
                for frame in self.connection.receive():
                    with suppress(msgspec.DecodeError, ValueError, RecursionError):
                        message = wire.at_host(frame)
                        if type(message) is wire.Got:
                            self.unreceived.pop(message.tag, None)

    def asked_again(self, request: Request) -> None:
        """Another connection of this process asks the same: what becomes of it is seen to there."""
        for tag, (sent, _) in list(self.unreceived.items()):
            if sent == request:
                del self.unreceived[tag]
        for tag, pending in list(self.open.items()):
            if request_of(pending.call) == request:
                del self.open[tag]

    def give_up_waits(self, host: Host) -> Iterator[None]:
        """Whoever asks again waits again. There may be ten thousands of them: it is done step by step."""
        for tag, pending in list(self.open.items()):
            if host.give_up_wait(pending):
                del self.open[tag]
            yield

    def bury(self, host: Host) -> None:
        """It will not come back: its calls are given up, and leases that did not arrive go back uncounted."""
        for pending in self.open.values():
            host.give_up(pending)
        for _, reserved in self.unreceived.values():
            host.unreceived(reserved)
        self.open.clear()
        self.unreceived.clear()


def request_of(call: Call | None) -> Request:
    return (call.client, call.number) if call is not None else (0, 0)
