"""Answering: a reply joins the filling group, and its outcome is recorded under its request number.

Guards: an outcome is stored in the same group as its effect.
"""

from __future__ import annotations

from fairway.engine.clients import encode_reply
from fairway.engine.commands import Reply
from fairway.engine.draft import Draft
from fairway.engine.records import Answered
from fairway.engine.state import State
from fairway.errors import FairwayError
from fairway.model.stored import Kind


def answer(state: State, draft: Draft, reply: Reply) -> None:
    """The draft leaves with the filling group."""
    draft.answered = True
    draft.reply = reply
    state.filling.drafts.append(draft)


def refuse(state: State, draft: Draft, error: FairwayError) -> None:
    """The draft leaves with an error; the call had no effect."""
    draft.answered = True
    draft.error = error
    state.filling.drafts.append(draft)


def record_outcome(state: State, client_id: int, number: int, reply: Reply) -> None:
    """Keep the outcome of a numbered call until its client has received it."""
    client = state.clients.get(client_id)
    if client is None or not number:
        return
    body = encode_reply(reply)
    client.outcomes[number] = body
    state.filling.records.append(Answered(client_id, number, client.received, body, state.now))
    state.dirty.mark(Kind.CLIENT, client_id, 0, state.number)
