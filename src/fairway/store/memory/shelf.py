"""The "disk" of memory stores: it outlives their handles, loses power, and misbehaves when told to.

Guards: power loss forgets exactly the groups after the last synced one; a late group has no privilege.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from enum import Enum
from typing import Any

from fairway.errors import BadArgument, Fenced, StoreFailed
from fairway.limits import QUEUES_PER_FILE_MAX
from fairway.model.stored import Group
from fairway.store.memory.state import State


class Fault(Enum):
    """What becomes of a commit."""

    OK = "ok"
    FAIL = "fail"  # not stored, and said so
    UNKNOWN_STORED = "unknown_stored"  # stored, but the answer is lost
    UNKNOWN_LOST = "unknown_lost"  # not stored, and the answer is lost
    LATE = "late"  # the answer is lost; the group arrives when deliver_late is called, if it is still welcome
    ECHO = "echo"  # stored, and it arrives a second time when deliver_late is called


class Shelf:
    """Queues by name. `faults` is asked at each commit, outside the lock, and may call the shelf itself.

    A shelf that keeps what is synced holds every queue twice; without that it cannot lose power.
    One that deletes by range keeps the places of ended runs until a group gives them up, as Cassandra does.
    """

    def __init__(self, *, keeps_synced: bool = True, by_range: bool = False) -> None:
        self.by_range = by_range
        self.lock = threading.RLock()
        self.faults: Callable[[Group], Fault] = lambda group: Fault.OK
        self._live: dict[str, State] = {}
        self._synced: dict[str, State] | None = {} if keeps_synced else None
        self._unsynced: list[tuple[str, Group]] = []
        self._late: list[tuple[str, Group]] = []

    def queue(self, name: str) -> State:
        """The queue of a name as it is now, made if there is none."""
        with self.lock:
            if name not in self._live:
                if len(self._live) >= QUEUES_PER_FILE_MAX:
                    raise BadArgument(f"queue: there are {QUEUES_PER_FILE_MAX} already; use another store.")
                self._live[name] = State(len(self._live), self.by_range)
                if self._synced is not None:
                    self._synced[name] = State(len(self._synced), self.by_range)
            return self._live[name]

    def take_over(self, name: str) -> State:
        """Raise the range id, durably."""
        with self.lock:
            state = self.queue(name)
            state.range_id += 1
            self._sync()
            return state

    def store(self, name: str, group: Group) -> None:
        """Store a group, or raise and change nothing."""
        with self.lock:
            self.queue(name).apply(group)
            if self._synced is not None:
                self._unsynced.append((name, _kept(group)))
            if group.sync:
                self._sync()

    def settle(self, name: str, group: Group) -> bool:
        """Whether a group is stored; if not, its number is burnt."""
        with self.lock:
            state = self.queue(name)
            if state.range_id != group.range_id or state.number not in (group.number - 1, group.number):
                raise Fenced()
            stored = state.number == group.number and state.burnt != group.number
            if state.number < group.number:
                state.burn(group.number)
            self._sync()
            return stored

    def put_off(self, name: str, group: Group) -> None:
        """Keep a group that will arrive late."""
        with self.lock:
            self._late.append((name, _kept(group)))

    def deliver_late(self) -> list[bool]:
        """The late groups arrive, in order: for each, whether it was stored."""
        with self.lock:
            late, self._late = self._late, []
            return [self._arrives(name, group) for name, group in late]

    def power_loss(self) -> None:
        """Forget what was not synced, and what was still on its way. Every handle sees the older state."""
        with self.lock:
            if self._synced is None:
                raise BadArgument("keeps_synced: this shelf was made without it, so it cannot lose power.")
            self._unsynced.clear()
            self._late.clear()
            self._live = {name: _copied(state) for name, state in self._synced.items()}

    def _arrives(self, name: str, group: Group) -> bool:
        try:
            self.store(name, group)
        except (Fenced, StoreFailed):
            return False
        return True

    def _sync(self) -> None:
        """Bring the synced copy up to the live one: the groups since, then what is not written by groups."""
        if self._synced is None:
            return
        for name, group in self._unsynced:
            synced = self._synced[name]
            # A number that was burnt, or an owner that changed, came with a sync of its own.
            assert synced.admits(group)
            synced.apply(group)
        self._unsynced.clear()
        for name, state in self._live.items():
            synced = self._synced[name]
            synced.range_id, synced.number, synced.burnt = state.range_id, state.number, state.burnt


def _kept(group: Group) -> Group:
    """A copy that does not change when its maker goes on using his lists."""
    kept = copy(group)
    for name in group.__struct_fields__:
        if isinstance(value := getattr(group, name), list):
            setattr(kept, name, list(value))
    return kept


def _copied(state: State) -> State:
    twin = State(state.queue)
    for name, value in vars(state).items():
        setattr(twin, name, _own(value))
    return twin


def _own(value: Any) -> Any:
    return {key: _own(inner) for key, inner in value.items()} if isinstance(value, dict) else value
