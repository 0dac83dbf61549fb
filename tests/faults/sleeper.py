"""A worker that may be stopped for longer than its leases: it reserves, says so, works a little and completes.

Guards: it says `held` between the answer of the reserve and its complete, so whoever stops it then stops a holder; and
when it sent the complete, so that a stop which came after that is known.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import fairway
from tests.kill.recorded import Lines, Recorded, ticket_of
from tests.kill.worker import CALLS_PER_LIFE, judged_later, result_of

LEASE_SECONDS = 0.5
WORK_SECONDS = 0.02


def main(queue: str, history: str, offset: float, me: int) -> None:
    lines = Lines(Path(history), offset, me * CALLS_PER_LIFE)
    who = f"sleeper{me}"
    with fairway.open(queue, host=False) as q:
        recorded = Recorded(q, lines, me)
        print("ready", flush=True)
        while True:
            with judged_later():
                leases = recorded.reserve(who, 3, LEASE_SECONDS, 0.5)
                if not leases:
                    continue
                print("held", flush=True)
                time.sleep(WORK_SECONDS)
                receipts = [ticket_of(lease) for lease in leases]
                sent = time.monotonic()
                outcomes = recorded.complete(who, receipts, [result_of(one, who) for one in receipts])
                print(sent, *outcomes, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
