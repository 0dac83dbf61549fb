"""Guarding: what a client sends is checked here as the face checks what a program gives.

Guards: the engine is sent nothing over HTTP that the face could not have made; payload pages are what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from fairway import limits
from fairway.engine import commands as c
from fairway.errors import BadArgument, Forbidden, PayloadCorrupt, TooLarge
from fairway.face import checks
from fairway.face import reads as r
from fairway.face.batches import within_batch
from fairway.fair.weights import W_MAX, W_MIN
from fairway.model.config import QueueConfig, changed
from fairway.model.page import payloads_of
from fairway.model.submission import Described, Offer
from fairway.server.roots import Roots
from fairway.server.tokens import Token

_INT64: Final = 2**63 - 1
_PAGE_SLACK: Final = 64  # what a page weighs beside its payloads


class Guard:
    """Checks commands of one caller; `roots` are the object roots of this server."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    def check(self, command: Any, token: Token) -> Any:
        """The command, as it may be sent to the engine."""
        if isinstance(command, c.Submit):
            return self._submit(command, token)
        check = _CHECKS.get(type(command))
        if check is not None:
            check(command)
        return command

    def _submit(self, command: c.Submit, token: Token) -> c.Submit:
        if len(command.offers) > limits.CALL_OFFERS_MAX:
            raise TooLarge(f"one call takes at most {limits.CALL_OFFERS_MAX} submissions")
        return c.Submit([self._offer(one, token) for one in command.offers])

    def _offer(self, one: Offer, token: Token) -> Offer:
        d = one.described
        _described(d)
        _pages(d, one.pages)
        self._roots.check(prefix for prefix, _ in d.segments)
        checks.whole("weight", one.weight, 0, W_MAX)
        if one.weight:
            checks.whole("weight", one.weight, W_MIN, W_MAX)
        checks.number("delay_seconds", one.delay_seconds, 0.0, limits.DELAY_SECONDS_MAX)
        checks.number("deadline_seconds", one.deadline_seconds, 0.0, limits.DELAY_SECONDS_MAX)
        return bound(one, token)


def bound(one: Offer, token: Token) -> Offer:
    """The offer of a caller whose token may be bound to a tenant, and may not set weights."""
    if one.weight and not token.allows("operate", None):
        raise Forbidden("weight: this token may submit and not steer; leave weight out", argument="weight")
    tenant = one.described.tenant
    if token.tenant is None or tenant == token.tenant:
        return one
    if tenant:
        raise Forbidden("tenant: this token is bound to another tenant; leave tenant out", argument="tenant")
    return msgspec.structs.replace(one, described=msgspec.structs.replace(one.described, tenant=token.tenant))


def _described(d: Described) -> None:
    checks.tenant(d.tenant)
    checks.whole("chunks", d.total, 0, limits.CHUNKS_MAX)
    checks.metadata(d.metadata)
    checks.blob("info", d.info, limits.INFO_BYTES_MAX)
    checks.whole("priority", d.priority, -limits.PRIORITY_MAX, limits.PRIORITY_MAX)
    checks.moment("not_before", d.not_before)
    checks.moment("deadline", d.deadline)
    checks.whole("attempts_max", d.attempts_max, 0, limits.ATTEMPTS_MAX_MAX)
    checks.text("key", d.key, limits.KEY_BYTES_MAX)
    checks.blob("fingerprint", d.fingerprint, limits.KEY_BYTES_MAX)
    if bool(d.key) != bool(d.fingerprint) and not d.key:
        raise BadArgument("fingerprint goes with a key; give key too", argument="fingerprint")
    if d.segments and d.page_starts:
        raise BadArgument("payloads are inline or objects, not both", argument="objects")
    if len(d.segments) > limits.SEGMENTS_MAX:
        checks.refuse("objects", f"at most {limits.SEGMENTS_MAX} segments", len(d.segments))
    for prefix, count in d.segments:
        if checks.prefix("objects", prefix) != prefix:
            raise BadArgument("objects: a prefix ends without a slash", argument="objects")
        checks.whole("objects", count, 0, limits.CHUNKS_MAX)
    if d.segments and sum(count for _, count in d.segments) != d.total:
        raise BadArgument("objects: the segments have another number of chunks", argument="objects")


