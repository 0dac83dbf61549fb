"""When `process` starts its query again, when it gives up, and what it tells. No Spark is needed."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

import fairway
from fairway import limits
from fairway.face.batches import Completion, finish_command
from fairway.spark import processing
from fairway.spark.processing import _Running, brief

WRAPPED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "job.py", line 21, in udf
    raise ValueError("not 13")
ValueError: not 13
\tat org.apache.spark.Somewhere
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Logical Plan:
~Project [x#1L]"""


class Query:
    """A query that does some batches and then ends, by an error if it has one."""

    def __init__(self, run: int, batches: int, error: str | None) -> None:
        self.error = error
        self.recentProgress = [
            {"runId": str(run), "batchId": at, "sources": [{"numInputRows": 3}]} for at in range(batches)
        ]

    def awaitTermination(self, seconds: float) -> bool:
        if self.error is not None:
            raise PySparkException(self.error)
        return True

    def stop(self) -> None:
        pass


class Story:
    """Starts of a query, each with the batches it does and what it ends with; the last comes again and again."""

    def __init__(self, *starts: tuple[int, str | None]) -> None:
        self.starts = starts
        self.told: list[str] = []  # the error that each start was told of

    def __call__(self, queue: Any, error: str) -> Any:
        self.told.append(error)
        batches, ends = self.starts[min(len(self.told), len(self.starts)) - 1]
        return Query(len(self.told), batches, ends)

    def show(self) -> None:
        """Where a progress bar would be."""


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing.time, "sleep", lambda seconds: None)


def run(story: Story) -> fairway.spark.Processed:
    bar: Any = story
    queue: Any = None
    return _Running(queue, story, bar, None, None).run()


def test_a_query_that_goes_on_between_its_failures_is_started_again_for_ever() -> None:
    """Also if more comes than it does: what is left never gets less."""
    many = 3 * limits.PROCESS_RESTARTS_MAX
    done = run(Story(*[(1, "an executor was lost")] * many, (2, None)))
    assert (done.batches, done.inputs, done.restarts) == (many + 2, 3 * (many + 2), many)


def test_a_query_that_never_does_a_batch_is_given_up_with_its_error() -> None:
    story = Story((1, "once"), (0, WRAPPED))
    with pytest.raises(fairway.OurError, match=r"no batch was done in between; the last time: .*\n.*not 13"):
        run(story)
    assert len(story.told) == limits.PROCESS_RESTARTS_MAX + 1


def test_a_batch_with_too_many_inline_results_is_made_again_halved() -> None:
    """And what the caller reads of it names the cure that spares the restarts."""
    results = [b"x" * limits.PAYLOAD_BYTES_MAX] * (limits.GROUP_BYTES_MAX // limits.PAYLOAD_BYTES_MAX + 1)
    with pytest.raises(fairway.TooLarge, match=r"let a batch have fewer chunks \(max_chunks") as caught:
        finish_command("c", 1, "", [Completion(["r"] * len(results), results=results)], [], None, None, False)
    done = run(Story((0, f"fairway.errors.TooLarge: {caught.value}"), (2, None)))
    assert (done.batches, done.restarts, done.errors) == (2, 1, (f"TooLarge: {caught.value}",))


def test_every_start_is_told_what_the_one_before_ended_with(caplog: pytest.LogCaptureFixture) -> None:
    story = Story((1, "first"), (0, WRAPPED), (0, None))
    done = run(story)
    last = "ValueError: not 13"
    assert story.told[:2] == ["", "first"] and story.told[2].endswith(last)
    assert done.errors == tuple(story.told[1:]), "and so is the caller"
    assert [record.name for record in caplog.records] == ["fairway.spark"] * 2 and last in caplog.text


def test_an_error_is_told_without_what_spark_puts_around_it() -> None:
    assert brief(PySparkException(WRAPPED)).splitlines() == [
        "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:",
        "ValueError: not 13",
    ]
    assert brief(fairway.LeaseLost("run again")) == "LeaseLost: run again"
    assert brief(PySparkException("[STREAM_FAILED] it ended")).endswith("[STREAM_FAILED] it ended")
    assert len(brief(PySparkException("x" * 10_000))) < 2000
