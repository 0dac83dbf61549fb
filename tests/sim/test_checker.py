"""The checker finds what is planted: for each check a history told by hand with one fault, and a clean one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairway.testing.checker import CHECKS, check_history
from fairway.testing.history import BadHistory, Begin, Header, History, parse
from tests.sim.telling import BEGIN, Story, census, submission

PLANTED: dict[str, Callable[[], Story]] = {}


def planted(tell: Callable[[], Story]) -> Callable[[], Story]:
    """A story with one fault, named after the check that must find it (a suffix tells two apart)."""
    PLANTED[tell.__name__] = tell
    return tell


def clean() -> Story:
    """Much of what can happen, and nothing wrong."""
    s = Story(drained=True, attempts_max=3)
    s.note("start", clock=BEGIN)
    s.submit(10, 3, tenant="a", metadata={"mark": 1}, payloads=["x", "y", "z"], number=1)
    s.submit(20, 1, tenant="b", key="k", fingerprint="f", number=2)
    s.submit(20, 1, tenant="b", key="k", fingerprint="f", known=True, number=3)
    payloads = [[10, 0, "x"], [10, 1, "y"]]
    s.reserve(1, (10, 0, 1, 1), (20, 0, 1, 1), (10, 1, 1, 1), payloads=payloads, number=4)
    s.settle("complete", 1, (10, 0, 1), outcome="done", results=["r0"], number=5)
    s.settle("complete", 1, (10, 0, 1), outcome="already", number=6)
    s.settle("fail", 1, (20, 0, 1), outcome="retrying", delay_seconds=5.0, number=7)
    s.settle("renew", 1, (10, 1, 1), outcome="renewed", seconds=90.0, number=8)
    s.settle("release", 1, (10, 1, 1), outcome="released", number=9)
    s.wait(5.5)
    s.reserve(2, (20, 0, 1, 2), (10, 1, 2, 1), payloads=[[10, 1, "y"], [10, 2, "z"]])
    s.wait(61.0)  # all of it runs out
    s.reserve(3, (20, 0, 1, 3), (10, 1, 2, 2), payloads=[[10, 1, "y"], [10, 2, "z"]])
    s.settle("complete", 2, (10, 1, 1), outcome="lost")
    s.settle("complete", 3, (10, 1, 2), outcome="done", results=["r1", None])
    s.settle("fail", 3, (20, 0, 1), outcome="dead")
    s.note("drained")
    s.go("census", census([], []))
    s.show(10, tenant="a", total=3, done=3, state="completed", metadata={"mark": 1})
    s.show(20, tenant="b", failed=1, state="failed", key="k", policy="dead_letter")
    s.go("results", [[0, "r0"], [1, "r1"]], sub=10)
    s.go("winners", [[0, 1, 1, 1], [1, 2, 1, 3]], sub=10)
    return s


# -- numbers and answers


@planted
def calls_are_whole() -> Story:
    s = clean()
    s.answer(99, None)
    return s


@planted
def calls_are_whole__clock() -> Story:
    s = clean()
    s.wait(-30.0)
    s.go("stats", {})
    return s


@planted
def calls_are_whole__another_answer() -> Story:
    s = clean()
    s.go("submit", {"ids": [77], "known": [False]}, offers=[{"payloads": ["a"]}, {"payloads": ["b"]}])
    return s


@planted
def same_number_same_answer() -> Story:
    s = Story()
    s.submit(10, number=1)
    s.submit(11, number=1)
    return s


@planted
def received_numbers_are_dropped() -> Story:
    s = Story()
    s.go("pause", None, number=1, on=True, tenant="a")
    s.go("pause", None, number=2, received=1, on=False, tenant="a")
    s.go("pause", None, number=1, received=1, on=True, tenant="a")
    return s


@planted
def calls_are_answered() -> Story:
    s = Story()
    s.note("drain")
    s.ask("reserve", number=1, max=1, wait_seconds=5.0)
    s.wait(60.0)
    s.ask("reserve", number=1, max=1, wait_seconds=5.0)
    s.note("drained")
    return s


@planted
def calls_are_answered__too_late() -> Story:
    s = Story()
    s.note("drain")
    call = s.ask("reserve", number=1, max=1, wait_seconds=5.0)
    s.note("drained")
    s.answer(call, {"spans": []})
    return s


@planted
def unanswered_numbers_are_kept() -> Story:
    s = Story()
    s.ask("pause", number=1, on=True, tenant="a")
    s.go("pause", error="request_dropped", number=1, on=True, tenant="a")
    return s


@planted
def errors_are_known() -> Story:
    s = Story()
    s.go("pause", error="oops", on=True, tenant="a")
    return s


@planted
def batches_fit() -> Story:
    s = Story()
    s.submit(10, 5)
    s.reserve(1, (10, 0, 3, 1), many=2)
    return s


@planted
def batches_fit__outside() -> Story:
    s = Story()
    s.submit(10, 100)
    s.reserve(1, (10, 99, 2, 1))
    return s


@planted
def answers_fit_their_calls() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.go("complete", {"ids": [11]}, parts=[[1, 1, [[10, 0, 1]]]])
    return s


@planted
def every_chunk_has_an_outcome() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 2, 1))
    s.go("complete", {"outcomes": [["done", 1]]}, parts=[[1, 1, [[10, 0, 2]]]])
    return s


@planted
def renewals_last() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.go(
        "renew",
        {"outcomes": [["renewed", 1]], "deadline": s.t + 5},
        parts=[[1, 1, [[10, 0, 1]]]],
        seconds=60.0,
    )
    return s


# -- acceptance


@planted
def accepted_is_found() -> Story:
    s = Story()
    s.submit(10)
    s.go("show", error="not_found", sub=10)
    return s


@planted
def accepted_as_offered() -> Story:
    s = Story()
    s.submit(10, tenant="a")
    s.show(10, tenant="b")
    return s


@planted
def one_effect() -> Story:
    s = Story()
    s.ask("submit", number=1, offers=[{"tenant": "", "total": 1, "metadata": {"mark": 5}}])
    s.submit(11, metadata={"mark": 5}, number=1)
    s.go("list_active", [submission(10, metadata={"mark": 5}), submission(11, metadata={"mark": 5})])
    return s


@planted
def one_effect__invented() -> Story:
    s = Story()
    s.go("list_active", [submission(10, metadata={"mark": 5})])
    return s


@planted
def ids_rise() -> Story:
    s = Story()
    s.submit(11)
    s.submit(10)
    return s


@planted
def keys_name_one_submission() -> Story:
    s = Story()
    s.submit(10, key="k")
    s.submit(11, key="k")
    return s


@planted
def keys_name_one_submission__contents() -> Story:
    s = Story()
    s.submit(10, key="k", fingerprint="one")
    s.submit(10, key="k", fingerprint="two", known=True)
    return s


@planted
def conflicts_are_real() -> Story:
    s = Story()
    s.submit(10, key="k", fingerprint="one")
    s.go(
        "submit", error="key_conflict", offers=[{"tenant": "", "total": 1, "key": "k", "fingerprint": "one"}]
    )
    return s


@planted
def ends_have_a_cause() -> Story:
    s = Story()
    s.submit(10)
    s.show(10, state="cancelled")
    return s


@planted
def ends_have_a_cause__failed() -> Story:
    s = Story()
    s.submit(10)
    s.show(10, state="failed", failed=1)
    return s


@planted
def ends_have_a_cause__nothing_is_dead() -> Story:
    s = Story()
    s.submit(10, 2, policy="fail_fast")
    s.reserve(1, (10, 0, 1, 1))
    s.show(10, total=2, state="failed")
    return s


def ended_with(dead: int, **shown: Any) -> Story:
    """A submission of three chunks failed with some of them dead."""
    s = Story()
    s.submit(10, 3)
    s.reserve(1, (10, 0, 3, 1))
    s.settle("complete", 1, (10, 2, 1), outcome="done")
    s.settle("fail", 1, (10, 0, dead), outcome="dead", retry=False)
    s.show(10, total=3, done=1, failed=dead, state="failed", **{"policy": "dead_letter", **shown})
    return s


@planted
def ends_have_a_cause__the_rest_is_left_out() -> Story:
    return ended_with(1)


@planted
def one_end_per_life() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="dead")
    s.show(10, state="failed", failed=1)
    s.show(10, state="active", failed=1)
    return s


@planted
def what_is_over_leaves() -> Story:
    s = Story()
    s.submit(10, 0)
    s.note("swept")
    s.show(10, total=0, state="completed")
    return s


@planted
def nothing_is_lost() -> Story:
    s = clean()
    s.submit(30)
    return s


@planted
def nothing_is_lost__left() -> Story:
    s = Story(drained=True)
    s.submit(10, 2)
    s.note("drained")
    s.show(10, total=2, done=1)
    return s


@planted
def nothing_is_lost__never_drained() -> Story:
    return Story(drained=True)


# -- leases


@planted
def ceilings_hold() -> Story:
    s = Story()
    s.submit(10, 3)
    s.reserve(1, (10, 0, 1, 1), strategy="Fair")
    s.reserve(2, (10, 1, 1, 1), strategy='MaxSimultaneous("tenant", 1, Fair)')
    return s


@planted
def ceilings_hold__of_a_share() -> Story:
    return shared(50)


@planted
def ceilings_hold__of_who_was_seen_lately() -> Story:
    return shared(66, seconds=61.0)


def shared(percent: int, *, seconds: float = 59.0) -> Story:
    """Two chunks of a tenant are handed out at once, under a share of three workers, two of which came lately."""
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 3)
    nothing = {"epoch": 0, "count": 0, "deadline": 0.0, "spans": [], "runs": []}
    s.go("reserve", nothing, number=1, max=1, worker=1)
    s.wait(seconds)
    s.go("reserve", nothing, number=2, max=1, worker=2)
    s.reserve(1, (10, 0, 2, 1), strategy=f'MaxSimultaneous("tenant", "{percent}%", Fair)', number=3, worker=3)
    return s


@planted
def ceilings_hold__inside_one_call() -> Story:
    s = Story()
    s.submit(10, 3, metadata={"region": "north"})
    strategy = 'PreferDistinct("tenant", 1, MaxSimultaneous("region", 1, Fair))'
    s.reserve(1, (10, 0, 2, 1), strategy=strategy, run={"metadata": {"region": "north"}})
    return s


@planted
def receipts_are_unique() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1))
    s.reserve(1, (10, 1, 1, 1))
    return s


@planted
def no_double_lease() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=60.0)
    s.wait(59.0)
    s.reserve(2, (10, 0, 1, 2), seconds=60.0)
    return s


@planted
def no_double_lease__renewed() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=10.0)
    s.settle("renew", 1, (10, 0, 1), outcome="renewed", seconds=100.0)
    s.wait(50.0)
    s.reserve(2, (10, 0, 1, 2))
    return s


@planted
def no_double_lease__twice_in_one() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), (10, 0, 1, 1))
    return s


@planted
def latest_receipt_wins() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=1.0)
    s.wait(2.0)
    s.reserve(2, (10, 0, 1, 2))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    return s


@planted
def latest_receipt_wins__two_winners() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=1.0)
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.settle("complete", 2, (10, 0, 1), outcome="done")
    return s


@planted
def stale_receipts_are_refused() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=1.0)
    s.wait(2.0)
    s.reserve(2, (10, 0, 1, 2))
    s.settle("renew", 1, (10, 0, 1), outcome="renewed", seconds=60.0)
    return s


@planted
def stale_receipts_are_refused__after_fail() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="retrying")
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    return s


@planted
def good_receipts_count() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), run={"policy": "dead_letter"})
    s.settle("renew", 1, (10, 0, 1), outcome="lost", seconds=60.0)
    return s


@planted
def good_receipts_count__after_the_lease() -> Story:
    return after_its_lease()


@planted
def good_receipts_count__ended() -> Story:
    return after_its_lease(outcome="ended")


def after_its_lease(*, policy: str = "dead_letter", attempt: int = 1, outcome: str = "lost") -> Story:
    """A result comes when its lease has run out, and is refused."""
    s = Story(attempts_max=2)
    s.submit(10, policy=policy)
    s.reserve(1, (10, 0, 1, attempt), run={"policy": policy})
    s.wait(61.0)
    s.settle("complete", 1, (10, 0, 1), outcome=outcome)
    return s


@planted
def clients_are_remembered() -> Story:
    return unknown()


@planted
def clients_are_remembered__registered() -> Story:
    return unknown(op="register")


def unknown(*, op: str = "pause", seconds: float = 59.0, clock: float = 0.0) -> Story:
    """A client is heard, and some time later told that nobody knows it."""
    s = Story(client_silent_seconds=60.0)
    s.note("start", clock=BEGIN)
    call = s.ask(op, number=int(op != "register"))
    s.note("start", clock=BEGIN + clock)
    s.answer(call, {"spans": []} if op == "reserve" else 7)
    s.wait(seconds)
    s.go("pause", number=2, error="client_unknown")
    return s


@planted
def already_means_done() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="already")
    return s


@planted
def forged_receipts_are_refused() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done", forged=True)
    return s


@planted
def settled_receipts_were_given() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("complete", 1, (10, 1, 1), outcome="done")
    return s


# -- ends and attempts


@planted
def nothing_after_final() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="dead")
    s.reserve(2, (10, 0, 1, 2))
    return s


@planted
def nothing_after_end() -> Story:
    s = Story()
    s.submit(10, 2)
    s.go("cancel", submission(10, total=2, state="cancelled"), sub=10)
    s.reserve(1, (10, 0, 1, 1))
    return s


@planted
def nothing_after_end__result() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1))
    s.go("cancel", submission(10, total=2, state="cancelled"), sub=10)
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    return s


@planted
def attempts_are_bounded() -> Story:
    s = Story(attempts_max=2)
    s.submit(10)
    s.reserve(1, (10, 0, 1, 3))
    return s


@planted
def attempts_are_counted() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=1.0)
    s.wait(2.0)
    s.reserve(2, (10, 0, 1, 1))
    return s


@planted
def attempts_are_counted__released() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("release", 1, (10, 0, 1), outcome="released")
    s.reserve(2, (10, 0, 1, 2))
    return s


@planted
def deliveries_are_bounded() -> Story:
    s = Story(attempts_max=2)
    s.submit(10)
    for count in (1, 2, 3):
        s.reserve(count, (10, 0, 1, min(count, 2)), seconds=1.0)
        s.wait(2.0)
    return s


@planted
def deadlines_hold() -> Story:
    s = Story()
    s.submit(10)
    s.wait(10.0)
    s.reserve(1, (10, 0, 1, 1), run={"deadline": BEGIN + 5.0})
    return s


# -- time


@planted
def not_before_due() -> Story:
    s = Story()
    s.submit(10, delay_seconds=30.0)
    s.reserve(1, (10, 0, 1, 1), run={"not_before": BEGIN + 30.0})
    return s


@planted
def not_before_due__forgotten() -> Story:
    s = Story()
    s.submit(10, delay_seconds=30.0)
    s.reserve(1, (10, 0, 1, 1))
    return s


@planted
def times_as_asked__due_late() -> Story:
    s = Story()
    s.submit(10, delay_seconds=30.0)
    s.wait(95.0)
    s.reserve(1, (10, 0, 1, 1), run={"not_before": BEGIN + 90.0})
    return s


@planted
def times_as_asked__deadline_forgotten() -> Story:
    s = Story()
    s.submit(10, deadline_seconds=30.0)
    s.reserve(1, (10, 0, 1, 1))
    return s


@planted
def times_as_asked__deadline_early() -> Story:
    s = Story()
    s.submit(10, deadline_seconds=30.0)
    s.reserve(1, (10, 0, 1, 1), run={"deadline": BEGIN + 20.0})
    return s


@planted
def back_off_holds() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="retrying", delay_seconds=20.0)
    s.wait(10.0)
    s.reserve(2, (10, 0, 1, 2))
    return s


@planted
def pauses_hold() -> Story:
    s = Story()
    s.submit(10, tenant="a")
    s.go("pause", on=True, tenant="a", sub=0)
    s.reserve(1, (10, 0, 1, 1))
    return s


@planted
def pauses_hold__submission() -> Story:
    s = Story()
    s.submit(10)
    s.go("pause", on=False, tenant=None, sub=10)
    s.go("pause", on=True, tenant=None, sub=10)
    s.reserve(1, (10, 0, 1, 1))
    return s


@planted
def waits_last() -> Story:
    s = Story()
    s.go("reserve", {"epoch": 0, "count": 0, "deadline": 0.0, "spans": []}, max=1, wait_seconds=5.0)
    return s


# -- content and counts


@planted
def payloads_are_unaltered() -> Story:
    s = Story()
    s.submit(10, payloads=["x"])
    s.reserve(1, (10, 0, 1, 1), payloads=[[10, 0, "y"]])
    return s


@planted
def payloads_are_unaltered__missing() -> Story:
    s = Story()
    s.submit(10, payloads=["x"])
    s.reserve(1, (10, 0, 1, 1), payloads=[])
    return s


@planted
def results_are_kept() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done", results=["mine"])
    s.go("results", [], sub=10)
    return s


@planted
def results_are_kept__invented() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.go("results", [[0, "nobody's"]], sub=10)
    return s


@planted
def winners_are_true() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.go("winners", [[0, 1, 1, 2]], sub=10)
    return s


@planted
def counts_agree() -> Story:
    s = Story()
    s.submit(10, 3)
    s.go("census", census([submission(10, total=3)], [], submissions_active=1, chunks_waiting=2))
    return s


@planted
def counts_agree__tenant() -> Story:
    s = Story()
    s.submit(10, 3)
    view = {"name": "", "submissions": 1, "waiting": 3, "leased": 1, "weight": 1.0, "paused": False}
    s.go("census", census([submission(10, total=3)], [view], submissions_active=1, chunks_waiting=3))
    return s


@planted
def counts_match_callers() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.show(10, total=2, done=0)
    return s


@planted
def counts_match_callers__dead() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="dead")
    s.show(10, total=2, failed=0)
    return s


@planted
def drained_is_empty() -> Story:
    s = clean()
    s.go("census", census([], [{"name": "", "submissions": 0, "waiting": 0, "leased": 1}], chunks_leased=1))
    return s


# -- named reservations


def named(
    s: Story, count: int, *spans: tuple[int, int, int, int], epoch: int = 1, seq: int = 1, **run: Any
) -> None:
    s.reserve(count, *spans, seconds=3600.0, consumer="c", consumer_epoch=epoch, seq=seq, run=run)


@planted
def named_is_handed_back() -> Story:
    s = Story()
    s.submit(10, 5)
    named(s, 1, (10, 0, 2, 1))
    named(s, 1, (10, 0, 3, 1))
    return s


@planted
def named_is_handed_back__shrunk() -> Story:
    s = Story()
    s.submit(10, 5)
    named(s, 1, (10, 0, 2, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    named(s, 1, (10, 1, 1, 1))
    return s


@planted
def one_seq_one_reservation() -> Story:
    s = Story()
    s.submit(10, 5)
    named(s, 1, (10, 0, 2, 1))
    named(s, 2, (10, 2, 2, 1))
    return s


@planted
def consumers_are_fenced() -> Story:
    s = Story()
    s.submit(10, 5)
    s.go("join", 1, consumer="c")
    s.go("join", 2, consumer="c", who="bob")
    named(s, 1, (10, 0, 2, 1), epoch=1)
    return s


@planted
def consumers_are_fenced__twice() -> Story:
    s = Story()
    s.go("join", 1, consumer="c")
    s.go("join", 1, consumer="c", who="bob")
    return s


@planted
def consumers_are_listed() -> Story:
    s = Story()
    for epoch in (1, 2):
        s.go("join", epoch, consumer="c")
    s.go("consumers", [{"name": "c", "epoch": 1, "seqs": [], "seen": s.t}])
    return s


@planted
def dead_letters_are_dead() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 2, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.go("list_dead", [{"submission": 10, "index": 0}])
    return s


@planted
def dead_letters_are_listed() -> Story:
    return listed()


@planted
def dead_letters_are_listed__of_a_page() -> Story:
    return listed(1, limit=1)


@planted
def dead_letters_are_listed__alive() -> Story:
    return listed(0, 2)


def listed(*indexes: int, before: str = "show", **page: int) -> Story:
    """A chunk is dead, its submission goes on after some call, and dead letters are listed before it is seen to."""
    s = Story(attempts_max=3)
    s.submit(10, 4)
    s.reserve(1, (10, 0, 4, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="dead", retry=False)
    s.settle("fail", 1, (10, 1, 1), outcome="dead" if page else "retrying", retry=False)
    s.go(before, submission(10, total=4, failed=1), sub=10)
    s.go("list_dead", [{"submission": 10, "index": index} for index in indexes], **page)
    s.show(10, total=4, failed=1)
    return s


@planted
def trimmed_is_gone() -> Story:
    s = Story()
    s.submit(10, 5)
    s.go("trim", None, consumer="c", consumer_epoch=1, seq=3)
    named(s, 1, (10, 0, 2, 1), seq=3)
    return s


# -- order


@planted
def fifo_inside_a_tenant() -> Story:
    s = Story()
    s.submit(10)
    s.submit(11)
    s.reserve(1, (11, 0, 1, 1), strategy="Fair")
    s.reserve(2, (10, 0, 1, 1), strategy="Fair")
    return s


@planted
def fifo_inside_a_tenant__index() -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 1, 1, 1), (10, 0, 1, 1))
    return s


@planted
def no_wrong_empty_answer() -> Story:
    s = Story()
    s.submit(10)
    s.go("reserve", {"epoch": 0, "count": 0, "deadline": 0.0, "spans": []}, max=1)
    s.reserve(1, (10, 0, 1, 1))
    return s


@planted
def no_wrong_empty_answer__lost_wake_up() -> Story:
    s = Story()
    waiting = s.ask("reserve", max=1, wait_seconds=5.0, who="bob")
    s.wait(1.0)
    s.submit(10)
    s.wait(4.0)
    s.answer(waiting, {"epoch": 0, "count": 0, "deadline": 0.0, "spans": []})
    s.reserve(1, (10, 0, 1, 1))
    return s


def told(s: Story, call: int, count: int = 0, *spans: tuple[int, int, int, int], **run: Any) -> None:
    """A reserve that waited is given something, or told that there is nothing."""
    ok = {"epoch": 1, "count": count, "deadline": s.t + 60.0, "spans": spans}
    s.answer(call, ok | {"runs": [s._run(span[0], run) for span in spans]})


def overtaken(
    mine: str = "Fair",
    other: str = "Fair",
    *,
    number: int = 1,
    before: bool = False,
    late: float = 0.5,
    meanwhile: Callable[[Story], object] = lambda s: None,
    plan_steps: int = 500,
) -> Story:
    """Two wait, one of them longer; the other one gets what comes."""
    s = Story()
    s.recorder.lines[0] = Header(plan_steps=plan_steps)
    s.note("start", clock=BEGIN)
    args = {"max": 1, "lease_seconds": 60.0, "wait_seconds": 20.0}
    second = s.ask("reserve", who="bob", strategy=other, **args) if before else 0
    first = s.ask("reserve", number=number, strategy=mine, **args)
    s.wait(1.0)
    second = second or s.ask("reserve", who="bob", strategy=other, **args)
    meanwhile(s)
    s.wait(5.0)
    s.submit(10, metadata={"mode": "full"})
    told(s, second, 1, (10, 0, 1, 1), metadata={"mode": "full"})
    s.wait(14.0 + late)
    told(s, first)
    return s


ONE_EACH = 'MaxSimultaneous("tenant", 1, Fair)'


@planted
def first_come_first_served() -> Story:
    return overtaken()


@planted
def first_come_first_served__another_strategy() -> Story:
    return overtaken("Random", ONE_EACH)


@planted
def first_come_first_served__the_same_limits() -> Story:
    return overtaken(ONE_EACH, ONE_EACH)


@planted
def first_come_first_served__selected() -> Story:
    return overtaken('SelectOnly("mode", "full", Fair)', "NewestFirst")


@planted
def fair_shares() -> Story:
    s = Story()
    s.submit(10, 20, tenant="a")
    s.submit(20, 20, tenant="b")
    spans = ((10, 0, 3, 1), (20, 0, 1, 1), (10, 3, 17, 1), (20, 1, 19, 1))
    s.reserve(1, *spans, strategy="Fair")
    return s


@planted
def fair_shares__weights() -> Story:
    s = Story()
    s.submit(10, 20, tenant="a", weight=4000)
    s.submit(20, 20, tenant="b")
    picks = [(10 if place % 2 else 20, place // 2, 1, 1) for place in range(40)]
    for count, pick in enumerate(picks, 1):
        s.reserve(count, pick, strategy="Fair")
    return s


PREVIEW = 'SelectOnly("mode", "preview", Fair)'


def lane(
    between: Callable[[Story], object] = lambda s: None, *, strategy: str = PREVIEW, epoch: int = 1
) -> Story:
    """Of two tenants with previews one is served three times before the other, with something in between."""
    s = Story()
    s.note("start", clock=BEGIN)
    preview = {"metadata": {"mode": "preview", "size": "large"}}
    s.submit(10, 3, tenant="a")
    s.submit(20, 3, tenant="b")
    s.submit(30, 1, tenant="c")
    s.reserve(1, (10, 0, 2, 1), strategy=strategy, run=preview)
    between(s)
    s.reserve(5, (10, 2, 1, 1), strategy=strategy, epoch=epoch, run=preview)
    s.reserve(6, (20, 0, 2, 1), strategy=strategy, epoch=epoch, run=preview)
    s.reserve(7, (20, 2, 1, 1), strategy="Fair", epoch=epoch, run=preview)
    return s


@planted
def fair_shares_of_selections() -> Story:
    return lane()


@planted
def fair_shares_of_selections__nested() -> Story:
    return lane(strategy='SelectOnly("size", "large", SelectOnly("mode", "preview", Fair))')


@planted
def fair_shares_of_selections__first_step() -> Story:
    return lane(strategy=f'OrElse({PREVIEW}, MaxSimultaneous("mode", 3, CustomPriority))')


@planted
def fair_shares_of_selections__beside_the_whole_queue() -> Story:
    return lane(lambda s: s.reserve(2, (30, 0, 1, 1), strategy="Fair"))


def batch(*, whole: bool) -> Story:
    """A consumer has two chunks and gives one back, then says that it has finished all."""
    s = Story()
    s.submit(10, 2)
    s.go("join", 1, consumer="c", run="r")
    s.reserve(1, (10, 0, 2, 1), consumer="c", consumer_epoch=1, seq=1)
    if whole:
        s.settle("release", 1, (10, 1, 1), outcome="released")
    told = {"outcomes": [], "failed": [], "rest": 1, "before": 0}
    s.go("finish", told, consumer="c", consumer_epoch=0, run="r", whole=whole, parts=[], failed=[])
    return s


@planted
def whole_batches_are_whole() -> Story:
    return batch(whole=True)


@planted
def finished_is_settled() -> Story:
    s = batch(whole=False)
    s.wait(30.0)
    s.reserve(2, (10, 1, 1, 2))
    return s


@planted
def consumers_are_fenced__batch() -> Story:
    s = Story()
    s.go("join", 1, consumer="c", run="r")
    s.go("join", 2, consumer="c", run="another")
    told = {"outcomes": [], "failed": [], "rest": 0, "before": 0}
    s.go("finish", told, consumer="c", consumer_epoch=0, run="r", whole=False, parts=[], failed=[])
    return s


@planted
def receipts_end_with_their_life() -> Story:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1), seconds=5.0)
    s.wait(10.0)
    s.go("cancel", submission(10, total=2, state="cancelled"), sub=10)
    s.go("redrive", submission(10, total=2, life=2), sub=10)
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    return s


@planted
def no_retry_is_dead() -> Story:
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="retrying", retry=False)
    return s


@planted
def deaths_have_a_cause() -> Story:
    return given_up(1)


@planted
def deaths_have_a_cause__of_its_own() -> Story:
    return given_up(2, own=3)


@planted
def deaths_have_a_cause__more_than_were_held() -> Story:
    s = Story(attempts_max=2)
    s.submit(10, 3)
    s.reserve(1, (10, 0, 1, 2), (10, 1, 1, 1))
    s.wait(61.0)
    s.show(10, total=3, failed=2)
    return s


def given_up(attempt: int, **args: Any) -> Story:
    """A chunk is dead after an attempt that failed."""
    s = Story(attempts_max=2)
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, attempt), run={"attempts_max": args.pop("own", 0)})
    s.settle("fail", 1, (10, 0, 1), outcome="dead", **args)
    s.show(10, total=2, failed=1)
    return s


@planted
def fail_fast_ends() -> Story:
    s = Story()
    s.submit(10, 2, policy="fail_fast")
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="dead")
    s.reserve(2, (10, 1, 1, 1))
    return s


def limited(last: str) -> Story:
    """One chunk under a limit of one, settled in some way; then the next is asked for in vain, and comes later."""
    s = Story()
    s.note("start", clock=BEGIN)
    strategy = 'MaxSimultaneous("tenant", 1, Fair)'
    s.submit(10, 2, tenant="a")
    s.reserve(1, (10, 0, 1, 1), strategy=strategy)
    s.settle("complete", 1, (10, 0, 1), outcome=last)
    s.reserve(0, strategy=strategy)
    s.reserve(2, (10, 1, 1, 1), strategy="Fair")
    return s


@planted
def limits_open_again() -> Story:
    return limited("done")


@planted
def no_wrong_empty_answer__returned() -> Story:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 1)
    s.reserve(1, (10, 0, 1, 1), seconds=5.0, strategy="Fair")
    waits = s.ask("reserve", max=1, strategy="Fair", wait_seconds=20.0)
    s.wait(20.5)
    s.answer(waits, {"epoch": 0, "count": 0, "deadline": 0.0, "spans": [], "runs": []})
    s.reserve(2, (10, 0, 1, 2), strategy="Fair")
    return s


@planted
def no_wrong_empty_answer__released() -> Story:
    return came_back("release", "released", 1)


@planted
def no_wrong_empty_answer__back_off_over() -> Story:
    return came_back("fail", "retrying", 2, delay_seconds=5.0)


def came_back(verb: str, outcome: str, attempt: int, wait: float = 6.0, **args: Any) -> Story:
    """A chunk is given back, is not handed out when asked for a while later, and is there after all."""
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), strategy="Fair")
    s.settle(verb, 1, (10, 0, 1), outcome=outcome, **args)
    s.wait(wait)
    s.reserve(0, strategy="Fair")
    s.wait(60.0)
    s.reserve(2, (10, 0, 1, attempt), strategy="Fair")
    return s


# -- other orders


def out_of_order(strategy: str, **second: Any) -> Story:
    """Submission 11 is handed out before 10, unless something else is said of the second."""
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, tenant="a")
    s.submit(11, tenant="b", **second)
    s.reserve(1, (11, 0, 1, 1), strategy=strategy, run={"priority": second.get("priority", 0)})
    s.reserve(2, (10, 0, 1, 1), strategy=strategy)
    return s


@planted
def orders_hold__oldest() -> Story:
    return out_of_order("OldestFirst")


@planted
def orders_hold__priority() -> Story:
    return out_of_order("CustomPriority", priority=-5)


@planted
def orders_hold__newest() -> Story:
    s = Story()
    s.submit(10, tenant="a")
    s.submit(11, tenant="b")
    s.reserve(1, (10, 0, 1, 1), (11, 0, 1, 1), strategy="NewestFirst")
    return s


@planted
def selections_hold() -> Story:
    s = Story()
    s.submit(10, metadata={"mode": "full"})
    only = 'SelectOnly("mode", "preview", Fair)'
    s.reserve(1, (10, 0, 1, 1), strategy=only, run={"metadata": {"mode": "full"}})
    return s


DISTINCT = 'PreferDistinct("mode", 1, MaxSimultaneous("tenant", "50%", NewestFirst))'


@planted
def earlier_steps_come_first() -> Story:
    return not_preferred(DISTINCT)


@planted
def earlier_steps_come_first__fallback() -> Story:
    return not_preferred('OrElse(SelectOnly("mode", "full", Fair), Random)')


def not_preferred(strategy: str, *, before: bool = False, out: str = "", tenant: str = "b") -> Story:
    """Two previews are handed out while something in full waits, of which some may be in flight already."""
    s = Story()
    s.note("start", clock=BEGIN)
    preview = {"metadata": {"mode": "preview"}}
    full = {"metadata": {"mode": "full"}}
    s.submit(10, 2, tenant="a", **preview)
    s.submit(11, 2, tenant=tenant, **full)
    if out:
        s.reserve(1, (11, 0, 1, 1), strategy="Fair", run=full)
        s.settle("complete", 1, (11, 0, 1), outcome=out)
    if before:
        s.reserve(2, (11, 1, 1, 1), strategy=strategy, run=full)
    s.reserve(3, (10, 0, 2, 1), strategy=strategy, run=preview)
    if not before:
        s.reserve(4, (11, 1, 1, 1), strategy="Fair", run=full)
    return s


# -- what a consumer is told and handed


def consumer_reserves(s: Story, count: int, *spans: tuple[int, int, int, int], seq: int = 1) -> None:
    """As it is where a consumer may be silent for 10 s."""
    run = {"policy": "dead_letter"}
    s.reserve(count, *spans, seconds=10.0, consumer="c", consumer_epoch=1, seq=seq, run=run)


def after_a_sign(*, sign: bool) -> Story:
    s = Story(consumer_silent_seconds=10.0)
    s.note("start", clock=BEGIN)
    s.submit(10)
    consumer_reserves(s, 1, (10, 0, 1, 1))
    s.wait(8.0)
    if sign:
        s.go("trim", None, consumer="c", consumer_epoch=1, seq=0, complete=False)
    s.wait(8.0)
    s.reserve(2, (10, 0, 1, 2))
    return s


@planted
def no_double_lease__of_a_consumer_that_gave_a_sign() -> Story:
    return after_a_sign(sign=True)


def taken_over(before: int, after: int, attempt: int = 1, *, done: bool = False) -> Story:
    s = Story()
    s.submit(10, 5)
    s.go("join", 1, consumer="c")
    named(s, 1, (10, 0, before, 1))
    if done:
        s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.go("join", 2, consumer="c", who="bob")
    named(s, 1, (10, 0, after, attempt), epoch=2)
    return s


@pytest.mark.parametrize("receipt", [1, 2])
def test_what_a_batch_names_under_another_receipt_may_be_among_its_rest(receipt: int) -> None:
    """Then something is completed, and who takes the name over is handed all of it."""
    s = Story()
    s.submit(10, 2)
    s.go("join", 1, consumer="c", run="r")
    named(s, 1, (10, 0, 2, 1))
    told = {"outcomes": [["lost", 2]], "failed": [], "rest": 2 * (receipt == 2), "before": 0}
    parts = [[1, receipt, [[10, 0, 2]]]]
    s.go("finish", told, consumer="c", consumer_epoch=1, run="", whole=False, parts=parts, failed=[])
    s.go("join", 2, consumer="c", who="bob")
    named(s, 1, (10, 0, 2, 1), epoch=2)
    assert bool(check_named("taken_over_is_halved")(s.history())) is (receipt == 1)


@planted
def taken_over_is_halved() -> Story:
    return taken_over(4, 3)


@planted
def taken_over_is_halved__alone() -> Story:
    return taken_over(1, 1)


def refused(op: str, error: str, *, cause: bool, **args: Any) -> Story:
    """A refusal, and what explains it if there is a cause."""
    s = Story(consumer_silent_seconds=10.0)
    s.note("start", clock=BEGIN)
    s.submit(10, 2, key="k")
    s.go("join", 1, consumer="c", run="r")
    consumer_reserves(s, 1, (10, 0, 2, 1))
    if cause:
        _CAUSES[error](s)
    else:
        _NO_CAUSES.get(error, lambda s: None)(s)
    s.go(op, error=error, **args)
    s.show(10, total=2)
    return s


_CAUSES: dict[str, Callable[[Story], Any]] = {
    "seq_trimmed": lambda s: s.go("trim", consumer="c", consumer_epoch=1, seq=2, complete=True),
    "consumer_fenced": lambda s: s.ask("join", consumer="c", who="bob", run="another"),
    "already_ended": lambda s: s.ask("redrive", sub=10),
    "nothing_to_redrive": lambda s: None,
    "reservation_open": lambda s: s.settle("complete", 1, (10, 0, 1), outcome="done"),
    "reservation_lapsed": lambda s: s.wait(11.0),
    "lease_lost": lambda s: s.settle("fail", 1, (10, 0, 1), outcome="retrying"),
    "key_conflict": lambda s: s.submit(11, 2, key="k"),
}
_NO_CAUSES: dict[str, Callable[[Story], Any]] = {
    "nothing_to_redrive": lambda s: s.show(10, total=2, state="cancelled"),
    "reservation_open": lambda s: s.settle("complete", 1, (10, 0, 2), outcome="done"),
    "reservation_lapsed": lambda s: s.wait(9.0),
}
_C = {"consumer": "c", "consumer_epoch": 1}
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "seq_trimmed": ("reserve", {**_C, "seq": 2, "max": 1}),
    "consumer_fenced": ("finish", {"consumer": "c", "run": "r", "whole": False, "parts": [], "failed": []}),
    "already_ended": ("cancel", {"sub": 10}),
    "nothing_to_redrive": ("redrive", {"sub": 10}),
    "reservation_open": ("trim", {**_C, "seq": 1, "complete": False}),
    "reservation_lapsed": ("trim", {**_C, "seq": 1, "complete": True}),
    "lease_lost": ("finish", {**_C, "whole": True, "parts": [], "failed": []}),
    "key_conflict": ("redrive", {"sub": 10}),
}


def _told_without_cause(error: str) -> Callable[[], Story]:
    op, args = REFUSED[error]
    return lambda: refused(op, error, cause=False, **args)


PLANTED |= {f"refusals_have_a_cause__{error}": _told_without_cause(error) for error in REFUSED}


# -- what is counted, what is logged, what is left


def counted_leases(leased: int, *, answer: str = "", unseen: bool = False, wait: float = 0.0) -> Story:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 3)
    s.reserve(1, (10, 0, 2, 1))
    if answer:
        s.settle("complete", 1, (10, 0, 2), outcome=answer)
    if unseen:
        s.ask("reserve", max=1)
    s.wait(wait)
    active = (
        [submission(10, total=3, leased=leased, done=2 * (answer == "done"))] if answer != "ended" else []
    )
    s.go("census", census(active, [{"name": "", "submissions": 1, "waiting": 0, "leased": leased}]))
    return s


@planted
def leases_match_callers() -> Story:
    return counted_leases(1)


@planted
def leases_match_callers__answered() -> Story:
    return counted_leases(1, answer="done")


@planted
def leases_match_callers__of_what_ended() -> Story:
    return counted_leases(2, answer="ended")


@pytest.mark.parametrize("lost", [True, False])
def test_a_lease_that_nobody_was_told_of_may_be_counted_until_the_power_is_lost(lost: bool) -> None:
    """Its call is sent again, and is given something else."""
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10)
    s.submit(11)
    s.ask("reserve", max=1, lease_seconds=60.0, number=1)
    told = [submission(10, leased=1), submission(11)]
    tenants = [{"name": "", "submissions": 2, "waiting": 1, "leased": 1}]
    s.go("census", census(told, tenants, submissions_active=2, chunks_waiting=1, chunks_leased=1))
    s.note("power_loss" if lost else "crash")
    s.note("start", clock=s.t)
    s.reserve(1, (11, 0, 1, 1), epoch=2, number=1)
    assert bool(check_named("leases_match_callers")(s.history())) is not lost


@planted
def leases_match_callers__run_out() -> Story:
    return counted_leases(2, wait=61.0)


LOG: list[list[Any]] = [
    ["submitted", 10, 0, 2, 0, 0, 0, "a"],
    ["reserved", 10, 0, 2, 1, 1, 1, ""],
    ["completed", 10, 0, 1, 1, 1, 0, ""],
    ["dead", 10, 1, 1, 1, 1, 0, ""],
    ["ended_failed", 10, 0, 2, 0, 0, 0, ""],
    ["redriven", 10, 0, 2, 0, 0, 0, ""],
]


def audited(log: list[list[Any]], *, wait: float = 0.0) -> Story:
    s = Story(event_seconds=100.0)
    s.note("start", clock=BEGIN)
    s.submit(10, 2, tenant="a")
    s.reserve(1, (10, 0, 2, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.settle("fail", 1, (10, 1, 1), outcome="dead", retry=False)
    s.show(10, tenant="a", total=2, done=1, failed=1, state="failed", ended=s.t)
    s.go("redrive", submission(10, tenant="a", total=2, done=1, life=2), sub=10)
    s.wait(wait)
    s.go("events", log)
    return s


def _log_without(what: str) -> Callable[[], Story]:
    return lambda: audited([one for one in LOG if one[0] != what])


PLANTED |= {f"events_are_told__{one[0]}": _log_without(one[0]) for one in LOG}


@planted
def events_are_told__attempt() -> Story:
    return audited([one if one[0] != "reserved" else [*one[:6], 2, ""] for one in LOG])


@planted
def events_happened_once() -> Story:
    return audited([*LOG, LOG[2]])


@planted
def events_happened_once__in_one_life() -> Story:
    return audited([*LOG, LOG[4], LOG[4]])


@planted
def events_happened_once__by_nobody() -> Story:
    return audited([*LOG, ["completed", 10, 1, 1, 1, 1, 0, ""]])


def censused_twice(counter: str, risen: int) -> Story:
    """Of five chunks that were handed out between two censuses one was completed, and one died."""
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 5)
    s.go("census", census([], []))
    s.reserve(1, (10, 0, 5, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    s.settle("fail", 1, (10, 1, 1), outcome="dead", retry=False)
    counted = {"handed": 5, "completed": 1, "died": 1, counter: risen}
    leased = [{"name": "", "submissions": 1, "waiting": 0, "leased": 3}]
    active = [submission(10, total=5, done=1, failed=1, leased=3)]
    s.go("census", census(active, leased, submissions_active=1, chunks_leased=3, **counted))
    return s


@planted
def counters_count() -> Story:
    return censused_twice("completed", 2)


@planted
def counters_count__handed() -> Story:
    return censused_twice("handed", 4)


@planted
def counters_count__died() -> Story:
    return censused_twice("died", 0)


def told_dead(**told: Any) -> Story:
    s = Story()
    s.submit(10, 2, tenant="a")
    s.reserve(1, (10, 0, 1, 1))
    fail = s.ask("fail", parts=[[1, 1, [(10, 0, 1)]]], retry=False, error="no luck")
    s.answer(fail, {"outcomes": [["dead", 1]], "deadline": 0.0})
    letter = {"submission": 10, "index": 0, "tenant": "a", "attempts": 1, "error": "no luck", **told}
    s.go("list_dead", [letter])
    s.show(10, tenant="a", total=2, failed=1, error=letter["error"], error_index=0)
    return s


@planted
def reasons_are_those_given() -> Story:
    return told_dead(error="another")


@planted
def reasons_are_those_given__attempts() -> Story:
    return told_dead(attempts=2)


@planted
def reasons_are_those_given__tenant() -> Story:
    return told_dead(tenant="b")


@planted
def nothing_is_left() -> Story:
    s = clean()
    s.note("swept", left={"key": 1})
    return s


# -- redrives


def redriven(**shown: Any) -> Story:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome="dead")
    s.go("redrive", submission(10, **{"total": 2, "life": 2, **shown}), sub=10)
    return s


@planted
def redrives_start_over() -> Story:
    return redriven(failed=1)


@planted
def redrives_start_over__in_one_life() -> Story:
    s = redriven()
    s.go("redrive", submission(10, total=2, life=2), sub=10)
    return s


@planted
def redrives_start_over__and_back() -> Story:
    s = redriven()
    s.show(10, total=2, failed=1)
    return s


def next_life(outcome: str, attempt: int, *, ended: bool) -> Story:
    s = Story()
    s.submit(10, 3)
    s.reserve(1, (10, 0, 1, 1))
    s.settle("fail", 1, (10, 0, 1), outcome=outcome, delay_seconds=0.0)
    if ended:
        s.show(10, total=3, state="cancelled")
    s.go("redrive", submission(10, total=3, life=2), sub=10)
    s.reserve(2, (10, 0, 1, attempt))
    return s


@planted
def lives_have_all_attempts() -> Story:
    return next_life("dead", 2, ended=False)


@planted
def lives_have_all_attempts__skipped() -> Story:
    return next_life("retrying", 2, ended=True)


# -- the tests


def check_named(name: str) -> Callable[[History], list]:
    return next(check for check in CHECKS if check.__name__ == f"check_{name.split('__')[0]}")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    history = PLANTED[name]().history()
    found = check_named(name)(history)
    assert found, f"nothing was found in the story of {name}"
    assert {violation.check for violation in found} == {name.split("__")[0]}
    assert all(0 <= place < len(history.lines) for violation in found for place in violation.places)


def test_every_check_has_a_story_in_which_it_fails() -> None:
    assert {name.split("__")[0] for name in PLANTED} == {
        check.__name__.removeprefix("check_") for check in CHECKS
    }


def test_a_clean_history_passes() -> None:
    assert check_history(clean().history()) == []


@pytest.mark.parametrize(
    ("strategy", "second"),
    [("NewestFirst", {}), ("CustomPriority", {"priority": 1}), ("CustomPriority", {}), ("Random", {})],
)
def test_each_order_has_an_order_of_its_own(strategy: str, second: dict[str, int]) -> None:
    assert check_history(out_of_order(strategy, **second).history()) == []


def test_a_small_window_hands_out_what_it_sees() -> None:
    s = out_of_order("OldestFirst")
    s.recorder.lines[0] = Header(window=2)
    assert check_history(s.history()) == []


@pytest.mark.parametrize(("window", "wrong"), [(2, False), (0, True)])
def test_what_a_small_window_parked_until_it_is_due_may_be_passed_over(window: int, wrong: bool) -> None:
    s = Story()
    s.recorder.lines[0] = Header(window=window)
    s.submit(10, not_before=BEGIN + 1.0)
    s.submit(11)
    s.wait(2.0)
    s.reserve(1, (11, 0, 1, 1), strategy="Fair")
    s.reserve(2, (10, 0, 1, 1), strategy="Fair", run={"not_before": BEGIN + 1.0})
    assert bool(check_named("fifo_inside_a_tenant")(s.history())) is wrong


def test_who_is_paused_is_passed_over() -> None:
    s = Story()
    s.submit(10, tenant="a")
    s.submit(11, tenant="b")
    s.go("pause", None, on=True, tenant="a", sub=0)
    s.reserve(1, (11, 0, 1, 1), strategy="OldestFirst")
    s.go("pause", None, on=False, tenant="a", sub=0)
    s.reserve(2, (10, 0, 1, 1), strategy="OldestFirst")
    assert check_history(s.history()) == []


def test_a_chunk_that_failed_may_stay_away_as_long_as_it_was_told() -> None:
    assert check_history(came_back("fail", "retrying", 2, delay_seconds=20.0).history()) == []
    assert (
        check_history(came_back("fail", "retrying", 2, wait=0.5).history()) == []
    )  # the queue's own back-off


def test_a_batch_that_is_not_whole_may_be_finished_where_it_need_not_be() -> None:
    s = batch(whole=True)
    finish = s.recorder.lines[-2]
    assert isinstance(finish, Begin) and finish.args["whole"]
    finish.args["whole"] = False
    s.reserve(2, (10, 1, 1, 1))
    assert check_history(s.history()) == []


@pytest.mark.parametrize("silence", [5.0, 20.0])
def test_what_lapsed_in_a_silence_is_not_settled_with_the_batch(silence: float) -> None:
    s = Story(consumer_silent_seconds=10.0)
    s.note("start", clock=BEGIN)
    s.submit(10, 2)
    s.go("join", 1, consumer="c", run="r")
    named(s, 1, (10, 0, 2, 1))
    s.settle("complete", 1, (10, 0, 1), outcome="done")  # from now on it is handed back as it is
    s.wait(silence)
    named(s, 1, (10, 0, 2, 1))
    told = {"outcomes": [], "failed": [], "rest": 0, "before": 1}
    s.go("finish", told, consumer="c", consumer_epoch=0, run="r", whole=False, parts=[], failed=[])
    s.reserve(2, (10, 1, 1, 2))
    assert bool(check_named("finished_is_settled")(s.history())) is (silence < 10.0)


def test_a_ceiling_counts_only_what_is_surely_in_flight() -> None:
    strategy = 'OrElse(SelectOnly("mode", "fast", Fair), MaxSimultaneous("tenant", 1, Fair))'
    s = Story()
    s.submit(10, 9)
    s.reserve(1, (10, 0, 1, 1), seconds=5.0)
    s.wait(6.0)
    s.reserve(2, (10, 1, 1, 1), strategy=strategy)  # the first ran out
    s.settle("complete", 2, (10, 1, 1), outcome="done")
    s.reserve(3, (10, 2, 1, 1), strategy=strategy)  # the second was completed
    s.reserve(4, (10, 3, 1, 1), strategy=strategy, run={"metadata": {"mode": "fast"}})  # not limited
    assert check_named("ceilings_hold")(s.history()) == []


def test_a_limit_may_be_full_of_what_nobody_answered() -> None:
    assert check_named("limits_open_again")(limited("lost").history()) == []


def test_a_receipt_that_has_not_run_out_outlives_a_redrive() -> None:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1), seconds=60.0)
    s.wait(10.0)
    s.go("cancel", submission(10, total=2, state="cancelled"), sub=10)
    s.go("redrive", submission(10, total=2, life=2), sub=10)
    s.settle("complete", 1, (10, 0, 1), outcome="done")
    assert check_named("receipts_end_with_their_life")(s.history()) == []


def trimmed(complete: bool, *, seq: int = 1, **run: Any) -> Story:
    """A named reservation is trimmed, then a limit of one lets another chunk through."""
    s = Story()
    s.submit(10, 3)
    s.submit(20)
    named(s, 1, (10, 0, 1, 1), **{"policy": "dead_letter", **run})
    s.go("trim", who="bob", consumer="c", consumer_epoch=1, seq=seq, complete=complete)
    s.reserve(2, (20, 0, 1, 1), strategy='MaxSimultaneous("tenant", 1, Fair)')
    return s


def test_what_a_trim_completed_is_not_in_flight() -> None:
    assert check_named("ceilings_hold")(trimmed(complete=True).history()) == []
    assert check_named("ceilings_hold")(trimmed(complete=False).history())


@pytest.mark.parametrize("run", [{"deadline": BEGIN + 1.0}, {"policy": "fail_fast"}])
def test_a_trim_lets_go_what_is_left_of_an_ended_submission(run: dict[str, Any]) -> None:
    assert check_named("ceilings_hold")(trimmed(complete=False, **run).history()) == []
    assert check_named("ceilings_hold")(trimmed(complete=False, seq=0, **run).history())


@pytest.mark.parametrize("trimmed", [True, False])
def test_what_a_trim_let_go_is_leased_by_nobody_after_a_redrive(trimmed: bool) -> None:
    s = Story()
    s.submit(10)
    named(s, 1, (10, 0, 1, 1), policy="dead_letter")
    s.go("cancel", submission(10, state="cancelled"), sub=10)
    if trimmed:
        s.go("trim", consumer="c", consumer_epoch=1, seq=1, complete=False)
    s.go("redrive", submission(10, life=2), sub=10)
    s.reserve(2, (10, 0, 1, 1))
    assert bool(check_named("no_double_lease")(s.history())) is not trimmed


@pytest.mark.parametrize("power_loss", [True, False])
def test_who_asks_again_after_a_power_loss_may_be_given_something_else(power_loss: bool) -> None:
    s = Story()
    s.submit(10, 2)
    s.reserve(1, (10, 0, 1, 1), number=1)
    if power_loss:
        s.note("power_loss")
    s.reserve(1, (10, 1, 1, 1), number=1, epoch=2)
    s.settle("complete", 1, (10, 1, 1), outcome="done", epoch=2)
    assert check_named("settled_receipts_were_given")(s.history()) == []
    assert bool(check_named("same_number_same_answer")(s.history())) is not power_loss


@pytest.mark.parametrize("lost", [True, False])
def test_a_back_off_says_nothing_of_what_was_handed_out_before(lost: bool) -> None:
    """The later reservation was not yet synced and went with the power, so the earlier receipt counts again."""
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=1.0)
    s.wait(2.0)
    s.reserve(2, (10, 0, 1, 2))
    s.note("power_loss")
    s.settle("fail", 1, (10, 0, 1), outcome="retrying", delay_seconds=20.0)
    s.wait(30.0 if lost else 10.0)
    s.reserve(3, (10, 0, 1, 2))
    assert bool(check_named("back_off_holds")(s.history())) is not lost


@pytest.mark.parametrize("attempt", [1, 2])
def test_the_first_answer_of_a_reservation_may_come_after_a_later_one(attempt: int) -> None:
    """Another process takes the name over, and is handed it back before the first one hears of it."""
    s = Story()
    s.submit(10)
    s.reserve(1, (10, 0, 1, 1), seconds=1.0)
    s.wait(2.0)
    args = {"max": 1, "lease_seconds": 60.0, "consumer": "c", "seq": 1}
    first = s.ask("reserve", **args, consumer_epoch=1)
    ok = {"epoch": 1, "count": 2, "deadline": s.t + 60.0}
    runs = [s._run(10, {})]
    s.go(
        "reserve",
        ok | {"spans": [[10, 0, 1, attempt + 2]], "runs": runs},
        who="bob",
        **args,
        consumer_epoch=2,
    )
    s.answer(first, ok | {"spans": [[10, 0, 1, attempt + 1]], "runs": runs})
    assert bool(check_named("attempts_are_counted")(s.history())) is (attempt > 1)


@pytest.mark.parametrize("days", [31, 1])
def test_a_key_that_ran_out_is_free_also_for_who_asked_first(days: int) -> None:
    s = Story()
    s.note("start", clock=BEGIN)
    offer = {"tenant": "", "total": 1, "policy": "dead_letter", "key": "k"}
    s.ask("submit", offers=[offer], number=1)
    s.submit(10, key="k", number=2)
    s.submit(10, key="k", known=True, number=3)
    s.wait(days * 86_400.0)
    s.go("submit", {"ids": [11], "known": [False]}, offers=[offer], number=1)
    assert bool(check_named("keys_name_one_submission")(s.history())) is (days < 30)


@pytest.mark.parametrize("seconds", [4000.0, 10.0])
def test_a_name_that_was_forgotten_begins_again_also_for_who_asked_first(seconds: float) -> None:
    """What was sent first is answered last, after the name was silent for long."""
    s = Story(consumer_silent_seconds=60.0)
    s.note("start", clock=BEGIN)
    s.ask("join", consumer="c", number=1)
    s.go("join", 1, consumer="c", number=2)
    s.wait(seconds)
    s.go("join", 1, consumer="c", number=1)
    assert bool(check_named("consumers_are_fenced")(s.history())) is (seconds < 600.0)


def shrunk(asked_late: bool) -> Story:
    """A reservation loses chunk 1 before chunk 0 is completed, or after; its first answer is told only then."""
    s = Story()
    s.submit(10, 3)
    args = {"consumer": "c", "consumer_epoch": 1, "seq": 1}
    first = s.ask("reserve", max=100, lease_seconds=60.0, number=1, **args)
    ok = {"epoch": 1, "count": 1, "deadline": s.t + 60.0, "spans": [[10, 0, 2, 1]], "runs": []}
    if asked_late:
        s.answer(first, ok)
        first = s.ask("reserve", max=100, lease_seconds=60.0, number=2, **args)
    s.settle("complete", 1, (10, 0, 1), outcome="done", who="bob")
    if asked_late:
        s.answer(first, ok)
        s.go("reserve", ok, max=100, lease_seconds=60.0, number=3, **args)
    else:
        s.ask("reserve", max=100, lease_seconds=60.0, number=1, **args)
        s.answer(first, ok)
    s.go("reserve", {**ok, "spans": [[10, 0, 1, 1]]}, max=100, lease_seconds=60.0, number=4, **args)
    return s


def test_an_answer_may_be_as_old_as_its_request() -> None:
    assert check_named("named_is_handed_back")(shrunk(asked_late=False).history()) == []
    assert check_named("named_is_handed_back")(shrunk(asked_late=True).history())


@pytest.mark.parametrize("known", [True, False])
def test_nobody_knows_when_a_submission_began_whose_submit_had_no_answer(known: bool) -> None:
    s = Story(retention_seconds=60.0)
    s.note("start", clock=BEGIN)
    s.ask("submit", offers=[{"tenant": "a", "total": 1, "key": "k"}])
    s.wait(58.0)
    s.submit(10, tenant="a", key="k", known=known)
    s.wait(5.0)
    s.go("show", error="not_found", sub=10)
    assert bool(check_named("accepted_is_found")(s.history())) is not known


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("strategy", ["Fair", 'MaxSimultaneous("tenant", 1, Fair)'])
def test_who_said_goodbye_waits_no_more(left: bool, strategy: str) -> None:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10)
    waiting = s.ask("reserve", max=1, number=2, strategy=strategy)
    if left:
        s.ask("goodbye", number=1)
    s.answer(waiting, {"epoch": 0, "count": 0, "deadline": 0.0, "spans": [], "runs": []})
    s.reserve(1, (10, 0, 1, 1), strategy="Fair", who="bob")
    name = "no_wrong_empty_answer" if strategy == "Fair" else "limits_open_again"
    assert bool(check_named(name)(s.history())) is not left


@pytest.mark.parametrize("again", [True, False])
def test_a_call_that_is_sent_again_waits_no_longer_than_the_first(again: bool) -> None:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10)
    args = {"max": 1, "wait_seconds": 20.0, "strategy": "Fair", "number": 1}
    if again:
        s.ask("reserve", **args)
    s.wait(25.0)
    waiting = s.ask("reserve", **args)
    s.answer(waiting, {"epoch": 0, "count": 0, "deadline": 0.0, "spans": [], "runs": []})
    s.wait(30.0)
    s.reserve(1, (10, 0, 1, 1), strategy="Fair", who="bob", run={"not_before": BEGIN + 40.0})
    assert bool(check_named("no_wrong_empty_answer")(s.history())) is not again


@pytest.mark.parametrize(
    "sound", [{"dead": 2}, {"dead": 1, "policy": "fail_fast"}, {"dead": 1, "deadline": BEGIN}]
)
def test_what_failed_may_leave_chunks_only_if_it_fails_fast_or_was_late(sound: dict[str, Any]) -> None:
    assert check_named("ends_have_a_cause")(ended_with(**sound).history()) == []


def test_a_chunk_dies_of_its_last_attempt_or_for_good() -> None:
    for story in (given_up(2), given_up(1, own=1), given_up(1, retry=False)):
        assert check_named("deaths_have_a_cause")(story.history()) == []


@pytest.mark.parametrize("told", [True, False])
def test_a_submission_that_nobody_was_told_of_may_have_fewer_attempts(told: bool) -> None:
    """A reserve that is answered once more, after the submission ended, does not describe it."""
    s = Story(attempts_max=5)
    s.submit(10, attempts_max=1)
    args = {"max": 1, "lease_seconds": 5.0}
    waiting = s.ask("reserve", **args)
    s.wait(30.0)
    s.show(10, failed=1, state="failed")
    ok = {"epoch": 1, "count": 1, "deadline": BEGIN + 5.0, "spans": [[10, 0, 1, 1]], "runs": []}
    s.answer(waiting, ok | ({"runs": [s._run(10, {"attempts_max": 5})]} if told else {}))
    assert bool(check_named("deaths_have_a_cause")(s.history())) is told


@pytest.mark.parametrize("later", [True, False])
def test_of_those_who_wait_for_one_chunk_one_gets_it(later: bool) -> None:
    """It comes due while two wait; whoever asks only when it is due already was not waiting."""
    s = Story()
    s.note("start", clock=BEGIN)
    first = s.ask("reserve", who="bob", max=1, wait_seconds=20.0, strategy="Random")
    s.wait(1.0)
    s.submit(10)
    s.wait(10.0 if later else 1.0)
    run = {"not_before": BEGIN + 5.0}
    second = s.ask("reserve", max=1, lease_seconds=60.0, wait_seconds=30.0, strategy="Fair")
    s.wait(4.0)
    told = {"epoch": 1, "count": 1, "deadline": s.t + 60.0, "spans": [[10, 0, 1, 1]]}
    s.answer(second, told | {"runs": [s._run(10, run)]})
    s.wait(BEGIN + 20.0 - s.t)
    s.answer(first, {"epoch": 0, "count": 0, "deadline": 0.0, "spans": [], "runs": []})
    assert bool(check_named("no_wrong_empty_answer")(s.history())) is later


def test_a_receipt_may_be_refused_if_its_chunk_or_its_submission_may_be_over() -> None:
    for story in (after_its_lease(attempt=2), after_its_lease(policy="fail_fast")):
        assert check_named("good_receipts_count")(story.history()) == []


def test_dead_letters_need_not_be_on_this_page_nor_be_listed_when_they_may_be_redriven() -> None:
    for story in (listed(0), listed(0, limit=1), listed(after=10), listed(before="redrive")):
        assert check_named("dead_letters_are_listed")(story.history()) == []


@pytest.mark.parametrize("sound", [{"op": "goodbye"}, {"op": "reserve"}, {"seconds": 60.0}, {"clock": -5.0}])
def test_a_client_may_be_unknown_that_left_or_may_have_been_silent(sound: dict[str, Any]) -> None:
    assert check_named("clients_are_remembered")(unknown(**sound).history()) == []


def test_a_share_may_be_of_all_who_came_in_the_last_minute() -> None:
    for story in (shared(67), shared(100, seconds=61.0)):
        assert check_named("ceilings_hold")(story.history()) == []


def test_a_later_step_may_choose_where_an_earlier_one_may_be_full_or_has_nothing() -> None:
    tell = not_preferred
    for story in (tell(DISTINCT, before=True), tell(DISTINCT, out="lost"), tell(DISTINCT, tenant="a")):
        assert check_named("earlier_steps_come_first")(story.history()) == []
    assert check_named("earlier_steps_come_first")(tell(DISTINCT, out="done").history())


def test_a_consumer_that_gave_no_sign_loses_what_it_had() -> None:
    assert check_named("no_double_lease")(after_a_sign(sign=False).history()) == []


@pytest.mark.parametrize(
    "told",
    [taken_over(4, 2), taken_over(1, 1, 2), taken_over(4, 4, done=True)],
    ids=["half", "alone", "begun"],
)
def test_a_consumer_is_handed_half_or_what_was_begun(told: Story) -> None:
    assert check_named("taken_over_is_halved")(told.history()) == []


@pytest.mark.parametrize("error", REFUSED)
def test_a_refusal_with_a_cause_is_sound(error: str) -> None:
    op, args = REFUSED[error]
    told = refused(op, error, cause=True, **args)
    assert check_named("refusals_have_a_cause")(told.history()) == []


@pytest.mark.parametrize(
    "told",
    [
        counted_leases(2),
        counted_leases(3, unseen=True),
        counted_leases(0, answer="done"),
        counted_leases(0, answer="ended"),
        counted_leases(0, wait=61.0),
    ],
)
def test_leases_are_those_that_callers_may_hold(told: Story) -> None:
    assert check_named("leases_match_callers")(told.history()) == []


@pytest.mark.parametrize("power_loss", [False, True])
def test_with_the_power_a_lease_that_was_released_may_be_back(power_loss: bool) -> None:
    s = Story()
    s.note("start", clock=BEGIN)
    s.submit(10, 2)
    s.reserve(1, (10, 0, 2, 1))
    s.settle("release", 1, (10, 0, 2), outcome="released")
    if power_loss:
        s.note("power_loss")
    s.go("census", census([submission(10, total=2, leased=2)], []))
    assert bool(check_named("leases_match_callers")(s.history())) is not power_loss


def test_counters_rise_by_what_was_told() -> None:
    assert check_named("counters_count")(censused_twice("completed", 1).history()) == []
    s = censused_twice("completed", 1)
    s.recorder.lines[-2:-2] = [s.recorder.lines[1]]  # another owner counts anew
    assert check_named("counters_count")(s.history()) == []


def test_a_reason_is_told_as_it_was_given() -> None:
    assert check_named("reasons_are_those_given")(told_dead().history()) == []
    s = told_dead(error="another")
    s.ask("redrive", sub=10)  # it may have died again since
    assert check_named("reasons_are_those_given")(s.history()) == []


@pytest.mark.parametrize(("log", "wait"), [(LOG, 0.0), ([], 101.0)])
def test_the_log_has_what_is_young(log: list[list[Any]], wait: float) -> None:
    told = audited(log, wait=wait).history()
    assert check_named("events_are_told")(told) == [] and check_named("events_happened_once")(told) == []


def test_a_store_may_be_as_empty_as_it_says() -> None:
    s = clean()
    s.note("swept", left={})
    assert check_history(s.history()) == []


def test_a_redrive_opens_what_was_dead_in_a_later_life() -> None:
    s = redriven()
    s.go("redrive", submission(10, total=2, life=3), sub=10)
    assert check_named("redrives_start_over")(s.history()) == []


@pytest.mark.parametrize(("outcome", "attempt", "ended"), [("dead", 1, False), ("retrying", 2, False)])
def test_what_was_tried_counts_on_in_a_submission_that_went_on(
    outcome: str, attempt: int, ended: bool
) -> None:
    told = next_life(outcome, attempt, ended=ended)
    assert check_named("lives_have_all_attempts")(told.history()) == []


@pytest.mark.parametrize(
    "story",
    [
        overtaken(late=1.5),  # it may have come as late
        overtaken(before=True),
        overtaken(number=0),  # it may have come anew, as a part of one wait
        overtaken(ONE_EACH, "Fair"),
        overtaken('SelectOnly("mode", "preview", Fair)', "Fair"),
        overtaken("Random", plan_steps=0),  # its plan may be in the making
        overtaken(meanwhile=lambda s: s.note("start", clock=s.t)),
        overtaken(meanwhile=lambda s: s.ask("goodbye", number=2)),
        overtaken("", meanwhile=lambda s: s.go("configure", {}, strategy=ONE_EACH)),
    ],
)
def test_who_may_have_come_later_or_may_want_something_else_is_not_overtaken(story: Story) -> None:
    assert check_named("first_come_first_served")(story.history()) == []


@pytest.mark.parametrize(
    "story",
    [
        lane(lambda s: s.wait(600.0)),  # its plan may have rested
        lane(lambda s: s.note("start", clock=s.t), epoch=2),
        lane(lambda s: s.go("set_weight", None, tenant="a", weight=2000)),
        lane(lambda s: s.go("pause", None, on=True, tenant="b")),
        lane(lambda s: s.reserve(2, (30, 0, 1, 1), strategy=f'MaxSimultaneous("tenant", 1, {PREVIEW})')),
        lane(lambda s: s.ask("reserve", max=1, strategy=PREVIEW)),  # nobody saw what it was given
        lane(strategy=f'PreferDistinct("tenant", 1, {PREVIEW})'),
        lane(strategy='SelectOnly("mode", "preview", OldestFirst)'),
    ],
)
def test_shares_of_a_selection_are_counted_only_while_its_turns_go_on(story: Story) -> None:
    assert check_named("fair_shares_of_selections")(story.history()) == []


@pytest.mark.parametrize("strategy", ["Fair", PREVIEW])
@pytest.mark.parametrize("left", [True, False])
def test_who_had_nothing_for_a_while_begins_anew(strategy: str, left: bool) -> None:
    s = Story()
    run = {"metadata": {"mode": "preview"}}
    s.submit(10, 3, tenant="a")
    s.submit(20, tenant="b")
    if not left:
        s.submit(21, tenant="b")
    s.reserve(1, (10, 0, 2, 1), strategy=strategy, run=run)
    s.reserve(2, (20, 0, 1, 1), strategy="OldestFirst", run=run)
    if left:
        s.submit(21, tenant="b")
    s.reserve(3, (10, 2, 1, 1), strategy=strategy, run=run)
    s.reserve(4, (21, 0, 1, 1), strategy=strategy, run=run)
    name = "fair_shares" if strategy == "Fair" else "fair_shares_of_selections"
    assert bool(check_named(name)(s.history())) is not left


@pytest.mark.parametrize("limited", [True, False])
def test_what_is_taken_under_a_limit_is_charged_as_well(limited: bool) -> None:
    """A tenant is served under a limit that the other one has reached; then it is the other's turn, and once more."""
    s = Story()
    s.submit(10, 5, tenant="a")
    s.submit(20, 5, tenant="b")
    for n in range(3):
        s.reserve(2 * n + 1, (10, n, 1, 1), strategy="Fair")
        if limited:
            s.reserve(2 * n + 2, (20, n, 1, 1), strategy=ONE_EACH)
    s.reserve(7, (20, 3, 2, 1), (10, 3, 2, 1), strategy="Fair")
    assert bool(check_named("fair_shares")(s.history())) is not limited


def test_a_violation_is_told_with_its_lines() -> None:
    history = PLANTED["no_double_lease"]().history()
    story = check_named("no_double_lease")(history)[0].story(history)
    assert "leased until" in story and story.count("reserve") == 2 and "deadline=" in story


def test_a_file_that_is_no_history_is_refused_with_its_line() -> None:
    with pytest.raises(BadHistory, match="line 1"):
        parse(b'{"is": "note", "t": 1, "what": "x"}\n')
    with pytest.raises(BadHistory, match="line 2"):
        parse(clean().recorder.dump().split(b"\n")[0] + b"\nnonsense\n")
    with pytest.raises(BadHistory, match="format 9"):
        parse(b'{"is": "header", "format": 9}\n')
