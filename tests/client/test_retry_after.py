"""A client that was refused for now comes again, and does not come before it is told to."""

from __future__ import annotations

import pytest

from fairway import limits
from fairway.client import wire
from fairway.client.core import Core, Heard, Lost, Rest, Send
from fairway.engine.commands import Register, SetWeight
from fairway.errors import BadArgument, Busy, ClientUnknown, FairwayError, NoHost, SlowBody, TooManyCalls

_GOOD = Heard(200, wire.MSGPACK, wire.answering("1.0"))


def refused(after: float) -> Heard:
    return Heard(503, wire.JSON, wire.refusal(Busy("come again")), after)


def rests(nodes: list[str], answers: list[Heard]) -> list[float]:
    """How long a client rests between calls that are answered so."""
    exchange, found = Core(nodes).ask(Register(), {}), []
    step = next(exchange)
    left = [*answers, _GOOD]
    with pytest.raises(StopIteration):
        while True:
            if isinstance(step, Send):
                step = exchange.send(left.pop(0))
            else:
                assert isinstance(step, Rest)
                found.append(step.seconds)
                step = exchange.send(None)
    assert not left
    return found


def test_a_retry_after_is_waited_for() -> None:
    first, second = rests(["http://a"], [refused(7.0), refused(0.0)])
    assert first == 7.0
    assert second <= limits.CLIENT_PAUSE_SECONDS * 2, "where nothing is said the pauses are its own"


def test_a_call_that_came_too_late_is_sent_again() -> None:
    late = Heard(408, wire.JSON, wire.refusal(SlowBody("the head of the request did not arrive in time")))
    assert len(rests(["http://a"], [late, late])) == 2


def test_a_call_that_met_an_engine_that_was_being_started_is_sent_again() -> None:
    none = Heard(503, wire.JSON, wire.refusal(NoHost("the engine's process went away; try again")))
    assert len(rests(["http://a"], [none, none])) == 2


def test_a_call_that_was_refused_for_good_is_not_sent_again() -> None:
    exchange = Core(["http://a"]).ask(Register(), {})
    next(exchange)
    with pytest.raises(FairwayError) as found:
        exchange.send(Heard(400, wire.JSON, wire.refusal(BadArgument("no"))))
    assert type(found.value) is BadArgument


def test_another_node_is_asked_before_one_is_waited_for() -> None:
    first, second = rests(["http://a", "http://b"], [refused(7.0), refused(5.0)])
    assert first <= limits.CLIENT_PAUSE_SECONDS
    assert second == 5.0, "all have refused"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1.0),
        ("20", 20.0),
        ("86400", limits.CLIENT_AFTER_SECONDS_MAX),
        ("", 0.0),
        ("-1", 0.0),
        ("1e9", 0.0),
    ],
)
def test_only_so_many_seconds_are_believed(text: str, seconds: float) -> None:
    assert wire.seconds_after({"retry-after": text}) == seconds


def test_a_date_is_for_browsers() -> None:
    assert wire.seconds_after({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) == 0.0
    assert wire.seconds_after({}) == 0.0


_FORGOTTEN = Heard(409, wire.JSON, wire.refusal(ClientUnknown("who was silent for a day is forgotten")))


def lanes_of(answers: list[Heard | Lost]) -> list[str]:
    """Under which client's name each call went out that was answered so; the last answer is a good one."""
    exchange, names, left = Core(["http://a"]).ask(SetWeight("a", 2000), {}), [], [*answers]
    step, made = next(exchange), 0
    while True:
        if isinstance(step, Rest):
            step = exchange.send(None)
            continue
        asked = wire.asked(step.body)
        if isinstance(asked.command, Register):
            made += 1
            step = exchange.send(Heard(200, wire.MSGPACK, wire.answering(f"{made}.0")))
            continue
        names.append(asked.client)
        if not left:
            with pytest.raises(StopIteration):
                exchange.send(Heard(200, wire.MSGPACK, wire.answering(None)))
            return names
        step = exchange.send(left.pop(0))


@pytest.mark.parametrize(
    "refusal",
    [
        refused(0.0),
        Heard(429, wire.JSON, wire.refusal(TooManyCalls("come again"))),
        Lost("connection refused", sent=False),
    ],
)
def test_a_client_that_was_forgotten_after_calls_that_were_not_done_goes_on_under_another_name(
    refusal: Heard | Lost,
) -> None:
    assert lanes_of([refusal, _FORGOTTEN]) == ["1.0", "1.0", "2.0"]


def test_a_client_that_was_forgotten_after_a_lost_answer_says_so() -> None:
    """The call may have been carried out under the name that is forgotten: another name would do it twice."""
    with pytest.raises(ClientUnknown):
        lanes_of([Lost("the connection broke", sent=True), _FORGOTTEN])
