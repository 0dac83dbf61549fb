"""The checker of bucket histories: a clean story passes, and each check finds the fault of a story told by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairway.testing.bucket.checker import CHECKS, check_history
from fairway.testing.history import End, History, Note
from tests.sim.telling import Story

QUEUE = "q1"
END = ("above_floor", "below_floor", "unnamed", "ghosts")
PLANTED: dict[str, Callable[[], Tale]] = {}


def planted(tell: Callable[[], Tale]) -> Callable[[], Tale]:
    """A story with one fault, named after the check that must find it (a suffix tells two apart)."""
    PLANTED[tell.__name__] = tell
    return tell


class Tale(Story):
    """A story of one bucket queue; a message's body is its name in capitals."""

    def put(self, *uids: str, queue: str = QUEUE, due: float = 0.0) -> None:
        self.go("put", "accepted", **self._offered(uids, queue, due))

    def redrive(self, letter: str, uid: str) -> None:
        self.go("redrive", "accepted", letters=[letter], **self._offered((uid,), QUEUE, 0.0))

    def _offered(self, uids: tuple[str, ...], queue: str, due: float) -> dict[str, Any]:
        return {"queue": queue, "uids": list(uids), "bodies": [uid.upper() for uid in uids], "due": due}

    def take(
        self,
        *uids: str,
        version: int = 1,
        attempts: int = 1,
        queue: str = QUEUE,
        bodies: list[str] | None = None,
        told: bool = True,
    ) -> None:
        """The storage leases them for a minute, and whoever asked is told of them or of nothing."""
        nonce = f"{self.t:.0f}.{version}"
        call = self.ask("take", queue=queue)
        self.note("took", uids=list(uids), nonce=nonce, until=self.t + 60.0)
        leases = [[uid, nonce, version, attempts] for uid in uids if told]
        bodies = bodies or [uid.upper() for uid in uids]
        self.answer(call, {"tried": [nonce], "skew": 0.0, "leases": leases, "bodies": bodies if told else []})

    def settle(self, op: str, *uids: str, word: str = "done", version: int = 1) -> None:  # type: ignore[override]
        if op == "complete" and word == "done":
            self.note("finished", uids=list(uids))
        versions = [version for _ in uids]
        self.go(op, [word for _ in uids], queue=QUEUE, uids=list(uids), versions=versions)

    def end(self, *, waiting: tuple[str, ...] = (), dead: tuple[str, ...] = (), **left: Any) -> Tale:
        """What the storage holds when all is over."""
        counted = [len(waiting), 0, 0, len(dead)]
        held = {"live": QUEUE, "waiting": list(waiting), "dead": list(dead), "counted": counted}
        self.note("drained", **{**held, **dict.fromkeys(END, 0), **left})
        return self


def tale() -> Tale:
    return Tale(drained=True, attempts_max=3, skew=0.0)


def clean() -> Tale:
    """Much of what can happen, and nothing wrong."""
    t = tale()
    t.put("a", "b")
    t.put("c", due=t.t + 5.0)
    t.take("a", "b")
    t.settle("complete", "a")
    t.settle("complete", "a", word="already")
    t.settle("release", "b", word="released")
    t.wait(6.0)
    t.take("b", "c", version=2)
    t.wait(61.0)
    t.take("b", "c", version=3, attempts=3)
    t.settle("complete", "b", version=2, word="lost")
    t.settle("complete", "b", version=3)
    t.settle("give_up", "c", version=3, word="dead")
    t.go("dead", ["c"], queue=QUEUE)
    t.redrive("c", "d")
    t.go("dead", [], queue=QUEUE)
    t.take("d")
    t.settle("give_up", "d", word="dead")
    t.put("e", queue="q0")  # of a queue that was deleted
    t.go("delete", "q0")
    return t.end(dead=("d",))


@planted
def accepted_is_not_lost() -> Tale:
    t = tale()
    t.put("a")
    return t.end()


