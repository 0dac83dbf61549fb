"""The verbs that bring work: submit, put, and many of them at once.

Guards: everything is checked before anything is sent; what one call cannot hold becomes several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairway import limits
from fairway.engine.commands import Accepted, Show, Submit
from fairway.errors import BadArgument, FairwayError, NotFound
from fairway.face import checks
from fairway.face.messages import Message, Messages
from fairway.face.objects import Objects, Upload
from fairway.face.offers import Moment, accepted, all_accepted, calls, offer, offers, submit_item
from fairway.face.offers import Objects as Segments
from fairway.face.steps import Ask, Do, Steps
from fairway.model.submission import Metadata, Offer, Policy, Submission


class SubmitVerbs:
    """The producer's verbs."""

    _objects: Objects

    def submit(
        self,
        payloads: Iterable[bytes] | None = None,
        *,
        chunks: int | None = None,
        objects: Segments | None = None,
        tenant: str = "",
        metadata: Metadata | None = None,
        info: bytes = b"",
        priority: int = 0,
        key: str | None = None,
        fingerprint: bytes | str | None = None,
        weight: float | None = None,
        policy: Policy = "fail_fast",
        not_before: Moment | None = None,
        delay_seconds: float | None = None,
        deadline: Moment | None = None,
        deadline_seconds: float | None = None,
        attempts_max: int | None = None,
        delete_objects: bool = False,
    ) -> Steps[Submission]:
        """Submit chunks: payloads inline, `chunks=n` with `objects=` for those that are there already, or
        payloads with `objects=prefix` to upload them as prefix/0, prefix/1, ... while iterating.

        `key` makes it safe to repeat: the same key with the same content is the same submission.
        `weight` sets the tenant's share from now on.
        """
        words = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "payloads", "chunks", "objects")
        }
        if payloads is None or objects is None:
            made = yield from self._send([offer(payloads, chunks=chunks, objects=objects, **words)])
            return made[0]
        if chunks is not None:
            raise BadArgument("give payloads or chunks, not both", argument="chunks")
        prefix = checks.prefix("objects", objects)
        if not isinstance(payloads, Iterable) or isinstance(payloads, bytes | bytearray | memoryview | str):
            checks.refuse("payloads", "an iterable of bytes", payloads)
        offer(chunks=0, objects=prefix, **words)  # refuse what is wrong before the first byte is uploaded
        return (yield from self._upload(prefix, payloads, words))

    def submit_many(self, submissions: Iterable[Mapping[str, Any]]) -> Steps[list[Submission]]:
        """Submit many at once: each item is a dict with the keywords of `submit` (uploads excepted).

        All items are checked before the first is sent. A list too long for one call is sent as several; if a
        later one fails, the error's details["accepted"] has what was accepted before it.
        """
        return (yield from self._send(offers(submissions, "submissions", submit_item)))

    def put(
        self,
        payload: bytes,
        *,
        tenant: str = "",
        metadata: Metadata | None = None,
        info: bytes = b"",
        priority: int = 0,
        key: str | None = None,
        fingerprint: bytes | str | None = None,
        weight: float | None = None,
        policy: Policy = "dead_letter",
        not_before: Moment | None = None,
        delay_seconds: float | None = None,
        deadline: Moment | None = None,
        deadline_seconds: float | None = None,
        attempts_max: int | None = None,
    ) -> Steps[Submission]:
        """Put a message: a submission of one chunk, whose failure is a dead letter and not an end."""
        words = {name: value for name, value in locals().items() if name not in ("self", "payload")}
        data = checks.blob("payload", payload, limits.PAYLOAD_BYTES_MAX)
        made = yield from self._send([offer((data,), **words)])
        return made[0]

    def put_many(
        self,
        items: Iterable[Message],
        *,
        tenant: str = "",
        metadata: Metadata | None = None,
        info: bytes = b"",
        priority: int = 0,
        weight: float | None = None,
        policy: Policy = "dead_letter",
        not_before: Moment | None = None,
        delay_seconds: float | None = None,
        deadline: Moment | None = None,
        deadline_seconds: float | None = None,
        attempts_max: int | None = None,
    ) -> Steps[list[Submission]]:
        """Put many messages: each item is bytes, or a dict with `payload` and keywords of `put`."""
        shared = {name: value for name, value in locals().items() if name not in ("self", "items")}
        return (yield from self._send(Messages(shared).offers(items)))

    def _send(self, found: list[Offer]) -> Steps[list[Submission]]:
        done: list[Submission] = []
        for part in calls(found):
            try:
                reply: Accepted = yield Ask(Submit(part))
                if True not in reply.known and 0 not in [given.described.total for given in part]:
                    done += all_accepted(reply.ids, part)
                    continue
                for id, known, given in zip(reply.ids, reply.known, part, strict=True):
                    plain = not known and given.described.total
                    done.append(accepted(id, given) if plain else (yield from _shown(id, given)))
            except FairwayError as error:
                error.details.setdefault("accepted", done)
                raise
        return done

    def _upload(self, prefix: str, payloads: Iterable[bytes], words: dict[str, Any]) -> Steps[Submission]:
        uploaded: Upload = yield Do(lambda: self._objects.upload(prefix, payloads))
        try:
            made = yield from self._send([offer(chunks=uploaded.count, objects=prefix, **words)])
        except FairwayError as error:
            # Only what surely belongs to no submission is removed.
            if error.status < 500:
                yield Do(lambda: self._objects.remove(uploaded.made))
            raise
        return made[0]


def _shown(id: int, given: Offer) -> Steps[Submission]:
    """One that was known already, or has ended already: as it is, if it is still there."""
    try:
        return (yield Ask(Show(id)))
    except NotFound:
        return accepted(id, given)
