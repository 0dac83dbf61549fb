"""Leases that are given back: parts keep their order, outcomes find their lease."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.engine.commands import Complete, Fail, Part, Release, Renew, Reserved, Settled
from fairway.errors import AlreadyEnded, BadArgument, LeaseLost
from fairway.face.receipts import Leases, held, parts_of, spread
from fairway.model.lease import Lease, ticket_of
from fairway.model.submission import Described
from tests.face.script import Script, verbs

DESCRIBED = Described("", 100)
Chunk = tuple[int, int, int, int, int]


def lease(submission: int, index: int, epoch: int = 1, count: int = 1, seal: int = 5) -> Lease:
    return Lease(submission, index, 1, 10.0, epoch, count, seal, DESCRIBED)


def unfolded(parts: list[Part]) -> list[Chunk]:
    return [
        (submission, index, part.epoch, part.count, part.seal)
        for part in parts
        for submission, start, count in part.spans
        for index in range(start, start + count)
    ]


chunks = st.tuples(
    st.integers(1, 3), st.integers(0, 6), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)
)


@given(st.lists(chunks, max_size=30), st.data())
def test_parts_say_what_the_leases_say_in_their_order(wanted: list[Chunk], data: st.DataObject) -> None:
    leases = [lease(*chunk) for chunk in wanted]
    given = [one.receipt if data.draw(st.booleans()) else one for one in leases]
    assert unfolded(parts_of(given)) == wanted


def test_neighbours_share_spans_and_parts() -> None:
    leases = [lease(7, i) for i in range(50)] + [lease(8, 3)] + [lease(7, i, count=2) for i in (4, 6)]
    assert parts_of(leases) == [Part(1, 1, 5, [(7, 0, 50), (8, 3, 1)]), Part(1, 2, 5, [(7, 4, 1), (7, 6, 1)])]


@given(st.lists(st.tuples(st.sampled_from(["done", "lost", "ended"]), st.integers(1, 4)), max_size=8))
def test_spread_gives_one_outcome_per_chunk(runs: list) -> None:
    assert spread(runs) == [outcome for outcome, n in runs for _ in range(n)]


def test_a_receipt_reads_back() -> None:
    one = lease(2**62, 2**31 - 2, 2**63, 2**40, 2**64 - 1)
    ticket = ticket_of(one.receipt)
    assert (ticket.submission, ticket.index, ticket.epoch) == (one.submission, one.index, one.epoch)
    assert (ticket.count, ticket.seal) == (one.count, one.seal)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9), st.integers(1, 3)), min_size=1), st.data())
def test_what_a_reserve_gave_is_given_back_as_it_is_now(
    spans: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    reserved = Reserved(1, 1, 5, 10.0, [(*span, 1) for span in spans])
    given = [lease(id, index) for id, start, n in spans for index in range(start, start + n)]
    leases = Leases(list(given), reserved)
    assert leases == given and held(leases) == (given, False) and unfolded(parts_of(leases)) == wanted(given)
    for change in data.draw(st.lists(st.sampled_from(["pop", "swap", "add", "clear"]), max_size=3)):
        if change == "add":
            leases.append(lease(7, 7))
        elif change == "swap":
            leases.reverse()
        elif change == "clear":
            leases.clear()
        elif leases:
            leases.pop(data.draw(st.integers(0, len(leases) - 1)))
        assert unfolded(parts_of(leases)) == unfolded(parts_of(held(leases)[0])) == wanted(leases)


def wanted(leases: list[Lease]) -> list[Chunk]:
    return [(one.submission, one.index, one.epoch, one.count, one.seal) for one in leases]


def test_what_a_reserve_gave_is_sent_as_a_plain_list() -> None:
    leases = Leases([lease(1, 0)], Reserved(1, 1, 5, 10.0, [(1, 0, 1, 1)]))
    sent = pickle.loads(pickle.dumps(leases))
    assert type(sent) is list and sent == leases


def test_held_tells_one_from_many() -> None:
    one = lease(1, 0)
    assert held(one) == ([one], True)
    assert held(one.receipt) == ([one.receipt], True)
    assert held([one]) == ([one], False)
    assert held(iter([one])) == ([one], False)
    with pytest.raises(BadArgument):
        held(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["complete", "fail", "release", "renew"])
@pytest.mark.parametrize(("outcome", "error"), [("lost", LeaseLost), ("ended", AlreadyEnded)])
def test_a_single_lease_that_is_gone_raises(verb: str, outcome: str, error: type[Exception]) -> None:
    script = Script(
        **dict.fromkeys(("Complete", "Fail", "Release", "Renew"), lambda c: Settled([(outcome, 1)]))
    )
    for one in (lease(9, 4), lease(9, 4).receipt):
        with pytest.raises(error, match="chunk 4 of submission 9"):
            script.run(getattr(verbs(), verb)(one))
    many = script.run(getattr(verbs(), verb)([lease(9, 4)]))
    assert many == ([] if verb == "renew" else [outcome])


def test_a_single_lease_gives_its_outcome() -> None:
    script = Script(
        Complete=lambda c: Settled([("already", 1)]),
        Fail=lambda c: Settled([("dead", 1)]),
        Release=lambda c: Settled([("released", 1)]),
        Renew=lambda c: Settled([("renewed", 1)], 99.0),
    )
    one = lease(9, 4)
    assert script.run(verbs().complete(one)) == "already"
    assert script.run(verbs().fail(one, "why", retry=False, delay_seconds=2)) == "dead"
    assert script.run(verbs().release(one)) == "released"
    renewed = script.run(verbs().renew(one, 30))
    assert (renewed.deadline, renewed.receipt) == (99.0, one.receipt)
    assert script.run(verbs().renew(one.receipt)) == one.receipt
    part = [Part(1, 1, 5, [(9, 4, 1)])]
    assert script.asked == [
        Complete(part), Fail(part, "why", False, 2.0), Release(part), Renew(part, 30.0), Renew(part, 0.0)
    ]  # fmt: skip


def test_nothing_given_asks_nothing() -> None:
    script = Script()
    for verb in ("complete", "fail", "release", "renew"):
        assert script.run(getattr(verbs(), verb)([])) == []
    assert script.run(verbs().complete([], results=[])) == []


def test_more_than_one_call_holds_are_cut_and_the_outcomes_put_together() -> None:
    many = limits.CALL_CHUNKS_MAX + 5
    leases = [lease(9, i) for i in range(many)]

    def settle(command: Complete) -> Settled:
        n = sum(count for part in command.parts for _, _, count in part.spans)
        return Settled([("done", n - 1), ("lost", 1)])

    script = Script(Complete=settle, Release=settle)
    wanted = ["done"] * (limits.CALL_CHUNKS_MAX - 1) + ["lost"] + ["done"] * 4 + ["lost"]
    assert script.run(verbs().release(leases)) == wanted
    assert script.run(verbs().complete(leases, results=[b""] * many)) == wanted
    assert len(script.asked) == 4


def test_of_many_renewed_those_that_are_lost_are_left_out() -> None:
    script = Script(Renew=lambda c: Settled([("renewed", 1), ("lost", 1), ("renewed", 1)], 50.0))
    renewed = script.run(verbs().renew([lease(9, i) for i in range(3)], 10))
    assert [(one.index, one.deadline) for one in renewed] == [(0, 50.0), (2, 50.0)]
