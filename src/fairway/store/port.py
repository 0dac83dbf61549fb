"""The port every store implements; `fairway.testing.conformance` is its executable meaning.

Guards: every write is a group conditional on (range id, group number), so neither another owner nor a late
write of one's own can slip in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from fairway.model.stored import Group, KeyRow, Kind, Meta, ResultPage, StoredRun, Time

Level = tuple[int, int]  # (pass, id): a place


class Store(Protocol):
    """One queue in a store. Writes come from one thread at a time; reads may come from any thread."""

    @property
    def deletes_by_range(self) -> bool:
        """How a place is given up when its run ends or moves away.

        False: with the group that ends or moves it, by key. True: it stays in `above` until a group says
        `delete_upto` at or above it; the owner then counts such places, sees to it that A gets on, and never says
        `delete_upto` above the A that is in the same group's meta body.
        """
        ...

    def take_over(self) -> Meta:
        """Make this the owner: range id + 1, durable. What was read before it is worth nothing."""
        ...

    def commit(self, group: Group) -> None:
        """Store a group whole or not at all.

        Inside a group: rows; then the moves and ends of each run in the only order they can have happened in;
        keys after purge_keys and puts after drops; purges last. A purge skips what is active.
        With `delete_upto` every place at or below it is given up; no active run has its place there after the
        group (its rows and moves included), and a group in which one would have is refused.

        Raises Fenced if the range id is not the stored one or the number is not the last + 1;
        StoreFull or another StoreFailed if it certainly was not stored (a group that does not fit what is
        stored is one such); GroupUnknown if that cannot be told.
        """
        ...

    def settle(self, group: Group) -> bool:
        """After GroupUnknown: True if the group is stored, False if it is not and never will be; or Fenced.

        Before it says False the group's number is burnt by an empty group, so the next number is `number + 1`.
        """
        ...

    def last_number(self) -> int:
        """The number of the last stored group."""
        ...

    def owns(self, range_id: int) -> bool:
        """Whether this is the stored range id, so nobody has taken over since. Any thread may ask."""
        ...

    # -- read at a start
    def active(self) -> Iterator[StoredRun]:
        """All active runs in level order, without their pages and progress."""
        ...

    def objects(self, kind: Kind, key: int | None = None) -> Iterator[tuple[str | int, int, bytes]]:
        """All small objects of a kind, or those of one key, as (key, part, body), in the order of key and part."""
        ...

    def journal(self) -> Iterator[tuple[int, bytes]]:
        """What is left of the journal, as (group number, body), in order."""
        ...

    # -- read at any time, for the window: active runs come with their progress
    def above(
        self,
        level: Level,
        limit: int,
        upto: Level | None = None,
        tenant: str | None = None,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        """The first `limit` runs in places above a level (and at most at `upto`), in level order.

        Active ones; in a store that deletes by range also the places of ended runs, and places that were left.
        With a tenant: active ones of that tenant only. With `bytes_max` the run with which their bodies have so
        many bytes is the last one, so there is one at least if there is any.
        """
        ...

    def listed(
        self,
        tenant: str | None,
        metadata: dict[str, str | int],
        after: int,
        limit: int,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        """Active runs with id > after that match, in id order; `bytes_max` as in `above`."""
        ...

    def times(self, what: str, after: Time, limit: int) -> list[Time]:
        """When active runs are due (`what` "due") or over ("deadline"): (time, id) after one, in order."""
        ...

    # -- read at any time
    def run(self, id: int) -> StoredRun | None:
        """One run by id, active (with its progress) or ended."""
        ...

    def ended(
        self, state: str, tenant: str | None, metadata: dict[str, str | int], after: int, limit: int
    ) -> list[StoredRun]:
        """Ended runs with id > after that match, in id order; state "" means any of the ended states."""
        ...

    def ended_before(self, at: float, limit: int, after: Time = (0.0, 0)) -> list[Time]:
        """When runs ended that did before a time: (time, id) after one, in order."""
        ...

    def ended_failed(self, after: int, limit: int) -> list[StoredRun]:
        """Ended runs with dead chunks and id > after, in id order."""
        ...

    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None:
        """One small object."""
        ...

    def pages(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        """Payload pages by (submission id, page number); what is not there is left out."""
        ...

    def results(self, id: int, first_min: int, limit: int, bytes_max: int | None = None) -> list[ResultPage]:
        """Result pages of a submission with first >= first_min, ordered by first; `bytes_max` as in `above`."""
        ...

    def key(self, tenant: str, key: str) -> KeyRow | None:
        """An idempotency key."""
        ...

    def keys_expired(self, at: float, limit: int) -> list[tuple[str, str]]:
        """Keys whose time is over (expires > 0 and < at)."""
        ...

    def events(self, after: int, limit: int) -> list[tuple[int, float, bytes]]:
        """Event batches as (group number, time, body) with number > after, in order."""
        ...

    def size_bytes(self) -> int:
        """About how much room the queue takes."""
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...
