"""A run in memory: which of its chunks wait, which are out, which came back.

Guards: every chunk is in exactly one state of lifecycle.CHUNK; `ready` counts those that can be handed out now.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import msgspec
from typing_extensions import override

from fairway.engine.done import Done, NoneDone
from fairway.engine.holds import Hold
from fairway.engine.tenant import Tenant
from fairway.limits import PASSED_CHUNKS_MAX
from fairway.model.dice import Shuffle, mix
from fairway.model.submission import Described, State
from fairway.strategy.candidate import Candidate


class Tried(msgspec.Struct, array_like=True):
    """What is known of a chunk that was handed out and not completed."""

    attempts: int
    epoch: int = 0  # of the latest reservation, if its receipt may still complete the chunk
    count: int = 0
    due: float = 0.0  # in back-off until then
    error: str = ""


class DeadMark(msgspec.Struct, array_like=True):
    """What is kept of a chunk that was given up."""

    attempts: int
    at: float
    error: str


class _Nothing(dict[int, Any]):
    """The map of a run that has none: shared by all such runs, so nobody may write to it."""

    @override
    def __setitem__(self, key: int, value: object) -> None:
        raise AssertionError("write through the run's own methods")


AWAY = 0  # in memory and not for handing out: parked, or above what the window holds
TRACKED = 1
FETCHED = 2  # beside the window

_NOTHING: dict[int, Any] = _Nothing()
_NO_INDEXES: set[int] = frozenset[int]()  # pyright: ignore[reportAssignmentType]
_NONE_DONE = NoneDone()
_NO_GAPS: list[int] = ()  # pyright: ignore[reportAssignmentType]


class Run(Candidate, eq=False, gc=False):
    """The memory form of a submission that is active, or that ended with leases still out.

    Most runs never have trouble and many are short, so maps and sets are made when they are first needed.
    Nothing that a run holds leads back to it, so the collector need not walk over a million of them.
    Fields that a reserve or complete asks for stand together: a run of many is in no cache, and is read line by line.
    """

    described: Described
    owner: Tenant
    total: int
    pass_: int
    seed: int
    next: int = 0  # chunks below it were handed out in index order, or by the shuffle
    out: dict[int, Hold] = _NOTHING
    tried: dict[int, Tried] = _NOTHING
    returned: set[int] = _NO_INDEXES  # handed out before, can be handed out again
    shuffled: int = 0  # places of the permutation below it were handed out, or lie below `next`
    marked: bool = False  # its progress is in State.dirty, so it need not be marked again
    done: Done = _NONE_DONE
    state: State = "active"
    shuffle: Shuffle | None = None
    dead: dict[int, DeadMark] = _NOTHING
    standing: int = 0  # to the window: AWAY, TRACKED or FETCHED
    life: int = 1
    paused: bool = False
    due: float = 0.0  # not_before, until it is reached
    ended: float = 0.0
    error: str = ""
    error_index: int = -1
    as_of: int = 0
    gaps: list[int] = _NO_GAPS  # a heap over `returned`, with stale entries

    @classmethod
    def new(cls, id: int, pass_: int, described: Described, owner: Tenant, seed: int) -> Run:
        """A run none of whose chunks was ever handed out."""
        d = described
        return cls(id, d.tenant, d.priority, d.metadata, d.total, False, d, owner, d.total, pass_, seed)

    # -- handing out

    def take(self, n: int, hold: Hold) -> None:
        """Hand out the next n <= ready chunks: returned ones first, then in index (or shuffled) order."""
        self.ready -= n
        wanted = hold.shuffled
        spans, run_id, out = hold.spans, self.id, self.out
        if out is _NOTHING:
            out = self.out = {}
        if n == 1 and not (
            hold.shuffled
            or self.returned
            or self.shuffled
            or self.tried
            or (spans and spans[-1][0] == run_id)
        ):
            index = self.next  # the usual single pick, without the questions below
            self.next = index + 1
            out[index] = hold
            spans.append((run_id, index, 1, 1))
            return
        while n:
            if self.returned:
                index, many = self._lowest_returned(), 1
            elif wanted or self.shuffled:
                index, shuffled = self._next_of_both(wanted)
                many = 1
                if shuffled is not hold.shuffled:
                    hold.turn(shuffled)
            else:
                index, many = self.next, min(n, self.total - self.next)
                self.next += many
            tried = self.tried.get(index) if self.tried else None
            attempt = 1 if tried is None else tried.attempts + 1
            last = spans[-1] if len(spans) > hold.closed else None
            if last is not None and last[0] == run_id and last[1] + last[2] == index and last[3] == attempt:
                spans[-1] = (run_id, last[1], last[2] + many, attempt)
            else:
                spans.append((run_id, index, many, attempt))
            for i in range(index, index + many):
                out[i] = hold
            n -= many

    def own_out(self) -> dict[int, Hold]:
        """What is out, to be written to."""
        if self.out is _NOTHING:
            self.out = {}
        return self.out

    def own_done(self) -> Done:
        """What is done, to be written to."""
        if self.done is _NONE_DONE:
            self.done = Done()
        return self.done

    def _lowest_returned(self) -> int:
        while True:
            index = heappop(self.gaps)
            if index in self.returned:
                self.returned.discard(index)
                return index

    def _next_of_both(self, shuffled: bool) -> tuple[int, bool]:
        """The next chunk that was handed out in neither order, and in which of them it was found.

        Many in a row that the other order had are not passed over: then the next one of that order is as good. A
        cursor moves only by what it found, so that a replay moves it alike.
        """
        shuffle = self._permutation()
        ahead, place = self.next, self.shuffled
        while True:
            for _ in range(PASSED_CHUNKS_MAX):
                if shuffled:
                    index, place = shuffle.at(place), place + 1
                    if index >= self.next:
                        self.shuffled = place
                        return index, True
                else:
                    index, ahead = ahead, ahead + 1
                    if shuffle.place(index) >= self.shuffled:
                        self.next = ahead
                        return index, False
            shuffled = not shuffled

    def _permutation(self) -> Shuffle:
        if self.shuffle is None:
            self.shuffle = Shuffle.seeded(self.total, mix(self.seed ^ self.id))
        return self.shuffle

    def is_fresh(self, index: int) -> bool:
        """Whether a chunk was never handed out."""
        if index < self.next:
            return False
        return not self.shuffled or self._permutation().place(index) >= self.shuffled

    def retake(self, start: int, count: int, shuffled: bool) -> None:
        """Replay of `take` for chunks [start, start + count): the same cursors, without a choice."""
        for index in range(start, start + count):
            tried = self.tried.get(index)
            if tried is not None:
                tried.due = 0.0
            if index in self.returned:
                self.returned.discard(index)
            elif self.is_fresh(index):
                if shuffled:
                    self.shuffled = self._permutation().place(index) + 1
                else:
                    self.next = index + 1

    # -- coming back

    def give_back(self, index: int) -> None:
        """A chunk that is out or in back-off can be handed out again."""
        self.put_back(index)
        if self.gaps is _NO_GAPS:
            self.gaps = []
        heappush(self.gaps, index)
        self.ready += 1
        if len(self.gaps) > 2 * len(self.returned) + 64:  # stale entries must not pile up
            self.gaps = list(self.returned)
            heapify(self.gaps)

    def put_back(self, index: int) -> None:
        """A chunk was handed out before and is not out; `gaps` is brought up to date by the caller."""
        if self.returned is _NO_INDEXES:
            self.returned = set()
        self.returned.add(index)

    def note(self, index: int, tried: Tried) -> None:
        """What is known of a chunk that came back."""
        if self.tried is _NOTHING:
            self.tried = {}
        self.tried[index] = tried

    def bury(self, index: int, mark: DeadMark) -> None:
        """The chunk is given up."""
        self.tried.pop(index, None)
        if self.dead is _NOTHING:
            self.dead = {}
        self.dead[index] = mark
        if self.error_index < 0:
            self.error, self.error_index = mark.error, index

    def withdraw(self, index: int) -> bool:
        """A chunk that waits is no longer to be handed out; False if it was not waiting."""
        if index not in self.returned:
            return False
        self.returned.discard(index)
        self.ready -= 1
        return True

    # -- counts

    @property
    @override
    def waiting(self) -> int:
        if self.state != "active":
            return 0
        return self.ready + self.backing_off if self.tried else self.ready

    @property
    def level(self) -> tuple[int, int]:
        return self.pass_, self.id

    @property
    def backing_off(self) -> int:
        return sum(1 for tried in self.tried.values() if tried.due) if self.tried else 0

    @property
    def unfinished(self) -> int:
        return self.total - self.done.count - len(self.dead)

    def attempts(self, index: int) -> int:
        """How often a chunk was handed out and came back counted."""
        tried = self.tried.get(index)
        return 0 if tried is None else tried.attempts
