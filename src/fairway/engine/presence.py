"""Presence: clients come, and leave by a word or by silence; so do consumers that hold nothing.

Guards: what an absent one leaves behind in memory and in the store has an end; who waits is not absent.
"""

from __future__ import annotations

import math

from fairway.engine import waiting
from fairway.engine.clients import Client
from fairway.engine.state import State
from fairway.errors import TooLarge
from fairway.limits import CLIENTS_MAX
from fairway.model.stored import Drop, Kind


def register(state: State) -> int:
    """A new client, under an id that nobody had."""
    if len(state.clients) >= CLIENTS_MAX:
        raise TooLarge(f"a queue has at most {CLIENTS_MAX} clients at a time; close some")
    id = state.next_client
    state.next_client += 1
    state.clients[id] = Client(state.now)
    state.dirty.write_now(Kind.CLIENT, id)
    state.filling.sync = True
    plan_silence_check(state)
    return id


def goodbye(state: State, id: int) -> None:
    """A client says that it leaves; what it waits for is answered."""
    if id not in state.clients:
        return
    for waiter in [w for queue in state.waiters.values() for w in queue.values() if w.client == id]:
        waiting.finish(state, waiter)
    forget_client(state, id)


def forget_silent(state: State) -> None:
    """Forget clients that were silent for too long, and idle consumers after ten times as long."""
    silent = state.config.client_silent_seconds
    for id, client in list(state.clients.items()):
        if client.seen + silent <= state.now and not client.pending:  # who waits is not silent
            forget_client(state, id)
    idle = 10 * max(silent, state.config.consumer_silent_seconds)
    for name, consumer in list(state.consumers.items()):
        if not consumer.open and consumer.seen + idle <= state.now:
            del state.consumers[name]
            state.dirty.clear(Kind.CONSUMER, name)
            state.filling.drops.append(Drop(Kind.CONSUMER, name, 0))
    state.silence_check = math.inf
    plan_silence_check(state)


def plan_silence_check(state: State) -> None:
    """Look the clients over now and then; there is no hurry, but newcomers do not put it off."""
    if state.clients:
        state.silence_check = min(state.silence_check, state.now + state.config.client_silent_seconds / 8)


def forget_client(state: State, id: int) -> None:
    """A client leaves, and its outcomes with it."""
    client = state.clients.pop(id)
    state.dirty.clear(Kind.CLIENT, id)
    if client.as_of:
        state.filling.drops.append(Drop(Kind.CLIENT, id, 0))
