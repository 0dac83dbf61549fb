"""Short concurrent histories on a real queue: a few threads, a few chunks, receipts that everybody tries.

Guards: a call is timed before it is made and after it was answered, so calls overlap there if they may have.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import fairway
from fairway.model.lease import Lease
from fairway.testing.history import Begin, End, Header, History, Line, save
from fairway.testing.linear.checker import check_history
from fairway.testing.vocabulary import submission_of
from tests.kill.recorded import Recorded, ticket_of
from tests.proving import Kept

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = ROOT / "build" / "proof" / "histories"
CALLS = 30  # of one history, all threads together
LEASE_SECONDS = (0.005, 0.02, 0.05, 5.0)
DELAY_SECONDS = (0.0, 0.0, 0.01, 0.06)  # the last one outlives the slack, so who comes early is seen
WAIT_SECONDS = (0.0, 0.0, 0.0, 0.01)
PAUSE_SECONDS = (0.0, 0.0, 0.001, 0.002, 0.005, 0.04)  # the last one outlives a lease and the slack
VERBS = {"reserve": 9, "complete": 5, "fail": 3, "release": 3, "renew": 4, "show": 2, "cancel": 0.7}


class Heard:
    """Lines in memory, in the place of a history file."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        # The two clocks are read side by side; the closest pair of some is not torn apart by another process.
        pairs = [(time.monotonic(), time.time(), time.monotonic()) for _ in range(5)]
        before, wall, after = min(pairs, key=lambda pair: pair[2] - pair[0])
        self._offset = wall - (before + after) / 2
        self._calls = count(1)

    def call(self, who: str, op: str, args: dict[str, Any], do: Callable[[], Any], *_: int) -> Any:
        call = next(self._calls)
        self.lines.append(Begin(self._now(), call, who, op, args))
        try:
            ok = do()
        except fairway.FairwayError as error:
            self.lines.append(End(self._now(), call, None, error.code))
            raise
        self.lines.append(End(self._now(), call, ok))
        return ok

    def _now(self) -> float:
        return self._offset + time.monotonic()


class Player(Recorded):
    """One thread's queue; the leases that anybody ever got are everybody's to try."""

    def __init__(self, q: fairway.Queue, heard: Heard, who: str, dice: random.Random, game: Game) -> None:
        super().__init__(q, heard, 1)  # type: ignore[arg-type]
        self.who, self.dice, self.game = who, dice, game

    def play(self, calls: int) -> None:
        for _ in range(calls):
            verb = self.dice.choices(list(VERBS), list(VERBS.values()))[0]
            if verb in ("complete", "fail", "release", "renew") and not self.game.leases:
                verb = "reserve"
            with suppress(fairway.AlreadyEnded):  # a cancel that came too late; it stands in the history
                getattr(self, f"_{verb}")()
            time.sleep(self.dice.choice(PAUSE_SECONDS))

    def _reserve(self) -> None:
        dice = self.dice
        seconds, wait = dice.choice(LEASE_SECONDS), dice.choice(WAIT_SECONDS)
        self.game.leases += self.reserve(self.who, dice.randint(1, 3), seconds, wait)

    def _lease(self) -> Lease:
        """Most often a late one: the receipts that count are among them."""
        leases = self.game.leases
        return leases[-1 - min(int(self.dice.expovariate(0.7)), len(leases) - 1)]

    def _complete(self) -> None:
        some = {(one.submission, one.index): one for one in (self._lease(), self._lease())}
        receipts = [ticket_of(one) for one in list(some.values())[: self.dice.choice((1, 1, 2))]]
        self.complete(self.who, receipts, [b"done"] * len(receipts))

    def _fail(self) -> None:
        dice = self.dice
        delay = dice.choice(DELAY_SECONDS)
        self.fail(self.who, [ticket_of(self._lease())], dice.random() < 0.8, delay)

    def _release(self) -> None:
        self.release(self.who, [ticket_of(self._lease())])

    def _renew(self) -> None:
        self.renew(self.who, self._lease(), self.dice.choice(LEASE_SECONDS))

    def _show(self) -> None:
        self.show(self.who, self.dice.choice(self.game.ids))

    def _cancel(self) -> None:
        id = self.dice.choice(self.game.ids)
        self.lines.call(self.who, "cancel", {"sub": id}, lambda: submission_of(self.q.cancel(id)))


class Game:
    """One history: what is submitted, then threads that do as their dice say, then a cancel of what is left."""

    def __init__(self, queues: Sequence[fairway.Queue], seed: int) -> None:
        self.seed = seed
        self.heard = Heard()
        self.leases: list[Lease] = []
        self.ids: list[int] = []
        self.failed: list[BaseException] = []
        dice = random.Random(seed)
        self._setter = Player(queues[0], self.heard, "setter", dice, self)
        for _ in range(2):
            self._submit(dice)
        threads = dice.randint(3, 6)
        players = [
            Player(queues[n % len(queues)], self.heard, f"player{n}", random.Random(f"{seed} {n}"), self)
            for n in range(threads)
        ]
        self._threads = [
            threading.Thread(target=self._run, args=(player, CALLS // threads)) for player in players
        ]

    def _submit(self, dice: random.Random) -> None:
        offer = {
            "total": (total := dice.randint(1, 3)),
            "payloads": [f"{index}" for index in range(total)],
            "policy": dice.choice(("fail_fast", "dead_letter", "dead_letter")),
            "attempts_max": dice.choice((1, 2, 3, 50, 50)),
        }
        self.ids += self._setter.submit("setter", "submit", [offer], 0, 0)

    def _run(self, player: Player, calls: int) -> None:
        try:
            player.play(calls)
        except BaseException as error:
            self.failed.append(error)

    def play(self) -> History:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        for id in self.ids:  # so that the next history finds an empty queue
            with suppress(fairway.AlreadyEnded):
                self._setter.q.cancel(id)
        assert not self.failed, self.failed
        header = Header(origin={"kind": "linear", "seed": self.seed})
        return History([header, *sorted(self.heard.lines, key=lambda line: line.t)])  # type: ignore[union-attr]


def play_many(
    queues: Sequence[fairway.Queue], seeds: range, name: str = "", kept: Kept | None = None
) -> tuple[int, list[str]]:
    """How many calls were made, and what is wrong; with a name, such histories are kept for `fairway verify`.

    `kept` gets all until something is wrong.
    """
    calls, wrong = 0, []
    for seed in seeds:
        history = Game(queues, seed).play()
        calls += len(history.requests)
        violations = check_history(history)
        if kept is not None and not wrong:
            kept.add(history)
        if violations:
            told = [violation.story(history) for violation in violations]
            where = f"`fairway verify {_saved(history, f'linear-{name}-{seed}')}`" if name else "not kept"
            wrong.append("\n".join([f"seed {seed}, {where}", *told]))
    return calls, wrong


def _saved(history: History, name: str) -> Path:
    path = HISTORIES / f"{name}.jsonl"
    save(history, path)
    return Path(os.path.relpath(path, ROOT))
