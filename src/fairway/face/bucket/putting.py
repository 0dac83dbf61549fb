"""Putting: messages are checked, given ids, and cut into batches that a bucket takes at once.

Guards: an id that is returned is that of an accepted message; of the others the error says which are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from fairway import limits
from fairway.bucket.rows import Message
from fairway.bucket.writing import Told, hour_of
from fairway.errors import BadArgument, CallerError, FairwayError, OutcomeUnknown, QueueDeleted
from fairway.face import checks
from fairway.face.bucket.desk import Desk
from fairway.face.bucket.leases import Headers, packed
from fairway.face.steps import Do, Steps

_KEYWORDS = frozenset({"payload", "headers", "delay_seconds"})
Item = bytes | Mapping[str, Any]


class PutVerbs:
    """The producer's verbs."""

    _desk: Desk

    def put(
        self, payload: bytes, *, headers: Mapping[str, str | int] | None = None, delay_seconds: float = 0.0
    ) -> Steps[str]:
        """Put a message and give its id; it may be delivered after `delay_seconds`."""
        ids = yield from self.put_many(
            [{"payload": payload, "headers": headers, "delay_seconds": delay_seconds}]
        )
        return ids[0]

    def put_many(self, items: Iterable[Item]) -> Steps[list[str]]:
        """Put many messages: bytes, or dicts with payload, headers and delay_seconds. Gives their ids in order.

        Messages go in batches. If one cannot be stored the error says what became of all of them: `details["accepted"]`
        has the ids of those that are stored, `details["unknown"]` of those that may be, and `details["left"]` the
        places in `items` of those that are surely not.
        """
        if isinstance(items, Mapping | str | bytes | bytearray) or not isinstance(items, Iterable):
            checks.refuse("items", "a list of bytes or dicts (put takes one message)", items)
        offers = [offer(place, item) for place, item in enumerate(items)]
        now, uids = self._desk.now(), self._desk.fresh_uids(len(offers))
        messages = [
            Message(uid, body, packed(headers), now, now + delay)
            for uid, (body, headers, delay) in zip(uids, offers, strict=True)
        ]
        return (yield from self._store(messages, now, self._desk.put))

    def _store(
        self, messages: list[Message], now: float, put: Callable[[int, list[Message]], Told]
    ) -> Steps[list[str]]:
        """Put messages batch by batch, in this way; gives their ids."""
        accepted: list[Message] = []
        for hour, batch in _batches(messages, now, self._desk.reader.config.bucket_rows):
            try:
                told: Told = yield Do(partial(put, hour, batch))
                if told is not Told.ACCEPTED:
                    raise QueueDeleted() if told is Told.GONE else OutcomeUnknown()
            except FairwayError as error:
                error.details |= _became(
                    messages, accepted, batch if isinstance(error, OutcomeUnknown) else []
                )
                raise
            accepted += batch
        if messages:
            self._desk.changed()
        return [message.uid.hex() for message in messages]


def _became(messages: list[Message], accepted: list[Message], unknown: list[Message]) -> dict[str, object]:
    """What became of messages, for the error of the one that could not be stored."""
    told = {message.uid for message in (*accepted, *unknown)}
    return {
        "accepted": [message.uid.hex() for message in accepted],
        "unknown": [message.uid.hex() for message in unknown],
        "left": [place for place, message in enumerate(messages) if message.uid not in told],
    }


def offer(place: int, item: Item) -> tuple[bytes, Headers, float]:
    """The payload, headers and delay of one item, checked."""
    try:
        if not isinstance(item, Mapping):
            return checks.blob("payload", item, limits.BUCKET_PAYLOAD_BYTES_MAX), {}, 0.0
        checks.keywords(item, _KEYWORDS)
        if "payload" not in item:
            raise BadArgument("a message needs a payload; give {'payload': b'...'}", argument="payload")
        body = checks.blob("payload", item["payload"], limits.BUCKET_PAYLOAD_BYTES_MAX)
        delay = item.get("delay_seconds", 0.0) or 0.0
        return (
            body,
            checks.metadata(item.get("headers"), "headers"),
            checks.number("delay_seconds", delay, 0.0, limits.DELAY_SECONDS_MAX),
        )
    except CallerError as error:
        raise type(error)(f"items[{place}]: {error}", item=place, **error.details) from None


def _batches(messages: list[Message], now: float, bucket_rows: int) -> Iterator[tuple[int, list[Message]]]:
    """Messages that go together: of one hour, so many and so long that one statement carries them."""
    by_hour: dict[int, list[Message]] = {}
    for message in messages:
        by_hour.setdefault(hour_of(now, message.not_before), []).append(message)
    most = min(limits.BUCKET_BATCH_ROWS_MAX, bucket_rows)
    for hour, some in by_hour.items():
        batch: list[Message] = []
        size = 0
        for message in some:
            own = len(message.body) + len(message.headers)
            if batch and (len(batch) >= most or size + own > limits.BUCKET_BATCH_BYTES_MAX):
                yield hour, batch
                batch, size = [], 0
            batch.append(message)
            size += own
        yield hour, batch
