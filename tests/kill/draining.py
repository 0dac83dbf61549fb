"""The end of a storm: what is unknown is settled, everything is worked off, and how it ended is written down.

Guards: it makes the queue no easier: errors stand in the history, and judging them is left to the checker.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import fairway
from tests.kill.recorded import Lines, Recorded, ticket_of
from tests.kill.worker import Again, result_of

DRAIN_SECONDS = 60.0
_PASSING = (fairway.StoreFailed, fairway.GroupUnknown, fairway.NotOwner)


class Patience:
    """Asks again, for so long, what a cluster that has just come back could not answer. A file must answer at once."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def __call__(self, ask: Callable[[], Any]) -> Any:
        while True:
            try:
                return ask()
            except _PASSING:
                if time.monotonic() > self._until:
                    raise
                time.sleep(0.2)


def drain(
    queue: Path | str, lines: Lines, life: int, unknown: list[Again], patience_seconds: float = 0.0
) -> list[fairway.DeadChunk]:
    """In this process, which never had the queue; `unknown` are submits that nobody knows the outcome of."""
    lines.started()
    patiently = Patience(patience_seconds)
    with patiently(lambda: fairway.open(queue)) as q:
        recorded = Recorded(q, lines, life)
        lines.note("drain")
        for one in unknown:
            with suppress(fairway.FairwayError):
                values = (one.verb, one.offers, one.client, one.number)
                patiently(lambda values=values: recorded.submit("drain", *values))
        give_up = time.monotonic() + DRAIN_SECONDS + patience_seconds
        while (stats := patiently(q.stats)).submissions_active or stats.chunks_leased:
            assert time.monotonic() < give_up, f"not drained: {stats}"
            patiently(lambda: _work(recorded))
        lines.note("drained")
        patiently(lambda: recorded.census("drain"))
        for one in patiently(lambda: list(q.submissions())):
            with suppress(fairway.FairwayError):
                patiently(lambda id=one.id: recorded.show("drain", id))
                patiently(lambda id=one.id: recorded.results("drain", id))
        dead = patiently(lambda: list(q.dead()))
    lines.close()
    return dead


def _work(recorded: Recorded) -> None:
    leases = recorded.reserve("drain", 500, 30.0, 0.2)
    if leases:
        receipts = [ticket_of(lease) for lease in leases]
        recorded.complete("drain", receipts, [result_of(one, "drain") for one in receipts])
