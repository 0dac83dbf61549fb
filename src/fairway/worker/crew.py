"""The loops of one process: one in the calling thread, or several in threads of their own.

Guards: all of them are told to end, all have ended before the process goes on, and the error of one is not lost.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from fairway.face.queue import Queue
from fairway.worker.loop import Endable, Function, Loop

_JOIN_SECONDS: Final = 0.2  # in steps: a signal is heard between two of them


class Crew:
    """Workers that share one queue and one function. `drain` may be called from any thread and signal handler."""

    def __init__(self, queue: Queue, function: Function, jobs: int = 1, **options: Any) -> None:
        self._loops = [Loop(queue, function, **options) for _ in range(jobs)]
        # What ends a function of this kind takes locks, which a signal handler in the same thread may not wait for.
        self._apart = jobs > 1 or isinstance(function, Endable)
        self._error: BaseException | None = None

    def drain(self) -> None:
        """End after the chunks at hand; asked twice, stop those too."""
        for loop in self._loops:
            loop.drain()

    def run(self) -> None:
        """Until `drain`, the limit, or an empty queue if that was asked for."""
        if not self._apart:
            self._loops[0].run()
            return
        threads = [
            threading.Thread(target=self._run, args=(loop,), name=f"fairway worker {n}")
            for n, loop in enumerate(self._loops)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_JOIN_SECONDS)
        if self._error is not None:
            raise self._error

    def _run(self, loop: Loop) -> None:
        try:
            loop.run()
        except BaseException as error:
            self._error = self._error or error
            for one in self._loops:
                one.draining = True
