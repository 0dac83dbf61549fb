"""Bugs of calls: request numbers, keys, pauses, delays, deadlines, cancels.

Guards: each forgets one thing that a caller was promised.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from fairway.engine import backlog, due, ending, presence, steering, submitting, waiting
from fairway.engine.clients import Client
from fairway.engine.recent import Recent
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.testing.planted.planting import plant, wrong

# -- request numbers

_receive = Client.receive


@wrong("a number that was received is executed again", Client, "receive")
def without_a_mark(self: Client, received: int) -> None:
    self.outcomes = {n: outcome for n, outcome in self.outcomes.items() if n > received}


@wrong("an answer is dropped before it was received", Client, "receive")
def one_too_many(self: Client, received: int) -> None:
    _receive(self, received + 1)


_forget_silent = presence.forget_silent


@wrong("clients are forgotten after a twentieth of their silence", presence, "forget_silent")
def forget_soon(state: State) -> None:
    for id, client in list(state.clients.items()):
        if client.seen + state.config.client_silent_seconds / 20 <= state.now and not client.pending:
            presence.forget_client(state, id)
    _forget_silent(state)


# -- keys


@wrong("an idempotency key is forgotten", submitting, "_keep_keys")
def keep_none(state: State, ids: list[int]) -> None:
    pass


_known_keys = submitting._known_keys


@wrong("a key stands for any content", submitting, "_known_keys")
def any_content(state: State, offers: list[Any], found: Any) -> Any:
    known: dict[tuple[str, str], int] = {}
    for offer in offers:
        where = (offer.described.tenant, offer.described.key)
        key = state.recent_keys.get(where) or found.keys.get(where)
        if where[1] and key is not None and not 0 < key.expires <= state.now:
            known[where] = key.id
    return known


@wrong("a lookup counts on what is kept for another", Recent, "surely_stays")
def stays(self: Recent[Any, Any], key: Any, stored: int) -> bool:
    return key in self


# -- what a run waits for

_standing_of, _end = backlog.standing_of, ending.end


def _ignoring(field: str, nothing: object) -> Any:
    def standing_of(run: Run) -> int:
        before = getattr(run, field)
        setattr(run, field, nothing)
        try:
            return _standing_of(run)
        finally:
            setattr(run, field, before)

    return standing_of


plant("a delay is ignored", backlog, "standing_of", _ignoring("due", 0.0))
plant("the pause of a submission is ignored", backlog, "standing_of", _ignoring("paused", False))


@wrong("the pause of a tenant is ignored", backlog, "standing_of")
def restless(run: Run) -> int:
    before, run.owner.paused = run.owner.paused, False
    try:
        return _standing_of(run)
    finally:
        run.owner.paused = before


_pause = steering.pause


@wrong("the pause of the queue is ignored", steering, "pause")
def unpaused(state: State, command: Any) -> None:
    _pause(state, command)
    state.paused = False


@wrong("a deadline is ignored", ending, "end_late")
def never_late(state: State, run: Run) -> None:
    if run.due <= state.now:
        run.due = 0.0


@wrong("a delay that is over is not noticed", due, "refresh", here=True)
def unnoticed(state: State, run: Run) -> None:
    pass


@wrong("a cancel leaves its chunks", steering, "end", here=True)
def still_there(state: State, run: Run, event: str) -> None:
    _end(state, run, event)
    run.eligible = run.ready > 0


# -- what is waited for

_wished = submitting._wished


@wrong("a deadline that was asked for is not kept", submitting, "_wished")
def without_deadline(state: State, offer: Any, trails: Any) -> Any:
    return replace(_wished(state, offer, trails), deadline=0.0)


@wrong("a delay is longer than was asked", submitting, "_wished")
def a_minute_more(state: State, offer: Any, trails: Any) -> Any:
    described = _wished(state, offer, trails)
    return replace(described, not_before=described.not_before + 60.0) if offer.delay_seconds else described


@wrong("a wait that is over is not answered", waiting, "time_out")
def for_ever(state: State) -> None:
    pass
