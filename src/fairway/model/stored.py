"""What a store keeps: the values that cross between the engine and a store.

Guards: a group is the only way anything is written; bodies are opaque to a store.
None of these values can be part of a cycle, so the collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TypeVar

import msgspec

Time = tuple[float, int]
"""(time, submission id): when a run is to be looked at."""


class Kind(IntEnum):
    """The kinds of small objects that are rewritten whole."""

    CONFIG = 1  # (0, 0): the queue's configuration and flags
    TENANT = 2  # (name, 0): weight, pause, turn, forecast
    PROGRESS = 3  # (submission, 0): what is not implied by the run row
    PAGE = 4  # (submission, page number): which chunks are done, and who won them
    HOLD = 5  # (reservation count, part): a lease record
    CLIENT = 6  # (client id, 0): its outcomes not yet acknowledged
    CONSUMER = 7  # (name, 0): named reservations


class Row(msgspec.Struct, frozen=True, gc=False):
    """A run: the stored form of a submission, in its place `<pass_, id>`."""

    id: int
    pass_: int
    tenant: str
    due: float  # not_before, 0.0 if none
    metadata: Mapping[str, str | int]  # for lookups by key and value
    body: bytes
    pages: tuple[bytes, ...] = ()  # inline payload pages, each with its own checksum
    deadline: float = 0.0  # 0.0 if none


class Move(msgspec.Struct, frozen=True, gc=False):
    """A run that takes a new place and is active (again)."""

    id: int
    old_pass: int
    pass_: int


class End(msgspec.Struct, frozen=True, gc=False):
    """A run that ended: it leaves the levels and stays readable by id until it is purged."""

    id: int
    pass_: int
    tenant: str  # as in its row, so that a store need not read that
    state: str  # completed, failed, cancelled
    at: float
    body: bytes  # what submission(id) shows of it from now on
    failed: int = 0  # dead chunks, so that they can be listed


class KeyRow(msgspec.Struct, frozen=True, gc=False):
    """An idempotency key of a tenant."""

    tenant: str
    key: str
    id: int
    fingerprint: bytes
    expires: float = 0.0  # 0.0 while the submission is active


class ResultPage(msgspec.Struct, frozen=True, gc=False):
    """Inline results of some chunks of one submission, in index order; `first` is the lowest index."""

    id: int
    first: int
    body: bytes


class Put(msgspec.Struct, frozen=True, gc=False):
    """The whole present state of a small object."""

    kind: Kind
    key: str | int
    part: int
    body: bytes


class Drop(msgspec.Struct, frozen=True, gc=False):
    """A small object that is gone."""

    kind: Kind
    key: str | int
    part: int


class Group(msgspec.Struct):
    """One atomic write, conditional on (range_id, number); the store then holds `number` as its last group."""

    range_id: int
    number: int  # the last stored number + 1
    sync: bool  # whether it must survive power loss before it is answered
    meta: bytes  # replaces the meta body
    rows: list[Row] = []
    moves: list[Move] = []
    ends: list[End] = []
    keys: list[KeyRow] = []  # inserted or replaced
    results: list[ResultPage] = []
    puts: list[Put] = []
    drops: list[Drop] = []
    journal: bytes = b""  # kept under `number` until journal_floor passes it; b"" writes none
    journal_floor: int = 0  # journal entries with a number below this are removed
    events: bytes = b""  # kept under `number` until purged by time; b"" writes none
    event_time: float = 0.0  # the time of the newest event in it
    purge: list[int] = []  # ended runs that leave for good, with pages, results and objects
    purge_keys: list[tuple[str, str]] = []
    purge_events_before: float = 0.0  # event batches older than this are removed; 0.0 removes none
    delete_upto: tuple[int, int] | None = None  # for a store that deletes by range: places that are given up


class Meta(msgspec.Struct, frozen=True):
    """What taking over returns: the new range id, the last stored group number, the meta body."""

    queue_number: int
    range_id: int
    number: int
    body: bytes  # b"" for a new queue


class StoredRun(msgspec.Struct, frozen=True, gc=False):
    """A run as read back; `state` is "active" until it ended, then `end` is the body given with its End.

    A place that its run has left (`Store.above` of a store that deletes by range) has the state "left" and no bodies.
    """

    id: int
    pass_: int
    tenant: str
    body: bytes
    state: str = "active"
    end: bytes = b""
    progress: bytes = b""  # its PROGRESS object while it is active, b"" if it has none


_WithBody = TypeVar("_WithBody", StoredRun, ResultPage)


def until_bytes(rows: Iterable[_WithBody], bytes_max: int | None) -> Iterator[_WithBody]:
    """The first of them, up to the one with which their bodies have so many bytes; None: all."""
    left = bytes_max
    for row in rows:
        yield row
        if left is not None:
            left -= len(row.body)
            if left <= 0:
                return
