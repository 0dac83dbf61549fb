"""Messages: submissions of one chunk, made by the hundred.

Guards: what messages share is checked once and described once; what differs is checked for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairway import limits
from fairway.errors import BadArgument, CallerError
from fairway.face import checks
from fairway.face.offers import MESSAGE_KEYWORDS, offer
from fairway.model.page import payload_pages
from fairway.model.submission import Offer

Message = bytes | Mapping[str, Any]

_TENANT_ONLY = {"payload", "tenant"}


class Messages:
    """Offers of messages that share some keywords."""

    def __init__(self, shared: dict[str, Any]) -> None:
        self._shared = {"policy": "dead_letter", **shared}
        self._plain = offer((b"",), **self._shared)
        self._by_tenant: dict[str, Offer] = {}

    def offers(self, items: Iterable[Message]) -> list[Offer]:
        """An offer per item; an error says which item it is about."""
        if isinstance(items, Mapping | str | bytes | bytearray) or not isinstance(items, Iterable):
            checks.refuse("items", "a list of bytes or dicts (put takes one message)", items)
        found: list[Offer] = []
        plain = self._plain
        described, weight, delay, deadline = (
            plain.described,
            plain.weight,
            plain.delay_seconds,
            plain.deadline_seconds,
        )
        for item in items:
            if type(item) is bytes and len(item) <= limits.PAYLOAD_BYTES_MAX:
                found.append(Offer(described, payload_pages((item,))[0], weight, delay, deadline))
                continue
            try:
                found.append(self._other(item))
            except CallerError as error:
                raise type(error)(f"items[{len(found)}]: {error}", item=len(found), **error.details) from None
        return found

    def _other(self, item: object) -> Offer:
        if not isinstance(item, Mapping):
            payload = checks.blob("a message", item, limits.PAYLOAD_BYTES_MAX)
            return self._like(self._plain, payload)
        if "payload" not in item:
            raise BadArgument("a message needs a payload; give {'payload': b'...'}", argument="payload")
        payload = checks.blob("payload", item["payload"], limits.PAYLOAD_BYTES_MAX)
        if item.keys() == _TENANT_ONLY:
            return self._like(self._of_tenant(item["tenant"]), payload)
        checks.keywords(item, MESSAGE_KEYWORDS)
        own = {name: value for name, value in item.items() if name != "payload"}
        return offer((payload,), **{**self._shared, **own})

    def _like(self, plain: Offer, payload: bytes) -> Offer:
        pages = payload_pages((payload,))[0]
        return Offer(plain.described, pages, plain.weight, plain.delay_seconds, plain.deadline_seconds)

    def _of_tenant(self, tenant: object) -> Offer:
        found = self._by_tenant.get(tenant) if type(tenant) is str else None
        if found is None:
            name = checks.tenant(tenant)
            described = msgspec.structs.replace(self._plain.described, tenant=name)
            found = self._by_tenant[name] = msgspec.structs.replace(self._plain, described=described)
        return found
