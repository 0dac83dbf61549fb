"""`fairway explain`: what a strategy would hand out next, and why others wait."""

from __future__ import annotations

from pathlib import Path

import fairway


def explain(
    file: Path,
    strategy: str | None = None,
    /,
    *,
    queue: str = "default",
    limit: int = 10,
    host: bool = False,
) -> None:
    """Say what a strategy would hand out next, and why others wait. It changes nothing.

    Parameters
    ----------
    file
        The queue's file.
    strategy
        A strategy's text, such as 'MaxSimultaneous("tenant", 5, Fair)'; the queue's own if left out.
    queue
        The queue in the file.
    limit
        How many submissions to tell of, of each sort.
    host
        Open the file even if no other process has it open.
    """
    with fairway.open(file, queue, create=False, host=host) as opened:
        print(opened.explain(strategy, limit=limit))
