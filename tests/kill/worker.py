"""Processes under load, to be killed: producers and consumers on one queue, every call of theirs recorded.

Guards: one never ends by itself while its tester lives; an error in it ends it with a status that is no signal's.

This program imports everything once and then forks a process for every `Orders` on its input, so that a killed one is
replaced at once. The next line, whatever it says, is the order to kill it; the answer is the status it ended with.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import fairway
from fairway.model.lease import Ticket
from fairway.runtime import opening  # noqa: F401 - imported before the first fork
from fairway.store import sqlite  # noqa: F401
from tests.kill.recorded import Given, Lines, Recorded, ticket_of

PRODUCERS = 3
CONSUMERS = 5
CALLS_PER_LIFE = 1_000_000
TENANTS = ("", "acme", "whale", "zenith")
FAILED = 3  # the exit status of a process that found something wrong


class Again(msgspec.Struct):
    """A submit of a process before, of which nobody knows whether it arrived."""

    verb: str
    offers: list[Given]
    client: int
    number: int


class Orders(msgspec.Struct):
    """What a process is told before it begins."""

    queue: str
    history: str
    offset: float
    life: int
    seed: int
    again: list[Again] = []
    receipts: list[Ticket] = []  # that processes before held, or tried to complete


def result_of(receipt: Ticket, who: str) -> bytes:
    """A result that no other attempt and no other caller gives."""
    return f"{receipt.submission}/{receipt.index} by {receipt.epoch}.{receipt.count} {who}".encode()


@contextmanager
def judged_later() -> Iterator[None]:
    """An error of the queue ends the block and nothing else: it stands in the history, and the checker judges it."""
    try:
        yield
    except fairway.FairwayError:
        time.sleep(0.02)


class Producer:
    """Submits under keys; what it was told of, it sometimes submits again or looks at."""

    def __init__(self, recorded: Recorded, n: int, seed: int) -> None:
        self.recorded, self.n, self.who = recorded, n, f"producer{n}"
        self.dice = random.Random(f"{seed}.{self.who}")
        self.made = 0

    def run(self, again: list[Again]) -> None:
        for one in again:
            with judged_later():
                self.recorded.submit(self.who, one.verb, one.offers, one.client, one.number)
        while True:
            with judged_later():
                self._produce()
            time.sleep(self.dice.random() * 0.015)

    def _produce(self) -> None:
        dice = self.dice
        verb = dice.choices(("put", "submit", "put_many"), (60, 25, 15))[0]
        self.made += 1
        # One client for each producer of each life; its numbers are never used by another.
        client = self.recorded.life * 100 + self.n + 1
        offers = [self._offer(verb, client, place) for place in range(self._many(verb))]
        ids = self.recorded.submit(self.who, verb, offers, client, self.made)
        if dice.random() < 0.1:
            self.recorded.submit_known(self.who, verb, offers)
        if dice.random() < 0.1:
            self.recorded.show(self.who, dice.choice(ids))

    def _many(self, verb: str) -> int:
        return self.dice.randint(2, 5) if verb == "put_many" else 1

    def _offer(self, verb: str, client: int, place: int) -> Given:
        dice = self.dice
        total = dice.randint(2, 6) if verb == "submit" else 1
        mark = client * 1_000_000 + self.made * 10 + place
        return {
            "tenant": dice.choice(TENANTS),
            "total": total,
            "payloads": [f"{mark}/{index}" * dice.choice((1, 1, 5, 50)) for index in range(total)],
            "metadata": {"mark": mark},
            "policy": dice.choice(("fail_fast", "dead_letter", "dead_letter")),
            "key": f"key {mark}",
            "attempts_max": dice.choice((1, 3, 5, 50)),
        }


class Consumer:
    """Reserves, and does with each batch one of the things that workers do."""

    def __init__(self, recorded: Recorded, n: int, seed: int) -> None:
        self.recorded, self.who = recorded, f"consumer{n}"
        self.dice = random.Random(f"{seed}.{self.who}")

    def run(self, receipts: list[Ticket]) -> None:
        for receipt in receipts:
            with judged_later():
                self._complete([receipt])
        while True:
            with judged_later():
                self._consume()

    def _consume(self) -> None:
        dice = self.dice
        seconds, wait_seconds = dice.choice((0.2, 1.0, 4.0)), dice.choice((0.0, 1.0, 1.0, 1.0))
        leases = self.recorded.reserve(self.who, dice.randint(1, 5), seconds, wait_seconds)
        if not leases:
            time.sleep(0.02)
            return
        verbs = (self._work, self._work_late, self._renew, self._fail, self._release, self._walk_away)
        dice.choices(verbs, (70, 6, 8, 6, 6, 4))[0](leases)

    def _complete(self, receipts: list[Ticket]) -> None:
        self.recorded.complete(self.who, receipts, [result_of(one, self.who) for one in receipts])

    def _work(self, leases: list[Any]) -> None:
        receipts = [ticket_of(lease) for lease in leases]
        cut = self.dice.randint(0, len(receipts))
        for some in (receipts[:cut], receipts[cut:]):
            if some:
                self._complete(some)

    def _work_late(self, leases: list[Any]) -> None:
        time.sleep(0.25)
        self._work(leases)

    def _renew(self, leases: list[Any]) -> None:
        held = [
            lease for lease in leases if self.recorded.renew(self.who, lease, self.dice.choice((0.5, 2.0)))
        ]
        if held:
            self._work(held)

    def _fail(self, leases: list[Any]) -> None:
        receipts = [ticket_of(lease) for lease in leases]
        self.recorded.fail(self.who, receipts, self.dice.random() < 0.9, self.dice.choice((0.0, 0.05)))

    def _release(self, leases: list[Any]) -> None:
        self.recorded.release(self.who, [ticket_of(lease) for lease in leases])

    def _walk_away(self, leases: list[Any]) -> None:
        """Nobody ever answers for these."""


def main() -> None:
    while line := sys.stdin.buffer.readline():
        orders = msgspec.json.decode(line, type=Orders)
        process = os.fork()
        if process == 0:
            _to_the_end(partial(live, orders))
        sys.stdin.buffer.readline()
        os.kill(process, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def live(orders: Orders) -> None:
    """What one process does until it is killed, or nobody is there to kill it."""
    orders_by = os.getppid()
    lines = Lines(Path(orders.history), orders.offset, orders.life * CALLS_PER_LIFE)
    lines.started(life=orders.life)
    recorded = Recorded(fairway.open(orders.queue), lines, orders.life)
    tasks: list[Callable[[], None]] = []
    for n in range(PRODUCERS):
        producer = Producer(recorded, n, orders.seed)
        tasks.append(partial(producer.run, orders.again[n::PRODUCERS]))
    for n in range(CONSUMERS):
        consumer = Consumer(recorded, n, orders.seed)
        tasks.append(partial(consumer.run, orders.receipts[n::CONSUMERS]))
    for task in tasks:
        threading.Thread(target=_to_the_end, args=(task,), daemon=True).start()
    while os.getppid() == orders_by:
        time.sleep(1.0)


def _to_the_end(task: Callable[[], None]) -> None:
    """A thread that ends takes its process with it."""
    try:
        task()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(FAILED)


if __name__ == "__main__":
    main()
