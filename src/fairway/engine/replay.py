"""Replaying the journal onto the objects that were read at a start.

Guards: a record changes only what is older than it: every object says as of which group it was written.
"""

from __future__ import annotations

from fairway.engine.holds import Hold
from fairway.engine.records import (
    Answered,
    Completed,
    Died,
    Leased,
    Record,
    Renewed,
    Returned,
    Settled,
    Tallied,
    Tallies,
    Turned,
)
from fairway.engine.run import DeadMark, Run, Tried
from fairway.engine.state import State
from fairway.engine.tenant import Tenant
from fairway.limits import PAGE_CHUNKS
from fairway.model.stored import Kind


class Replay:
    """A start in progress: the state so far, and leases of runs that are not active."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.ghosts: dict[int, dict[int, Hold]] = {}

    def out_of(self, id: int) -> dict[int, Hold]:
        """What is leased of a run, active or not."""
        run = self.state.runs.get(id)
        return run.own_out() if run is not None else self.ghosts.setdefault(id, {})

    def record(self, number: int, record: Record) -> None:
        """Apply one record of a group."""
        match record:
            case Leased():
                self._leased(number, record)
            case Renewed():
                self._renewed(number, record)
            case Completed():
                self._completed(number, record)
            case Returned():
                self._returned(number, record)
            case Died():
                self._died(number, record)
            case Settled():
                for id, start, count in record.spans:
                    self._drop(number, id, start, count, record.count)
            case Turned():
                for row in record.rows:
                    self._turned(number, *row)
            case Answered():
                self._answered(number, record)
            case Tallied():
                for name, turn, rest, level, left, chunks, submissions, waiting in record.rows:
                    tenant = self._turned(number, name, turn, rest, level, left, chunks)
                    if tenant is not None:
                        tenant.submissions, tenant.waiting = submissions, waiting
            case Tallies():
                self._tallied(number, record)

    def older(self, number: int, id: int) -> Run | None:
        """The run if its progress is older than this record; it then differs from its stored form."""
        run = self.state.runs.get(id)
        if run is None or run.as_of >= number:
            return None
        self.state.dirty.mark(Kind.PROGRESS, id, 0, number)
        return run

    def put(self, hold: Hold, id: int, start: int, count: int, number: int) -> None:
        """Chunks are out under this hold as of a group, unless a lease record that was stored later has them."""
        out = self.out_of(id)
        for index in range(start, start + count):
            old = out.get(index)
            if old is not None:
                if old.as_of >= number:
                    continue
                old.left -= 1
                self.state.dirty.mark(Kind.HOLD, old.count, old.part, number)
            out[index] = hold
            hold.left += 1

    def _drop(self, number: int, id: int, start: int, n: int, count: int) -> None:
        out = self.out_of(id)
        for index in range(start, start + n):
            hold = out.get(index)
            if hold is not None and hold.count == count:
                del out[index]
                hold.left -= 1
                self.state.dirty.mark(Kind.HOLD, hold.count, hold.part, number)

    def _hold(self, number: int, record: Leased | Renewed, part: int) -> None:
        """Make the hold of this record, unless what was stored of it is newer."""
        known = self.state.holds.get((record.count, part))
        if known is not None and known.as_of >= number:
            return
        hold = Hold(record.epoch, record.count, part, record.deadline, record.seconds)
        hold.spans, hold.consumer, hold.seq = record.spans, record.consumer, record.seq
        self.state.holds[record.count, part] = hold
        self.state.dirty.mark(Kind.HOLD, record.count, part, number)
        for id, start, count, _ in record.spans:
            self.put(hold, id, start, count, number)

    def _leased(self, number: int, record: Leased) -> None:
        self._hold(number, record, 0)
        shuffled = False
        for at, (id, start, count, _) in enumerate(record.spans):
            shuffled ^= at in record.cuts
            run = self.older(number, id)
            if run is not None:
                run.retake(start, count, shuffled)

    def _renewed(self, number: int, record: Renewed) -> None:
        self._hold(number, record, record.part)

    def _completed(self, number: int, record: Completed) -> None:
        who = record.writer << 2 | record.kind
        for id, start, count in record.spans:
            self._drop(number, id, start, count, record.count)
            run = self.older(number, id)
            if run is not None:
                for index in range(start, start + count):
                    run.tried.pop(index, None)
                    run.withdraw(index)
            whole = self.state.runs.get(id)
            if whole is None:
                continue
            if whole.total <= PAGE_CHUNKS:
                if run is not None:
                    run.own_done().add(start, count, record.epoch, record.count, who)
                continue
            self._pages(number, whole, start, count, record, who)

    def _pages(self, number: int, run: Run, start: int, count: int, record: Completed, who: int) -> None:
        while count:
            part = start // PAGE_CHUNKS
            n = min(count, (part + 1) * PAGE_CHUNKS - start)
            page = run.done.pages.get(part)
            if page is None or page.as_of < number:
                run.own_done().add(start, n, record.epoch, record.count, who)
                self.state.dirty.mark(Kind.PAGE, run.id, part, number)
            start, count = start + n, count - n

    def _returned(self, number: int, record: Returned) -> None:
        for id, start, count in record.spans:
            self._drop(number, id, start, count, record.count)
            run = self.older(number, id)
            if run is None:
                continue
            for index in range(start, start + count):
                tried = run.tried.get(index)
                if record.counted:
                    attempts = run.attempts(index) + 1
                    epoch, latest = (record.epoch, record.count) if record.latest else (0, 0)
                    run.note(index, Tried(attempts, epoch, latest, record.due, record.error))
                elif tried is not None:
                    tried.epoch = tried.count = 0
                if not record.due:
                    run.put_back(index)

    def _died(self, number: int, record: Died) -> None:
        for id, start, count in record.spans:
            self._drop(number, id, start, count, record.count)
            run = self.older(number, id)
            if run is None:
                continue
            for index in range(start, start + count):
                run.bury(index, DeadMark(run.attempts(index) + 1, record.at, record.error))

    def _turned(
        self, number: int, name: str, turn: int | None, rest: int, level: int, left: int, chunks: int
    ) -> Tenant | None:
        """A tenant's turn and its last placed run; None if what was stored of it is newer."""
        state = self.state
        plain = state.tables.plain
        tenant = state.tenant(name)
        if tenant.as_of >= number:
            return None
        state.dirty.mark(Kind.TENANT, name, 0, number)
        if turn is None:
            plain.turn.pop(name, None)
            plain.rest.pop(name, None)
        else:
            plain.turn[name] = turn
            plain.rest[name] = rest
        if level:
            state.forecast.restore(name, level, left, chunks)
        else:
            state.forecast.forget(name)
        return tenant

    def _tallied(self, number: int, record: Tallies) -> None:
        rows = zip(
            record.names,
            record.turns,
            record.rests,
            record.placed,
            record.submissions,
            record.waiting,
            strict=True,
        )
        for name, turn, rest, placed, submissions, waiting in rows:
            tenant = self._turned(number, name, turn, rest or 0, *(placed or (0, 0, 0)))
            if tenant is not None:
                tenant.submissions, tenant.waiting = submissions, waiting

    def _answered(self, number: int, record: Answered) -> None:
        client = self.state.clients.get(record.client)
        if client is not None and client.as_of < number:
            client.seen = max(client.seen, record.at)
            client.outcomes[record.number] = record.reply
            client.receive(record.received)
            self.state.dirty.mark(Kind.CLIENT, record.client, 0, number)
