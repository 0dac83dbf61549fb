"""A reply that is lost, at whatever point, has one effect and reaches its caller; a request that is over is dropped.

The host is another process. The connection of this one is cut at a byte that the test chooses, in the request or in the
answer; what comes then is the member's own doing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.engine.commands import (
    Call,
    Cancel,
    Complete,
    Fail,
    Release,
    Renew,
    Reserve,
    SetWeight,
    Submit,
)
from fairway.runtime import wire
from fairway.runtime.transport import unix
from tests.attach.member_script import Child
from tests.attach.talking import Talk

pytestmark = pytest.mark.real

HEAD_BYTES = 4  # the length before a frame
SLOW_SECONDS = 0.15  # of a commit that is under way when the connection goes

# What has passed when the connection goes: how much of the request, or all of it and how much of the answer.
POINTS = {
    "nothing was sent": ("request", 0.0),
    "half of the request was sent": ("request", 0.5),
    "the request was sent": ("request", 1.0),
    "the request was carried out and is being stored": ("storing", 1.0),
    "the answer was sent": ("answer", 0.0),
    "half of the answer was read": ("answer", 0.5),
    "all but a byte of the answer was read": ("answer", 0.999999),
    "the answer was read": ("answer", 1.0),
}


class CutSocket(socket.socket):
    """A socket that passes as many bytes as it is told, then ends for both sides."""

    where: str = ""  # what it cuts: nothing, the next request, the next answer; or that it has ended
    part: float = 0.0
    cuts: int = 0
    line: Line

    def send(self, data: Any, *flags: Any) -> int:
        data = bytes(data)
        self.line.asked.append(data)
        if self.where not in ("request", "storing"):
            return super().send(data)
        storing, self.where = self.where == "storing", "ended"  # first: an answer may be quick
        whole = int(len(data) * self.part)
        assert super().send(data[:whole]) == whole
        if storing:
            time.sleep(SLOW_SECONDS / 2)
        self.break_off()
        return len(data)

    def recv(self, most: int, *flags: Any) -> bytes:
        data = super().recv(most)
        if self.where != "answer":
            return b"" if self.where == "ended" else data
        passed, at = b"", 0
        while at < len(data):
            end = at + HEAD_BYTES + int.from_bytes(data[at : at + HEAD_BYTES], "little")
            if isinstance(wire.at_attached(data[at + HEAD_BYTES : end]), wire.Answer):
                passed = data[: at + int((end - at) * self.part)]
                self.break_off()
                return passed
            at = end
        return data

    def break_off(self) -> None:
        self.where = "ended"
        self.cuts += 1
        self.line.at_cut()
        self.shutdown(socket.SHUT_RDWR)


class Line:
    """All connections that this process makes, and what is done between one that is cut and the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[CutSocket] = []
        self.asked: list[bytes] = []
        self.at_cut: Callable[[], object] = lambda: None
        self.between: Callable[[], object] = lambda: None
        self._connect = unix.connect
        monkeypatch.setattr(unix, "connect", self.connect)

    def connect(self, path: str, timeout: float) -> unix.UnixConnection:
        if self.made and self.made[-1].cuts:
            self.between()
        connection = self._connect(path, timeout)
        mine = CutSocket(fileno=connection._socket.detach())
        mine.setblocking(False)
        mine.line = self
        connection._socket = mine
        self.made.append(mine)
        return connection

    def cut(self, where: str, part: float) -> None:
        self.made[-1].part = part
        self.made[-1].where = where

    def calls(self) -> list[Call]:
        """Every call that was sent, as often as it was."""
        found: list[Call] = []
        for data in self.asked:
            at = 0
            while at < len(data):
                end = at + HEAD_BYTES + int.from_bytes(data[at : at + HEAD_BYTES], "little")
                message = wire.at_host(data[at + HEAD_BYTES : end])
                if isinstance(message, wire.Ask):
                    found.append(message.call)
                at = end
        return found


class Desk:
    """A queue in a process of its own, and this process attached to it."""

    def __init__(self, host: Child, path: Path, name: str, line: Line) -> None:
        self.host = host
        self.line = line
        self.name = name
        self.sockets = f"{path.name}-{name}.*.sock"
        self.folder = path.parent
        host.do(f"use(fairway.open({str(path)!r}, queue={name!r}))")
        self.q = fairway.open(path, queue=name)
        # Whatever must be registered is registered before the call that counts.
        self.q.set_weight("warm", 1)
        self.q.reserve(wait_seconds=0.001)

    def slow_commit(self) -> None:
        """The host's next one."""
        self.host.do(
            "[store := q._port._member.store, stores := type(store).commit, setattr(store, 'commit', lambda group: "
            f"(delattr(store, 'commit'), time.sleep({SLOW_SECONDS}), stores(store, group))[2])] and None"
        )

    def close(self) -> None:
        self.q.close()
        self.host.do("q.close()")


# -- the calls, each with what must be true afterwards


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
    assert sent_again == (point != "the answer was read"), "it is sent again under its number, once"
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
    assert weight == (3 if part < 1 and where == "request" else 5)


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