def _pages(d: Described, pages: tuple[bytes, ...]) -> None:
    """Inline payloads: every page holds what its place says, so that none is found damaged later."""
    if len(pages) != len(d.page_starts) or (not pages and not d.segments and d.page_starts):
        raise BadArgument("payloads: as many pages as page starts are needed", argument="payloads")
    if sum(map(len, pages)) > limits.INLINE_BYTES_MAX + len(pages) * _PAGE_SLACK + 5 * d.total:
        raise TooLarge(f"inline payloads of a submission have at most {limits.INLINE_BYTES_MAX} bytes")
    at = 0
    for start, page in zip(d.page_starts, pages, strict=True):
        try:
            payloads = payloads_of(page)
        except (PayloadCorrupt, msgspec.DecodeError):
            raise BadArgument("payloads: a page does not match its checksum", argument="payloads") from None
        if start != at or not payloads:
            raise BadArgument("payloads: the pages do not follow each other", argument="payloads")
        if max(map(len, payloads)) > limits.PAYLOAD_BYTES_MAX:
            raise BadArgument(
                f"payloads: one has at most {limits.PAYLOAD_BYTES_MAX} bytes", argument="payloads"
            )
        at += len(payloads)
    if pages and at != d.total:
        raise BadArgument("payloads: there must be one for each chunk", argument="payloads")


def _reserve(command: c.Reserve) -> None:
    checks.whole("max", command.max, 1, limits.RESERVE_CHUNKS_MAX)
    if command.strategy:
        checks.strategy(command.strategy)
    if command.lease_seconds:
        _lease_seconds("lease_seconds", command.lease_seconds)
    checks.number("wait_seconds", command.wait_seconds, 0.0, limits.HTTP_WAIT_SECONDS_MAX)
    checks.text("consumer", command.consumer, limits.CONSUMER_NAME_BYTES_MAX)
    checks.whole("consumer_epoch", command.consumer_epoch, 0, _INT64)
    checks.seq(command.seq)
    checks.whole("worker", command.worker, 0, 2**64 - 1)


def _lease_seconds(name: str, value: float) -> None:
    checks.number(name, value, limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX)


def _parts(command: c.Complete | c.Fail | c.Renew | c.Release) -> None:
    for part in command.parts:
        for submission, start, count in part.spans:
            checks.whole("submission", submission, 0, _INT64)
            checks.whole("index", start, 0, limits.CHUNKS_MAX)
            checks.whole("count", count, 1, limits.CALL_CHUNKS_MAX)
    _within_call(_chunks([command]))


def _chunks(commands: Iterable[c.Complete | c.Fail | c.Renew | c.Release]) -> int:
    return sum(count for command in commands for part in command.parts for _, _, count in part.spans)


def _within_call(chunks: int) -> None:
    if chunks > limits.CALL_CHUNKS_MAX:
        raise TooLarge(f"one call takes at most {limits.CALL_CHUNKS_MAX} leases, not {chunks}")


def _complete(command: c.Complete) -> None:
    _parts(command)
    checks.whole("writer", command.writer, 0, 2**62 - 1)
    if command.by_reference and command.results is not None:
        raise BadArgument("with by_reference the results are objects already", argument="results")
    for result in command.results or ():
        if result is not None:
            checks.blob("result", result, limits.PAYLOAD_BYTES_MAX)


def _fail(command: c.Fail) -> None:
    _parts(command)
    checks.text("error", command.error, limits.ERROR_BYTES_MAX)
    checks.number("delay_seconds", command.delay_seconds, -1.0, limits.DELAY_SECONDS_MAX)


def _renew(command: c.Renew) -> None:
    _parts(command)
    if command.seconds:
        _lease_seconds("seconds", command.seconds)


def _wait(command: c.Wait) -> None:
    checks.submission_id(command.id)
    checks.number("seconds", command.seconds, 0.0, limits.HTTP_WAIT_SECONDS_MAX)


def _list(command: c.ListActive | r.ListEnded) -> None:
    if command.tenant is not None:
        checks.tenant(command.tenant)
    checks.metadata(command.metadata)
    _rows(command)


