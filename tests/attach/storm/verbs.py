"""Every call that has an effect, each with what exactly one effect of it looks like.

Guards: a second effect of any of these calls, or an answer that is not the one of its effect, fails its check.
"""

from __future__ import annotations

from typing import Any

import fairway
from fairway.engine.commands import Cancel, Complete, Fail, Release, Renew, Reserve, SetWeight, Submit
from tests.attach.member_script import Child


class Verb:
    """One call: what stands before it, the call, and what exactly one effect of it looks like."""

    name = ""

    def before(self, q: fairway.Queue) -> Any:
        return None

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        raise AssertionError(self.name)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        raise AssertionError(self.name)


class Submits(Verb):
    name = "submit"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return [q.submit([b"a", b"b"], tenant="t").id]

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert [one.id for one in q.submissions()] == answer
        assert q.stats().chunks_waiting == 2


class PutsMany(Verb):
    name = "put_many"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return sorted(one.id for one in q.put_many([b"a", b"b", b"c"]))

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert len(answer) == 3
        assert sorted(one.id for one in q.submissions()) == answer


class Reserves(Verb):
    name = "reserve"
    seconds = 0.0

    def before(self, q: fairway.Queue) -> Any:
        return q.submit([b"a", b"b", b"c"]).id

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.reserve(2, wait_seconds=self.seconds, lease_seconds=600)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        stats = q.stats()
        assert (stats.chunks_leased, stats.chunks_waiting, stats.reservations) == (2, 1, 1)
        assert [(one.index, one.payload, one.attempt) for one in answer] == [(0, b"a", 1), (1, b"b", 1)]
        assert q.complete(answer) == ["done", "done"]


class ReservesAtOnce(Reserves):
    name = "reserve, would wait"
    seconds = 30.0


class Waits(Verb):
    """Its work comes when the connection has long been cut."""

    name = "reserve, waits"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        host.begin("[time.sleep(0.2), q.submit([b'late'])] and None")
        return q.reserve(2, wait_seconds=30.0, lease_seconds=600)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        stats = q.stats()
        assert (stats.chunks_leased, stats.waiters, stats.reservations) == (1, 0, 1)
        assert [(one.payload, one.attempt) for one in answer] == [(b"late", 1)]
        assert q.complete(answer) == ["done"]


class Leased(Verb):
    """A call about a lease."""

    def before(self, q: fairway.Queue) -> Any:
        q.submit([b"a"], attempts_max=2, policy="dead_letter")
        return q.reserve(lease_seconds=50)[0]


class Completes(Leased):
    name = "complete"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.complete(given, result=b"the result")

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert answer == "done", "not `already`: its caller is told of the one effect"
        assert q.submission(given.submission).state == "completed"
        assert [one.data for one in q.results(given.submission)] == [b"the result"]


class Fails(Leased):
    name = "fail"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.fail(given, "oops", delay_seconds=0.0)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert answer == "retrying"
        (again,) = q.reserve(wait_seconds=10)
        assert (again.index, again.attempt) == (0, 2)
        assert q.fail(again, "oops") == "dead"


class Releases(Leased):
    name = "release"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.release(given)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert answer == "released"
        (again,) = q.reserve()
        assert (again.index, again.attempt) == (0, 1)


class Renews(Leased):
    name = "renew"

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.renew(given, 500)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert 400 < answer.deadline - given.deadline < 500
        assert q.complete(answer) == "done"


class Cancels(Verb):
    name = "cancel"

    def before(self, q: fairway.Queue) -> Any:
        return q.submit([b"a"]).id

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.cancel(given)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert (answer.id, answer.state) == (given, "cancelled")
        assert q.stats().submissions_active == 0


class SetsWeight(Verb):
    name = "set_weight"

    def before(self, q: fairway.Queue) -> Any:
        return q.submit([b"a"], tenant="t").id

    def call(self, q: fairway.Queue, given: Any, host: Child) -> Any:
        return q.set_weight("t", 3)

    def check(self, q: fairway.Queue, given: Any, answer: Any) -> None:
        assert answer is None


VERBS = {
    kind.name: kind()
    for kind in (
        *(Submits, PutsMany, Reserves, ReservesAtOnce, Waits),
        *(Completes, Fails, Releases, Renews, Cancels, SetsWeight),
    )
}
COMMANDS: dict[str, type[Any]] = {
    **dict.fromkeys(("submit", "put_many"), Submit),
    **dict.fromkeys(("reserve", "reserve, would wait", "reserve, waits"), Reserve),
    "complete": Complete,
    "fail": Fail,
    "release": Release,
    "renew": Renew,
    "cancel": Cancel,
    "set_weight": SetWeight,
}
