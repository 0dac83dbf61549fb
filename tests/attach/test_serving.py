"""The host's side: what a peer says cannot harm it, and a peer that dies leaves nothing stuck."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fairway.engine.commands import (
    Call,
    Goodbye,
    Join,
    ListActive,
    Register,
    Reserve,
    Reserved,
    SetWeight,
    Show,
    Stats,
    Submit,
    Wait,
)
from fairway.errors import (
    BadArgument,
    ClientUnknown,
    NotFound,
    QueueHeld,
    RequestDropped,
    StoreFailed,
    TooLarge,
)
from fairway.model.submission import Described, Offer
from fairway.runtime import serving as serving_module
from fairway.runtime import wire
from fairway.runtime.bell import Bell
from fairway.runtime.clock import Clock
from fairway.runtime.host import Host
from fairway.runtime.pending import Pending
from fairway.runtime.serving import Serving
from fairway.runtime.transport import unix
from fairway.store.memory import MemoryStore
from tests.attach.conftest import Desk
from tests.attach.talking import Talk, stopped_store, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def talk(desk: Desk) -> Iterator[Talk]:
    talk = Talk(desk.path)
    yield talk
    talk.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets time to come back."""
    monkeypatch.setattr(serving_module, "REJOIN_SECONDS", 0.0)
    monkeypatch.setattr(serving_module, "BEAT_SECONDS", 0.05)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lives has time to come back, until a test says that it is over."""
    monkeypatch.setattr(serving_module, "REJOIN_SECONDS", 600.0)
    monkeypatch.setattr(serving_module, "BEAT_SECONDS", 0.05)


def leased(desk: Desk) -> int:
    return desk.q.stats().chunks_leased


def offer() -> Submit:
    return Submit([Offer(Described("t", 1, page_starts=(0,)), (b"payload",))])


# -- the first word


def test_another_version_is_refused_and_says_who_has_the_queue(desk: Desk) -> None:
    talk = Talk(desk.path, hello=False)
    talk.say(wire.Hello(wire.VERSION + 1, "default", 1))
    error = wire.error_of(talk.hear())
    assert type(error) is QueueHeld
    assert error.details == {"pid": os.getpid()}
    assert talk.ended()
    talk.close()


@pytest.mark.parametrize(
    "word", [wire.Hello(wire.VERSION, "other", 1), wire.Barrier(1), wire.Ask(1, Call(Stats()))], ids=repr
)
def test_whoever_does_not_say_a_right_hello_is_refused(desk: Desk, word: object) -> None:
    talk = Talk(desk.path, hello=False)
    talk.say(word)
    assert type(wire.error_of(talk.hear())) is BadArgument
    assert talk.ended()
    talk.close()


def test_welcome_says_who_hosts(desk: Desk) -> None:
    talk = Talk(desk.path, hello=False)
    talk.say(wire.Hello(wire.VERSION, "default", 1))
    assert talk.hear() == wire.Welcome(os.getpid(), 7)
    talk.close()


# -- garbage


@pytest.mark.parametrize("hello", [True, False])
@pytest.mark.parametrize(
    "frame",
    [b"", b"\xc1", os.urandom(1000), msgspec.msgpack.encode({"a": 1}), msgspec.msgpack.encode([99, 1]),
     b"\x91" * 100_000],
    ids=["empty", "invalid", "random", "a map", "an unknown kind", "deep"],
)  # fmt: skip
def test_garbage_ends_its_connection_and_nothing_else(desk: Desk, frame: bytes, hello: bool) -> None:
    other, talk = Talk(desk.path), Talk(desk.path, hello)
    talk.raw(frame)
    assert type(wire.error_of(talk.hear())) is BadArgument
    assert talk.ended()
    assert other.call(SetWeight("a", 1000)) is None
    other.close(), talk.close()


def test_a_frame_that_is_too_long_ends_its_connection_and_nothing_else(desk: Desk) -> None:
    other, talk = Talk(desk.path), Talk(desk.path)
    talk.connection._socket.send(b"\xff\xff\xff\xff")
    assert talk.ended()
    assert other.call(SetWeight("a", 1000)) is None
    other.close(), talk.close()


def test_a_call_that_makes_no_sense_is_answered_and_the_connection_goes_on(talk: Talk) -> None:
    talk.raw(msgspec.msgpack.encode([2, 17, [[3, "many"], 0, 0, 0]]))
    message = talk.hear()
    assert message.tag == 17
    assert type(wire.error_of(message)) is BadArgument
    assert talk.call(SetWeight("a", 1000)) is None


def test_a_tag_in_use_ends_the_connection(talk: Talk) -> None:
    talk.say(wire.Ask(5, Call(Reserve(wait_seconds=60.0))), wire.Ask(5, Call(Stats())))
    assert type(wire.error_of(talk.hear())) is BadArgument
    assert talk.ended()


# -- calls


def test_calls_go_under_their_callers_number_and_are_never_renumbered(talk: Talk) -> None:
    client = talk.call(Register())
    first = talk.call(offer(), client, 1)
    assert talk.call(offer(), client, 1) == first
    assert talk.call(offer(), client, 2, 1) != first
    assert type(talk.call(offer(), client, 1, 1)) is RequestDropped
    assert type(talk.call(offer(), client + 50, 1)) is ClientUnknown
    assert talk.call(Stats()).submissions_active == 2
    assert talk.call(Goodbye(), client) is None
    assert type(talk.call(offer(), client, 3)) is ClientUnknown


def test_a_call_that_needs_the_store_first(desk: Desk, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(talk.call(Show(5))) is NotFound
    done = desk.q.submit([], tenant="a")
    for _ in range(3):
        desk.q.put(b"x")
    assert talk.call(Show(done.id)).state == "completed"

    def fails(self: object, id: int) -> None:
        raise StoreFailed("not now")

    monkeypatch.setattr(type(desk.host.store), "run", fails)
    error = talk.call(Show(6))
    assert (type(error), str(error)) == (StoreFailed, "not now")
    monkeypatch.undo()
    assert type(talk.call(Show(6))) is NotFound


def test_a_barrier_is_answered_when_what_was_before_it_is_stored(desk: Desk, talk: Talk) -> None:
    with stopped_store(desk) as go_on:
        tag = talk.ask(SetWeight("a", 2000))
        talk.say(wire.Barrier(1000))
        talk.hear_beats(1)
        assert not talk.heard
        go_on()
        assert sorted((talk.hear().tag, talk.hear().tag)) == [tag, 1000]


def test_answers_that_leave_together_are_one_write(desk: Desk, talk: Talk) -> None:
    (peer,) = desk.serving._peers.values()
    sent: list[int] = []
    send = peer.connection.send

    def counted(frames: list[bytes]) -> bool:
        if answers := sum(frame != wire.BEAT for frame in frames):
            sent.append(answers)
        return send(frames)

    peer.connection.send = counted  # type: ignore[method-assign]
    with stopped_store(desk) as go_on:
        talk.ask(SetWeight("a", 1500))
        until(lambda: desk.host.storing)
        for n in range(50):
            talk.ask(SetWeight(f"t{n}", 2000))
        until(lambda: len(desk.host.open) == 51)
        sent.clear()
        go_on()
        for _ in range(51):
            talk.hear()
    assert sum(sent) == 51
    assert len(sent) <= 4, f"two groups, each perhaps cut by a beat: {sent}"


def test_an_answer_that_is_too_long_is_told_and_its_leases_go_back(
    desk: Desk, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        desk.q.submit([b"x"], info=b"i" * 1000)
    monkeypatch.setattr(serving_module, "FRAME_BYTES_MAX", 5000)
    assert type(talk.call(Reserve(20))) is TooLarge
    until(lambda: leased(desk) == 0)
    assert len(talk.call(Reserve(2)).spans) == 2


# -- beats


def test_beats_come_while_the_store_is_busy(desk: Desk, talk: Talk) -> None:
    with stopped_store(desk) as go_on:
        talk.ask(SetWeight("a", 2000))
        until(lambda: desk.host.storing)
        talk.hear_beats(3)
        assert not talk.heard
        go_on()
        talk.hear()


def test_beats_come_while_a_great_many_calls_come_at_once(
    desk: Desk, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "BEAT_SECONDS", 0.05)
    send = desk.host.send

    def slow(pending: Pending) -> object:
        time.sleep(0.005)
        return send(pending)

    other = Talk(desk.path)
    other.hear_beats(2)  # the second comes at the new pace
    monkeypatch.setattr(desk.host, "send", slow)
    other.beats = 0
    talk.say(*[wire.Ask(tag, Call(Stats())) for tag in range(1, 201)])
    for _ in range(200):
        talk.hear()
    other.call(Stats())
    assert other.beats >= 8, "it seemed silent to others for as long as it heard one"
    other.close()


def test_those_who_come_before_the_engine_is_loaded_are_welcome_and_wait(tmp_path: Path) -> None:
    store = MemoryStore.open("default")
    host = Host("default", store, Clock(), Bell().ring)
    serving = Serving(host, unix.listen(str(tmp_path / "x.sock")))
    serving.start()
    talk = Talk(str(tmp_path / "x.sock"))
    talk.ask(SetWeight("a", 2000))
    until(lambda: host.later)
    serving.stop(bye=False)
    assert talk.ended()
    talk.close(), store.close()


# -- peers that give up or go


def test_a_call_that_is_given_up_ends(desk: Desk, talk: Talk) -> None:
    tag = talk.ask(Reserve(wait_seconds=600.0))
    until(lambda: desk.q.stats().waiters == 1)
    talk.say(wire.GiveUp(tag))
    assert talk.hear().tag == tag
    assert desk.q.stats().waiters == 0
    talk.say(wire.GiveUp(4711))
    assert talk.hear().tag == 4711
    desk.q.put(b"x")
    assert leased(desk) == 0


def test_a_reserve_that_is_given_up_before_it_is_stored_gives_its_leases_back(desk: Desk, talk: Talk) -> None:
    desk.q.put(b"x")
    with stopped_store(desk) as go_on:
        tag = talk.ask(Reserve())
        until(lambda: desk.host.open)
        talk.say(wire.GiveUp(tag))
        assert talk.hear().tag == tag
        go_on()
    until(lambda: desk.q.stats().chunks_waiting == 1)


def test_waits_of_a_peer_that_goes_vanish(desk: Desk, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "REJOIN_SECONDS", 600.0)
    sub = desk.q.submit([b"x"])
    desk.q.pause()
    talk.ask(Reserve(wait_seconds=600.0))
    talk.ask(Wait(sub.id, 600.0))
    until(lambda: desk.host.engine is not None and desk.host.engine.state.waiting == 2)
    talk.close()
    until(lambda: desk.host.engine is not None and desk.host.engine.state.waiting == 0)
    until(lambda: desk.q.stats().waiters == 0)
    desk.q.resume()
    assert desk.q.submission(sub.id).leased == 0


@pytest.mark.parametrize("got", [False, True])
def test_leases_that_did_not_arrive_go_back_and_those_that_did_stay(
    desk: Desk, hasty: None, got: bool
) -> None:
    desk.q.put(b"x")
    talk = Talk(desk.path)
    tag = talk.ask(Reserve())
    assert talk.hear().tag == tag
    if got:
        talk.say(wire.Got(tag))
    talk.close()
    until(lambda: not desk.serving._peers and not desk.serving._rejoining)
    if got:
        time.sleep(0.3)
        assert leased(desk) == 1
    else:
        until(lambda: leased(desk) == 0)
        (lease,) = desk.q.reserve()
        assert lease.attempt == 1, "it does not count"


def test_leases_stay_if_their_process_said_they_came_though_a_write_finds_it_gone_first(
    desk: Desk, hasty: None
) -> None:
    desk.q.put(b"x")
    talk = Talk(desk.path)
    tag = talk.ask(Reserve())
    assert talk.hear().tag == tag
    with desk.host.lock:  # the host is held up when it has read these two, and says something to the second
        talk.say(wire.Ask(tag + 1, Call(Stats())), wire.GiveUp(tag + 2))
        time.sleep(0.3)
        talk.say(wire.Got(tag))
        talk.close()
    until(lambda: not desk.serving._peers and not desk.serving._rejoining)
    time.sleep(0.3)
    assert leased(desk) == 1


def test_named_leases_stay_though_nobody_got_them(desk: Desk, hasty: None) -> None:
    desk.q.put(b"x")
    talk = Talk(desk.path)
    epoch = talk.call(Join("me"))
    first = talk.call(Reserve(consumer="me", consumer_epoch=epoch, seq=1))
    talk.close()
    until(lambda: not desk.serving._peers and not desk.serving._rejoining)
    time.sleep(0.2)
    assert leased(desk) == 1
    other = Talk(desk.path)
    assert other.call(Reserve(consumer="me", consumer_epoch=epoch, seq=1)).spans == first.spans
    other.close()


def test_a_reserve_that_is_being_stored_when_its_peer_goes_gives_its_leases_back(
    desk: Desk, hasty: None
) -> None:
    desk.q.put(b"x")
    with stopped_store(desk) as go_on:
        talk = Talk(desk.path)
        talk.ask(Reserve())
        until(lambda: desk.host.open)
        talk.close()
        until(lambda: not desk.serving._peers and not desk.serving._rejoining)
        go_on()
    until(lambda: desk.q.stats().chunks_waiting == 1)


def test_a_live_process_that_asks_again_keeps_its_leases(desk: Desk, unhurried: None) -> None:
    desk.q.put(b"x")
    talk = Talk(desk.path)
    client = talk.call(Register())
    first = talk.call(Reserve(), client, 1)
    talk.close()  # the answer was lost on the way
    until(lambda: desk.serving._rejoining)
    (ghost,) = desk.serving._rejoining
    again = Talk(desk.path)
    tag = again.ask(Reserve(), client, 1)
    assert wire.reply_to(Reserve(), again.hear().reply) == first
    again.say(wire.Got(tag))
    ghost.rejoin_until = 0.0  # its time is over
    again.hear_beats(3)
    assert leased(desk) == 1
    again.close()


def test_a_process_that_comes_back_keeps_the_leases_that_it_does_not_ask_for_again(
    desk: Desk, unhurried: None
) -> None:
    """They arrived; what was lost is its word of that."""
    desk.q.put(b"x")
    talk = Talk(desk.path)
    client = talk.call(Register())
    assert talk.call(Reserve(), client, 1).spans
    talk.close()
    until(lambda: desk.serving._rejoining)
    (ghost,) = desk.serving._rejoining
    again = Talk(desk.path)
    ghost.rejoin_until = 0.0  # its time is over
    again.hear_beats(3)
    assert leased(desk) == 1
    again.close()


def test_a_wait_that_is_asked_again_by_a_new_connection_has_one_effect_and_is_answered_there(
    desk: Desk,
) -> None:
    old, new = Talk(desk.path), Talk(desk.path)
    client = old.call(Register())
    old.ask(Reserve(5, wait_seconds=600.0), client, 1)
    until(lambda: desk.q.stats().waiters == 1)
    tag = new.ask(Reserve(5, wait_seconds=300.0), client, 1)
    new.call(Stats())  # by now it is asked
    old.close()
    until(lambda: len(desk.serving._peers) == 1)
    new.call(Stats())  # by now all is done for the one that is gone
    assert desk.q.stats().waiters == 1
    desk.q.put(b"x")
    answer = new.hear()
    assert answer.tag == tag
    new.say(wire.Got(tag))
    reply = wire.reply_to(Reserve(), answer.reply)
    assert isinstance(reply, Reserved) and len(reply.spans) == 1
    desk.q.put(b"y")
    assert leased(desk) == 1
    assert new.call(Reserve(5, wait_seconds=9.0), client, 1) == reply, "whatever its wait says now"
    new.close()


@pytest.mark.real
@pytest.mark.parametrize("waiting", [False, True])
def test_a_killed_process_leaves_neither_leases_nor_waits(
    desk: Desk, waiting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        serving_module, "REJOIN_SECONDS", 600.0
    )  # nothing here waits for it: it is known to be dead
    if not waiting:
        desk.q.put(b"x")
    seconds = 600.0 if waiting else 0.0
    script = f"""
        import time
        from tests.attach.talking import Talk
        from fairway.engine.commands import Reserve
        talk = Talk({desk.path!r})
        talk.ask(Reserve(wait_seconds={seconds}))
        if not {waiting}:
            talk.hear()
        print("there", flush=True)
        time.sleep(600)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "there\n"
    until(lambda: desk.q.stats().waiters == 1 if waiting else leased(desk) == 1)
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: desk.q.stats().waiters == 0 and leased(desk) == 0)
    child.wait(30)
    child.stdout.close()
    if not waiting:
        assert desk.q.reserve()[0].attempt == 1