@planted
def accepted_is_not_lost__stuck() -> Tale:
    t = tale()
    t.put("a")
    return t.end(waiting=("a",))


@planted
def nothing_after_completion() -> Tale:
    t = tale()
    t.put("a")
    t.take("a")
    t.settle("complete", "a")
    t.take("a", version=2, told=False)
    return t.end()


@planted
def nothing_after_completion__callers_only() -> Tale:
    t = tale()
    t.put("a")
    t.go("complete", ["done"], queue=QUEUE, uids=["a"], versions=[1])
    t.take("a", version=2)
    return t.end()


@planted
def completed_or_dead() -> Tale:
    t = tale()
    t.put("a")
    t.take("a")
    t.settle("complete", "a")
    return t.end(dead=("a",))


@planted
def completed_or_dead__told() -> Tale:
    t = tale()
    t.put("a")
    t.take("a")
    t.settle("give_up", "a", word="dead")
    t.take("a", version=2)
    t.settle("complete", "a", version=2)
    return t.end()


@planted
def one_dead_letter() -> Tale:
    t = tale()
    t.go("dead", ["a"], queue=QUEUE)
    t.go("purge", "purged", queue=QUEUE, uids=["a"])
    t.go("dead", ["a"], queue=QUEUE)
    return t.end()


@planted
def one_dead_letter__in_the_end() -> Tale:
    t = tale()
    t.go("dead", ["a"], queue=QUEUE)
    t.redrive("a", "b")
    return t.end(dead=("a", "b"))


@planted
def dead_letters_are_not_lost() -> Tale:
    t = tale()
    t.go("dead", ["a"], queue=QUEUE)
    t.ask("redrive", letters=["a"], queue=QUEUE, uids=["b"], bodies=["B"], due=0.0)
    return t.end()


@planted
def no_lease_is_burnt() -> Tale:
    t = tale()
    t.put("a")
    t.take("a", told=False)
    return t.end()


@planted
def nothing_after_delete() -> Tale:
    t = tale()
    t.go("delete", "q0")
    t.put("a", queue="q0")
    return t.end()


@planted
def nothing_after_delete__redrive() -> Tale:
    t = tale()
    t.go("delete", QUEUE)
    t.redrive("a", "b")
    return t.end()


@planted
def nothing_crosses() -> Tale:
    t = tale()
    t.put("a")
    t.take("a", bodies=["b"])
    return t.end()


@planted
def nothing_crosses__another_queue() -> Tale:
    t = tale()
    t.put("a", queue="q0")
    t.take("a")
    return t.end()


@planted
def nothing_crosses__never_put() -> Tale:
    t = tale()
    t.take("a")
    return t.end()


@planted
def not_before_due() -> Tale:
    t = tale()
    t.put("a", due=t.t + 5.0)
    t.wait(4.0)
    t.take("a")
    return t.end()


@planted
def deliveries_are_bounded() -> Tale:
    t = tale()
    t.put("a")
    t.take("a", version=4, attempts=4)
    return t.end()


@planted
def deaths_have_a_cause() -> Tale:
    return doomed(1)


@planted
def deaths_have_a_cause__told() -> Tale:
    return failed(1)


def doomed(deliveries: int, *, op: str = "fail") -> Tale:
    """The storage buries a message after some deliveries."""
    t = tale()
    t.put("a")
    for n in range(deliveries):
        t.take("a", version=n + 1, attempts=n + 1)
        t.wait(61.0)
    t.ask(op, queue=QUEUE, uids=["a"], versions=[deliveries])
    t.note("doomed", uids=["a"])
    return t.end(dead=("a",))


def failed(attempts: int, *, word: str = "dead") -> Tale:
    """A message fails in its second delivery, or in its first if that was renewed."""
    t = tale()
    t.put("a")
    t.take("a", attempts=1)
    t.wait(61.0)
    if attempts > 1:
        t.take("a", version=2, attempts=attempts)
    t.settle("fail", "a", version=2, word=word)
    return t.end(dead=("a",))


