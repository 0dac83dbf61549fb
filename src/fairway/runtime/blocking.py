"""The port of blocking queues: a caller's thread executes its own commands, and stores them if nobody else does.

Guards: a caller that is interrupted while it waits leaves no wait and no lease behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fairway.engine.commands import Command, Reserved
from fairway.engine.lookups import Lookups
from fairway.errors import Closed
from fairway.face.reads import Read, ReadPages
from fairway.runtime.pending import Pending
from fairway.runtime.reading import answer
from fairway.runtime.way import Member, give_up


def _release(pending: Pending) -> None:
    if pending.box.locked():
        pending.box.release()


def ask(member: Member, command: Command | Read) -> Any:
    """Send a command, wait until its answer may leave, and return it or raise it."""
    way = member.way
    if type(command) is ReadPages:
        return way.pages(command.wanted)
    done = threading.Lock()
    done.acquire()
    pending = Pending(command, _release, done)
    try:
        todo = way.send(pending, lead=True)
        if isinstance(todo, Lookups):
            todo = way.look(pending, todo, lead=True)
        if todo is not None:
            way.commit(todo)
        done.acquire()
    except BaseException:
        _give_up(member, pending)
        raise
    if pending.error is not None:
        raise pending.error
    return answer(member.store, command) if isinstance(command, Read) else pending.reply


def _give_up(member: Member, pending: Pending) -> None:
    """Whoever presses Ctrl-C once may press it twice; what is given up must be given up whole."""
    while True:
        try:
            return give_up(member, pending)
        except KeyboardInterrupt:
            continue


class ThreadPort:
    """One open handle on a queue."""

    def __init__(self, member: Member, let_go: Callable[[], None]) -> None:
        self._member = member
        self._let_go = let_go
        self._closed = False
        self._closing = threading.Lock()

    def ask(self, command: Command | Read) -> Any:
        if self._closed:
            raise Closed
        return ask(self._member, command)

    def unreceived(self, reserved: Reserved) -> None:
        self._member.way.unreceived(reserved)

    def close(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                self._let_go()
