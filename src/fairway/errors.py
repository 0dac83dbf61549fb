"""Every error of Fairway: one root, three branches (the caller's mistake, a state that changed, our failure).

Guards: each error has a stable `code` and an HTTP `status`; its docstring is its default message and says what to do.
An error is `final` if a process that met it would meet it again, however often it is started.
"""

from __future__ import annotations

import inspect
from typing import ClassVar


class FairwayError(Exception):
    """Something went wrong in Fairway."""

    code: ClassVar[str] = "fairway"
    status: ClassVar[int] = 500
    final: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **details: object) -> None:
        self.details = details
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or self.code))


# -- the caller's mistake: repeating the same call gives the same answer --------------------------------------


class CallerError(FairwayError):
    """The call cannot be carried out as it is; change it before you repeat it."""

    code, status = "bad_call", 400
    final = True


class BadArgument(CallerError):
    """An argument is out of its bounds; the message names it, its bounds and what was given."""

    code, status = "bad_argument", 400


class BadStrategy(CallerError):
    """The strategy cannot be understood; the message points at the place."""

    code, status = "bad_strategy", 400


class TooLarge(CallerError):
    """The call does not fit into one group; cut it into several, or submit payloads as objects."""

    code, status = "too_large", 413


class NotFound(CallerError):
    """There is no such submission (or it ended and its retention is over)."""

    code, status = "not_found", 404


class KeyConflict(CallerError):
    """This idempotency key was used for other content; take a new key, or submit the same content."""

    code, status = "key_conflict", 409


class NothingToRedrive(CallerError):
    """The submission has no dead or skipped chunk, so there is nothing to redrive."""

    code, status = "nothing_to_redrive", 409


class WrongKind(CallerError):
    """This kind of queue does not have this verb; open a queue of the other kind for it."""

    code, status = "wrong_kind", 405


class NotFairway(CallerError):
    """The file is not a Fairway queue; nothing was written to it. Give another path."""

    code, status = "not_fairway", 400


class SchemaNewer(CallerError):
    """The file was written by a newer Fairway; nothing was changed. Upgrade Fairway to open it."""

    code, status = "schema_newer", 400


class NeedMissing(CallerError):
    """This needs something that the machine does not have; the message says what to install."""

    code, status = "need_missing", 501


class ReadOnly(CallerError):
    """The queue's file or folder cannot be written; nothing was changed. Mend its permissions."""

    code, status = "read_only", 403


class NotRing(CallerError):
    """The file is not a ring, or one of another version; nothing was written to it. Give another path."""

    code, status = "not_ring", 400


class RingForeign(CallerError):
    """The ring is used from another pid namespace; use it from there, or create another one here.

    Who died there cannot be seen from here.
    """

    code, status = "ring_foreign", 400


class RingMissing(CallerError):
    """The ring's extension is not built here; install a C compiler and Python's headers, then install Fairway again."""

    code, status = "ring_missing", 501


class Unauthorized(CallerError):
    """This server wants a token; give a valid one: token=, FAIRWAY_TOKEN or `Authorization: Bearer TOKEN`."""

    code, status = "unauthorized", 401


class Forbidden(CallerError):
    """The token does not have the right for this, or does not reach this queue; ask for one that does."""

    code, status = "forbidden", 403


class BadMethod(CallerError):
    """This address does not take that method; the header Allow names those it takes."""

    code, status = "bad_method", 405


class SlowBody(CallerError):
    """The body did not arrive in time; send it faster, or in smaller parts."""

    code, status = "slow_body", 408
    final = False


class BadMedia(CallerError):
    """The body must be JSON, msgpack or, where a page of the docs says so, plain bytes, and not compressed."""

    code, status = "bad_media", 415


# -- a state that changed: the call was right once; look, then decide -------------------------------------------


class StateError(FairwayError):
    """The queue has moved on since you looked; read the present state and decide."""

    code, status = "state_changed", 409


class LeaseLost(StateError):
    """The lease is no longer yours: it ended and the chunk was handed out again, or you gave it back. Drop the work."""

    code, status = "lease_lost", 409


class AlreadyEnded(StateError):
    """The submission has ended already; nothing was changed."""

    code, status = "already_ended", 409


class ConsumerFenced(StateError):
    """Another process took over this consumer name; stop, or choose another name."""

    code, status = "consumer_fenced", 409


class SeqTrimmed(StateError):
    """This seq was trimmed, or lies below one that was; go on with a higher one."""

    code, status = "seq_trimmed", 409


class ReservationOpen(StateError):
    """The named reservation still has unfinished chunks; complete, fail or release them before you trim it."""

    code, status = "reservation_open", 409


class ReservationLapsed(StateError):
    """The consumer gave no sign for too long, and chunks of this reservation went back; ask again for what is left."""

    code, status = "reservation_lapsed", 409


