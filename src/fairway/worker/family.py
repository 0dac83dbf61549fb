"""Several workers: processes that run one function, started again when one dies.

Guards: SIGTERM reaches all of them, and they end before their parent does; if it is killed, they end too. An error
that is final ends all of them and is raised in the parent.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import multiprocessing.context
import multiprocessing.process
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fairway.errors import FairwayError, OurError
from fairway.face.queue import Queue
from fairway.runtime.restarting import Restarting
from fairway.worker.crew import Crew
from fairway.worker.ending import Ending
from fairway.worker.loop import Function
from fairway.worker.tally import CELLS, WHAT, Sums, Tally

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_HURRY: Final = signal.SIGUSR1  # tells a child to stop also what it is at
_POLL_SECONDS: Final = 0.1
_log: Final = logging.getLogger("fairway.worker")


@dataclass(frozen=True)
class _Given:
    """What is sent to each process that fills a place."""

    open_queue: Callable[[], Queue]
    make: Callable[[], Function]
    options: dict[str, Any]
    limit: int | None
    cells: Any
    ending: Ending


class Family:
    """The processes of one worker, each with some jobs.

    `open_queue` gives the queue and `make` the function; both are called in each process. A limit is shared out.
    """

    def __init__(
        self,
        processes: int,
        open_queue: Callable[[], Queue],
        make: Callable[[], Function],
        options: dict[str, Any],
        limit: int | None = None,
    ) -> None:
        self._context = multiprocessing.get_context("spawn")
        many = processes if limit is None else min(processes, limit)
        # Every place has its own cells, which one process at a time writes: no lock that a killed one could hold.
        self._cells = [self._context.RawArray("q", CELLS) for _ in range(many)]
        began = self._context.RawValue("b", False)
        self._given = [
            _Given(open_queue, make, options, share, cells, Ending(self._context, began))
            for share, cells in zip(_shares(limit, many), self._cells, strict=True)
        ]
        self._heard = 0  # signals; no Event: its handler would wait for the lock that this thread may hold
        self._members: list[_Member] = []

    def run(self, stop: threading.Event | None) -> Sums:
        """Until a signal, `stop`, or until all have found the queue empty or reached the limit."""
        in_main = threading.current_thread() is threading.main_thread()
        before = {number: signal.signal(number, self._hear) for number in SIGNALS if in_main}
        try:
            for given in self._given:
                self._members.append(_Member(self._context, given))
            while not self._heard and not (stop is not None and stop.is_set()):
                alive = [member.look() for member in self._members]
                if not any(alive):
                    break
                time.sleep(_POLL_SECONDS)
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)
        sums = [Tally(cells=cells).sums() for cells in self._cells]
        return Sums(*(sum(getattr(one, what) for one in sums) for what in WHAT))

    def _hear(self, *_: object) -> None:
        self._heard += 1

    def _end(self) -> None:
        """All are told to drain; a second signal here is told to them too, and stops what they are at."""
        for member in self._members:
            member.process.terminate()
        hurried = False
        for member in self._members:
            while member.process.is_alive():
                member.process.join(_POLL_SECONDS)
                if self._heard > 1 and not hurried:
                    hurried = True
                    for one in self._members:
                        one.hurry()
        for member in self._members:
            member.process.close()


def _shares(limit: int | None, many: int) -> list[int | None]:
    """A limit shared out over so many."""
    if limit is None:
        return [None] * many
    return [limit // many + (place < limit % many) for place in range(many)]


class _Member:
    """One place, and the process that fills it now."""

    def __init__(self, context: multiprocessing.context.SpawnContext, given: _Given) -> None:
        self._context = context
        self._given = given
        try:
            self.process = self._start()
        except OSError as error:
            raise OurError(f"no process can be started now: {error}") from error
        self._again = Restarting(time.monotonic())

    def _start(self) -> multiprocessing.process.BaseProcess:
        self._given.ending.open()
        process = self._context.Process(target=run_member, args=(self._given,), name="fairway worker")
        process.start()
        return process

    def look(self) -> bool:
        """Start it again if it died; False: it has ended by itself. Raises the error by which it did."""
        now = time.monotonic()
        if self.process.is_alive():
            return True
        if not self._again.awaited:
            if self._given.ending.by_itself(self.process.exitcode):
                return False
            _log.warning("a worker died (%s); another is started", self.process.exitcode)
            self._again.died(now)
        another = self._again.start(now, self._start)
        if another is not None:
            self.process.close()
            self.process = another
        return True

    def hurry(self) -> None:
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, _HURRY)


def run_member(given: _Given) -> None:
    """The main function of a child."""
    given.ending.begin()
    try:
        _work(given)
    except FairwayError as error:
        if not error.final:
            raise
        given.ending.tell(error)
    else:
        given.ending.tell(None)


def _work(given: _Given) -> None:
    function = given.make()
    with given.open_queue() as queue:
        tally = Tally(given.limit, given.cells)
        crew = Crew(queue, function, tally=tally, own_process=True, **given.options)
        orders = _Orders(crew)
        # Ctrl-C reaches the whole group of processes; the parent passes it on, once.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, orders.drain)
        signal.signal(_HURRY, orders.hurry)
        threading.Thread(target=_watch_parent, args=(orders,), daemon=True).start()
        crew.run()


class _Orders:
    """What a child is told. A service manager sends SIGTERM to all processes and the parent passes its own on: to be
    told twice to drain means no more than once."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._draining = False

    def drain(self, *_: object) -> None:
        if not self._draining:
            self._draining = True
            self._crew.drain()

    def hurry(self, *_: object) -> None:
        self.drain()
        self._crew.drain()


def _watch_parent(orders: _Orders) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        orders.drain()
