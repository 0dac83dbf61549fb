"""Closing a bucket queue whose storage does not answer: at once, and without a storm of statements."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import fairway
from fairway.bucket import statements as s
from fairway.bucket.statements import UNKNOWN
from fairway.errors import Closed, OutcomeUnknown
from fairway.runtime.bucket.running import run
from fairway.store.memory.buckets import MemoryBuckets


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def opened(answer: Callable[[Callable[[Any], Any], Any], Any]) -> fairway.BucketQueue:
    """A queue whose storage answers in this way, election apart."""
    queue = fairway.open(":memory:", "events", kind="bucket")
    queue.put(b"m")
    storage = queue._verbs._desk._storage
    execute = storage.execute

    def execute_so(statement: s.Statement) -> Any:
        if isinstance(statement, s.ReadRepairer | s.Beat):
            return execute(statement)
        return answer(execute, statement)

    storage.execute = execute_so
    return queue


def closed_in_time(queue: fairway.BucketQueue) -> None:
    closing = threading.Thread(target=queue.close, daemon=True)
    closing.start()
    closing.join(30.0)
    assert not closing.is_alive(), "it hangs"


def test_a_queue_is_closed_while_its_storage_knows_nothing() -> None:
    asked: list[s.Statement] = []

    def unknown(_: Any, statement: s.Statement) -> Any:
        asked.append(statement)
        return UNKNOWN

    queue = opened(unknown)
    until(lambda: bool(asked))
    before = len(asked)
    closed_in_time(queue)
    assert len(asked) - before < 5, "it stops between two steps"


def test_a_queue_is_closed_while_a_statement_of_its_repairer_hangs() -> None:
    began, end = threading.Event(), threading.Event()

    def hanging(execute: Callable[[Any], Any], statement: s.Statement) -> Any:
        began.set()
        end.wait(120.0)
        return execute(statement)

    queue = opened(hanging)
    assert began.wait(30.0)
    try:
        closed_in_time(queue)
    finally:
        end.set()


class ClosedInDoubt(MemoryBuckets):
    """It is closed after a write that it did not answer."""

    def execute(self, statement: s.Statement) -> Any:
        if isinstance(statement, s.Bury):
            return UNKNOWN
        raise Closed()


def test_a_call_that_a_close_ends_in_doubt_is_told_as_unknown() -> None:
    def machine() -> s.Machine[None]:
        yield s.Bury(b"g" * 16, b"b" * 16, b"u" * 16)
        yield s.ReadDead(b"g" * 16, b"", 1)

    with pytest.raises(OutcomeUnknown):
        run(machine(), ClosedInDoubt())
