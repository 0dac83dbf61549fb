"""Everything that can be said comes out of a frame with the type it had when it went in."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from fairway.engine import commands as c
from fairway.errors import FairwayError, LeaseLost, OurError, QueueHeld, all_errors
from fairway.model.submission import DeadChunk, Described, Offer, Submission
from fairway.runtime import wire

DESCRIBED = Described(
    "acme", 3, {"mode": "preview", "n": -(2**63)}, b"\x00info", -7, "dead_letter", (0, 2), (("s3://b/p", 3),),
    1.0, 2.0, 9, "key", True, b"\xff" * 16,
)  # fmt: skip
PARTS = [c.Part(2**40, 3, 2**63 - 1, [(2**62, 0, 5), (7, 2, 1)])]
SUBMISSION = Submission(
    5, "active", "acme", 3, 1, 0, 1, 1.0, metadata={"a": "b", "n": 3}, info=b"i", key="k", error="é"
)

COMMANDS = [
    c.Register(),
    c.Submit([Offer(DESCRIBED, (b"page", b""), 1500, 1.0, 2.0), Offer(Described("", 0))]),
    c.Reserve(10, "Fair", 60.0, 20.0, "me", 3, 7),
    c.Complete(PARTS, [b"r", None, b""], True, 77),
    c.Complete(PARTS),
    c.Fail(PARTS, "why", False, 5.0),
    c.Renew(PARTS, 60.0),
    c.Release(PARTS),
    c.Cancel(2**62),
    c.Redrive(1),
    c.Pause(True, "t", 5),
    c.Pause(False),
    c.SetWeight("t", 1500),
    c.Configure({"attempts_max": 5, "lease_seconds": 60.0, "strategy": "Fair", "flag": True}),
    c.Join("me"),
    c.Trim("me", 1, 4, True),
    c.Finish("me", 1, "run", [c.Complete(PARTS, [b"x", None])], [c.Fail(PARTS, "no")], b"first", b"others"),
    c.Purge([1, 2], [("t", "k")], 5.0),
    c.Goodbye(),
    c.Show(1),
    c.Wait(1, 2.0),
    c.ListActive("t", {"a": 1, "b": "x"}, 5, 10),
    c.ListActive(),
    c.ListDead(1, 2),
    c.Stats(),
    c.Tenants("a", 5),
    c.Tenants(),
    c.Consumers(),
    c.Explain("Fair", 3),
    c.Winners(1, 2, 3),
    c.ShowConfig(),
]

REPLIES: dict[type, list[object]] = {
    int: [0, 2**63 - 1],
    c.Accepted: [c.Accepted([2**62, 1], [True, False])],
    c.Reserved: [
        c.Reserved(2**40, 3, 2**63, 1.0, [(5, 0, 3, 2)], {5: DESCRIBED}),
        c.Reserved(0, 0, 0, 0.0, []),
    ],
    c.Finished: [c.Finished([c.Settled([("done", 3)])], [c.Settled([("dead", 1)])], 5, 1)],
    c.Settled: [c.Settled([("done", 3), ("lost", 1)], 4.0), c.Settled([])],
    Submission: [SUBMISSION],
    type(None): [None],
    dict: [{"a": 1, "b": 1.0, "c": "x", "d": True, "e": None}],
    list[Submission]: [[SUBMISSION], []],
    list[DeadChunk]: [[DeadChunk(1, 2, "t", 3, "e", 4.0)], []],
    c.QueueStats: [c.QueueStats("q", 1, 2, 3, 4, 5, 6, 7, 8, True, 9, 10, 11)],
    list[c.TenantView]: [[c.TenantView("a", 1.0, False, 1, 2, 3)], []],
    list[c.ConsumerView]: [[c.ConsumerView("me", 1, [1, 2], 3.0)], []],
    str: ["", "text é"],
    list[c.Win]: [[c.Win(0, 3, 2**40, 5, 7, 2)], []],
}


def test_the_tables_are_complete() -> None:
    assert {type(command) for command in COMMANDS} == set(get_args(c.Command))
    assert set(wire.REPLIES) == set(get_args(c.Command))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_call_comes_out_as_it_went_in(command: Any) -> None:
    call = c.Call(command, 3, 2**40, 5)
    ask = wire.at_host(wire.encode(wire.Ask(2**33, call)))
    assert isinstance(ask, wire.Ask)
    assert repr(ask) == repr(
        wire.Ask(2**33, call)
    )  # which also tells 1 from 1.0 and True, and a list from a tuple


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_reply_comes_out_as_it_went_in(command: Any) -> None:
    promised = wire.REPLIES[type(command)]
    samples = REPLIES[dict if promised == dict[str, Any] else promised or type(None)]
    for reply in samples:
        answer = wire.at_attached(wire.answer(9, reply))
        assert isinstance(answer, wire.Answer)
        assert answer.tag == 9
        assert repr(wire.reply_to(command, answer.reply)) == repr(reply)


def test_an_answer_of_another_kind_is_not_taken_for_one() -> None:
    answer = wire.at_attached(wire.answer(1, c.Accepted([1], [False])))
    assert isinstance(answer, wire.Answer)
    with pytest.raises(msgspec.DecodeError):
        wire.reply_to(c.Reserve(), answer.reply)


@pytest.mark.parametrize(
    "message",
    [wire.Hello(1, "q é", 5), wire.Barrier(3), wire.GiveUp(4), wire.Got(2**40)],
    ids=lambda message: type(message).__name__,
)
def test_small_words_to_the_host(message: Any) -> None:
    assert wire.at_host(wire.encode(message)) == message


@pytest.mark.parametrize(
    "message", [wire.Welcome(5, 6), wire.Bye(), wire.Beat()], ids=lambda message: type(message).__name__
)
def test_small_words_from_the_host(message: Any) -> None:
    assert wire.at_attached(wire.encode(message)) == message
    assert wire.at_attached(wire.BEAT) == wire.Beat()
    assert wire.at_attached(wire.BYE) == wire.Bye()


ERRORS = [kind for kind in all_errors().values() if kind.__module__ == FairwayError.__module__]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_keeps_class_message_and_details(kind: type[FairwayError]) -> None:
    for error in (kind(), kind("said é", pid=7, argument="max", none=None, some=[1, "a"])):
        for frame in (wire.failed(3, error), wire.refused(error)):
            message = wire.at_attached(frame)
            assert isinstance(message, wire.Failed | wire.Refused)
            again = wire.error_of(message)
            assert (type(again), str(again), again.details) == (kind, str(error), error.details)


def test_details_that_cannot_be_sent_are_told_as_text() -> None:
    for odd in (1 + 2j, 2**80, object):
        message = wire.at_attached(wire.failed(3, LeaseLost("x", odd=odd, pid=1)))
        assert isinstance(message, wire.Failed)
        again = wire.error_of(message)
        assert type(again) is LeaseLost
        assert again.details["odd"] == repr(odd)


def test_an_error_of_a_later_version_is_ours() -> None:
    again = wire.error_of(wire.Failed(1, "from_the_future", "text", {"pid": 3}))
    assert type(again) is OurError
    assert (str(again), again.details) == ("text", {"pid": 3, "code": "from_the_future"})


def test_the_tag_of_what_is_not_quite_a_call() -> None:
    assert wire.tag_of(msgspec.msgpack.encode([2, 17, "not a call"])) == 17
    for other in ([2], [2, "x", 1], [3, 17], {"a": 1}, 5):
        assert wire.tag_of(msgspec.msgpack.encode(other)) is None
    assert wire.tag_of(b"\xc1garbage") is None
    assert wire.error_of(wire.Refused(QueueHeld.code, "t")).code == QueueHeld.code
