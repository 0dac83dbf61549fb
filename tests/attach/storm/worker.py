"""Processes that share one queue, to be killed: each submits in one thread and works in another, all calls recorded.
Every second one also loses its connection to the host now and then.

Guards: one never ends by itself while its tester lives; an error in it ends it with a status that is no signal's.

This program imports everything once. For every `Orders` on its input it forks a process and says its id; for an id it
waits until that process has ended and says the status.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

import fairway
from fairway.runtime import opening  # noqa: F401 - imported before the first fork
from fairway.runtime.attached import Attached
from fairway.store import sqlite  # noqa: F401
from fairway.testing.history import Line, line_bytes
from tests.kill.recorded import Lines, Recorded
from tests.kill.worker import CALLS_PER_LIFE, Consumer, Orders, Producer, _to_the_end

LEASE_SECONDS = (0.2, 0.5, 1.0)  # short, so that what the killed held comes back soon
WAIT_SECONDS = (0.0, 0.0, 0.3, 1.0)
OPEN_SECONDS = 30.0
CUT_SECONDS = 0.4


class SharedLines(Lines):
    """Lines of many processes in one file: a line that a kill cut off must not spoil the next one."""

    def _write(self, line: Line) -> None:
        body = b"\n" + line_bytes(line)
        assert os.write(self._file, body) == len(body)


class Offerer(Producer):
    """Submits also without keys: then the number alone keeps a call from having two effects."""

    def _produce(self) -> None:
        time.sleep(self.dice.random() * 0.01)  # so that little more is offered than is worked off
        if self.dice.random() < 0.5:
            return super()._produce()
        self.made += 1
        verb = self.dice.choice(("put", "submit", "put_many"))
        client = self.recorded.life * 100 + self.n + 1
        offers = [self._offer(verb, client, place) for place in range(self._many(verb))]
        for offer in offers:
            del offer["key"]
        # Nobody else may try it again, so it has no number in the history.
        self.recorded.submit(self.who, verb, offers, 0, 0)
        return None


class Worker(Consumer):
    """Reserves, half of the times waiting, and does with each batch one of the things that workers do."""

    def _consume(self) -> None:
        dice = self.dice
        leases = self.recorded.reserve(
            self.who, dice.randint(1, 10), dice.choice(LEASE_SECONDS), dice.choice(WAIT_SECONDS)
        )
        if not leases:
            time.sleep(0.01)
            return
        verbs = (self._work, self._work_late, self._renew, self._fail, self._release, self._walk_away)
        dice.choices(verbs, (66, 4, 8, 10, 8, 4))[0](leases)


def cut_now_and_then(q: fairway.Queue, seed: int) -> None:
    """End the connection to the host under whatever is on it: answers that are lost while both sides live."""
    dice = random.Random(seed)
    while True:
        time.sleep(dice.random() * CUT_SECONDS)
        way = q._port._member.way
        if isinstance(way, Attached):
            way._connection.cut()


def live(orders: Orders, slot: int, parent: int) -> None:
    """What one process does until it is killed, or nobody is there to kill it."""
    lines = SharedLines(Path(orders.history), orders.offset, orders.life * CALLS_PER_LIFE)
    lines.started(life=orders.life)
    q = open_queue(orders.queue, lines, orders.life)
    recorded = Recorded(q, lines, orders.life)
    tasks = (
        partial(Offerer(recorded, slot, orders.seed).run, orders.again),
        partial(Worker(recorded, slot, orders.seed).run, orders.receipts),
        *([partial(cut_now_and_then, q, orders.seed)] if slot % 2 else []),
    )
    for task in tasks:
        threading.Thread(target=_to_the_end, args=(task,), daemon=True).start()
    while os.getppid() == parent:
        time.sleep(1.0)


def open_queue(path: str, lines: Lines, life: int) -> fairway.Queue:
    """The queue; while a host is stopped inside a transaction nobody gets in, so it is tried again."""
    began = time.monotonic()
    while True:
        try:
            q = fairway.open(path)
        except fairway.HostStuck as error:
            lines.note("not opened", life=life, error=error.code)
            if time.monotonic() > began + OPEN_SECONDS:
                raise
        else:
            lines.note("opened", life=life, seconds=time.monotonic() - began)
            return q


def main() -> None:
    here, children = os.getpid(), set[int]()
    try:
        while line := sys.stdin.buffer.readline():
            said = msgspec.json.decode(line)
            if isinstance(said, int):
                status = os.waitstatus_to_exitcode(os.waitpid(said, 0)[1])
                children.discard(said)
                print(status, flush=True)
                continue
            slot, orders = said
            process = os.fork()
            if process == 0:
                _to_the_end(partial(live, msgspec.convert(orders, Orders), slot, here))
            children.add(process)
            print(process, flush=True)
    finally:
        for process in children if os.getpid() == here else ():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
