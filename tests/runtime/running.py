"""A queue on a memory store whose faults a test decides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import fairway
from fairway.face.verbs import Verbs
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.numbers import Numbers
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.opening import writer
from fairway.runtime.running import Running
from fairway.store.memory import MemoryStore
from fairway.store.memory.shelf import Shelf


@contextmanager
def running(
    shelf: Shelf | None = None, store: MemoryStore | None = None
) -> Iterator[tuple[fairway.Queue, Running]]:
    """A queue and what runs it; the shelf outlives it."""
    run = Running("default", store or MemoryStore.open("default", shelf))
    with queue_on(run) as queue:
        yield queue, run


def acknowledges_all(numbers: Numbers) -> bool:
    """Whether every number that was given is told as received with the next call, as at rest it must be."""
    return numbers.client > 0 and numbers.received == numbers._last


@contextmanager
def queue_on(run: Running) -> Iterator[fairway.Queue]:
    """The queue that something runs."""
    queue = fairway.Queue("default", Verbs(ObstoreObjects(), writer, read), ThreadPort(run.host, run.close))
    try:
        yield queue
    finally:
        queue.close()