@planted
def leases_hide() -> Tale:
    t = tale()
    t.put("a")
    t.take("a")
    t.wait(59.0)
    t.take("a", version=2, attempts=2)
    return t.end()


@planted
def versions_rise() -> Tale:
    t = tale()
    t.put("a")
    t.take("a")
    t.take("a")
    return t.end()


@planted
def stale_receipts_are_refused() -> Tale:
    t = tale()
    t.put("a")
    t.take("a")
    t.wait(61.0)
    t.take("a", version=2)
    t.settle("renew", "a", word="renewed")
    return t.end()


@planted
def everything_is_swept() -> Tale:
    return tale().end(unnamed=1)


@planted
def everything_is_swept__no_queue() -> Tale:
    return tale().end(live="")


@planted
def counts_are_true() -> Tale:
    return tale().end(counted=[1, 0, 0, 0])


def check_named(name: str) -> Callable[[History], Any]:
    return next(check for check in CHECKS if check.__name__ == f"check_{name.split('__')[0]}")


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_told_by_hand_is_found(name: str) -> None:
    history = PLANTED[name]().history()
    found = list(check_named(name)(history))
    assert found, f"nothing was found in the story of {name}"
    assert {violation.check for violation in found} == {name.split("__")[0]}
    assert all(0 <= place < len(history.lines) for violation in found for place in violation.places)


def test_every_bucket_check_has_a_story_in_which_it_fails() -> None:
    assert {name.split("__")[0] for name in PLANTED} == {
        check.__name__.removeprefix("check_") for check in CHECKS
    }


def test_a_clean_story_passes() -> None:
    assert check_history(clean().history()) == []


def test_clocks_that_differ_may_hand_out_a_little_early() -> None:
    t = Tale(drained=True, attempts_max=3, skew=0.5)
    t.put("a", due=t.t + 5.0)
    t.wait(4.0)
    t.take("a")
    assert list(check_named("not_before_due")(t.history())) == []


def test_a_message_dies_of_its_last_delivery_or_is_given_up() -> None:
    for t in (
        doomed(3),
        doomed(1, op="give_up"),
        failed(3),
        failed(1, word="lost"),
        failed(1, word="retrying"),
    ):
        assert list(check_named("deaths_have_a_cause")(t.history())) == []


def leased_through_a_loss(lost: bool) -> History:
    """A message is leased twice; then again, renewed and given up, by versions that were given before."""
    t = tale()
    t.put("a")
    t.take("a")
    t.wait(61.0)
    t.take("a", version=2, attempts=2)
    t.settle("release", "a", version=2, word="released")
    t.take("a", version=4, attempts=2)
    if lost:
        t.note("power_loss")
    t.take("a")
    t.settle("renew", "a", word="renewed")
    t.wait(61.0)
    t.take("a", version=3, attempts=3)
    t.settle("fail", "a", version=4, word="dead")
    return t.end(dead=("a",)).history()


def test_leases_may_be_forgotten_when_the_power_is_lost() -> None:
    assert check_history(leased_through_a_loss(True)) == []
    found = {violation.check for violation in check_history(leased_through_a_loss(False))}
    assert found >= {"leases_hide", "versions_rise", "stale_receipts_are_refused", "deaths_have_a_cause"}


def test_what_was_synced_is_not_forgotten_when_the_power_is_lost() -> None:
    for name in ("accepted_is_not_lost", "nothing_after_completion__callers_only", "completed_or_dead__told"):
        history = PLANTED[name]().history()
        *_, last = (place for place, line in enumerate(history.lines) if isinstance(line, End))
        lines = [
            *history.lines[: last - 1],
            Note(history.lines[last - 1].t, "power_loss"),
            *history.lines[last - 1 :],
        ]
        assert list(check_named(name)(History(lines))), name
