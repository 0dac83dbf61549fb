"""The verbs that look: one submission, its results, listings, counts, events.

Guards: what is shown was stored before; listings are read page by page, while they are iterated.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal

from fairway import limits
from fairway.engine.commands import (
    Consumers,
    ConsumerView,
    Explain,
    ListActive,
    ListDead,
    QueueStats,
    Show,
    Stats,
    Tenants,
    TenantView,
    Wait,
    Win,
    Winners,
)
from fairway.errors import BadArgument, WaitTimeout
from fairway.face import checks
from fairway.face.leasing import Fetch
from fairway.face.objects import Objects
from fairway.face.reads import ListEnded, ListEndedDead, ReadEvents
from fairway.face.results import Result, results_in_order
from fairway.face.steps import Ask, Do, Items, Listing, Steps
from fairway.model.event import Event, events_of
from fairway.model.submission import DeadChunk, Metadata, Submission, is_full
from fairway.strategy.terms import StrategyLike

if TYPE_CHECKING:
    import pyarrow

Shown = Literal["active", "completed", "failed", "cancelled", "ended"]
_STATES = ("active", "completed", "failed", "cancelled", "ended")
_ROWS = limits.LIST_ROWS_MAX


class WatchVerbs:
    """The verbs that change nothing."""

    _objects: Objects
    _fetch: Fetch | None

    def submission(self, submission: int | Submission) -> Steps[Submission]:
        """A submission as it is now, by its id; NotFound if there is none or its retention is over."""
        return (yield Ask(Show(checks.submission_id(submission))))

    def wait(self, submission: int | Submission, seconds: float | None = None) -> Steps[Submission]:
        """Wait until a submission has ended; WaitTimeout after `seconds` (None: as long as it takes)."""
        id = checks.submission_id(submission)
        limit = limits.WAIT_SECONDS_MAX
        time = limit if seconds is None else checks.number("seconds", seconds, 0.0, limit)
        while True:
            found: Submission = yield Ask(Wait(id, time))
            if found.state != "active":
                return found
            if seconds is not None:
                raise WaitTimeout(
                    f"submission {id} has not ended within {time:g} s; wait again", submission=found
                )

    def results(self, submission: int | Submission) -> Listing[Result]:
        """The registered results of a submission, in index order; chunks without one are left out."""
        return results_in_order(checks.submission_id(submission), self._fetch)

    def winners(
        self, submission: int | Submission, start: int = 0, count: int = limits.CHUNKS_MAX
    ) -> Listing[Win]:
        """Which attempts completed the chunks [start, start + count) of a submission, in index order."""
        first = checks.whole("start", start, 0, limits.CHUNKS_MAX)
        return _winners(
            checks.submission_id(submission), first, checks.whole("count", count, 0, limits.CHUNKS_MAX)
        )

    def read(self, result: Result) -> Steps[bytes]:
        """The bytes of a result, read from its object if it is one."""
        if not isinstance(result, Result):
            checks.refuse("result", "a Result", result)
        name = result.object
        if result.data is not None or name is None:
            return result.data or b""
        return (yield Do(lambda: self._objects.read(name)))

    def submissions(
        self, *, state: Shown | None = None, tenant: str | None = None, metadata: Metadata | None = None
    ) -> Listing[Submission]:
        """Submissions in id order: of a state ("ended": any of the three ends), a tenant, with metadata."""
        if state is not None and state not in _STATES:
            checks.refuse("state", " or ".join(map(repr, _STATES)), state)
        name = None if tenant is None else checks.tenant(tenant)
        pairs = checks.metadata(metadata)
        active = ListActive(name, pairs, limit=_ROWS) if state in (None, "active") else None
        ended = (
            None
            if state == "active"
            else ListEnded("" if state in (None, "ended") else state, name, pairs, limit=_ROWS)
        )
        return _merged(active, ended)

    def dead(self) -> Listing[DeadChunk]:
        """Every chunk that was given up: first those of active submissions, then those of ended ones."""
        return _dead()

    def events(self, after: int = 0) -> Listing[Event]:
        """The event log after a group number (`Event.number`), up to now."""
        return _events(checks.whole("after", after, 0, 2**63 - 1))

    def events_arrow(self, after: int = 0) -> Steps[pyarrow.Table]:
        """The event log as an Arrow table; needs the extra `fairway[arrow]`."""
        number = checks.whole("after", after, 0, 2**63 - 1)
        try:
            from fairway.face.arrow import batch_of, table_of
        except ImportError:
            raise BadArgument(
                "events_arrow needs pyarrow; install it with `pip install 'fairway[arrow]'`"
            ) from None
        batches = []
        for step in (listing := _events(number)):
            while isinstance(step, Ask):
                step = listing.send((yield step))
            if isinstance(step, Items) and step.items:
                batches.append(batch_of(step.items))
        return table_of(batches)

    def stats(self) -> Steps[QueueStats]:
        """Counts of the queue, true at rest; groups, calls and syncs count since the queue was opened."""
        return (yield Ask(Stats()))

    def tenants(self) -> Listing[TenantView]:
        """The tenants that have work, a weight or a pause, by name."""
        return _tenants()

    def consumers(self) -> Steps[list[ConsumerView]]:
        """The named consumers, by name."""
        return (yield Ask(Consumers()))

    def explain(self, strategy: StrategyLike | None = None, *, limit: int = 10) -> Steps[str]:
        """What a strategy would hand out next, and why others wait, in words."""
        return (yield Ask(Explain(checks.strategy(strategy), checks.whole("limit", limit, 1, _ROWS))))


def _merged(active: ListActive | None, ended: ListEnded | None) -> Listing[Submission]:
    """Both listings in id order; active ones are read first, so one that ends meanwhile is in the other."""
    after = 0
    while True:
        pages: list[list[Submission]] = []
        if active is not None:
            pages.append((yield Ask(ListActive(active.tenant, active.metadata, after, active.limit))))
        if ended is not None:
            pages.append(
                (yield Ask(ListEnded(ended.state, ended.tenant, ended.metadata, after, ended.limit)))
            )
        # Beyond the end of a full page the other one may not be believed yet.
        sure = min((page[-1].id if is_full(page, _ROWS) else inf for page in pages), default=inf)
        rows = {row.id: row for page in pages for row in page if row.id <= sure}
        yield Items([rows[id] for id in sorted(rows)])
        if sure == inf:
            return
        after = int(sure)


def _winners(id: int, start: int, count: int) -> Listing[Win]:
    shown: Submission = yield Ask(Show(id))
    end = min(start + count, shown.total)
    while start < end:
        some = min(limits.PAGE_CHUNKS, end - start)
        yield Items((yield Ask(Winners(id, start, some))))
        start += some


def _dead() -> Listing[DeadChunk]:
    after = 0
    while True:
        chunks: list[DeadChunk] = yield Ask(ListDead(after, _ROWS))
        yield Items(chunks)
        if len(chunks) < _ROWS:
            break
        after = chunks[-1].submission
    after = 0
    while True:
        last, chunks = yield Ask(ListEndedDead(after))
        yield Items(chunks)
        if last is None:
            return
        after = last


def _tenants() -> Listing[TenantView]:
    after: str | None = None
    while True:
        views: list[TenantView] = yield Ask(Tenants(after, _ROWS))
        yield Items(views)
        if len(views) < _ROWS:
            return
        after = views[-1].name


def _events(after: int) -> Listing[Event]:
    while True:
        read = ReadEvents(after)
        batches: list[tuple[int, float, bytes]] = yield Ask(read)
        yield Items([event for number, _, body in batches for event in events_of(number, body)])
        if len(batches) < read.limit:
            return
        after = batches[-1][0]
