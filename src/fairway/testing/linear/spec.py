"""One submission as its callers may see it: what each call may answer, and what is so afterwards.

Guards: it is written from the promises, not from the engine: a chunk has one holder, only the latest receipt counts, a
lease lasts until its deadline and no longer, an end is final.

Time passes between two calls. A lease or a back-off whose time may be over, and may not, gives two states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf
from typing import NamedTuple

import msgspec

SLACK_SECONDS = 0.02  # the queue and who records it read their clocks one after the other

Receipt = tuple[int, int]  # the owner's epoch, and the reservation's count
NOBODY: Receipt = (0, 0)

WAITING, LEASED, RESTING = "waiting", "leased", "resting"  # resting: in back-off
DONE, DEAD, SKIPPED = "done", "dead", "skipped"
ABSENT, ACTIVE = "absent", "active"


class Pick(NamedTuple):
    """A chunk that a reserve handed out."""

    chunk: int
    receipt: Receipt
    attempt: int


class Op(msgspec.Struct, frozen=True):
    """One call as far as it concerns one submission. A call of several chunks is several of these."""

    verb: str
    begin: float
    end: float = inf  # infinite: nobody saw an answer, so it may have its effect at any later time, or never
    answer: object = None
    request: int = 0  # its place among the requests of the history
    picks: tuple[Pick, ...] = ()
    short: bool = False  # a reserve that got less than it asked for: nothing more was there
    index: int = 0
    receipt: Receipt = NOBODY
    deadline: float = 0.0
    seconds: float = 0.0  # that a lease was asked for, or the back-off of a fail; negative: the queue's own
    retry: bool = True
    most: int = 0

    @property
    def known(self) -> bool:
        return self.end < inf


class Chunk(NamedTuple):
    """One chunk. The receipt is its holder's, the winner's, or of the lease that ran out and was not replaced."""

    kind: str
    receipt: Receipt = NOBODY
    low: float = inf  # the earliest and the latest time at which a lease or a back-off is over
    high: float = inf
    attempts: int = 0
    hidden: bool = False  # nobody saw the lease: it may go back uncounted


class State(NamedTuple):
    """The submission: absent, active, or how it ended."""

    life: str
    chunks: tuple[Chunk, ...] = ()


class Spec:
    """What one submission may do."""

    def __init__(self, total: int, attempts_max: int, policy: str) -> None:
        self._total, self._attempts_max, self._policy = total, attempts_max, policy
        self.first = State(ABSENT)

    def after(self, state: State, op: Op, earliest: float, latest: float) -> Iterator[State]:
        """Every state that may follow if the call takes place between these two times with its answer."""
        for before in self._lapsed(state, earliest, latest):
            match op.verb:
                case "submit":
                    if before.life == ABSENT:
                        yield State(ACTIVE, (Chunk(WAITING),) * self._total)
                case "reserve":
                    yield from self._reserved(before, op)
                case "cancel":
                    yield from self._cancelled(before, op)
                case "show":
                    if not op.known or op.answer == shown(before):
                        yield before
                case _:
                    answers, settled = self._settled(before, op)
                    if not op.known or op.answer in answers:
                        yield settled

    # -- time

    def _lapsed(self, state: State, earliest: float, latest: float) -> list[State]:
        """The states that time alone may have led to; the chunks of one reservation with one deadline end together."""
        due: dict[tuple[float, float, Receipt | int], list[int]] = {}
        for index, chunk in enumerate(state.chunks):
            if chunk.kind in (LEASED, RESTING) and chunk.low <= latest + SLACK_SECONDS:
                together = chunk.receipt if chunk.kind == LEASED else index
                due.setdefault((chunk.low, chunk.high, together), []).append(index)
        found = [state]
        for (_, high, _), indexes in sorted(due.items(), key=lambda item: item[0][:2]):
            over = high + SLACK_SECONDS < earliest
            found = [one for before in found for one in self._lapse(before, indexes, over)]
        return found

    def _lapse(self, state: State, indexes: list[int], over: bool) -> list[State]:
        if state.life != ACTIVE:
            return [state]  # the end of another lease has ended them all
        after = [] if over else [state]
        chunks = [state.chunks[index] for index in indexes]
        after.append(self._closed(_with(state, indexes, [self._spent(chunk) for chunk in chunks])))
        if chunks[0].hidden:
            after.append(_with(state, indexes, [Chunk(WAITING, attempts=chunk.attempts) for chunk in chunks]))
        return after

    def _spent(self, chunk: Chunk) -> Chunk:
        """A chunk whose time is over."""
        if chunk.kind == RESTING:
            return Chunk(WAITING, attempts=chunk.attempts)
        attempts = chunk.attempts + 1
        if attempts >= self._attempts_max:
            return Chunk(DEAD, attempts=attempts)
        return Chunk(WAITING, chunk.receipt, attempts=attempts)

    def _closed(self, state: State) -> State:
        """The submission after a chunk was done or given up: it may have ended with it."""
        kinds = {chunk.kind for chunk in state.chunks}
        if (DEAD in kinds and self._policy == "fail_fast") or kinds == {DONE, DEAD} or kinds == {DEAD}:
            return _ended(state, "failed")
        return _ended(state, "completed") if kinds == {DONE} else state

    # -- calls

    def _reserved(self, state: State, op: Op) -> Iterator[State]:
        if not op.known:
            yield from self._reserved_unseen(state, op)
            return
        if op.picks and (state.life != ACTIVE or not _as_long_as_asked(op)):
            return
        chunks = list(state.chunks)
        for pick in op.picks:
            old = chunks[pick.chunk] if pick.chunk < len(chunks) else Chunk(DEAD)
            if old.kind != WAITING or pick.attempt != old.attempts + 1:
                return
            chunks[pick.chunk] = Chunk(LEASED, pick.receipt, op.deadline, op.deadline, old.attempts)
        if not op.short or all(chunk.kind != WAITING for chunk in chunks):
            yield State(state.life, tuple(chunks))

    def _reserved_unseen(self, state: State, op: Op) -> Iterator[State]:
        """Nobody knows what it got, for how long, or whether it was given back."""
        waiting = [index for index, chunk in enumerate(state.chunks) if chunk.kind == WAITING]
        for many in range(1, min(op.most, len(waiting)) + 1):
            for some in combinations(waiting, many):
                olds = [state.chunks[index] for index in some]
                held = [Chunk(LEASED, (-1, op.request), -inf, inf, old.attempts, True) for old in olds]
                yield _with(state, some, held)

    def _cancelled(self, state: State, op: Op) -> Iterator[State]:
        if state.life == ACTIVE:
            if not op.known or op.answer == "cancelled":
                yield _ended(state, "cancelled")
        elif state.life != ABSENT and (not op.known or op.answer == "already_ended"):
            yield state

    def _settled(self, state: State, op: Op) -> tuple[tuple[str, ...], State]:
        """What a complete, fail, release or renew may answer, and the state after it."""
        chunk = state.chunks[op.index] if op.index < len(state.chunks) else Chunk(DEAD)
        mine = chunk.receipt == op.receipt
        if op.verb == "complete":
            if mine and chunk.kind == DONE:
                return ("already",), state
            if state.life != ACTIVE:
                return ("ended",), state
            if mine and chunk.kind in (LEASED, WAITING):
                won = Chunk(DONE, op.receipt, attempts=chunk.attempts)
                return ("done",), self._closed(_with(state, [op.index], [won]))
            return ("lost",), state
        if state.life != ACTIVE:
            return ("ended", "lost"), state  # what ended long ago is no longer told apart
        if not mine or chunk.kind != LEASED:
            return ("lost",), state
        if op.verb == "release":
            return ("released",), _with(state, [op.index], [Chunk(WAITING, attempts=chunk.attempts)])
        if op.verb == "renew":
            if op.known and not _as_long_as_asked(op):
                return (), state
            low, high = (op.deadline, op.deadline) if op.known else (op.begin + op.seconds, inf)
            return ("renewed",), _with(state, [op.index], [chunk._replace(low=low, high=high)])
        return self._failed(state, op, chunk)

    def _failed(self, state: State, op: Op, chunk: Chunk) -> tuple[tuple[str, ...], State]:
        attempts = chunk.attempts + 1
        if not op.retry or attempts >= self._attempts_max:
            return ("dead",), self._closed(_with(state, [op.index], [Chunk(DEAD, attempts=attempts)]))
        if not op.seconds:
            return ("retrying",), _with(state, [op.index], [Chunk(WAITING, attempts=attempts)])
        low, high = (op.begin, inf) if op.seconds < 0 else (op.begin + op.seconds, op.end + op.seconds)
        return ("retrying",), _with(state, [op.index], [Chunk(RESTING, NOBODY, low, high, attempts)])


def _as_long_as_asked(op: Op) -> bool:
    """Whether a lease is told to last as long as was asked for, from some moment of the call."""
    if not op.seconds:
        return True  # the queue's own
    return op.begin + op.seconds - SLACK_SECONDS <= op.deadline <= op.end + op.seconds + SLACK_SECONDS


def shown(state: State) -> tuple[str, int, int, int]:
    """What a caller who looks is shown: the state, and how many are done, dead and leased (if it has not ended)."""
    kinds = [chunk.kind for chunk in state.chunks]
    leased = kinds.count(LEASED) if state.life == ACTIVE else 0
    return state.life, kinds.count(DONE), kinds.count(DEAD), leased


def _with(state: State, indexes: Sequence[int], chunks: Sequence[Chunk]) -> State:
    """The state with some chunks replaced."""
    new = list(state.chunks)
    for index, chunk in zip(indexes, chunks, strict=True):
        new[index] = chunk
    return State(state.life, tuple(new))


def _ended(state: State, life: str) -> State:
    return State(life, tuple(c if c.kind in (DONE, DEAD) else Chunk(SKIPPED) for c in state.chunks))
