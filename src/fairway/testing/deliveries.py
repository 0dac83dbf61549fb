"""Deliveries: the reservations that callers saw, each with its receipt.

Guards: an answer that was lost with the power is a delivery like the one that a repeat of its call was given after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fairway.testing.history import Request, Try

ChunkId = tuple[int, int]
Receipt = tuple[int, int]


class Delivery(msgspec.Struct):
    """One reservation that a caller saw; `low` and `high` bound the owner's clock when it was made."""

    request: Request
    receipt: Receipt
    deadline: float
    low: float
    high: float
    spans: list[list[int]]
    runs: dict[int, dict[str, Any]]
    begin: int  # it was made after this place: a named one perhaps by a request that nobody saw answered
    again: list[Request] = []  # the same reservation handed back by name

    @property
    def named(self) -> bool:
        return bool(self.request.args.get("consumer"))

    def picks(self) -> Iterator[tuple[ChunkId, int]]:
        """Every chunk in the order of the picks, with its attempt."""
        for submission, start, count, attempt in self.spans:
            for index in range(start, start + count):
                yield (submission, index), attempt


class Hand(msgspec.Struct):
    """One chunk of one delivery."""

    delivery: Delivery
    attempt: int

    @property
    def receipt(self) -> Receipt:
        return self.delivery.receipt

    @property
    def begin(self) -> int:
        return self.delivery.begin

    @property
    def request(self) -> Request:
        return self.delivery.request


def by_answer(request: Request) -> dict[Receipt, Request]:
    """A reserve by what it was given: once, unless the power was lost meanwhile and a repeat was given something else.

    Each is without the tries that were given something else.
    """
    given = {one.end: (one.ok["epoch"], one.ok["count"]) for one in request.tries if _is_full(one)}
    if len(set(given.values())) < 2:
        return dict.fromkeys(given.values(), request)
    found: dict[Receipt, Request] = {}
    for end, receipt in sorted(given.items()):
        if receipt not in found:
            tries = [one for one in request.tries if given.get(one.end, receipt) == receipt]
            ok = next(one.ok for one in tries if one.end == end)
            found[receipt] = msgspec.structs.replace(request, tries=tries, end=end, ok=ok)
    return found


def age_of(spans: list[list[int]]) -> tuple[int, int]:
    """What sorts the answers of one reservation: it only shrinks, and the attempts of its chunks only rise."""
    return -sum(count for _, _, count, _ in spans), sum(count * attempt for _, _, count, attempt in spans)


def _is_full(one: Try) -> bool:
    return one.answered and bool(one.ok.get("spans"))


def is_trimmed(delivery: Delivery, trim: Request) -> bool:
    """Whether a trim is about the reservation."""
    args = delivery.request.args
    return args.get("consumer") == trim.args["consumer"] and args.get("seq", 0) <= trim.args["seq"]


def name_of(request: Request) -> tuple[str, int]:
    """The consumer and the number that a reserve asks for."""
    return request.args["consumer"], request.args.get("seq", 0)
