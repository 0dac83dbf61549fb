"""Load on a queue while something breaks: producers and consumers, here and in other processes, every call recorded.

Guards: it judges nothing while it runs; when it has ended everything is worked off and the checker reads the history.
Two things the history does not prove: a reserve that failed may have held chunks, which then went back uncounted, so
they did not wait meanwhile though the first attempt seen is 1; and an owner that begins anew in the same process lets
the leases that it finds live a little longer, at a moment that nobody sees.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import fairway
from fairway.testing.checker import check_history
from fairway.testing.deliveries import Hand
from fairway.testing.facts import Chunk, facts_of
from fairway.testing.history import Header, History
from fairway.testing.witness import returned_of
from tests.attach.storm.judging import read_history
from tests.kill.draining import drain
from tests.kill.follower import Follower
from tests.kill.recorded import Lines, Recorded
from tests.kill.unseen import leave_out_unseen_leases
from tests.kill.worker import CALLS_PER_LIFE, Consumer, Producer

ROOT = Path(__file__).parents[2]
PRODUCERS, CONSUMERS = 2, 2
REST_SECONDS = 0.1  # every submission is read back at the end, so there must not be thousands of them
MANY = 200  # calls after which it slows down: a slow machine may be at it for minutes
FAILED_SECONDS = 1.0  # what failed is tried again at the end, one call after the other
WORKS_SECONDS = 120.0  # three nodes and their load on two busy cores
DRAIN_PATIENCE_SECONDS = 120.0
DRAIN_LIFE = 99


class Load:
    """Producers and consumers on one opened queue."""

    def __init__(self, q: fairway.Queue, history: Path, offset: float, life: int, seed: int) -> None:
        self.q, self.life = q, life
        self._lines = Lines(history, offset, life * CALLS_PER_LIFE)
        self._lines.started(life=life)
        recorded = Recorded(q, self._lines, life)
        self._over = threading.Event()
        self.answered = Counter[str]()
        self.failed: fairway.FairwayError | None = None
        work: list[Callable[[], None]] = [Producer(recorded, n, seed)._produce for n in range(PRODUCERS)]
        work += [Consumer(recorded, n, seed)._consume for n in range(CONSUMERS)]
        self._threads = [threading.Thread(target=self._repeat, args=(one,), daemon=True) for one in work]
        for thread in self._threads:
            thread.start()

    def _repeat(self, do: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                do()
            except fairway.FairwayError as error:  # it stands in the history, and the checker judges it
                self.failed = error
                self._over.wait(FAILED_SECONDS)
            else:
                self.answered["all"] += 1
                self._over.wait(REST_SECONDS * max(1.0, self.answered["all"] / MANY))

    def works(self, calls: int = 20, seconds: float = WORKS_SECONDS) -> float:
        """Wait until some more calls were answered with success; gives how long that took."""
        return works([self], calls, seconds)

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.q.close()
        self._lines.note("crash", life=self.life, in_flight=0)
        self._lines.close()


class Elsewhere:
    """A load in a process of its own, which opens the queue and owns it."""

    def __init__(self, url: str, history: Path, offset: float, life: int, seed: int) -> None:
        values = [url, str(history), repr(offset), str(life), str(seed)]
        command = [sys.executable, "-m", "tests.cassandra.storm_script", *values]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.answered = Counter[str]()
        self.failed: fairway.FairwayError | None = None
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            self.answered["all"] += 1

    def works(self, calls: int = 20) -> float:
        """Wait until some more calls were answered with success; gives how long that took."""
        return works([self], calls, WORKS_SECONDS)

    def end(self) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self._hearing.join()
        self.process.stdout.close()


def works(loads: Sequence[Load | Elsewhere], calls: int, seconds: float) -> float:
    """Wait until some more calls of these were answered with success; gives how long that took."""
    first, began = sum(one.answered["all"] for one in loads), time.monotonic()
    while (many := sum(one.answered["all"] for one in loads) - first) < calls:
        told = [f"{one.failed!r} from {one.failed.__cause__!r}" for one in loads if one.failed is not None]
        assert time.monotonic() - began < seconds, f"{many} of {calls} calls were answered; {told}"
        time.sleep(0.05)
    return time.monotonic() - began


class Storm:
    """One queue under load. `with` it: at the end every load ends, and the queue is drained and checked."""

    def __init__(self, url: str, folder: Path, seed: int = 7) -> None:
        self.url, self.seed = url, seed
        self.history = folder / "history.jsonl"
        self.offset = time.time() - time.monotonic()
        self.follower = Follower(self.history)
        self._lines = Lines(self.history, self.offset, 0)
        self._lines.write(Header(drained=True, origin={"seed": seed}))
        self._loads: list[Load | Elsewhere] = []

    def here(self, url: str = "", *, standby: bool = False) -> Load:
        """A load in this process."""
        q = fairway.open(url or self.url, standby=standby)
        load = Load(q, self.history, self.offset, len(self._loads) + 1, self.seed + len(self._loads))
        self._loads.append(load)
        return load

    def elsewhere(self) -> Elsewhere:
        """A load in another process."""
        many = len(self._loads)
        load = Elsewhere(self.url, self.history, self.offset, many + 1, self.seed + many)
        self._loads.append(load)
        return load

    def works(self, calls: int = 20) -> float:
        """Wait until some more calls were answered, whoever owns the queue by now."""
        return works(self._loads, calls, WORKS_SECONDS)

    def __enter__(self) -> Storm:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.end()
        self._lines.close()
        if kind is None:
            self._judge()

    def end(self) -> None:
        """End every load; nobody uses the queue any more."""
        for load in self._loads:
            load.end()
        self._loads.clear()

    def _judge(self) -> None:
        self.follower.catch_up()
        lines = Lines(self.history, self.offset, DRAIN_LIFE * CALLS_PER_LIFE)
        drain(self.url, lines, DRAIN_LIFE, self.follower.unknown(), DRAIN_PATIENCE_SECONDS)
        self.follower.catch_up()
        history = read_history(self.history)
        _leave_out_what_is_not_proven(history)
        violations = check_history(history)
        print(f"{self.follower.calls} calls:", dict(sorted(self.follower.told.items())))
        assert not violations, "\n".join(violation.story(history) for violation in violations[:5])
        assert self.follower.told["complete done"], "nothing was done, so nothing was shown"


def _leave_out_what_is_not_proven(history: History) -> None:
    leave_out_unseen_leases(history)
    chunks = facts_of(history).chunks
    history.memo["returned"] = [
        witness for witness in returned_of(history) if _under_one_owner(chunks[witness.id], witness.hand)
    ]


def _under_one_owner(chunk: Chunk, hand: Hand) -> bool:
    """Whether the owner that handed a chunk out had handed it out the last time too: one clock told all of it."""
    before = chunk.hands[chunk.hands.index(hand) - 1]
    return before.receipt[0] == hand.receipt[0]
