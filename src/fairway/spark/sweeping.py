"""sweep: objects that killed jobs left behind and that belong to nothing.

Guards: an object that a submission names, or may name, is never removed; nor is one that is young.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from fairway.errors import FairwayError
from fairway.runtime.objects import ObstoreObjects, ages, read
from fairway.spark.batches import batch_of
from fairway.spark.places import under
from fairway.spark.queues import hosting
from fairway.spark.settings import beside, located

_DAY = 86_400.0


def sweep(
    url: str, *, queue: str = "default", objects: str | None = None, older_seconds: float = _DAY
) -> list[str]:
    """Remove payloads that no job submitted and results that were not registered; gives their names.

    Only objects older than `older_seconds` go: a job that is running has younger ones.
    """
    where = objects or beside(located(url))
    before = time.time() - older_seconds
    found = [(name, made) for name, made in ages(where) if name]
    claimed = set(_claimed(where, [name for name, _ in found]))
    old = [name for name, made in found if made < before]
    with hosting(url, queue) as q:
        registered = _registered(q)
    gone: list[str] = []
    for name in old:
        full = under(where, *name.split("/"))
        payload, out, _ = full.partition(".out.")
        if name.startswith("batches/") or out:
            useless = full not in registered
        elif name.rpartition("/")[2].startswith("commit."):
            continue
        else:
            useless = payload.rpartition("/")[0] not in claimed
        if useless:
            gone.append(full)
    ObstoreObjects().remove(gone)
    return gone


def _claimed(where: str, names: list[str]) -> Iterator[str]:
    """The prefixes that jobs were about to submit."""
    for name in names:
        if name.rpartition("/")[2].startswith("commit."):
            try:
                yield from json.loads(read(under(where, *name.split("/"))))
            except (FairwayError, ValueError):
                continue


def _registered(q: object) -> set[str]:
    """The result objects that the queue names."""
    from fairway.face.queue import Queue

    assert isinstance(q, Queue)
    found: set[str] = set()
    for one in q.submissions():
        for result in q.results(one.id) if one.done else ():
            if result.object is not None:
                found.add(result.object)
            elif (batch := batch_of(result.data)) is not None:
                found.update(batch.objects)
    return found
