"""The loop of one worker: reserve, run the function on each chunk, tell what became of it, until it is to end.

Guards: a result is told only for a lease that is held; a function is stopped when its lease is over; who ends gives
back what it has not begun.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import uniform
from typing import Any, Final

from fairway import limits
from fairway.errors import (
    BadArgument,
    Busy,
    FairwayError,
    HostStuck,
    NoHost,
    OurError,
    StateError,
    TooLarge,
    TooManyCalls,
    TooManyStrategies,
)
from fairway.face.queue import Queue
from fairway.model.lease import Lease
from fairway.strategy.terms import StrategyLike
from fairway.worker.keeping import Keeper
from fairway.worker.tally import Tally

_SIGNAL: Final = signal.SIGUSR2  # wakes the main thread out of a call that blocks
_STEP_SECONDS: Final = 0.02  # between two looks whether a function has stopped
_log: Final = logging.getLogger("fairway.worker")

Function = Callable[[Lease], bytes | None]


class Stopped(BaseException):
    """The lease of this chunk is over; the function is left. Not an Exception, so that functions do not keep it."""


class Failed(Exception):
    """The chunk is not done; `retry` says whether another attempt may go better."""

    def __init__(self, why: str, retry: bool = True) -> None:
        super().__init__(why)
        self.retry = retry


class Endable(ABC):
    """A function that waits for something outside of Python, and ends it when it is told to.

    It is called as any other; one that is ended raises Stopped. `end` may come at any time, from any thread.
    """

    @abstractmethod
    def __call__(self, lease: Lease) -> bytes | None: ...

    @abstractmethod
    def end(self, lease: Lease) -> None:
        """End what is done with this lease."""


def _told(error: BaseException) -> tuple[str, str]:
    """What is kept of an error, and one line for people. Not every error can tell itself."""
    line, trace = type(error).__name__, error.__traceback__
    # From the function's own first line on: how we called it tells its author nothing.
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        line = f"{line}: {error}"
        return "".join(traceback.format_exception(type(error), error, trace, limit=-20)), line
    except Exception as other:
        where = "".join(traceback.format_tb(trace, limit=-20))
        return f"{where}{line}, which cannot be told ({type(other).__name__})", line


class Loop:
    """One worker in one thread."""

    def __init__(
        self,
        queue: Queue,
        function: Function,
        *,
        strategy: StrategyLike | None,
        batch: int,
        lease_seconds: float,
        stop_when_empty: bool,
        own_process: bool,
        tally: Tally,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._queue = queue
        self._function = function
        self._strategy = strategy
        self._batch = batch
        self._lease_seconds = lease_seconds
        self._stop_when_empty = stop_when_empty
        self._own_process = own_process  # which may be ended if a function does not stop
        self._tally = tally
        self._say = say  # is told of every failure
        self._keeper = Keeper(queue, lease_seconds, self._lost)
        self._thread, self._in_main = 0, False  # of `run`
        self._edge = threading.Lock()  # between a function and what comes after it
        self._running: Lease | None = None
        self._stopping: Lease | None = None  # whose function is to stop
        self._done: list[tuple[Lease, bytes | None]] = []
        self._told_at = 0.0
        self.draining = False

    # -- from signal handlers and other threads

    def drain(self) -> None:
        """End after the chunk that is being worked on; asked twice, stop that one too."""
        running = self._running
        if self.draining and running is not None:
            self._stop(running)
        self.draining = True

    def _lost(self, lease: Lease) -> None:
        """In the keeper's thread."""
        if self._running is not lease:
            return
        _log.warning("the lease of chunk %d of submission %d is over", lease.index, lease.submission)
        self._stop(lease)
        # Counted in steps and not by the clock: a process that stood still has its whole time when it goes on.
        left = limits.STOP_SECONDS
        while self._running is lease and left > 0:
            time.sleep(_STEP_SECONDS)
            left -= _STEP_SECONDS
        if self._running is lease and self._own_process:
            _log.error("the function does not stop; its process is ended")
            os._exit(70)

    def _stop(self, lease: Lease) -> None:
        if self._in_main:
            self._stopping = lease
            signal.pthread_kill(self._thread, _SIGNAL)
            return
        with self._edge:
            if self._running is not lease or self._stopping is lease:
                return  # it has ended meanwhile, or was told already
            self._stopping = lease
            if isinstance(self._function, Endable):
                self._function.end(lease)
            else:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(Stopped)
                )

    def _interrupt(self, *_: Any) -> None:
        """The handler of the signal: leave the function, if it is still the one that is to stop."""
        if self._running is not None and self._running is self._stopping:
            raise Stopped

    # -- the loop

    def run(self) -> None:
        """Work until `drain`, in the thread that calls this."""
        self._thread = threading.get_ident()
        self._in_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(_SIGNAL, self._interrupt) if self._in_main else None
        self._keeper.start()
        try:
            self._work()
        finally:
            self._keeper.stop()
            if self._in_main:
                signal.signal(_SIGNAL, before)

    def _work(self) -> None:
        idle, pause = limits.IDLE_SECONDS, limits.CLIENT_PAUSE_SECONDS
        while not self.draining and (many := self._tally.ask(self._batch)):
            since = time.monotonic()
            try:
                leases = self._reserved(many, 0.0 if self._stop_when_empty else idle)
                pause = limits.CLIENT_PAUSE_SECONDS
                if leases:
                    idle = limits.IDLE_SECONDS
                    # A wait may have lasted: what the lease is counted from is when it surely had not begun.
                    self._batch_of(leases, max(since, time.monotonic() - self._lease_seconds / 2))
                elif self._stop_when_empty:
                    return
                else:
                    idle = min(idle * 2, limits.IDLE_SECONDS_MAX)
            except Stopped:
                continue  # it came too late for its function
            except (OurError, NoHost, HostStuck, Busy, TooManyCalls, TooManyStrategies) as error:
                _log.warning("the queue cannot be used now: %s", error)
                time.sleep(pause * uniform(0.5, 1.0))
                pause = min(pause * 2, limits.IDLE_SECONDS_MAX)

    def _reserved(self, many: int, wait_seconds: float) -> list[Lease]:
        leases: list[Lease] = []
        try:
            leases = self._queue.reserve(
                many,
                strategy=self._strategy,
                lease_seconds=self._lease_seconds,
                wait_seconds=wait_seconds,
            )
            return leases
        finally:
            self._tally.begin(len(leases), many)

    def _batch_of(self, leases: list[Lease], since: float) -> None:
        self._keeper.hold(leases, since)
        self._told_at = time.monotonic()
        left = list(leases)
        try:
            while left and not self.draining:
                lease = left.pop(0)
                if self._keeper.holds(lease):
                    self._one(lease)
                else:
                    self._tally.count("lost")
                if time.monotonic() - self._told_at > limits.REPORT_SECONDS:
                    self._tell()
        finally:
            self._tell()
            self._give_back(left)

    def _one(self, lease: Lease) -> None:
        try:
            result = self._call(lease)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a cancelled task's error is no Exception, nor is sys.exit's
            self._running = None  # a signal may have come between the function and the word that it ended
            if self._stopping is lease or isinstance(error, Stopped):
                self._stopped(lease)
            elif isinstance(error, Failed):
                self._fail(lease, str(error), error.retry)
            else:
                text, line = _told(error)
                self._fail(lease, text, True, line)
        else:
            self._done.append((lease, result))

    def _stopped(self, lease: Lease) -> None:
        if self._keeper.holds(lease):
            self._give_back([lease])  # it was told twice to end
        else:
            self._tally.count("lost")

    def _call(self, lease: Lease) -> bytes | None:
        self._running = lease
        try:
            result = self._function(lease)
        finally:
            self._ended(lease)
        if result is not None and not isinstance(result, bytes | bytearray | memoryview):
            raise Failed(
                f"a worker's function returns bytes or None, not {type(result).__name__}", retry=False
            )
        return None if result is None else bytes(result)

    def _ended(self, lease: Lease) -> None:
        if self._in_main:
            self._running = None
            return
        try:
            with self._edge:
                self._running = None
            if self._stopping is lease:
                # It was told to stop as it ended; what was sent comes with the next call, and is to come here.
                for _ in range(3):
                    time.sleep(0)
        finally:
            self._running = None

    # -- telling

    def _tell(self) -> None:
        """Complete what is done, as one call."""
        done, self._done = self._done, []
        self._told_at = time.monotonic()
        held = [(lease, result) for lease, result in done if self._keeper.holds(lease)]
        self._tally.count("lost", len(done) - len(held))
        if not held:
            return
        leases, results = [lease for lease, _ in held], [result for _, result in held]
        try:
            self._complete(leases, results)
        except (BadArgument, TooLarge) as error:
            self._tell_apart(held, error)
        except FairwayError as error:
            _log.error("%d results could not be told: %s", len(leases), error)
            self._tally.count("lost", len(leases))
        finally:
            self._keeper.let_go(leases)

    def _complete(self, leases: list[Lease], results: list[bytes | None]) -> None:
        blobs = results if any(result is not None for result in results) else None
        outcomes = self._queue.complete(leases, results=blobs)
        done = sum(outcome in ("done", "already") for outcome in outcomes)
        self._tally.count("done", done)
        self._tally.count("lost", len(leases) - done)

    def _tell_apart(self, held: list[tuple[Lease, bytes | None]], refused: FairwayError) -> None:
        """A result is refused, and would be the next time: its chunk has failed, and not its neighbours."""
        if len(held) == 1:
            self._fail(held[0][0], str(refused), retry=False)
            return
        for lease, result in held:
            self._done = [(lease, result)]
            self._tell()

    def _fail(self, lease: Lease, error: str, retry: bool, said: str = "") -> None:
        try:
            self._queue.fail(lease, error, retry=retry)
            self._tally.count("failed")
        except StateError:
            self._tally.count("lost")  # it is another's by now
        except FairwayError as failure:
            _log.error("a failure could not be told: %s", failure)
            self._tally.count("lost")
        finally:
            self._keeper.let_go([lease])
        if self._say is not None:
            self._say(f"chunk {lease.index} of {lease.submission} failed: {said or error}")

    def _give_back(self, leases: list[Lease]) -> None:
        mine = [lease for lease in leases if self._keeper.holds(lease)]
        self._tally.count("lost", len(leases) - len(mine))
        if not mine:
            return
        try:
            back = sum(outcome == "released" for outcome in self._queue.release(mine))
            self._tally.count("released", back)
            self._tally.count("lost", len(mine) - back)
        except FairwayError as error:
            _log.warning("%d leases could not be given back: %s", len(mine), error)
            self._tally.count("lost", len(mine))
        finally:
            self._keeper.let_go(mine)
