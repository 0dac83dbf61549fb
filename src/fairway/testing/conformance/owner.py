"""An owner of one queue, as small as a test needs it.

Guards: groups are numbered one after the other, so a test says only what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairway.model.ids import QUEUE_BITS, SEQUENCE_BITS
from fairway.model.stored import End, Group, Kind, Row
from fairway.store.port import Store

Make = Callable[..., Store]

_MANY: Final = 10_000
_SHIFT_QUEUE: Final = SEQUENCE_BITS
_SHIFT_TIME: Final = QUEUE_BITS + SEQUENCE_BITS


class Owner:
    """A handle that took over, and the number of its last group; `write` stores the next one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.meta = store.take_over()
        self.number = self.meta.number
        self._tenants: dict[int, str] = {}  # of the n-th runs

    def group(self, **parts: Any) -> Group:
        """The next group, not stored yet."""
        return Group(
            self.meta.range_id, self.number + 1, parts.pop("sync", False), parts.pop("meta", b""), **parts
        )

    def write(self, **parts: Any) -> Group:
        """Store the next group."""
        group = self.group(**parts)
        self.store.commit(group)
        self.number += 1
        return group

    def id(self, n: int) -> int:
        """The n-th id of this queue."""
        return (n << _SHIFT_TIME) | (self.meta.queue_number << _SHIFT_QUEUE)

    def row(self, n: int, pass_: int = 0, tenant: str = "", **parts: Any) -> Row:
        """A run with little in it."""
        metadata: Mapping[str, str | int] = parts.get("metadata", {})
        self._tenants[n] = tenant
        return Row(self.id(n), pass_, tenant, 0.0, metadata, b"body %d" % n, parts.get("pages", ()))

    def end(self, n: int, pass_: int = 0, state: str = "completed", at: float = 1.0, failed: int = 0) -> End:
        """The end of such a run."""
        return End(self.id(n), pass_, self._tenants.get(n, ""), state, at, b"end %d" % n, failed)

    def stranger(self) -> int:
        """An id of another queue."""
        return self.id(1) ^ (1 << _SHIFT_QUEUE)

    def ended(self, state: str = "", tenant: str | None = None, **metadata: str | int) -> list[int]:
        """Which of the n-th runs are listed as ended."""
        return [run.id >> _SHIFT_TIME for run in self.store.ended(state, tenant, metadata, 0, _MANY)]

    def active(self) -> list[int]:
        """Which of the n-th runs are active, in level order."""
        return [run.id >> _SHIFT_TIME for run in self.store.active()]


def everything(store: Store, ids: list[int]) -> dict[str, Any]:
    """All that can be read of a queue, for comparing two moments or two stores."""
    pages = [(id, page) for id in ids for page in range(4)]
    return {
        "number": store.last_number(),
        "active": list(store.active()),
        "above": store.above((0, -1), _MANY),
        "listed": store.listed(None, {}, -1, _MANY),
        "due": store.times("due", (0.0, -1), _MANY),
        "deadline": store.times("deadline", (0.0, -1), _MANY),
        "objects": {kind: list(store.objects(kind)) for kind in Kind},
        "journal": list(store.journal()),
        "runs": [store.run(id) for id in ids],
        "ended": store.ended("", None, {}, 0, _MANY),
        "ended_before": store.ended_before(float("inf"), _MANY),
        "ended_failed": store.ended_failed(0, _MANY),
        "pages": store.pages(pages),
        "results": [store.results(id, 0, _MANY) for id in ids],
        "keys_expired": store.keys_expired(float("inf"), _MANY),
        "events": store.events(0, _MANY),
    }
