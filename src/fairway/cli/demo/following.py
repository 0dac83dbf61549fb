"""Bars that follow the work: a queue's own counts, looked at a few times a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

import fairway

_LOOK_SECONDS = 0.3


class _Counted(MofNCompleteColumn):
    """How many chunks of all; nothing for a stage that has no chunks to count."""

    def render(self, task: Task) -> Text:
        return super().render(task) if (task.total or 0) > 1 else Text()


def bars(console: Console) -> Progress:
    """A bar per stage."""
    return Progress(
        TextColumn("{task.description:<38}"),
        BarColumn(bar_width=24),
        _Counted(),
        TimeElapsedColumn(),
        console=console,
        refresh_per_second=4,
    )


@contextmanager
def stage(progress: Progress, name: str) -> Iterator[None]:
    """A stage that is over when it is over."""
    task = progress.add_task(name, total=None)
    yield
    progress.update(task, total=1, completed=1)


@contextmanager
def following(progress: Progress, name: str, queue: fairway.Queue, chunks: int) -> Iterator[None]:
    """A stage that is as far as the queue says."""
    task = progress.add_task(name, total=chunks)
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_SECONDS):
            stats = queue.stats()
            progress.update(task, completed=chunks - stats.chunks_waiting - stats.chunks_leased)

    watcher = threading.Thread(target=look, name="fairway-demo-bar", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    progress.update(task, completed=chunks)