# -- peers that do not read


def test_a_peer_that_does_not_read_is_cut_off_and_nobody_waits_for_it(
    memory_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = memory_desk
    monkeypatch.setattr(unix, "OUTBOX_SECONDS_MAX", 600.0)
    for _ in range(50):
        desk.q.submit([b"x"], info=b"i" * 60_000)
    lazy, other = Talk(desk.path), Talk(desk.path)
    for _ in range(10):
        lazy.ask(ListActive())
    until(lambda: any(peer.writing for peer in desk.serving._peers.values()))
    for _ in range(50):  # who waited for the lazy one would wait for ten minutes
        assert other.call(SetWeight("a", 1000)) is None
    assert len(desk.serving._peers) == 2
    for peer in desk.serving._peers.values():
        peer.connection._seconds_max = 0.5  # type: ignore[attr-defined]
    until(lambda: len(desk.serving._peers) == 1)
    assert other.call(SetWeight("a", 1000)) is None
    assert lazy.ended()
    lazy.close(), other.close()


def test_a_peer_that_reads_late_gets_everything(memory_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = memory_desk
    monkeypatch.setattr(unix, "OUTBOX_SECONDS_MAX", 600.0)
    for _ in range(50):
        desk.q.submit([b"x"], info=b"i" * 60_000)
    talk = Talk(desk.path)
    tags = [talk.ask(ListActive()) for _ in range(10)]
    until(lambda: any(peer.writing for peer in desk.serving._peers.values()))
    time.sleep(1.2)
    assert [talk.hear().tag for _ in tags] == tags
    assert talk.call(SetWeight("a", 1000)) is None
    until(lambda: not any(peer.writing for peer in desk.serving._peers.values()))
    talk.close()


def test_no_room_for_one_more_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, refused = desk.serving._listener.accept, [1, 1]

    def full() -> object:
        if refused:
            refused.pop()
            raise OSError(24, "Too many open files")
        return accept()

    monkeypatch.setattr(desk.serving._listener, "accept", full)
    Talk(desk.path).close()
    assert not refused


def test_more_processes_than_the_bound_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "ATTACHED_MAX", 2)
    talks = [Talk(desk.path), Talk(desk.path)]
    third = Talk(desk.path, hello=False)
    assert type(wire.error_of(third.hear())) is TooLarge
    for talk in (*talks, third):
        talk.close()
    until(lambda: not desk.serving._peers)
    Talk(desk.path).close()


# -- the end


@pytest.mark.parametrize("bye", [True, False])
def test_a_stop_gives_nothing_up(desk: Desk, bye: bool) -> None:
    desk.q.put(b"x")
    talk = Talk(desk.path)
    talk.call(Reserve())
    desk.serving.stop(bye)
    assert talk.ended()
    assert talk.heard == ([wire.Bye()] if bye else [])
    assert leased(desk) == 1
    assert not os.path.exists(desk.path)
    talk.close()


def test_a_host_that_stops_cuts_everybody_off_and_keeps_its_error_to_itself(desk: Desk) -> None:
    talk = Talk(desk.path)
    talk.ask(Reserve(wait_seconds=600.0))
    until(lambda: desk.q.stats().waiters == 1)
    desk.host.stop(StoreFailed("broken"))
    assert talk.ended()
    assert not talk.heard
    talk.close()
