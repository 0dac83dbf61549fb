"""REST that brings work: submissions and messages."""

from __future__ import annotations

from typing import Any

from fairway import limits
from fairway.engine.commands import Accepted, Submit
from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.face.offers import accepted, calls, offer
from fairway.model.submission import Offer, Submission
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.guarding import bound


def _offer(ask: Ask, words: dict[str, Any]) -> Offer:
    objects = words.get("objects")
    if isinstance(objects, list):
        words["objects"] = [(segment.prefix, segment.count) for segment in objects]
    made = bound(offer(**words), ask.token)
    ask.app.roots.check(prefix for prefix, _ in made.described.segments)
    return made


async def _send(ask: Ask, offers: list[Offer]) -> list[tuple[int, bool]]:
    """Send what fits into one call: one request is one group, whole or not at all."""
    parts = list(calls(offers))
    if len(parts) > 1:
        size = limits.GROUP_BYTES_MAX
        raise BadArgument(f"one request takes {limits.CALL_OFFERS_MAX} submissions and {size} bytes at most")
    if not parts:
        return []
    reply: Accepted = await ask.port.ask(Submit(parts[0]))
    return list(zip(reply.ids, reply.known, strict=True))


def _key(ask: Ask, given: str | None, single: bool) -> str | None:
    """The header is the key of a single submission."""
    if ask.key is None:
        return given
    if not single or (given is not None and given != ask.key):
        raise BadArgument("Idempotency-Key goes with one submission and is its key; leave one of them out")
    return ask.key


async def submit(ask: Ask) -> Answer:
    """Submit one or many: all are accepted, or none."""
    single = not isinstance(ask.body, list)
    bodies: list[v.NewSubmission] = [ask.body] if single else ask.body
    offers = [_offer(ask, {**v.words(body), "key": _key(ask, body.key, single)}) for body in bodies]
    made = await _send(ask, offers)
    shown = [
        v.submission_view(await _shown(ask, id, known, given))
        for (id, known), given in zip(made, offers, strict=True)
    ]
    return Answer(shown[0] if single else shown, 201)


async def _shown(ask: Ask, id: int, known: bool, given: Offer) -> Submission:
    """One that was known already, or has ended already: as it is, if it is still there."""
    if known or not given.described.total:
        try:
            return await ask.q.submission(id)
        except NotFound:
            pass
    return accepted(id, given)


async def put(ask: Ask) -> Answer:
    """Put one message or many; a body of plain bytes is the payload of one."""
    if isinstance(ask.body, bytes):
        words = {
            **v.words(ask.query),
            "payloads": (checks.blob("payload", ask.body, limits.PAYLOAD_BYTES_MAX),),
        }
        return await _put(ask, [{"policy": "dead_letter", **words, "key": _key(ask, words.get("key"), True)}])
    single = not isinstance(ask.body, list)
    bodies: list[v.NewMessage] = [ask.body] if single else ask.body
    items = []
    for body in bodies:
        words = v.words(body)
        payload = checks.blob("payload", words.pop("payload"), limits.PAYLOAD_BYTES_MAX)
        items.append({**words, "payloads": (payload,), "key": _key(ask, body.key, single)})
    return await _put(ask, items)


async def _put(ask: Ask, items: list[dict[str, Any]]) -> Answer:
    made = await _send(ask, [_offer(ask, words) for words in items])
    return Answer(v.Ids([str(id) for id, _ in made]), 201)
