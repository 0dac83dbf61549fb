"""What of a store is read for the engine; `store/port.py` says what each method gives.

Guards: the engine itself never reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from fairway.fair.levels import Level
from fairway.model.stored import KeyRow, Kind, StoredRun, Time


class Rows(Protocol):
    """What the window reads, again and again."""

    def above(
        self,
        level: Level,
        limit: int,
        upto: Level | None = None,
        tenant: str | None = None,
        bytes_max: int | None = None,
    ) -> list[StoredRun]: ...
    def listed(
        self,
        tenant: str | None,
        metadata: dict[str, str | int],
        after: int,
        limit: int,
        bytes_max: int | None = None,
    ) -> list[StoredRun]: ...
    def times(self, what: str, after: Time, limit: int) -> list[Time]: ...
    def run(self, id: int) -> StoredRun | None: ...
    def objects(self, kind: Kind, key: int | None = None) -> Iterator[tuple[str | int, int, bytes]]: ...


class Source(Rows, Protocol):
    """What a start reads and calls look up, too."""

    @property
    def deletes_by_range(self) -> bool: ...
    def active(self) -> Iterator[StoredRun]: ...
    def journal(self) -> Iterator[tuple[int, bytes]]: ...
    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None: ...
    def key(self, tenant: str, key: str) -> KeyRow | None: ...
