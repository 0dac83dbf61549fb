"""The port of blocking queues: a caller's thread executes its own commands, and stores them if nobody else does.

Guards: a caller that is interrupted while it waits leaves no wait and no lease behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fairway.engine.closing import Closing
from fairway.engine.commands import Command, Reserved
from fairway.engine.lookups import Lookups
from fairway.errors import Closed
from fairway.face.reads import Read, ReadPages
from fairway.runtime.host import Host
from fairway.runtime.pending import Pending
from fairway.runtime.reading import answer


def _release(pending: Pending) -> None:
    if pending.box.locked():
        pending.box.release()


def ask(host: Host, command: Command | Read) -> Any:
    """Send a command, wait until its answer may leave, and return it or raise it."""
    if type(command) is ReadPages:
        return host.pages(command.wanted)
    done = threading.Lock()
    done.acquire()
    pending = Pending(command, _release, done)
    try:
        todo = host.send(pending, lead=True)
        if type(todo) is Lookups:
            todo = host.look(pending, todo, lead=True)
        if type(todo) is Closing:
            host.commit(todo)
        done.acquire()
    except BaseException:
        _give_up(host, pending)
        raise
    if pending.error is not None:
        raise pending.error
    return answer(host.store, command) if isinstance(command, Read) else pending.reply


def _give_up(host: Host, pending: Pending) -> None:
    """Whoever presses Ctrl-C once may press it twice; what is given up must be given up whole."""
    while True:
        try:
            return host.give_up(pending)
        except KeyboardInterrupt:
            continue


class ThreadPort:
    """One open handle on a host."""

    def __init__(self, host: Host, let_go: Callable[[], None]) -> None:
        self._host = host
        self._let_go = let_go
        self._closed = False
        self._closing = threading.Lock()

    def ask(self, command: Command | Read) -> Any:
        if self._closed:
            raise Closed
        return ask(self._host, command)

    def unreceived(self, reserved: Reserved) -> None:
        self._host.unreceived(reserved)

    def close(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                self._let_go()
