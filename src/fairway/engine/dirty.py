"""Which small objects differ from their stored form, and since which group.

Guards: the journal is kept from the oldest such group on, so a start can replay what was not rewritten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from fairway.limits import FLUSH_OBJECTS_PER_GROUP_MIN, JOURNAL_GROUPS_MAX
from fairway.model.stored import Kind

ObjectKey = tuple[Kind, str | int, int]

_Name = int | str | ObjectKey
"""An object in memory. A submission's id stands for its progress and a tenant's name for the tenant: there are many."""


def _name(kind: Kind, key: str | int, part: int) -> _Name:
    return key if kind is Kind.PROGRESS or kind is Kind.TENANT else (kind, key, part)


def _item(name: _Name) -> ObjectKey:
    if isinstance(name, tuple):
        return name
    return (Kind.TENANT if isinstance(name, str) else Kind.PROGRESS), name, 0


class Dirty:
    """Objects by the group that first changed them, oldest first, and those to be written with the filling group."""

    __slots__ = ("_at", "_first", "_now", "_order", "_since", "groups_max")

    def __init__(self) -> None:
        self._since: dict[_Name, int] = {}
        # For each group from `_first` on, what it changed first. One that left, or changed again, is passed over.
        self._order: deque[list[_Name]] = deque()
        self._first = 0
        self._at = 0  # those before it in the first list were looked at
        self._now: dict[_Name, None] = {}
        self.groups_max = JOURNAL_GROUPS_MAX  # for so many groups an object may differ

    def mark(self, kind: Kind, key: str | int, part: int, number: int) -> None:
        """The object differs from its stored form since this group, which has a journal record of it."""
        name = key if kind is Kind.PROGRESS or kind is Kind.TENANT else (kind, key, part)
        if name not in self._since:
            self._put(name, number)

    def _put(self, name: _Name, number: int) -> None:
        self._since[name] = number
        order = self._order
        if not order:
            self._first, self._at = number, 0
        while number < self._first:  # a start finds the newer of two holds before it replays the journal
            order.appendleft([])
            self._first, self._at = self._first - 1, 0
        at = number - self._first
        while len(order) <= at:
            order.append([])
        order[at].append(name)

    def write_now(self, kind: Kind, key: str | int, part: int = 0) -> None:
        """The object goes with the filling group: its change has no journal record."""
        self._now[_name(kind, key, part)] = None

    def clear(self, kind: Kind, key: str | int, part: int = 0) -> None:
        """The object is gone before it was ever written."""
        name = _name(kind, key, part)
        self._since.pop(name, None)
        if self._now:
            self._now.pop(name, None)

    def __contains__(self, item: ObjectKey) -> bool:
        name = _name(*item)
        return name in self._since or name in self._now

    def has_progress(self, id: int) -> bool:
        """Whether the progress of a run differs from its stored form."""
        return id in self._since or id in self._now

    def take(self, number: int) -> Iterator[ObjectKey]:
        """Those that must go with this group; they are clean afterwards."""
        since, taken = self._since, list(self._now)
        for name in taken:
            since.pop(name, None)
        self._now.clear()
        left, old = self._pace(number), number - self.groups_max // 4
        while left > 0 and (first := self._oldest()) is not None and first <= old:
            at = self._at
            self._at = at + left  # beyond the end of the list, if it is shorter
            for name in self._order[0][at : at + left]:
                if since.get(name) == first:
                    del since[name]
                    taken.append(name)
                    left -= 1
        return map(_item, taken)

    def _oldest(self) -> int | None:
        """The group that first changed the object that differs for longest, to which `_at` moves."""
        order, since = self._order, self._since
        while order:
            first, names = self._first, order[0]
            for at in range(self._at, len(names)):
                if since.get(names[at]) == first:
                    self._at = at
                    return first
            order.popleft()
            self._first, self._at = first + 1, 0
        return None

    def _pace(self, number: int) -> int:
        """As many as must go with each group, so that none becomes too old and no call pays for many others."""
        left = self.floor(number) + self.groups_max - number
        return max(FLUSH_OBJECTS_PER_GROUP_MIN, len(self._since) // max(left, self.groups_max // 16, 1))

    def floor(self, number: int) -> int:
        """The oldest group that a start would have to replay."""
        first = self._oldest()
        return number if first is None else first

    def __len__(self) -> int:
        return len(self._since) + len(self._now)

    @property
    def urgent(self) -> bool:
        """Whether something must go with the filling group."""
        return bool(self._now)