def _rows(command: Any) -> None:
    if not isinstance(command, c.Tenants):
        checks.whole("after", command.after, 0, _INT64)
    elif command.after is not None:
        checks.tenant(command.after)
    checks.whole("limit", command.limit, 1, limits.LIST_ROWS_MAX)


def _configure(command: c.Configure) -> None:
    changes: dict[str, object] = dict(command.changes)
    changed(QueueConfig(), changes)
    if "strategy" in changes:
        checks.strategy(str(changes["strategy"]))


def _join(command: c.Join) -> None:
    checks.consumer(command.consumer)
    checks.text("run", command.run, limits.CONSUMER_NAME_BYTES_MAX)
    checks.text("error", command.error, limits.ERROR_BYTES_MAX)


def _finish(command: c.Finish) -> None:
    checks.consumer(command.consumer)
    checks.whole("epoch", command.consumer_epoch, 0, _INT64)
    checks.text("run", command.run, limits.CONSUMER_NAME_BYTES_MAX)
    for one in command.completed:
        _complete(one)
    for one in command.failed:
        _fail(one)
    _within_call(_chunks([*command.completed, *command.failed]))
    within_batch(command.completed)
    for name, blob in (("first", command.first), ("others", command.others)):
        if blob is not None:
            checks.blob(name, blob, limits.PAYLOAD_BYTES_MAX)


def _trim(command: c.Trim) -> None:
    checks.consumer(command.consumer)
    checks.whole("consumer_epoch", command.consumer_epoch, 0, _INT64)
    checks.seq(command.seq)


def _pause(command: c.Pause) -> None:
    if command.tenant is not None:
        checks.tenant(command.tenant)
    checks.whole("submission", command.submission, 0, _INT64)


def _pages_wanted(command: r.ReadPages) -> None:
    if len(command.wanted) > limits.PAGES_PER_CALL_MAX:
        raise TooLarge(f"one call reads at most {limits.PAGES_PER_CALL_MAX} pages")
    for submission, page in command.wanted:
        checks.submission_id(submission)
        checks.whole("page", page, 0, limits.CHUNKS_MAX)


def _winners(command: c.Winners) -> None:
    checks.submission_id(command.id)
    checks.whole("start", command.start, 0, limits.CHUNKS_MAX)
    checks.whole("count", command.count, 0, limits.PAGE_CHUNKS)


def _results(command: r.ReadResults) -> None:
    checks.submission_id(command.id)
    checks.whole("first_min", command.first_min, 0, _INT64)
    checks.whole("limit", command.limit, 1, 64)
    checks.whole("bytes_max", command.bytes_max, 1, limits.RESULTS_READ_BYTES)


def _events(command: r.ReadEvents) -> None:
    checks.whole("after", command.after, 0, _INT64)
    checks.whole("limit", command.limit, 1, limits.PAGE_ROWS_MAX)


def _one(command: Any) -> None:
    checks.submission_id(command.id)


def _weight(command: c.SetWeight) -> None:
    checks.tenant(command.tenant)
    checks.whole("weight", command.weight, W_MIN, W_MAX)


def _explain(command: c.Explain) -> None:
    if command.strategy:
        checks.strategy(command.strategy)
    checks.whole("limit", command.limit, 1, limits.PAGE_ROWS_MAX)


_CHECKS: Final[dict[type[Any], Callable[[Any], object]]] = {
    c.Reserve: _reserve,
    c.Complete: _complete,
    c.Fail: _fail,
    c.Renew: _renew,
    c.Release: _parts,
    c.Join: _join,
    c.Trim: _trim,
    c.Finish: _finish,
    c.Cancel: _one,
    c.Redrive: _one,
    c.Pause: _pause,
    c.SetWeight: _weight,
    c.Configure: _configure,
    c.Show: _one,
    c.Wait: _wait,
    c.ListActive: _list,
    c.ListDead: _rows,
    c.Tenants: _rows,
    c.Explain: _explain,
    c.Winners: _winners,
    r.ReadPages: _pages_wanted,
    r.Describe: _one,
    r.ListEnded: _list,
    r.ListEndedDead: _rows,
    r.ReadResults: _results,
    r.ReadEvents: _events,
}
CHECKED: Final = frozenset((c.Submit, *_CHECKS))  # every command with fields, and a test holds it to that
