"""Queues that are broken in one way each: what the checker of concurrent histories must find.

Guards: each is planted in the engine that really runs, and answers look as good as those of a sound one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairway.engine import engine, finishing, returning
from fairway.engine.commands import Complete, Fail, Part, Renew, Reserve, Reserved, Settled
from fairway.engine.holds import Hold, seal_of
from fairway.engine.lookups import Found
from fairway.engine.run import Run, Tried
from fairway.engine.state import State
from fairway.limits import LEASE_SECONDS_MIN

Plant = Callable[[pytest.MonkeyPatch], None]


def stale_receipt_completes(patch: pytest.MonkeyPatch) -> None:
    """Whoever held a chunk once may complete it while another holds it."""
    sound = engine.complete

    def complete(state: State, command: Complete, found: Found) -> Settled:
        return sound(state, msgspec.structs.replace(command, parts=_brought_up(state, command.parts)), found)

    patch.setattr(engine, "complete", complete)


def stale_receipt_fails(patch: pytest.MonkeyPatch) -> None:
    """Whoever held a chunk once may fail or release it."""
    for verb in ("fail", "release"):
        sound = getattr(returning, verb)

        def settle(
            state: State, command: Any, found: Found, sound: Callable[..., Settled] = sound
        ) -> Settled:
            replaced = msgspec.structs.replace(command, parts=_brought_up(state, command.parts))
            return sound(state, replaced, found)

        patch.setattr(returning, verb, settle)


def _brought_up(state: State, parts: list[Part]) -> list[Part]:
    """The parts with the receipts that count now."""
    found: list[Part] = []
    for part in parts:
        for id, start, many in part.spans:
            for index in range(start, start + many):
                run = state.runs.get(id)
                hold = run.out.get(index) if run is not None and run.state == "active" else None
                epoch, count = (part.epoch, part.count) if hold is None else (hold.epoch, hold.count)
                found.append(Part(epoch, count, seal_of(state.secret, epoch, count), [(id, index, 1)]))
    return found


def double_lease(patch: pytest.MonkeyPatch) -> None:
    """A chunk is handed out again before the deadline that its holder was told."""
    sound = engine.reserved

    def reserved(state: State, hold: Hold) -> Reserved:
        reply = sound(state, hold)
        return msgspec.structs.replace(reply, deadline=reply.deadline + 1.0)

    patch.setattr(engine, "reserved", reserved)


def renew_after_expiry(patch: pytest.MonkeyPatch) -> None:
    """A lease that ran out is called renewed."""
    sound = engine.renew

    def renew(state: State, command: Renew, found: Found) -> Settled:
        settled = sound(state, command, found)
        (part,) = command.parts
        ((id, index, _),) = part.spans
        run = state.runs.get(id)
        tried = run.tried.get(index) if run is not None and run.state == "active" else None
        if settled.outcomes == [("lost", 1)] and tried is not None and tried.count == part.count:
            return Settled([("renewed", 1)], settled.deadline)
        return settled

    patch.setattr(engine, "renew", renew)


def complete_after_cancel(patch: pytest.MonkeyPatch) -> None:
    """A result counts though the submission was cancelled."""
    sound = finishing._of_ended

    def of_ended(state: State, id: int, index: int, part: Part, found: Found) -> str:
        run = state.runs.get(id)
        hold = run.out.get(index) if run is not None and run.state == "cancelled" else None
        outcome = sound(state, id, index, part, found)
        return "done" if hold is not None and hold.count == part.count else outcome

    patch.setattr(finishing, "_of_ended", of_ended)


def released_receipt_completes(patch: pytest.MonkeyPatch) -> None:
    """Who gave a chunk back may complete it while it waits."""
    sound = returning.give_back

    def give_back(state: State, run: Run, index: int, batch: Any) -> None:
        hold = run.out[index]
        sound(state, run, index, batch)
        run.note(index, Tried(run.attempts(index), hold.epoch, hold.count))

    patch.setattr(returning, "give_back", give_back)


def expiry_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A lease that ran out is no attempt."""
    sound = Run.note

    def note(self: Run, index: int, tried: Any) -> None:
        tried.attempts -= bool(tried.count)
        sound(self, index, tried)

    patch.setattr(Run, "note", note)


def wrong_no_work(patch: pytest.MonkeyPatch) -> None:
    """Now and then somebody is told that there is no work though there is."""
    sound, asked = engine.pick, [0]

    def pick(state: State, command: Reserve) -> Hold | None:
        asked[0] += 1
        return None if asked[0] % 5 == 0 else sound(state, command)

    patch.setattr(engine, "pick", pick)


def lease_is_short(patch: pytest.MonkeyPatch) -> None:
    """Every lease lasts a millisecond, and its holder is told so."""
    sound = engine.pick

    def pick(state: State, command: Reserve) -> Hold | None:
        return sound(state, msgspec.structs.replace(command, lease_seconds=LEASE_SECONDS_MIN))

    patch.setattr(engine, "pick", pick)


def renewed_lease_is_short(patch: pytest.MonkeyPatch) -> None:
    """A lease that is renewed lasts a millisecond more, and its holder is told so."""
    sound = engine.renew

    def renew(state: State, command: Renew, found: Found) -> Settled:
        return sound(state, msgspec.structs.replace(command, seconds=LEASE_SECONDS_MIN), found)

    patch.setattr(engine, "renew", renew)


def back_off_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """A chunk that failed is handed out again at once, whatever delay was asked for."""
    sound = returning.fail

    def fail(state: State, command: Fail, found: Found) -> Settled:
        return sound(state, msgspec.structs.replace(command, delay_seconds=0.0), found)

    patch.setattr(returning, "fail", fail)


PLANTED: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        stale_receipt_completes,
        stale_receipt_fails,
        double_lease,
        renew_after_expiry,
        complete_after_cancel,
        released_receipt_completes,
        expiry_is_not_counted,
        wrong_no_work,
        lease_is_short,
        renewed_lease_is_short,
        back_off_is_ignored,
    )
}
