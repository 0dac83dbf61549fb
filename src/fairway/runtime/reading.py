"""Reads that are answered from the store, for `fairway.face.reads`.

Guards: it is called when everything executed before the read is stored.
"""

from __future__ import annotations

from typing import Any

from fairway.engine.thaw import decode_described, thaw
from fairway.engine.views import dead_of, submission_of
from fairway.errors import NotFound
from fairway.face.reads import Describe, ListEnded, ListEndedDead, Read, ReadEvents, ReadResults
from fairway.model.submission import DeadChunk, cut
from fairway.store.port import Store


def answer(store: Store, read: Read) -> Any:
    """The value that the read's docstring promises. Blocks on the store."""
    match read:
        case ListEnded():
            runs = store.ended(read.state, read.tenant, read.metadata, read.after, read.limit)
            return list(cut(submission_of(thaw(run, 0)) for run in runs))
        case ListEndedDead():
            return _ended_dead(store, read)
        case Describe():
            run = store.run(read.id)
            if run is None:
                raise NotFound(f"there is no submission {read.id} (or it ended and its retention is over)")
            return decode_described(run.body)
        case ReadResults():
            return store.results(read.id, read.first_min, read.limit, read.bytes_max)
        case ReadEvents():
            return store.events(read.after, read.limit)
        case _:
            raise AssertionError(f"no answer to {type(read).__name__}")


def _ended_dead(store: Store, read: ListEndedDead) -> tuple[int | None, list[DeadChunk]]:
    runs = store.ended_failed(read.after, read.limit)
    dead = [chunk for run in runs for chunk in dead_of(thaw(run, 0))]
    return (runs[-1].id if len(runs) >= read.limit else None), dead
