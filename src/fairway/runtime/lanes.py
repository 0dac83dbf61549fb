"""Lanes: clients that carry one waiting reserve at a time.

Guards: a wait may last an hour and never holds `received` back, and is still known again by its number.
"""

from __future__ import annotations

from fairway.engine.commands import Call, Command


class Lanes:
    """The lanes of this process, as (client, last number). Callers hold the lock of the way they use."""

    __slots__ = ("_busy", "_clients", "_free")

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []
        self._busy: dict[int, int] = {}  # the number that each other lane carries
        self._clients: set[int] = set()  # all of them, free or not

    def add(self, client: int) -> None:
        """A client was registered to be a lane."""
        self._clients.add(client)
        self._free.append((client, 0))

    def call(self, command: Command) -> Call | None:
        """The command on a free lane; None: there is none."""
        if not self._free:
            return None
        client, last = self._free.pop()
        self._busy[client] = last + 1
        return Call(command, client, last + 1, last)

    @property
    def any_free(self) -> bool:
        return bool(self._free)

    def answered(self, call: Call) -> None:
        """The answer is here, or the call will never be executed: its lane is free."""
        if self._busy.get(call.client) == call.number:
            del self._busy[call.client]
            self._free.append((call.client, call.number))

    def forget(self, client: int) -> None:
        """The queue does not know this client any more."""
        self._clients.discard(client)
        self._busy.pop(client, None)

    def clients(self) -> list[int]:
        """All of them, free or not, for their goodbye."""
        return sorted(self._clients)
