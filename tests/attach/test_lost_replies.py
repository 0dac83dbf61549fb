"""A reply that is lost, at whatever point, has one effect and reaches its caller; a request that is over is dropped.

The host is another process. The connection of this one is cut at a byte that the test chooses, in the request or in the
answer; what comes then is the member's own doing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.engine.commands import Call, Register, Reserve, Stats
from fairway.runtime import wire
from tests.attach.member_script import Child, wait_until
from tests.attach.storm.cutting import POINTS, SLOW_SECONDS, Line
from tests.attach.storm.verbs import COMMANDS, VERBS, Reserves, Verb, Waits
from tests.attach.talking import Talk, until

pytestmark = pytest.mark.real


class Desk:
    """A queue in a process of its own, and this process attached to it."""

    def __init__(self, host: Child, path: Path, name: str, line: Line) -> None:
        self.host = host
        self.line = line
        self.name = name
        self.sockets = f"{path.name}-{name}.*.sock"
        self.folder = path.parent
        host.do(f"use(fairway.open({str(path)!r}, queue={name!r}))")
        # Whoever was cut off has time to come back, however busy the machine is.
        host.do("setattr(sys.modules['fairway.runtime.serving'], 'REJOIN_SECONDS', 600.0)")
        line.wait_while_it_stores = lambda: wait_until(lambda: host.do("storing()"))
        self.q = fairway.open(path, queue=name)
        # Whatever must be registered is registered before the call that counts.
        self.q.set_weight("warm", 1)
        self.q.reserve(wait_seconds=0.001)

    def slow_commit(self) -> None:
        """The host's next one."""
        self.host.do(f"slow_commit({SLOW_SECONDS})")

    def close(self) -> None:
        self.q.close()
        self.host.do("q.close()")


_names = count(1)


@pytest.fixture(scope="module")
def host() -> Iterator[Child]:
    with Child() as child:
        yield child


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lost") / "work.db"


@pytest.fixture
def desk(host: Child, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk(host, path, f"queue{next(_names)}", Line(monkeypatch))
    yield desk
    desk.close()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_one_effect_and_the_right_answer(desk: Desk, verb: Verb, point: str) -> None:
    where, part = POINTS[point]
    given = verb.before(desk.q)
    if where == "storing":
        desk.slow_commit()
    desk.line.cut(where, part)
    answer = verb.call(desk.q, given, desk.host)
    assert sum(one.cuts for one in desk.line.made) == 1, "nothing was lost"
    numbers = [(call.client, call.number) for call in desk.line.calls() if call.number]
    sent_again = len(numbers) - len(set(numbers))
    # Leases have arrived when the host is told so, and it can no longer be.
    arrived = point == "the answer was read" and not isinstance(verb, Reserves | Waits)
    assert sent_again == (not arrived), "it is sent again under its number, once"
    verb.check(desk.q, given, answer)
    assert desk.host.way == "Host"


@pytest.mark.parametrize("point", POINTS)
def test_a_call_sent_again_does_not_undo_what_came_after_it(desk: Desk, point: str) -> None:
    where, part = POINTS[point]
    desk.q.submit([b"a"], tenant="t")
    desk.line.between = lambda: desk.host.do("q.set_weight('t', 5)")
    if where == "storing":
        desk.slow_commit()
    desk.line.cut(where, part)
    desk.q.set_weight("t", 3)
    if point == "the answer was read":
        desk.q.stats()  # the connection is made anew by now
    (weight,) = [one.weight for one in desk.q.tenants() if one.name == "t"]
    if where == "request":
        # A part of it never arrived, so only its second sending counts. The whole may still lie in the host's socket
        # when the other call is carried out; then it comes after that one, and once.
        assert weight in ((3,) if part < 1 else (3, 5))
    else:
        assert weight == 5


@pytest.mark.parametrize(
    ("verb", "point"),
    [
        *((name, "the answer was sent") for name in ("submit", "reserve", "reserve, would wait", "complete")),
        *((name, "the request was sent") for name in ("submit", "reserve")),
    ],
)
def test_one_effect_when_the_host_dies_with_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, point: str
) -> None:
    one, line = VERBS[verb], Line(monkeypatch)
    with Child() as host:
        desk = Desk(host, tmp_path / "work.db", "default", line)
        given = one.before(desk.q)
        line.at_cut = host.kill
        line.cut(*POINTS[point])
        answer = one.call(desk.q, given, host)
        one.check(desk.q, given, answer)
        assert way(desk.q) == "Host"
        assert line.made[0].cuts == 1
        desk.q.close()


