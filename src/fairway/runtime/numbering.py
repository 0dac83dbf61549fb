"""Numbering the calls of an attached process: its clients are registered with the host before their first number.

Guards: a call gets one number; none is taken that nobody has, or `received` could never pass it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from fairway.engine.commands import Call, Register, Reserve
from fairway.errors import FairwayError
from fairway.face.reads import Read
from fairway.runtime.lanes import Lanes
from fairway.runtime.numbers import Numbers
from fairway.runtime.pending import Pending

GoOn = Callable[[Pending, FairwayError | None], bool]


class Numbering:
    """Numbers and lanes over one connection. Callers hold its lock."""

    def __init__(self, numbers: Numbers, lanes: Lanes, ask: Callable[[Pending], None], go_on: GoOn) -> None:
        self._numbers = numbers
        self._lanes = lanes
        self._ask = ask  # sends a call that needs no number
        self._go_on = go_on  # a call can be numbered now, or its client got an error; False: it was given up
        self._unnumbered: deque[Pending] = deque()  # behind the registration of this process
        self._laneless: deque[Pending] = deque()  # behind the registration of a lane
        self._registering = False
        self._lanes_coming = 0
        self._whole = True  # False while a call is numbered; found False, that was interrupted

    def number(self, pending: Pending) -> Call | None:
        """Its call; None: it waits for a client to be registered, and is told to `go_on` then."""
        if not self._whole:
            self._numbers.__init__()  # a number may have been taken that nobody has
            self._registering, self._lanes_coming = False, 0
        self._whole = False
        call = self._number(pending)
        self._whole = True
        return call

    def _number(self, pending: Pending) -> Call | None:
        command = pending.command
        assert not isinstance(command, Read)
        if isinstance(command, Reserve) and command.wait_seconds:
            call = self._lanes.call(command)
            if call is None:
                self._laneless.append(pending)
                if self._lanes_coming < len(self._laneless):
                    self._lanes_coming += 1
                    self._ask(Pending(Register(), self._lane_registered))
            return call
        if not Numbers.needed(command):
            return Call(command)
        if self._numbers.client:
            return self._numbers.call(command)
        self._unnumbered.append(pending)
        if not self._registering:
            self._registering = True
            self._ask(Pending(Register(), self._registered))
        return None

    def _registered(self, pending: Pending) -> None:
        """This process is a client now."""
        self._registering = False
        if pending.error is None:
            self._numbers.__init__(pending.reply)
            self._numbers.stored = True
        self._wake(self._unnumbered, len(self._unnumbered), pending.error)

    def _lane_registered(self, pending: Pending) -> None:
        self._lanes_coming = max(0, self._lanes_coming - 1)
        if pending.error is None:
            self._lanes.add(pending.reply)
        self._wake(self._laneless, 1, pending.error)

    def _wake(self, waiting: deque[Pending], most: int, error: FairwayError | None) -> None:
        while waiting and most > 0:
            most -= self._go_on(waiting.popleft(), error)

    def answered(self, call: Call | None) -> None:
        """The answer is here, or the call will never be executed."""
        if call is not None and call.number:
            self._numbers.answered(call)
            self._lanes.answered(call)

    def lane_is_free(self) -> None:
        """After `answered`: whoever waits for a lane may have this one."""
        if self._laneless and self._lanes.any_free:
            self._wake(self._laneless, 1, None)

    def begun_anew(self, pending: Pending, call: Call) -> bool:
        """Its client is unknown; if it was sent only here nothing is stored of it, and another client may send it."""
        if pending.fixed:
            return False
        if call.client == self._numbers.client:
            self._numbers.__init__()
        self._lanes.forget(call.client)
        if not call.number or pending.lost or pending.lives > 1:
            return False
        pending.lives += 1
        pending.call = None
        return True

    def clients(self) -> list[int]:
        """Who says goodbye when this process closes the queue."""
        return [*self._lanes.clients(), *([self._numbers.client] if self._numbers.client else [])]
