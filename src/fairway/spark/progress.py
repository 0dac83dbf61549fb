"""Bars that show how far long work is, on a terminal: chunks that are over, payloads that are written, steps.

Guards: where stderr is no terminal there is no bar; looking takes a small part of the time, and never fails the work.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Self

from fairway.errors import FairwayError
from fairway.face.queue import Queue
from fairway.runtime.objects import ages

_LOOK_SECONDS = 0.5


class _Shown:
    """A bar on stderr for as long as the work goes on, if there is somebody to look at it."""

    def __init__(self, on: bool) -> None:
        self._on = on and sys.stderr.isatty()
        self._bar: Any = None

    def _start(self, words: str, total: int | None, counted: str) -> None:
        if not self._on:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(counted), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(words, total=total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class Progress(_Shown):
    """How many of the chunks that were seen are over."""

    def __init__(self, queue: Queue, on: bool) -> None:
        super().__init__(on)
        self._queue = queue
        self._most = 0

    def __enter__(self) -> Self:
        self._start(f"chunks of {self._queue.name}", 0, "{task.completed:,}/{task.total:,}")
        self.show()
        return self

    def show(self) -> None:
        """Look at the counts, if they can be seen."""
        if self._bar is None:
            return
        try:
            stats = self._queue.stats()
        except FairwayError:
            return  # the work meets it too, and knows what to do about it
        left = stats.chunks_waiting + stats.chunks_leased
        self._most = max(self._most, left)
        self._bar.update(self._task, total=self._most, completed=self._most - left)

    def __exit__(self, *_: object) -> None:
        self.show()
        super().__exit__()


class Written(_Shown):
    """How many payloads of a producing job are written, as the object store lists them; nobody knows how many come."""

    def __init__(self, prefix: str, on: bool) -> None:
        super().__init__(on)
        self._prefix = prefix
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="fairway-written", daemon=True)

    def __enter__(self) -> Self:
        self._start("payloads written", None, "{task.completed:,}")
        if self._bar is not None:
            self._thread.start()
        return self

    def _look(self) -> None:
        pause = _LOOK_SECONDS
        while not self._over.wait(pause):
            began, count = time.monotonic(), 0
            try:
                for _ in ages(self._prefix):
                    count += 1
                    if self._over.is_set():
                        return
            except FairwayError:
                return  # the time goes on alone
            self._bar.update(self._task, completed=count)
            pause = max(_LOOK_SECONDS, 10 * (time.monotonic() - began))  # a long listing is a rare one

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._bar is not None:
            self._thread.join()
        super().__exit__()


class Steps(_Shown):
    """Which of some steps is being made."""

    def __init__(self, words: str, steps: int, on: bool) -> None:
        super().__init__(on)
        self._words, self._steps, self._made = words, steps, 0

    def __enter__(self) -> Self:
        self._start(self._words, self._steps, "{task.completed}/{task.total}")
        return self

    def __call__(self, step: str) -> None:
        """This step begins, and the one before is over."""
        self._made += 1
        if self._bar is not None:
            words = f"{self._words}: {step}"
            self._bar.update(self._task, description=words, completed=self._made - 1, refresh=True)
