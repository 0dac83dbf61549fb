"""What a history of processes that die does not prove.

Guards: leases that reached nobody go back uncounted, so their chunk did not wait meanwhile though the first attempt
seen is 1; such a chunk witnesses nothing.
"""

from __future__ import annotations

from fairway.testing.history import History
from fairway.testing.witness import witnesses_of


def leave_out_unseen_leases(history: History) -> None:
    """Take no chunk for a witness that a reserve without an answer may have held."""
    unseen = [
        (one.begin_t, one.end_t if one.end >= 0 else float("inf"))
        for request in history.of("reserve")
        for one in request.tries
        if not request.answered
    ]
    history.memo["witnesses"] = {
        id: witness
        for id, witness in witnesses_of(history).items()
        if not any(
            low < witness.hand.request.end_t and witness.accepted.begin_t < high for low, high in unseen
        )
    }