class ClientUnknown(StateError):
    """This client was never registered, or was silent too long and forgotten; the call was not executed. Open again."""

    code, status = "client_unknown", 409


class RequestDropped(StateError):
    """This request number was answered and acknowledged before; it was not executed again."""

    code, status = "request_dropped", 409


class Fenced(StateError):
    """Another owner took over this queue; this one has stopped. Open it again."""

    code, status = "fenced", 409


class QueueHeld(StateError):
    """Another process has this queue open; close it there, or share it from there."""

    code, status = "queue_held", 409


class NotOwner(StateError):
    """Another process owns this queue; send the call there, or open it with standby=True to take its place."""

    code, status = "not_owner", 421

    @property
    def owner(self) -> str:
        """Who owns it, as it calls itself: host, process and a word of its own."""
        return str(self.details.get("owner", ""))

    @property
    def until(self) -> float:
        """When it is taken over at the latest if nothing more is heard of it; seconds since 1970."""
        until = self.details.get("until", 0.0)
        return float(until) if isinstance(until, int | float) else 0.0


class HostStuck(StateError):
    """The process that hosts this queue is stopped inside a transaction; continue or end it, then call again.

    Whether the call had an effect is known only then.
    """

    code, status = "host_stuck", 503


class NoHost(StateError):
    """No process hosts this queue; open it first with host=True."""

    code, status = "no_host", 503


class Closed(StateError):
    """The queue is closed; open it again."""

    code, status = "closed", 409


class RingCrowded(StateError):
    """All places of the ring are taken by living processes; close it in one of them."""

    code, status = "ring_crowded", 503


class RingForked(StateError):
    """A forked child cannot use its parent's place in a ring; attach to the path again in the child."""

    code, status = "ring_forked", 409


class RingFull(StateError):
    """There was no room in the ring in time; wait longer, or read faster."""

    code, status = "ring_full", 503


class QueueDeleted(StateError):
    """The queue was deleted; nothing was changed. Open it again to make a new one under its name."""

    code, status = "queue_deleted", 410
    final = True


class WaitTimeout(StateError):
    """The submission has not ended within the time given; wait again."""

    code, status = "wait_timeout", 408


class TooManyCalls(StateError):
    """This caller has as many calls under way as one caller may; the call was not executed. Wait, then repeat it."""

    code, status = "too_many_calls", 429


class TooManyStrategies(StateError):
    """As many strategies are in use as a queue can have; use one of them, or repeat the call when one is free."""

    code, status = "too_many_strategies", 503


class Busy(StateError):
    """The server has as much to do as it can hold, or is ending; the call was not executed. Wait, then repeat it."""

    code, status = "busy", 503


# -- our failure: nothing acknowledged is lost; the same call may be repeated -------------------------------------


class OurError(FairwayError):
    """Fairway could not carry out the call; the error says whether it may be repeated."""

    code, status = "ours", 500


class StoreFailed(OurError):
    """The store refused the group; the call had no effect and may be repeated."""

    code, status = "store_failed", 503


class StoreFull(StoreFailed):
    """The disk is full; the call had no effect. Free space, then repeat it."""

    code, status = "store_full", 507


class StoreCorrupt(OurError):
    """The file is damaged; nothing was changed. Restore a backup, or salvage with the SQLite shell's .recover."""

    code, status = "store_corrupt", 500
    final = True


class GroupUnknown(OurError):
    """The store did not say whether the group was stored; it is settled by reading, never by repeating."""

    code, status = "group_unknown", 503


class OutcomeUnknown(OurError):
    """Whether the call had its effect cannot be told; what it put may be delivered, and twice if it is put again."""

    code, status = "outcome_unknown", 503


class PayloadCorrupt(OurError):
    """A stored payload or result does not match its checksum; the chunk was not handed out."""

    code, status = "payload_corrupt", 500


class RingCorrupt(OurError):
    """The ring is damaged; remove it and create another."""

    code, status = "ring_corrupt", 500


class Unreachable(OurError):
    """No server answered in time; whether the call had an effect is known only when it is repeated by its number."""

    code, status = "unreachable", 503


class OwnerGone(OurError):
    """The queue's owner went away before it answered; repeat the call under its number, or look before you repeat it.

    Without a number nobody can say whether it had an effect.
    """

    code, status = "owner_gone", 503


class ObjectMissing(OurError):
    """A payload or result object is not where the submission says; put it back, or cancel the submission."""

    code, status = "object_missing", 502


def all_errors() -> dict[str, type[FairwayError]]:
    """Every error class by its code, for transports that carry errors as codes."""
    found: dict[str, type[FairwayError]] = {}
    todo: list[type[FairwayError]] = [FairwayError]
    while todo:
        kind = todo.pop()
        found[kind.code] = kind
        todo.extend(kind.__subclasses__())
    return found
