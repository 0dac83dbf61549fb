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
from fairway.model.page import message_pages
from fairway.model.submission import Described, Offer

Message = bytes | Mapping[str, Any]

_TENANT_ONLY = {"payload", "tenant"}


class Messages:
    """Offers of messages that share some keywords."""

    def __init__(self, shared: dict[str, Any]) -> None:
        self._shared = {"policy": "dead_letter", **shared}
        self._plain = offer((b"",), **self._shared)
        self._by_tenant: dict[str, Described] = {}

    def offers(self, items: Iterable[Message]) -> list[Offer]:
        """An offer per item; an error says which item it is about."""
        if type(items) is not list and (
            isinstance(items, Mapping | str | bytes | bytearray) or not isinstance(items, Iterable)
        ):
            checks.refuse("items", "a list of bytes or dicts (put takes one message)", items)
        found: list[Offer] = []
        plain, of_tenant, bytes_max = self._plain, self._by_tenant.get, limits.PAYLOAD_BYTES_MAX
        described, weight, delay, deadline = (
            plain.described,
            plain.weight,
            plain.delay_seconds,
            plain.deadline_seconds,
        )
        for item in items:
            payload, like = item, described
            if type(item) is dict and len(item) == 2:
                tenant, payload = item.get("tenant"), item.get("payload")
                like = of_tenant(tenant) if type(tenant) is str else None
            if type(payload) is bytes and like is not None and len(payload) <= bytes_max:
                found.append(Offer(like, message_pages(payload), weight, delay, deadline))
                continue
            try:
                found.append(self._other(item))
            except CallerError as error:
                raise type(error)(f"items[{len(found)}]: {error}", item=len(found), **error.details) from None
        return found

    def _other(self, item: object) -> Offer:
        if not isinstance(item, Mapping):
            payload = checks.blob("a message", item, limits.PAYLOAD_BYTES_MAX)
            return self._like(self._plain.described, payload)
        if "payload" not in item:
            raise BadArgument("a message needs a payload; give {'payload': b'...'}", argument="payload")
        payload = checks.blob("payload", item["payload"], limits.PAYLOAD_BYTES_MAX)
        if item.keys() == _TENANT_ONLY:
            name = checks.tenant(item["tenant"])
            described = msgspec.structs.replace(self._plain.described, tenant=name)
            return self._like(self._by_tenant.setdefault(name, described), payload)
        checks.keywords(item, MESSAGE_KEYWORDS)
        own = {name: value for name, value in item.items() if name != "payload"}
        return offer((payload,), **{**self._shared, **own})

    def _like(self, described: Described, payload: bytes) -> Offer:
        plain = self._plain
        pages = message_pages(payload)
        return Offer(described, pages, plain.weight, plain.delay_seconds, plain.deadline_seconds)
