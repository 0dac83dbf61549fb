"""The fence of a queue: taking over, storing a group under it, finding out what became of one.

Guards: a group is one conditional write on (range id, number). What is unknown is settled by a serial read, and a
number that is not stored is burnt, so a late group of anybody is refused.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

import msgspec

from fairway.errors import Fenced, GroupUnknown, QueueDeleted, StoreFailed
from fairway.limits import CASSANDRA_LOG_BYTES_MAX, CASSANDRA_PAGE_BYTES
from fairway.store.cassandra.connection import Connection, Wanted
from fairway.store.cassandra.lives import Write
from fairway.store.cassandra.places import GONE
from fairway.store.cassandra.planning import Fence, Plan

DELETED: Final = 2**62  # the range id of a queue that was deleted: nobody takes over from it
_TAKE_OVER_SECONDS: Final = 20.0
_REST_SECONDS: Final = 0.1
_TRIES: Final = 4  # to remove pages: a start in which one failed would leave more to remove for the next

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, list[Any]]]).decode


class Fencing:
    """The fenced partition of one queue, and the pages that go before its groups."""

    def __init__(self, connection: Connection, queue: uuid.UUID) -> None:
        self._connection, self._queue = connection, queue
        self._tries = 0

    def read(self) -> Fence:
        """The fence, decided: what was under way is finished by reading it."""
        found = self._connection.read("fence", (self._queue,))
        if not found:
            raise StoreFailed("the fence of this queue is gone; was its table emptied?")
        return Fence(*found[0])

    def take_over(self) -> Fence:
        """Range id + 1. An unknown outcome is settled by the nonce that only this try has."""
        until = time.monotonic() + _TAKE_OVER_SECONDS
        while True:
            try:
                fence = self.read()
                if fence.range_id >= DELETED:
                    raise QueueDeleted
                nonce, mine = uuid.uuid4(), fence.range_id + 1
                values = (mine, nonce, self._queue, fence.range_id)
                try:
                    self._connection.conditional(("take_over", values))
                except GroupUnknown:
                    time.sleep(_REST_SECONDS)
                fence = self.read()  # after it, and decided: nothing from before can still arrive
                if fence.nonce == nonce and fence.range_id == mine:
                    return fence
            except StoreFailed:
                if time.monotonic() > until:
                    raise
            if time.monotonic() > until:
                raise StoreFailed(
                    "the queue cannot be taken over: others do at the same time; repeat the call"
                )
            time.sleep(_REST_SECONDS)

    # -- groups

    def store(self, fence: Fence, number: int, meta: bytes, plan: Plan, trim: int) -> None:
        """Write the large pages, then the group. Raises Fenced, StoreFailed (it is not stored) or GroupUnknown."""
        body = _encode([(name, values) for name, values in plan.writes])
        pages = list(enumerate(plan.pages))
        count = 0
        if len(body) > CASSANDRA_LOG_BYTES_MAX:
            parts = [body[at : at + CASSANDRA_PAGE_BYTES] for at in range(0, len(body), CASSANDRA_PAGE_BYTES)]
            pages += [(-1 - place, part) for place, part in enumerate(parts)]
            body, count, plan.paged = b"", len(parts), True
        if pages:
            self._write_pages(fence.range_id, number, pages)
        claim = (
            number, uuid.uuid4(), trim, fence.range_id - 1, plan.top, plan.size, plan.journal_floor,
            plan.events_floor, meta, self._queue, fence.range_id, number - 1,
        )  # fmt: skip
        group: list[Wanted] = [("claim", claim), ("log", (self._queue, number, fence.range_id, body, count))]
        if trim > fence.written:
            group.append(("trim_log", (self._queue, trim)))
        applied, _ = self._connection.conditional(*group)
        if not applied:
            raise Fenced()

    def _write_pages(self, range_id: int, number: int, pages: list[tuple[int, bytes]]) -> None:
        # A second try under the same number must win over the first, whatever arrives late of it.
        self._tries += 1
        bound, send = self._connection.bound, self._connection.send
        futures = []
        try:
            for page, body in pages:
                if len(futures) >= 4:
                    futures[-4].result()
                values = (self._queue, range_id, number, page, body, self._tries)
                futures.append(send(bound("put_page", values)))
            for future in futures:
                future.result()
        except Exception as error:
            raise StoreFailed(f"payload pages cannot be stored ({error}); the call had no effect") from error

    def settle(self, range_id: int, number: int) -> bool:
        """Whether a group is stored; if not, its number is burnt."""
        while True:
            fence = self.read()
            if fence.range_id != range_id or not number - 1 <= fence.last <= number:
                raise Fenced()
            if fence.last == number:
                return fence.burnt != number
            values = (number, uuid.uuid4(), number, self._queue, range_id, number - 1)
            self._connection.conditional(("burn", values))

    # -- the log

    def logged(self, after: int) -> list[tuple[int, list[Write], list[tuple[int, int]]]]:
        """Groups that may not be in the tables yet: (number, writes, where its pages are if it has some)."""
        found: list[tuple[int, list[Write], list[tuple[int, int]]]] = []
        for number, range_id, body, pages in self._connection.read("logged", (self._queue, max(after, -1))):
            if number < 0:
                continue
            if pages:
                parts = self._connection.read("log_pages", (self._queue, range_id, number))
                if len(parts) != pages:
                    raise StoreFailed(f"pages of group {number} are missing; repeat the call")
                body = b"".join(part for _, part in sorted(parts, reverse=True))
            writes = [(name, tuple(values)) for name, values in _decode(body)]
            found.append((number, writes, [(range_id, number)] if pages else []))
        return found

    # -- pages that nobody names

    def sweep(self, fence: Fence, owners: range) -> None:
        """Former owners wrote pages for at most one group that is not stored: the next one, or the last if burnt."""
        numbers = [fence.last + 1, *([fence.last] if fence.last == fence.burnt else [])]
        for range_id in owners:
            for number in numbers:
                self.drop_bundle(range_id, number)

    def drop_bundle(self, range_id: int, number: int) -> None:
        """Remove all pages of a group that is not stored and never will be. What fails is repeated, then raised."""
        statement = self._connection.bound("drop_bundle", (GONE, self._queue, range_id, number))
        for left in range(_TRIES - 1, -1, -1):
            try:
                self._connection.send(statement).result()
                return
            except Exception as error:
                if not left:
                    raise StoreFailed(f"pages cannot be removed now ({error})") from error
