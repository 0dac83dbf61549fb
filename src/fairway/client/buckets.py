"""Bucket queues behind a server: their verbs as REST calls.

Guards: what can be repeated by its receipt is repeated; a put whose answer was lost is never sent again by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fairway import limits
from fairway.bucket.config import BucketConfig, changed
from fairway.bucket.counting import BucketStats
from fairway.bucket.settling import Settled
from fairway.client.rest import Call
from fairway.errors import FairwayError, NotFound, OutcomeUnknown
from fairway.face import checks
from fairway.face.bucket.leases import BucketLease, DeadMessage, Headers
from fairway.face.bucket.putting import Item, offer
from fairway.face.bucket.working import Held, held, only
from fairway.face.steps import Ask, Items, Listing, Steps

Offer = tuple[bytes, Headers, float]


class _Ids(msgspec.Struct):
    ids: list[str]


class _Lease(msgspec.Struct):
    receipt: str
    submission: str
    attempt: int
    deadline: float
    metadata: Headers
    payload: bytes
    put_at: float


class _Leases(msgspec.Struct):
    leases: list[_Lease]


class _Outcomes(msgspec.Struct):
    outcomes: list[str]
    deadline: float = 0.0
    receipts: list[str] = []


class _Letter(msgspec.Struct):
    submission: str
    payload: bytes | None
    metadata: Headers
    attempts: int
    error: str
    put_at: float
    at: float


class _Letters(msgspec.Struct):
    dead: list[_Letter]
    next: str | None


class _Count(msgspec.Struct):
    count: int


class _View(msgspec.Struct):
    settings: BucketConfig


def _became(error: FairwayError, accepted: list[str], part: int, whole: int) -> dict[str, object]:
    """What became of messages of which a part failed; of that a server may have told what it stored."""
    begin, told = len(accepted), error.details
    lost = isinstance(error, OutcomeUnknown) and "left" not in told
    left: Any = told.get("left", [] if lost else range(part))
    stored: Any = told.get("accepted", [])
    return {
        "accepted": [*accepted, *stored],
        "unknown": told.get("unknown", []),
        "left": [*(begin + place for place in left), *range(begin + part, whole)],
    }


class FarBucketVerbs:
    """The verbs of a bucket queue on a server."""

    def put(
        self, payload: bytes, *, headers: Mapping[str, str | int] | None = None, delay_seconds: float = 0.0
    ) -> Steps[str]:
        """Put a message and give its id."""
        item = {"payload": payload, "headers": headers, "delay_seconds": delay_seconds}
        ids = yield from self.put_many([item])
        return ids[0]

    def put_many(self, items: Iterable[Item]) -> Steps[list[str]]:
        """Put many messages. If one cannot be stored the error's `details` say what became of all of them."""
        if isinstance(items, Mapping | str | bytes | bytearray) or not isinstance(items, Iterable):
            checks.refuse("items", "a list of bytes or dicts (put takes one message)", items)
        offers, accepted = [offer(place, item) for place, item in enumerate(items)], list[str]()
        for part in _parts(offers):
            body = [{"payload": one, "metadata": more, "delay_seconds": delay} for one, more, delay in part]
            try:
                told = yield _ask("POST", "/messages", body, _Ids, once=True)
            except FairwayError as error:
                error.details |= _became(error, accepted, len(part), len(offers))
                raise
            accepted += told.ids
        return accepted

    def reserve(
        self, max: int = 1, *, lease_seconds: float | None = None, wait_seconds: float = 0.0
    ) -> Steps[list[BucketLease]]:
        """Lease up to `max` messages; wait for some if there are none."""
        body: dict[str, Any] = {"max": checks.whole("max", max, 1, limits.RESERVE_CHUNKS_MAX)}
        if lease_seconds is not None:
            body["lease_seconds"] = _lease_seconds("lease_seconds", lease_seconds)
        until = time.monotonic() + checks.number("wait_seconds", wait_seconds, 0.0, limits.WAIT_SECONDS_MAX)
        while True:
            # What has passed counts, not what was asked for: a server that stops answers its waits early.
            left = until - time.monotonic()
            poll = min(left, limits.POLL_SECONDS) if left > 0.0 else 0.0
            asked = {**body, "wait_seconds": poll}
            told = yield _ask("POST", "/reserve", asked, _Leases, wait_seconds=poll)
            if told.leases or time.monotonic() >= until:
                return [_lease(one) for one in told.leases]

    def complete(self, leases: Held | Iterable[Held]) -> Steps[Settled | list[Settled]]:
        """Complete a lease or many."""
        return (yield from self._settle("/complete", leases, {}))

    def release(self, leases: Held | Iterable[Held]) -> Steps[Settled | list[Settled]]:
        """Give a lease or many back untouched."""
        return (yield from self._settle("/release", leases, {}))

    def fail(
        self,
        leases: Held | Iterable[Held],
        error: str | BaseException = "",
        *,
        retry: bool = True,
        delay_seconds: float | None = None,
    ) -> Steps[Settled | list[Settled]]:
        """Fail a lease or many."""
        more: dict[str, Any] = {"error": checks.error_text(error), "retry": checks.flag("retry", retry)}
        if delay_seconds is not None:
            delay = checks.number("delay_seconds", delay_seconds, 0.0, limits.DELAY_SECONDS_MAX)
            more["delay_seconds"] = delay
        return (yield from self._settle("/fail", leases, more))

    def renew(self, leases: Held | Iterable[Held], seconds: float | None = None) -> Steps[Any]:
        """Hold a lease or many for longer; each has a receipt of its own then."""
        given, single = held(leases)
        more = {} if seconds is None else {"seconds": _lease_seconds("seconds", seconds)}
        told = yield from self._told("/renew", given, more)
        if single and not told.receipts[0]:
            only(told.outcomes[0])  # pyright: ignore[reportArgumentType]
        renewed: list[Held] = []
        for lease, receipt in zip(given, told.receipts, strict=True):
            if receipt and isinstance(lease, str):
                renewed.append(receipt)
            elif receipt and not isinstance(lease, str):
                renewed.append(msgspec.structs.replace(lease, receipt=receipt, deadline=told.deadline))
        return renewed[0] if single else renewed

    def _settle(
        self, path: str, leases: Held | Iterable[Held], more: dict[str, Any]
    ) -> Steps[Settled | list[Settled]]:
        given, single = held(leases)
        outcomes: Any = (yield from self._told(path, given, more)).outcomes
        return only(outcomes[0]) if single else outcomes

    def _told(self, path: str, given: list[Held], more: dict[str, Any]) -> Steps[_Outcomes]:
        """Receipts in calls of a bounded size; the same receipt asked again gets the same answer."""
        receipts = [one if isinstance(one, str) else one.receipt for one in given]
        every = _Outcomes([])
        for start in range(0, len(receipts), limits.CALL_OFFERS_MAX):
            part = receipts[start : start + limits.CALL_OFFERS_MAX]
            named = (
                {"leases": [{"receipt": one} for one in part]} if path == "/complete" else {"receipts": part}
            )
            body = {**named, **more}
            told = yield _ask("POST", path, body, _Outcomes)
            every.outcomes += told.outcomes
            every.receipts += told.receipts
            every.deadline = told.deadline or every.deadline
        return every

    def dead(self) -> Listing[DeadMessage]:
        """The dead letters, page by page."""
        after = ""
        while True:
            path = f"/dead?after={after}&limit={limits.DEAD_PAGE_ROWS}"
            page: Any = yield _ask("GET", path, None, _Letters)
            yield Items([_dead(letter) for letter in page.dead])
            if page.next is None:
                return
            after = page.next

    def redrive(self, ids: Iterable[str] | None = None) -> Steps[int]:
        """Put dead letters back as new messages."""
        return (yield from self._letters("/redrive", ids))

    def purge(self, ids: Iterable[str] | None = None) -> Steps[int]:
        """Remove dead letters for good."""
        return (yield from self._letters("/purge", ids))

    def _letters(self, path: str, ids: Iterable[str] | None) -> Steps[int]:
        body = {"ids": None if ids is None else list(ids)}
        return (yield _ask("POST", path, body, _Count, once=True)).count

    def stats(self) -> Steps[BucketStats]:
        """The sizes of the queue."""
        return (yield _ask("GET", "/stats", None, BucketStats))

    def configure(self, **settings: object) -> Steps[BucketConfig]:
        """Change settings of the queue; gives all of them."""
        changed(BucketConfig(), settings)  # a wrong one is refused before anything is asked
        if not settings:
            return (yield _ask("GET", "", None, _View)).settings
        body = {"kind": "bucket", **settings}
        return (yield _ask("PUT", "", body, _View)).settings

    def delete(self) -> Steps[None]:
        """Delete the queue with everything in it."""
        try:
            yield _ask("DELETE", "", None, None)
        except NotFound:
            return  # by this call, if its answer was lost, or by another


def _ask(method: str, path: str, body: Any, gives: Any, **more: Any) -> Ask:
    call: Any = Call(method, path, body, gives, **more)  # the command of this face
    return Ask(call)


def _lease_seconds(name: str, seconds: float) -> float:
    return checks.number(name, seconds, limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX)


def _lease(one: _Lease) -> BucketLease:
    return BucketLease(
        one.submission, one.payload, one.metadata, one.attempt, one.deadline, one.put_at, one.receipt
    )


def _dead(one: _Letter) -> DeadMessage:
    return DeadMessage(one.submission, one.payload, one.metadata, one.attempts, one.error, one.put_at, one.at)


def _parts(offers: list[Offer]) -> Iterator[list[Offer]]:
    """Messages of one call: so many, and so long."""
    part: list[Offer] = []
    size = 0
    for one in offers:
        if part and (len(part) >= limits.CALL_OFFERS_MAX or size + len(one[0]) > limits.BUCKET_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(one)
        size += len(one[0])
    if part:
        yield part
