"""The caller of every verb beside reads of the store that come late: of the window, and of other calls.

What is between the beginning and the end of a read is what its answer does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from fairway.engine.commands import Call, Cancel, Redrive, Show
from fairway.engine.engine import Engine
from fairway.engine.reads import Answer, Read
from fairway.errors import StoreFailed
from tests.engine import truth
from tests.engine.caller import Caller, Choose
from tests.engine.desk import Desk

_LATE_MAX = 2  # reads that are out at a time
_RETRY_SECONDS = 31.0  # after so long a read that failed is made again


class LateDesk(Desk):
    """A desk some of whose reads are made and not delivered; `audit` compares with a start when none is out."""

    late: list[tuple[Engine, Read, Answer]]
    holds: Callable[[], bool] | None = None  # whether the next read comes late

    def _read_on(self, engine: Engine) -> None:
        for _ in range(5_000):
            if not engine.wants_reads():
                return
            for read in engine.begin_reads(self.now):
                answer = read.read(self.store)
                if engine is self.engine and self.holds is not None and self.holds():
                    self.late.append((engine, read, answer))
                else:
                    engine.delivered(read, answer, self.now)
        raise AssertionError("reads never come to rest")

    def audit(self) -> None:
        if self.holds is not None and self.late:
            self.engine.tick(self.now)
            truth.check(self.engine)
        else:
            super().audit()


class LateCaller(Caller):
    """Somebody whose calls meet reads that are out."""

    def __init__(self, choose: Choose, window: int) -> None:
        super().__init__(choose, window, LateDesk)
        desk = self.desk
        assert isinstance(desk, LateDesk)
        self.late_desk, desk.late = desk, []
        desk.holds = self._holds

    def _holds(self) -> bool:
        return len(self.late_desk.late) < _LATE_MAX and not self.choose(3)

    def _next_late(self) -> Read | None:
        """A read that is out comes to its end; None: there is none, or its engine is gone."""
        desk = self.late_desk
        if not desk.late:
            return None
        engine, read, self._answer = desk.late.pop(self.choose(len(desk.late)))
        return read if engine is desk.engine else None

    def deliver(self) -> None:
        read = self._next_late()
        if read is not None:
            self.desk.engine.delivered(read, self._answer, self.desk.now)
            self.end_group()

    def fail_to_read(self) -> None:
        read = self._next_late()
        if read is not None:
            self.desk.engine.read_failed(read, self.desk.now, StoreFailed())
            self.desk.now += _RETRY_SECONDS
            self.desk.engine.tick(self.desk.now)
            self.end_group()

    def look_long(self) -> None:
        """A call reads the store, and many others come before it is carried out."""
        if self.ids:
            call = Call(self.one([Show, Cancel, Redrive])(self.one(self.ids)))
            found = self.desk.look_up(call)
            if found is not None:
                self.looked.append((call, found))

    def at_rest(self) -> None:
        """Every read comes to its end, and none is late before `holds` is set again."""
        desk = self.late_desk
        late, desk.late, desk.holds = desk.late, [], None
        for engine, read, answer in late:
            if engine is desk.engine:
                engine.delivered(read, answer, desk.now)
        desk.read_on()


def _at_rest(verb: Callable[[Caller], None]) -> Callable[[LateCaller], None]:
    """A verb whose answer must not wait for a read."""

    @wraps(verb)
    def carried_out(self: LateCaller) -> None:
        self.at_rest()
        verb(self)
        self.late_desk.holds = self._holds

    return carried_out


LATE_VERBS: list[Callable[[LateCaller], None]] = [
    *[Caller.submit] * 5, *[Caller.complete] * 3, *[Caller.fail] * 2, Caller.renew, *[Caller.release] * 2,
    *[Caller.cancel] * 3, *[Caller.redrive] * 4, *[Caller.wait_for_work] * 5, *[Caller.pause] * 4, Caller.weigh,
    Caller.join, Caller.then_call, *[LateCaller.look_long] * 2, *[LateCaller.deliver] * 4, LateCaller.fail_to_read,
    *[Caller.pass_time] * 2, Caller.begin_group, *[Caller.end_group] * 2,
    *[_at_rest(Caller.reserve)] * 2, _at_rest(Caller.named), _at_rest(Caller.look), _at_rest(Caller.restart),
]  # fmt: skip
