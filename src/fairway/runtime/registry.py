"""Which queues this process has open: opening one twice shares its member.

Guards: a file and queue has at most one member in this process, and one that is closing is closed before it is
opened. A forked child has its parent's queues as members of its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

from fairway.errors import FairwayError
from fairway.store.port import Store

_END_SECONDS = 10.0  # a thread that still opens a queue does not keep its process from ending

Key = tuple[str, str]


class Member(Protocol):
    """This process's part in a queue, whatever the queue is stored in."""

    name: str
    hosters: int  # open handles that may host
    stopped: FairwayError | None  # it is broken; open it again

    @property
    def way(self) -> Any: ...
    @property
    def store(self) -> Store: ...
    def start(self) -> None: ...
    def close(self) -> None: ...
    def before_fork(self) -> Callable[[], None] | None: ...
    def forked(self, at_rest: bool) -> None: ...


class _Entry:
    """One file and queue: who has it, under a lock of its own, since loading takes its time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.member: Member | None = None
        self.starting: Member | None = None
        self.users = 0


class Registry:
    """Open queues by (file, queue)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, _Entry] = {}
        self._resting: list[tuple[Member, Callable[[], None] | None]] = []  # from before a fork to after it

    def enter(
        self, key: Key, may_host: bool, make: Callable[[], Member]
    ) -> tuple[Member, Callable[[], None]]:
        """The member of a queue, started if it is the first use, and the function that ends this use."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            if entry.member is not None and entry.member.stopped is not None:
                self._close(entry)  # broken: the next one begins anew
            if entry.member is None:
                member = entry.starting = make()
                member.hosters = int(may_host)
                try:
                    member.start()
                    entry.member = member
                finally:
                    entry.starting = None
            else:
                member = entry.member
                member.hosters += may_host
            entry.users += 1
            return member, lambda: self._leave(entry, member, may_host)

    def _leave(self, entry: _Entry, member: Member, may_host: bool) -> None:
        with entry.lock:
            if entry.member is member:
                entry.users -= 1
                if not entry.users:
                    self._close(entry)
                else:
                    member.hosters -= may_host

    def _close(self, entry: _Entry) -> None:
        member, entry.member, entry.users = entry.member, None, 0
        if member is not None:
            member.close()

    def close_all(self) -> None:
        """At the end of the process."""
        for entry in list(self._entries.values()):
            if entry.lock.acquire(timeout=_END_SECONDS):
                try:
                    self._close(entry)
                finally:
                    entry.lock.release()

    # -- fork

    def before_fork(self) -> None:
        entries = list(self._entries.values())
        members = {entry.member or entry.starting for entry in entries} - {None}
        self._resting = [(member, member.before_fork()) for member in members if member is not None]

    def after_fork_in_parent(self) -> None:
        resting, self._resting = self._resting, []
        for _, go_on in resting:
            if go_on is not None:
                go_on()

    def after_fork_in_child(self) -> None:
        resting, self._resting = self._resting, []
        self._lock = threading.Lock()
        for entry in self._entries.values():
            entry.lock, entry.starting = threading.Lock(), None
        for member, go_on in resting:
            member.forked(at_rest=go_on is not None)


registry = Registry()

os.register_at_fork(
    before=registry.before_fork,
    after_in_parent=registry.after_fork_in_parent,
    after_in_child=registry.after_fork_in_child,
)


atexit.register(registry.close_all)
