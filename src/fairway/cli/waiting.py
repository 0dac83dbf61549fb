"""Waiting at a terminal until submissions have ended, with a bar that shows how far they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fairway.cli import saying
from fairway.errors import WaitTimeout
from fairway.face.queue import Queue
from fairway.model.submission import Submission

_LOOK_SECONDS = 0.5  # the bar moves; an end is heard of at once


def until_ended(
    queue: Queue, submissions: Sequence[Submission], seconds: float | None, quiet: bool
) -> list[Submission]:
    """The submissions as they ended; WaitTimeout if one has not in time."""
    until = None if seconds is None else time.monotonic() + seconds
    ended: list[Submission] = []
    with saying.progress(quiet) as bar:
        task = bar.add_task("waiting", total=sum(one.total for one in submissions))
        finished = 0
        for one in submissions:
            while one.state == "active":
                left = _LOOK_SECONDS if until is None else min(_LOOK_SECONDS, until - time.monotonic())
                one = _waited(queue, one, max(0.0, left))
                bar.update(task, completed=finished + one.done + one.failed)
                if one.state == "active" and until is not None and time.monotonic() >= until:
                    raise WaitTimeout(
                        f"submission {one.id} has not ended in time ({one.done:,} of {one.total:,} chunks are done);"
                        f" wait again with: fairway status PLACE {one.id} --wait"
                    )
            finished += one.total
            ended.append(one)
    return ended


def _waited(queue: Queue, one: Submission, seconds: float) -> Submission:
    try:
        return queue.wait(one.id, seconds)
    except WaitTimeout as error:
        found = error.details["submission"]
        assert isinstance(found, Submission)
        return found
