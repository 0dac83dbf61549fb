"""Offers: what the arguments of submit and put become.

Guards: an offer that exists is within every limit; nothing is sent before all offers of a verb exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from inspect import signature
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from fairway import limits
from fairway.errors import BadArgument, CallerError, TooLarge
from fairway.face import checks
from fairway.fair.weights import thousandths
from fairway.model.ids import TIME_SHIFT, seconds_of
from fairway.model.page import payload_pages
from fairway.model.submission import Described, Metadata, Offer, Submission

Objects = str | Sequence[tuple[str, int]]
Moment = float | datetime

_encode = msgspec.msgpack.Encoder().encode
_OFFER_BYTES = 256  # about what an offer without pages weighs in a call


def offer(
    payloads: Iterable[bytes] | None = None,
    *,
    chunks: int | None = None,
    objects: Objects | None = None,
    tenant: str = "",
    metadata: Metadata | None = None,
    info: bytes = b"",
    priority: int = 0,
    key: str | None = None,
    fingerprint: bytes | str | None = None,
    weight: float | None = None,
    policy: str = "fail_fast",
    not_before: Moment | None = None,
    delay_seconds: float | None = None,
    deadline: Moment | None = None,
    deadline_seconds: float | None = None,
    attempts_max: int | None = None,
    delete_objects: bool = False,
) -> Offer:
    """An offer of the keywords of `submit`; payloads are inline."""
    total, pages, starts, segments = _content(payloads, chunks, objects)
    described = Described(
        checks.tenant(tenant),
        total,
        checks.metadata(metadata) if metadata else {},
        checks.blob("info", info, limits.INFO_BYTES_MAX) if info else b"",
        checks.whole("priority", priority, -limits.PRIORITY_MAX, limits.PRIORITY_MAX) if priority else 0,
        checks.policy(policy),
        starts,
        segments,
        checks.moment("not_before", not_before),
        checks.moment("deadline", deadline),
        0 if attempts_max is None else checks.whole("attempts_max", attempts_max, 1, limits.ATTEMPTS_MAX_MAX),
        "" if key is None else checks.text("key", key, limits.KEY_BYTES_MAX, 1),
        checks.flag("delete_objects", delete_objects),
    )
    if fingerprint is not None or key is not None:
        described = _keyed(described, pages, fingerprint)
    if deadline is not None and deadline_seconds is not None:
        raise BadArgument("give deadline or deadline_seconds, not both", argument="deadline_seconds")
    return Offer(
        described,
        pages,
        0 if weight is None else thousandths(weight),
        checks.seconds("delay_seconds", delay_seconds, 0.0, limits.DELAY_SECONDS_MAX),
        checks.seconds("deadline_seconds", deadline_seconds, 0.001, limits.DELAY_SECONDS_MAX),
    )


KEYWORDS = frozenset(signature(offer).parameters)
MESSAGE_KEYWORDS = KEYWORDS - {"payloads", "chunks", "objects", "delete_objects"} | {"payload"}


def _content(
    payloads: Iterable[bytes] | None, chunks: int | None, objects: Objects | None
) -> tuple[int, tuple[bytes, ...], tuple[int, ...], tuple[tuple[str, int], ...]]:
    if payloads is not None:
        if chunks is not None:
            raise BadArgument("give payloads or chunks, not both", argument="chunks")
        if objects is not None:
            raise BadArgument(
                "payloads with objects are uploaded by submit alone, one at a time", argument="objects"
            )
        blobs = inline(payloads)
        pages, starts = payload_pages(blobs) if blobs else ((), ())
        return len(blobs), pages, starts, ()
    if chunks is None and (objects is None or isinstance(objects, str)):
        raise BadArgument(
            "give payloads, or chunks= (0 is allowed), or objects=[(prefix, count), ...]", argument="payloads"
        )
    total = -1 if chunks is None else checks.whole("chunks", chunks, 0, limits.CHUNKS_MAX)
    if objects is None:
        return total, (), (), ()
    segments = (
        ((checks.prefix("objects", objects), total),) if isinstance(objects, str) else _segments(objects)
    )
    counted = sum(count for _, count in segments)
    if total not in (-1, counted):
        raise BadArgument(
            f"chunks is {total}, but objects count {counted}; leave chunks out", argument="chunks"
        )
    checks.whole("the chunks in objects", counted, 0, limits.CHUNKS_MAX)
    return counted, (), (), segments


def _segments(objects: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(objects, Sequence) or isinstance(objects, bytes | bytearray):
        checks.refuse("objects", "a prefix, or a list of (prefix, count)", objects)
    if len(objects) > limits.SEGMENTS_MAX:
        checks.refuse("objects", f"at most {limits.SEGMENTS_MAX} segments", f"{len(objects)} segments")
    found: list[tuple[str, int]] = []
    for i, segment in enumerate(objects):
        if not isinstance(segment, Sequence) or isinstance(segment, str) or len(segment) != 2:
            checks.refuse(f"objects[{i}]", "(prefix, count)", segment)
        count = checks.whole(f"the count of objects[{i}]", segment[1], 0, limits.CHUNKS_MAX)
        found.append((checks.prefix(f"the prefix of objects[{i}]", segment[0]), count))
    return tuple(found)


def inline(payloads: Iterable[bytes]) -> list[bytes]:
    """Payloads as a list that fits into one submission; an endless iterable is left at the bound."""
    if isinstance(payloads, bytes | bytearray | memoryview | str) or not isinstance(payloads, Iterable):
        checks.refuse("payloads", "an iterable of bytes (put takes one message)", payloads)
    found: list[bytes] = []
    size = 0
    for payload in payloads:
        if type(payload) is not bytes or len(payload) > limits.PAYLOAD_BYTES_MAX:
            payload = checks.blob(f"payloads[{len(found)}]", payload, limits.PAYLOAD_BYTES_MAX)
        size += len(payload) + 1  # empty payloads cost something too
        found.append(payload)
        if size - len(found) > limits.INLINE_BYTES_MAX or size > 2 * limits.INLINE_BYTES_MAX:
            raise TooLarge(
                f"the payloads of one submission have at most {limits.INLINE_BYTES_MAX} bytes inline;"
                " give objects= to upload them, or cut them into several submissions"
            )
    return found


def _keyed(described: Described, pages: tuple[bytes, ...], fingerprint: object) -> Described:
    """With a key goes a fingerprint of the content: of what a worker is given, not of when it may be."""
    if not described.key:
        raise BadArgument("fingerprint goes with a key; give key= too", argument="fingerprint")
    if fingerprint is not None:
        given = fingerprint.encode() if isinstance(fingerprint, str) else fingerprint
        found = checks.blob("fingerprint", given, limits.KEY_BYTES_MAX)
        return msgspec.structs.replace(described, fingerprint=found)
    d = described
    content = (d.total, sorted(d.metadata.items()), d.info, d.priority, d.policy, d.segments)
    digest = hashlib.blake2b(_encode(content), digest_size=16)
    for page in pages:
        digest.update(page)
    return msgspec.structs.replace(described, fingerprint=digest.digest())


def offers(
    items: Iterable[Mapping[str, Any]], name: str, make: Callable[[Mapping[str, Any]], Offer]
) -> list[Offer]:
    """An offer per item; an error says which item it is about."""
    if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
        checks.refuse(name, "a list", items)
    found: list[Offer] = []
    for item in items:
        try:
            found.append(make(item))
        except CallerError as error:
            raise type(error)(f"{name}[{len(found)}]: {error}", item=len(found), **error.details) from None
    return found


def submit_item(item: Mapping[str, Any]) -> Offer:
    """An offer of one item of submit_many: a dict of the keywords of submit."""
    if not isinstance(item, Mapping):
        checks.refuse("an item", "a dict with the keywords of submit", item)
    checks.keywords(item, KEYWORDS)
    return offer(**item)


def calls(found: list[Offer]) -> Iterator[list[Offer]]:
    """Cut offers into calls that each fit into one group."""
    beside = {id(one.described): one.described for one in found}  # messages share one
    beside = {key: size for key, described in beside.items() if (size := _beside_bytes(described))}
    size = len(found) * _OFFER_BYTES + sum(map(len, chain.from_iterable([one.pages for one in found])))
    if not beside and found and len(found) <= limits.CALL_OFFERS_MAX and size <= limits.GROUP_BYTES_MAX:
        yield found  # the usual case, without looking at each
        return
    start = size = 0
    for i, one in enumerate(found):
        weight = _OFFER_BYTES + sum(map(len, one.pages)) + beside.get(id(one.described), 0)
        if i - start == limits.CALL_OFFERS_MAX or size + weight > limits.GROUP_BYTES_MAX:
            yield found[start:i]
            start, size = i, 0
        size += weight
    if start < len(found):
        yield found[start:]


def _beside_bytes(described: Described) -> int:
    """What describes an offer beyond the usual: on the way to a host each offer has it, also what they share."""
    long = described.info or described.metadata or described.segments or len(described.page_starts) > 1
    return len(_encode(described)) if long else 0


def all_accepted(ids: Sequence[int], given: Sequence[Offer]) -> list[Submission]:
    """`accepted` of many that have chunks."""
    found: list[Submission] = []
    moment, add = -1, found.append
    alike: dict[int, Submission] = {}  # messages of one call share descriptions
    for id_, one in zip(ids, given, strict=True):
        if one.delay_seconds or one.deadline_seconds:
            add(accepted(id_, one))
            continue
        if id_ >> TIME_SHIFT != moment:
            moment = id_ >> TIME_SHIFT
            alike.clear()
        like = alike.get(id(one.described))
        if like is None:
            like = alike[id(one.described)] = accepted(id_, one)
            add(like)
        else:
            same: Submission = like.__copy__()  # pyright: ignore[reportAttributeAccessIssue]
            force_setattr(same, "id", id_)
            add(same)
    return found


def accepted(id: int, given: Offer) -> Submission:
    """What a new submission looks like to the one who submitted it."""
    d = given.described
    created = seconds_of(id)
    not_before, deadline = d.not_before, d.deadline
    if given.delay_seconds:
        not_before = max(not_before, created + given.delay_seconds)
    if given.deadline_seconds:
        deadline = created + given.deadline_seconds
    total = d.total
    return Submission(
        id, "active" if total else "completed", d.tenant, total, 0, 0, 0, created, 0.0 if total else created, 1, False,
        d.metadata, d.info, d.priority, d.policy, not_before, deadline, d.key,
    )  # fmt: skip
