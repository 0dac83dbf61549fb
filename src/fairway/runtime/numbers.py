"""Request numbers: this process is one client of the queue, wherever its engine runs.

Guards: a number is given once; `received` rises only over numbers whose answers have left.
"""

from __future__ import annotations

from fairway.engine.commands import READS, Call, Command, Goodbye, Purge, Register, Reserve

# A wait may last an hour, and its number would hold `received` back for as long; nobody repeats it here anyway.
_UNNUMBERED = frozenset((*READS, Register, Goodbye, Purge))


class Numbers:
    """The client that this process is, whoever hosts. Callers hold the lock of the way they send by."""

    __slots__ = ("_early", "_last", "client", "received", "stored")

    def __init__(self, client: int = 0, stored: bool = True) -> None:
        self.client = 0  # until the rest is there: whoever is interrupted here begins once more
        self.stored = stored  # until then another engine may give the same id to somebody else
        self.received = 0
        self._last = 0
        self._early: set[int] = set()
        self.client = client  # 0: not registered

    @staticmethod
    def needed(command: Command) -> bool:
        """Whether the command goes with a number."""
        if type(command) is Reserve:
            return not command.wait_seconds
        return type(command) not in _UNNUMBERED

    def call(self, command: Command) -> Call:
        """The command with the next number."""
        self._last += 1
        return Call(command, self.client, self._last, self.received)

    def answered(self, call: Call) -> None:
        """The answer has left, or nobody will ask for it. Interrupted half way it is done again."""
        if call.client != self.client or call.number <= self.received:
            return
        self._early.add(call.number)
        while (number := self.received + 1) in self._early:
            self.received = number
            self._early.discard(number)