@pytest.mark.parametrize("waited", [True, False], ids=["work comes later", "work is there"])
def test_a_wait_that_is_asked_again_while_the_host_loads_keeps_its_leases(
    memory_desk: Any, waited: bool
) -> None:
    host, q = memory_desk.host, memory_desk.q
    old, new = Talk(memory_desk.path), Talk(memory_desk.path)
    try:
        client = old.call(Register())
        if not waited:
            q.put(b"x")
        until(lambda: host.sleeping_until)  # else its store thread, still awake, would load at once
        with host.lock:
            host.engine = None  # as if it had just taken over
            ring, host.ring = host.ring, lambda: None
        old.ask(Reserve(5, wait_seconds=60.0), client, 1)
        until(lambda: host.later)
        old.close()
        until(lambda: len(memory_desk.serving._peers) == 1)
        tag = new.ask(Reserve(5, wait_seconds=60.0), client, 1)
        until(lambda: any(pending.box[0].connection.fileno() >= 0 for pending in list(host.later)))
        with host.lock:
            host.ring = ring
            host.ring()
        if waited:
            until(lambda: q.stats().waiters == 1)
            q.put(b"x")
        reply = wire.reply_to(Reserve(), new.hear().reply)
        new.say(wire.Got(tag))
        assert len(reply.spans) == 1
        for _ in range(3):  # whatever is done for the one that is gone is done by then
            assert new.call(Stats()).chunks_leased == 1
            time.sleep(0.02)
    finally:
        old.close()
        new.close()


# -- after its outcome was trimmed


@pytest.mark.parametrize("restarted", [False, True], ids=["by the same host", "by the next host"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_request_that_comes_again_after_its_outcome_was_trimmed_is_dropped(
    desk: Desk, verb: Verb, restarted: bool
) -> None:
    given = verb.before(desk.q)
    before = len(desk.line.calls())
    answer = verb.call(desk.q, given, desk.host)
    (call,) = [c for c in desk.line.calls()[before:] if c.number and type(c.command) is COMMANDS[verb.name]]
    receive(desk.q, call, given)
    if restarted:
        desk.host.do("q.close()")
    told = redelivered(desk, call)
    assert type(told) is fairway.RequestDropped, told
    verb.check(desk.q, given, answer)
    assert way(desk.q) == ("Host" if restarted else "Attached")


def way(q: fairway.Queue) -> str:
    return type(q._port._member.way).__name__


def receive(q: fairway.Queue, call: Call, given: Any) -> None:
    """The next call of the same client says that the answer arrived; it has an effect, so that is stored too."""
    if not (isinstance(call.command, Reserve) and call.command.wait_seconds):
        q.set_weight("warm", 2)
        return
    if given is not None:
        q.pause(submission=given)
    q.submit([b"next"])
    (lease,) = q.reserve(wait_seconds=30.0)
    q.complete(lease)
    assert lease.payload == b"next"
    if given is not None:
        q.resume(submission=given)


def redelivered(desk: Desk, call: Call) -> Any:
    """What the host says when an old frame comes out of the blue."""
    desk.q.stats()  # by now somebody hosts
    (found,) = desk.folder.glob(desk.sockets)
    talk = Talk(str(found), hello=False)
    try:
        talk.say(wire.Hello(wire.VERSION, desk.name, 1))
        assert isinstance(talk.hear(), wire.Welcome)
        talk.say(wire.Ask(1, call))
        message = talk.hear()
        return wire.error_of(message) if isinstance(message, wire.Failed) else message
    finally:
        talk.close()
