"""sweep: objects that killed jobs left behind, of which it is certain that they belong to nothing.

Guards: only objects that this package named are judged, and one that a submission names, or may name, is never
removed: no other queue that shares the root loses any. What cannot be decided stays.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairway.errors import ObjectMissing
from fairway.runtime.objects import ObstoreObjects, ages, read
from fairway.runtime.urls import Place
from fairway.spark.batches import batch_of
from fairway.spark.places import batches_folder, folder_of, under
from fairway.spark.queues import hosting
from fairway.spark.results import kept_results
from fairway.spark.settings import beside, located

if TYPE_CHECKING:
    from fairway.face.queue import Queue
    from fairway.model.submission import Submission

_DAY = 86_400.0
# As places.task_prefix has it, with the number of a chunk; and perhaps the end of a result's name.
_PAYLOAD = re.compile(r"((_[^/]+)/(_[^/]+)/\d+\.\d+-\d+-[0-9a-f]+)/\d+(\.out\.[0-9a-f.]+)?")
_NOTE = re.compile(r"(_[^/]+)/commit\.([0-9a-f]+)")


def sweep(
    url: Place, *, queue: str = "default", objects: str | None = None, older_seconds: float = _DAY
) -> list[str]:
    """Remove what jobs of this queue left and nobody will name; gives the names.

    That is: payloads that no job came to submit, results of chunks that another attempt did or that are over without
    one, and results of rows that no submission of this queue names. `older_seconds` must be longer than a job or a
    micro-batch takes: what one that is running has written is not named yet.
    """
    where = objects or beside(located(url))
    before = time.time() - older_seconds
    with hosting(url, queue, create=False) as q:
        found = dict(ages(where))
        claims = _Claims(where, found)
        named = _Named(q)
    mine = batches_folder(url, queue) + "/"
    lately = {name.partition("/")[0] for name, made in found.items() if made >= before}
    gone: list[str] = []
    for name, made in found.items():
        if made >= before:
            continue
        payload = _PAYLOAD.fullmatch(name)
        if name.startswith(mine):
            useless = name.rpartition("/")[2] not in named.tokens
        elif payload is None or payload[2] in claims.unclear:
            continue  # somebody else's, or perhaps somebody's
        elif payload[1] in claims.runs:
            useless = bool(payload[4]) and named.is_over(name, claims.runs[payload[1]], payload[3])
        else:
            # Who writes there still may be the job that is about to submit it.
            useless = payload[2] not in lately
        if useless:
            gone.append(under(where, *name.split("/")))
    ObstoreObjects().remove(gone)
    return gone


class _Claims:
    """What jobs noted before they submitted. Names count below the root: it may be spelled in several ways."""

    def __init__(self, where: str, names: Iterable[str]) -> None:
        self.runs: dict[str, str] = {}  # prefix -> the run that was about to submit it
        self.unclear: set[str] = set()  # folders with a note that cannot be read
        for name in names:
            note = _NOTE.fullmatch(name)
            if note is None:
                continue
            try:
                prefixes = json.loads(read(under(where, *name.split("/"))))
                self.runs |= {_below(prefix, 3): note[2] for prefix in prefixes}
            except (ObjectMissing, ValueError):
                self.unclear.add(note[1])


class _Named:
    """What the submissions of a queue name."""

    def __init__(self, q: Queue) -> None:
        self.tokens: set[str] = set()  # of results of rows
        self._results: set[str] = set()  # of chunks
        self._done: set[str] = set()  # payloads that have one of these
        self._runs: dict[tuple[str, str], Submission] = {}  # by run and tenant's folder
        for one in q.submissions():
            run, space, _ = one.info.partition(b" ")
            if space:
                self._runs[run.decode("latin-1"), folder_of(one.tenant)] = one
            for result in kept_results(q, one):
                if result.object is not None:
                    self._results.add(_below(result.object, 4))
                elif (batch := batch_of(result.data)) is not None:
                    self.tokens.update(name.rpartition("/")[2] for name in batch.objects)
        self._done.update(name.rpartition(".out.")[0] for name in self._results)

    def is_over(self, result: str, run: str, tenant: str) -> bool:
        """Whether a result lost: its chunk was done by another attempt, or ended with its submission."""
        submission = self._runs.get((run, tenant))
        if submission is None or result in self._results:
            return False
        return submission.state != "active" or result.rpartition(".out.")[0] in self._done


def _below(name: str, parts: int) -> str:
    return "/".join(name.split("/")[-parts:])
