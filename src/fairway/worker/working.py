"""`fairway.work`: run a function on the chunks of a queue, here or in several processes.

Guards: what is wrong with the arguments is told before the first chunk is reserved.
"""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import signal
import threading
from collections.abc import Sequence
from typing import Any

from fairway import limits
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.face.queue import Queue
from fairway.opening import open as open_queue
from fairway.strategy.terms import StrategyLike
from fairway.worker.crew import Crew
from fairway.worker.family import SIGNALS, Family
from fairway.worker.loop import Function
from fairway.worker.tally import Sums, Tally


def work(
    url: str | os.PathLike[str] | Sequence[str],
    fn: Function,
    *,
    queue: str = "default",
    processes: int = 1,
    strategy: StrategyLike | None = None,
    batch: int = 1,
    lease_seconds: float = 60.0,
    token: str | None = None,
    stop_when_empty: bool = False,
    stop: threading.Event | None = None,
) -> int:
    """Reserve chunks, call `fn(lease)` on each, and complete it with the bytes that it returns (None: no result).

    An exception fails the chunk, to be tried again. Leases are renewed while the function runs; if one is lost all
    the same (cancelled, or the queue cannot be reached), the function is stopped at the end of its lease.
    SIGTERM and Ctrl-C drain: the chunk at hand is finished, the others of the batch are given back.
    It works on a file and on a server alike, in this process, or with `processes=` in so many of its own; then `fn`
    must be a function of a module. `stop_when_empty=True` returns when there is nothing to reserve; so does setting
    `stop`. Gives how many chunks were completed.
    """
    checks.whole("processes", processes, 1, limits.WORK_PROCESSES_MAX)
    checks.whole("batch", batch, 1, limits.RESERVE_CHUNKS_MAX)
    checks.number("lease_seconds", lease_seconds, limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX)
    if not callable(fn) or inspect.iscoroutinefunction(fn):
        checks.refuse("fn", "a function that takes a lease and is no coroutine", fn)
    options = {
        "strategy": checks.strategy(strategy) or None,
        "batch": batch,
        "lease_seconds": float(lease_seconds),
        "stop_when_empty": checks.flag("stop_when_empty", stop_when_empty),
    }
    opened = functools.partial(open_queue, url, queue, token=token)
    if processes > 1:
        if url == ":memory:":
            raise BadArgument(
                "a queue in memory lives in one process; give a file, or processes=1", argument="url"
            )
        _check_sendable(fn)
        with opened():
            pass  # what is wrong with it is told here: a process that fails is started again
        there = functools.partial(opened, create=False)
        return Family(processes, there, functools.partial(_given, fn), options).run(stop).done
    with opened() as found:
        return run_here(found, fn, options, stop=stop).done


def _given(fn: Function) -> Function:
    return fn


def run_here(
    queue: Queue,
    fn: Function,
    options: dict[str, Any],
    *,
    limit: int | None = None,
    stop: threading.Event | None = None,
) -> Sums:
    """Work in this process, until a signal or `stop`, the limit, or an empty queue if that was asked for."""
    tally = Tally(limit)
    crew = Crew(queue, fn, tally=tally, own_process=False, **options)
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, lambda *_: crew.drain()) for number in SIGNALS}
    ended = threading.Event()
    if stop is not None:
        threading.Thread(target=_watch, args=(stop, ended, crew), daemon=True).start()
    try:
        crew.run()
    finally:
        ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)
    return tally.sums()


def _watch(stop: threading.Event, ended: threading.Event, crew: Crew) -> None:
    while not stop.wait(0.1):
        if ended.is_set():
            return
    crew.drain()


def _check_sendable(fn: Function) -> None:
    try:
        pickle.dumps(fn)
    except Exception as error:
        raise BadArgument(
            f"fn cannot be sent to other processes ({error}); give a function of a module, or processes=1",
            argument="fn",
        ) from error
