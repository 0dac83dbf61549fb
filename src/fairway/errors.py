"""Every error of Fairway: one root, three branches (the caller's mistake, a state that changed, our failure).

Guards: each error has a stable `code` and an HTTP `status`; its docstring is its default message and says what to do.
"""

from __future__ import annotations

import inspect
from typing import ClassVar


class FairwayError(Exception):
    """Something went wrong in Fairway."""

    code: ClassVar[str] = "fairway"
    status: ClassVar[int] = 500

    def __init__(self, message: str | None = None, **details: object) -> None:
        self.details = details
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or self.code))


# -- the caller's mistake: repeating the same call gives the same answer --------------------------------------


class CallerError(FairwayError):
    """The call cannot be carried out as it is; change it before you repeat it."""

    code, status = "bad_call", 400


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


class NotFairway(CallerError):
    """The file is not a Fairway queue; nothing was written to it. Give another path."""

    code, status = "not_fairway", 400


class SchemaNewer(CallerError):
    """The file was written by a newer Fairway; nothing was changed. Upgrade Fairway to open it."""

    code, status = "schema_newer", 400


class ReadOnly(CallerError):
    """The queue's file or folder cannot be written; nothing was changed. Mend its permissions."""

    code, status = "read_only", 403


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


class WaitTimeout(StateError):
    """The submission has not ended within the time given; wait again."""

    code, status = "wait_timeout", 408


# -- our failure: nothing acknowledged is lost; the same call may be repeated -------------------------------------


class OurError(FairwayError):
    """Fairway could not carry out the call; it is safe to repeat it."""

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


class GroupUnknown(OurError):
    """The store did not say whether the group was stored; it is settled by reading, never by repeating."""

    code, status = "group_unknown", 503


class PayloadCorrupt(OurError):
    """A stored payload or result does not match its checksum; the chunk was not handed out."""

    code, status = "payload_corrupt", 500


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
