"""The end of a storm: what is unknown is settled, everything is worked off, and how it ended is written down.

Guards: it makes the queue no easier: errors stand in the history, and judging them is left to the checker.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import fairway
from tests.kill.recorded import Lines, Recorded, ticket_of
from tests.kill.worker import Again, result_of

DRAIN_SECONDS = 60.0


def drain(queue: Path, lines: Lines, life: int, unknown: list[Again]) -> list[fairway.DeadChunk]:
    """In this process, which never had the queue; `unknown` are submits that nobody knows the outcome of."""
    lines.note("start", clock=time.time())
    with fairway.open(queue) as q:
        recorded = Recorded(q, lines, life)
        lines.note("drain")
        for one in unknown:
            with suppress(fairway.FairwayError):
                recorded.submit("drain", one.verb, one.offers, one.client, one.number)
        give_up = time.monotonic() + DRAIN_SECONDS
        while (stats := q.stats()).submissions_active or stats.chunks_leased:
            assert time.monotonic() < give_up, f"not drained: {stats}"
            leases = recorded.reserve("drain", 500, 30.0, 0.2)
            if leases:
                receipts = [ticket_of(lease) for lease in leases]
                recorded.complete("drain", receipts, [result_of(one, "drain") for one in receipts])
        lines.note("drained")
        recorded.census("drain")
        for one in list(q.submissions()):
            with suppress(fairway.FairwayError):
                recorded.show("drain", one.id)
                recorded.results("drain", one.id)
        dead = list(q.dead())
    lines.close()
    return dead
