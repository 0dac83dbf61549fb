"""Every verb of a queue, as steps; `fairway.face.queue` makes the blocking and the awaiting form of them."""

from __future__ import annotations

from collections.abc import Callable

from fairway.face.keeping import KeptPages
from fairway.face.leasing import Fetch
from fairway.face.objects import Objects
from fairway.face.steering import SteerVerbs
from fairway.face.submitting import SubmitVerbs
from fairway.face.watching import WatchVerbs
from fairway.face.working import WorkVerbs


class Verbs(SubmitVerbs, WorkVerbs, WatchVerbs, SteerVerbs):
    """The verbs of one open queue."""

    def __init__(
        self,
        objects: Objects,
        writer: Callable[[], int],
        fetch: Fetch | None,
        worker: Callable[[], int] = lambda: 0,
    ) -> None:
        self._objects = objects
        self._writer = writer  # numbers that no other process and no earlier call has
        self._fetch = fetch  # how a lease reads its own payload; None where that would block an event loop
        self._worker = worker  # which thread or task asks
        self._epochs: dict[str, int] = {}
        self._kept = KeptPages()
