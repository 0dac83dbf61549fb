"""Which small objects differ from their stored form, and since which group.

Guards: the journal is kept from the oldest such group on, so a start can replay what was not rewritten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from fairway.limits import FLUSH_OBJECTS_PER_GROUP_MAX, JOURNAL_GROUPS_MAX
from fairway.model.stored import Kind

ObjectKey = tuple[Kind, str | int, int]


class Dirty:
    """Objects by the group that first changed them, oldest first, and those to be written with the filling group."""

    __slots__ = ("_now", "_since")

    def __init__(self) -> None:
        # A plain dict would look for its first entry past all those that left before it.
        self._since: OrderedDict[ObjectKey, int] = OrderedDict()
        self._now: dict[ObjectKey, None] = {}

    def mark(self, kind: Kind, key: str | int, part: int, number: int) -> None:
        """The object differs from its stored form since this group, which has a journal record of it."""
        self._since.setdefault((kind, key, part), number)

    def write_now(self, kind: Kind, key: str | int, part: int = 0) -> None:
        """The object goes with the filling group: its change has no journal record."""
        self._now[kind, key, part] = None

    def clear(self, kind: Kind, key: str | int, part: int = 0) -> None:
        """The object is gone before it was ever written."""
        item = (kind, key, part)
        self._since.pop(item, None)
        if self._now:
            self._now.pop(item, None)

    def __contains__(self, item: ObjectKey) -> bool:
        return item in self._since or item in self._now

    def take(self, number: int) -> Iterator[ObjectKey]:
        """Those that must go with this group; they are clean afterwards."""
        for item in self._now:
            self._since.pop(item, None)
            yield item
        self._now.clear()
        many = max(FLUSH_OBJECTS_PER_GROUP_MAX, len(self._since) // 256)  # the more there is, the faster
        old = number - JOURNAL_GROUPS_MAX
        aged: list[ObjectKey] = []
        for item, since in self._since.items():
            if since > old or len(aged) == many:
                break
            aged.append(item)
        for item in aged:
            del self._since[item]
        yield from aged

    def floor(self, number: int) -> int:
        """The oldest group that a start would have to replay."""
        return next(iter(self._since.values()), number)

    def __len__(self) -> int:
        return len(self._since) + len(self._now)

    @property
    def urgent(self) -> bool:
        """Whether something must go with the filling group."""
        return bool(self._now)
