"""The attached side: it works as if the queue were here, and a call that is sent again has one effect."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway import limits
from fairway.engine.commands import (
    Call,
    Cancel,
    Command,
    Complete,
    Configure,
    Consumers,
    Explain,
    Fail,
    Finish,
    Goodbye,
    Join,
    ListActive,
    ListDead,
    Part,
    Pause,
    Purge,
    Redrive,
    Register,
    Release,
    Renew,
    Reserve,
    Reserved,
    SetWeight,
    Show,
    ShowConfig,
    Stats,
    Submit,
    Tenants,
    Trim,
    Wait,
    Winners,
)
from fairway.errors import BadArgument, Closed, LeaseLost, NotFound, QueueHeld, TooLarge
from fairway.face.queue import AsyncQueue
from fairway.face.verbs import Verbs
from fairway.model.submission import Described, Offer
from fairway.runtime import attached as attached_module
from fairway.runtime import hearing, wire
from fairway.runtime import serving as serving_module
from fairway.runtime.blocking import ask
from fairway.runtime.looping import LoopPort
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.opening import writer
from fairway.runtime.pending import Pending
from fairway.runtime.transport import unix
from fairway.runtime.transport.port import Connection, PeerGone, PeerSilent
from tests.attach.conftest import Client, Desk, Way
from tests.attach.talking import Talk, stopped_store, until

ROOT = Path(__file__).parents[2]


def parts(reserved: Reserved) -> list[Part]:
    spans = [(id, start, count) for id, start, count, _ in reserved.spans]
    return [Part(reserved.epoch, reserved.count, reserved.seal, spans)]


def offers(n: int = 1, tenant: str = "t") -> Submit:
    return Submit([Offer(Described(tenant, n, policy="dead_letter"))])


# -- it works as if the queue were here


def test_a_day_in_the_life_of_a_queue(desk: Desk) -> None:
    q = desk.attach().q
    sub = q.submit(
        [b"one", b"two" * 100_000], tenant="acme", metadata={"mode": "x", "n": 5}, info=b"i", key="k"
    )
    assert (
        q.submit(
            [b"one", b"two" * 100_000], tenant="acme", metadata={"mode": "x", "n": 5}, info=b"i", key="k"
        ).id
        == sub.id
    )
    leases = q.reserve(max=5, strategy=fairway.OldestFirst())
    assert [(x.payload, x.index, x.tenant, x.metadata["n"], x.info, x.attempt) for x in leases] == [
        (b"one", 0, "acme", 5, b"i", 1),
        (b"two" * 100_000, 1, "acme", 5, b"i", 1),
    ]
    q.renew(leases[0], 60)
    q.complete(leases[0], result=b"r" * 200_000)
    q.fail(leases[1], error="no", retry=True, delay_seconds=0)
    (again,) = q.reserve()
    assert again.attempt == 2
    q.complete(again)
    assert q.wait(sub.id, 60).state == "completed"
    assert [r.data for r in q.results(sub.id)] == [b"r" * 200_000]
    assert [s.id for s in q.submissions(state="completed", tenant="acme")] == [sub.id]
    q.put_many([b"m%d" % n for n in range(50)], tenant="m")
    q.set_weight("m", 5)
    q.pause(tenant="m")
    assert q.reserve() == []
    q.resume(tenant="m")
    assert len(q.reserve(max=100)) == 50
    assert [t.name for t in q.tenants()] == ["m"]
    assert q.configure(attempts_max=7).attempts_max == 7
    assert q.explain("Fair")
    assert any(True for _ in q.events())
    mine, hosts = q.stats(), desk.q.stats()
    assert mine.chunks_leased == hosts.chunks_leased == 50


def test_every_command_gives_the_reply_that_the_engine_gave(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    answer = wire.answer
    monkeypatch.setattr(wire, "answer", lambda tag, reply: (given.append(reply), answer(tag, reply))[1])
    client = desk.attach()
    asked: set[type] = set()

    def call(command: Command) -> Any:
        given.clear()
        reply = ask(Way(client.attached), command)
        asked.add(type(command))
        assert repr(reply) == repr(given[-1]), command
        return reply

    x = call(offers(20)).ids[0]
    held = [call(Reserve(2)) for _ in range(5)]
    call(Renew(parts(held[0]), 50.0))
    call(Complete(parts(held[0]), [b"r", None], False, 3))
    call(Fail(parts(held[1]), "e", False))
    call(Release(parts(held[2])))
    call(Pause(True, "z")), call(SetWeight("z", 2000)), call(Configure({"attempts_max": 4}))
    epoch = call(Join("me"))
    call(Reserve(2, consumer="me", consumer_epoch=epoch, seq=1)), call(Consumers())
    call(Finish("me", epoch))
    call(Trim("me", epoch, 1, True))
    (
        call(Show(x)),
        call(Winners(x, 0, 20)),
        call(ListActive()),
        call(ListDead()),
        call(Tenants()),
        call(ShowConfig()),
    )
    call(Explain()), call(Wait(x, 0.0)), call(Reserve(3, wait_seconds=5.0)), call(Cancel(x)), call(Redrive(x))
    call(Purge()), call(Stats())
    assert call(Goodbye()) is None
    assert isinstance(call(Register()), int)
    assert asked == set(wire.REPLIES)


def test_errors_keep_class_message_and_details(desk: Desk) -> None:
    here, there = desk.q, desk.attach().q
    desk.q.put(b"x")
    lease = desk.q.reserve(lease_seconds=0.05)[0]
    time.sleep(0.1)
    desk.q.reserve()
    for call, kind in (
        (lambda q: q.submission(77), NotFound),
        (lambda q: q.cancel(77), NotFound),
        (lambda q: q.reserve(strategy="Fair("), fairway.BadStrategy),
        (lambda q: q.configure(attempts_max=-1), BadArgument),
        (lambda q: q.complete(lease), LeaseLost),
    ):
        errors = []
        for q in (here, there):
            with pytest.raises(kind) as caught:
                call(q)
            errors.append((type(caught.value), str(caught.value), caught.value.details))
        assert errors[0] == errors[1]


def test_waits_are_served_and_time_out(desk: Desk) -> None:
    client = desk.attach()
    started = time.monotonic()
    assert client.q.reserve(wait_seconds=0.2) == []
    assert time.monotonic() - started >= 0.2
    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(client.q.reserve, wait_seconds=60) for _ in range(4)]
        until(lambda: desk.q.stats().waiters == 4)
        desk.q.put_many([b"1", b"2", b"3", b"4"])
        leases = [wait.result(30)[0] for wait in waits]
        assert sorted(lease.payload for lease in leases) == [b"1", b"2", b"3", b"4"]
        sub = desk.q.submit([b"x"])
        ended = pool.submit(client.q.wait, sub.id, 60)
        client.q.complete(client.q.reserve())
        assert ended.result(30).state == "completed"
    assert len(client.lanes.clients()) == 4
    for _ in range(10):
        client.q.reserve(wait_seconds=0.001)
    assert len(client.lanes.clients()) == 4, "lanes are used again"


def test_a_long_wait_does_not_hold_back_what_is_received(desk: Desk) -> None:
    client = desk.attach()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.q.reserve, wait_seconds=600)
        until(lambda: desk.q.stats().waiters == 1)
        for n in range(30):
            client.q.set_weight("a", n + 1)
        assert desk.host.engine is not None
        assert len(desk.host.engine.state.clients[client.numbers.client].outcomes) <= 1
        client.close()
        assert type(waiting.exception(30)) is Closed


# -- many at once


def test_sixteen_threads_through_one_connection(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    client = desk.attach()
    q, per = client.q, 40

    def work(n: int) -> int:
        done = 0
        for i in range(per):
            q.put(b"%d %d" % (n, i), tenant=f"t{n % 3}")
            for lease in q.reserve(wait_seconds=10):
                q.complete(lease)
                done += 1
        return done

    with ThreadPoolExecutor(16) as pool:
        done = sum(pool.map(work, range(16)))
    done += sum(len(q.complete(some) or some) for some in iter(lambda: q.reserve(max=100), []))
    assert done == 16 * per
    assert q.stats().chunks_leased == q.stats().submissions_active == 0


def test_frames_of_many_threads_are_gathered(memory_desk: Desk) -> None:
    counted = Counted(unix.connect(memory_desk.path, 5.0))
    client = memory_desk.attach(counted)
    client.q.set_weight("a", 1)
    counted.frames = counted.writes = 0
    with ThreadPoolExecutor(16) as pool:
        counted.slow = 0.01
        list(pool.map(lambda n: client.q.set_weight("a", n + 1), range(99)))
    assert counted.frames == 99
    assert counted.writes < 50


def test_an_event_loop_works_through_it(desk: Desk) -> None:
    client = desk.attach()

    async def main() -> None:
        q = AsyncQueue(
            "default", Verbs(ObstoreObjects(), writer, read), LoopPort(Way(client.attached), lambda: None)
        )
        subs = await asyncio.gather(*(q.submit([b"%d" % n], tenant=f"t{n % 7}") for n in range(100)))
        assert len({sub.id for sub in subs}) == 100
        some = await asyncio.gather(*(q.reserve(max=2, wait_seconds=20) for _ in range(50)))
        assert sorted(int(x.payload) for leases in some for x in leases) == list(range(100))
        waits = [asyncio.ensure_future(q.wait(sub.id, 60)) for sub in subs]
        await asyncio.gather(*(q.complete(leases) for leases in some))
        assert {sub.state for sub in await asyncio.gather(*waits)} == {"completed"}
        assert len([s async for s in q.submissions(state="completed")]) == 100
        waiting = asyncio.ensure_future(q.reserve(wait_seconds=600))
        while not (await q.stats()).waiters:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while (await q.stats()).waiters:
            await asyncio.sleep(0.01)
        with pytest.raises(NotFound):
            await q.submission(1)
        await q.close()

    asyncio.run(main())


def test_calls_larger_than_a_socket_holds(desk: Desk) -> None:
    q = desk.attach().q
    payloads = [os.urandom(1_000_000) for _ in range(8)]
    with ThreadPoolExecutor(3) as pool:
        subs = list(pool.map(lambda _: q.submit(payloads), range(3)))
    assert len({sub.id for sub in subs}) == 3
    assert sorted(lease.payload for lease in q.reserve(max=24)) == sorted(payloads * 3)


def test_what_is_long_for_what_describes_it_is_sent_and_listed_in_parts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = desk.attach().q
    for module in (attached_module, serving_module):
        monkeypatch.setattr(module, "FRAME_BYTES_MAX", 200_000)
    monkeypatch.setattr(limits, "GROUP_BYTES_MAX", 100_000)
    monkeypatch.setattr(limits, "LIST_BYTES_MAX", 50_000)
    subs = q.submit_many([{"chunks": 1, "info": bytes([i]) * 10_000} for i in range(60)])
    assert list(q.submissions()) == list(q.submissions(state="active")) == subs
    q.put_many([b"x"] * 60, info=b"y" * 10_000)
    for sub in subs:
        q.cancel(sub)
    ended = list(q.submissions(state="ended"))
    assert [sub.id for sub in ended] == [sub.id for sub in subs]
    assert len(list(q.submissions())) == 120


def test_calls_that_cannot_be_sent_are_told_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    client = desk.attach()
    client.q.set_weight("a", 1)
    way = Way(client.attached)
    with pytest.raises(BadArgument, match="cannot be sent"):
        ask(way, SetWeight("a", 2**70))
    monkeypatch.setattr(attached_module, "FRAME_BYTES_MAX", 1000)
    with pytest.raises(TooLarge):
        ask(way, offers(tenant="x" * 2000))
    monkeypatch.undo()
    client.q.set_weight("a", 2)
    assert client.numbers.received == 4, "their numbers do not hold others back"


# -- callers that go


def test_a_wait_that_is_given_up_vanishes_and_its_lane_is_free(desk: Desk) -> None:
    client = desk.attach()
    for _ in range(3):
        pending = Pending(Reserve(wait_seconds=600.0), lambda _: None)
        client.attached.send(pending)
        until(lambda: desk.q.stats().waiters == 1)
        client.attached.give_up(pending)
        client.attached.give_up(pending)
        until(lambda: desk.q.stats().waiters == 0)
        until(lambda: not client.attached._tags)
    assert len(client.lanes.clients()) == 1
    desk.q.put(b"x")
    assert desk.q.stats().chunks_leased == 0


def test_a_call_that_is_given_up_before_it_has_a_number(desk: Desk) -> None:
    client = desk.attach()
    with stopped_store(desk) as go_on:  # so nobody is registered
        for command in (SetWeight("a", 1), Reserve(wait_seconds=9.0)):
            pending = Pending(command, lambda _: None)
            client.attached.send(pending)
            assert pending.call is None
            client.attached.give_up(pending)
        go_on()
    client.q.set_weight("c", 1)
    until(lambda: not client.attached._tags)
    assert client.q.reserve(wait_seconds=0.01) == []
    assert len(client.lanes.clients()) == 1


def test_leases_that_arrive_for_one_who_is_gone_go_back(desk: Desk) -> None:
    client = desk.attach()
    desk.q.put(b"x")
    done = threading.Event()
    pending = Pending(Reserve(), lambda _: done.set())
    client.attached.send(pending)
    assert done.wait(30)
    until(lambda: pending.left)
    assert desk.q.stats().chunks_leased == 1
    client.attached.give_up(pending)
    until(lambda: desk.q.stats().chunks_leased == 0)
    (lease,) = client.q.reserve()
    assert lease.attempt == 1
    client.attached.unreceived(ask(Way(client.attached), Reserve()))


@pytest.mark.real
def test_an_interrupted_caller_leaves_nothing(desk: Desk) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    client = desk.attach()

    def interrupt() -> None:
        until(lambda: desk.q.stats().waiters == 1)
        until(sent)  # an interrupted write would end the connection
        signal.pthread_kill(main, signal.SIGINT)

    def sent() -> bool:
        return sys._current_frames()[main].f_code is ask.__code__

    main = threading.main_thread().ident or 0

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        client.q.reserve(wait_seconds=600)
    thread.join()
    until(lambda: desk.q.stats().waiters == 0)
    client.q.put(b"x")
    assert client.q.stats().chunks_leased == 0
    assert not client.lost


@pytest.mark.real
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment_lose_no_number(desk: Desk) -> None:
    """What was interrupted is done or not; what comes after it works, if need be by a new connection."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    client = desk.attach()
    client.q.set_weight("a", 1)
    stop, armed = threading.Event(), list[bool]()  # a list, as an interrupt cannot fall into its methods

    def interrupt() -> None:
        while not stop.wait(0.011):
            if armed:
                armed.clear()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    hits = 0
    gc.disable()
    for _ in range(100):
        try:
            armed.append(True)
            while True:
                client.q.set_weight("a", 2)
        except KeyboardInterrupt:
            hits += 1
        if client.attached._connection.fileno() < 0 or client.attached._lost or not settled(client):
            client = moved(desk, client)
    gc.enable()
    stop.set()
    thread.join()
    assert hits == 100
    client.attached._connection.cut()  # the last interrupt may have done so, which is heard later
    client = moved(desk, client)
    for n in range(5):
        client.q.set_weight("a", n + 1)
    until(lambda: not client.attached._tags)
    assert desk.host.engine is not None
    assert len(desk.host.engine.state.clients[client.numbers.client].outcomes) <= 1


def again(desk: Desk, old: Client) -> Client:
    """A new connection of the same process."""
    return desk.attach(numbers=old.numbers, lanes=old.lanes)


def settled(client: Client) -> bool:
    """Whether its connection goes on after an interrupt."""
    end = time.monotonic() + 30
    while client.attached._tags and not client.attached._lost and time.monotonic() < end:
        time.sleep(0.001)
    return not client.attached._lost


def moved(desk: Desk, old: Client) -> Client:
    """A new connection, and all that was not answered sent again."""
    until(lambda: old.lost)
    new = again(desk, old)
    while old.lost:
        for pending in old.lost[0][1]:
            new.attached.send(pending)
        del old.lost[0]
    return new


# -- the connection goes


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize(
    "command",
    [offers(), Reserve(2), Reserve(2, wait_seconds=30.0), SetWeight("a", 5000), Join("me")],
    ids=repr,
)
def test_a_call_whose_answer_was_lost_and_is_sent_again_has_one_effect(
    desk: Desk, command: Command, arrived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "REJOIN_SECONDS", 600.0)
    lossy = Lossy(unix.connect(desk.path, 5.0))
    client = desk.attach(lossy)
    ask(Way(client.attached), SetWeight("b", 1))
    client.q.reserve(wait_seconds=0.001)
    desk.q.put_many([b"x"] * 5)
    pending = Pending(command, lambda _: None)
    lossy.lose(arrived)
    client.attached.send(pending)
    until(lambda: client.lost)
    ((reason, unanswered),) = client.lost
    assert (reason, unanswered) == ("eof", [pending])
    assert pending.call is not None and pending.call.number
    before = desk.q.stats()
    assert (before.chunks_leased == 2 or before.submissions_active == 6) == (
        arrived and isinstance(command, Reserve | Submit)
    )
    call, new = pending.call, again(desk, client)
    pending.begin_again()
    new.attached.send(pending)
    until(lambda: pending.left)
    assert pending.error is None
    assert pending.call is not None
    assert (pending.call.client, pending.call.number) == (call.client, call.number)
    after = desk.q.stats()
    if isinstance(command, Reserve):
        assert len(pending.reply.spans) == 2
        assert after.chunks_leased == 2
        ask(Way(new.attached), Complete(parts(pending.reply)))
    elif isinstance(command, Submit):
        assert after.submissions_active == 6
    elif isinstance(command, Join):
        assert pending.reply == 1
    assert new.q.stats().reservations == 0


def test_everything_unanswered_is_told_in_the_order_it_was_sent(desk: Desk) -> None:
    client = desk.attach()
    client.q.set_weight("a", 1)
    commands: list[Any] = [
        Reserve(wait_seconds=600.0), Wait(desk.q.submit([b"x"], tenant="w").id, 600.0), Reserve(wait_seconds=500.0),
    ]  # fmt: skip
    desk.q.pause()
    pendings = [Pending(command, lambda _: None) for command in commands]
    given_up = Pending(Reserve(wait_seconds=400.0), lambda _: None)
    for pending in (*pendings[:1], given_up, *pendings[1:]):
        client.attached.send(pending)
    until(lambda: desk.host.engine is not None and desk.host.engine.state.waiting == 4)
    given_up.lost = True  # as if it had been given up in the very moment
    desk.serving.stop(bye=True)
    until(lambda: client.lost)
    ((reason, unanswered),) = client.lost
    assert reason == "bye"
    assert unanswered == [pendings[0], given_up, *pendings[1:]]
    assert given_up.command == Reserve(wait_seconds=0.0)
    assert [p.call is not None and p.call.number for p in pendings] == [1, 0, 1]
    late = Pending(Stats(), lambda _: None)
    client.attached.send(late)
    assert client.lost[1:] == [("bye", [late])]
    client.attached.give_up(late)
    client.close()
    assert len(client.lost) == 2


def test_a_host_that_is_cut_off_is_told_as_eof(desk: Desk) -> None:
    client = desk.attach()
    desk.serving.stop(bye=False)
    until(lambda: client.lost)
    assert client.lost == [("eof", [])]


def test_a_silent_host_is_told_apart(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    client = desk.attach()
    says_nothing(desk, monkeypatch)
    monkeypatch.setattr(hearing, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(hearing, "SILENT_SECONDS", 0.3)
    until(lambda: client.lost)
    assert client.lost == [("silent", [])]
    listener = unix.listen(desk.path + "2")
    with pytest.raises(PeerSilent):
        Client(desk, unix.connect(desk.path + "2", 5.0))
    listener.close()


def test_time_in_which_this_process_was_stopped_is_not_silence(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = desk.attach()
    says_nothing(desk, monkeypatch)
    monkeypatch.setattr(hearing, "time", clock := Leaping(client.attached._hearing))
    until(lambda: len(clock.silent) >= 8)
    counted = [
        after - before for before, after in pairwise(clock.silent[2:8])
    ]  # at first a beat may be under way
    assert max(counted) <= hearing.BEAT_SECONDS and sum(counted) > 0.0
    assert not client.lost


def says_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that sends no more beats."""
    serving = desk.serving
    monkeypatch.setattr(serving, "_beat", lambda: setattr(serving, "_beat_at", time.monotonic() + 3600))


class Leaping:
    """A clock in a process that is stopped again and again: every look at it is an hour later."""

    def __init__(self, heard: hearing.Hearing) -> None:
        self.heard = heard
        self.silent: list[float] = []  # how long the host was silent, at each look

    def monotonic(self) -> float:
        self.silent.append(self.heard._silent)
        return 1e9 + len(self.silent) * 3600.0


def test_who_is_refused_hears_why(desk: Desk) -> None:
    connection = Meddled(unix.connect(desk.path, 5.0))
    hello = wire.encode(wire.Hello(wire.VERSION + 1, "default", 1))
    connection.send = lambda frames: connection.inner.send([hello])
    with pytest.raises(QueueHeld) as caught:
        Client(desk, connection)
    assert caught.value.details == {"pid": os.getpid()}
    assert connection.fileno() == -1


def test_a_host_that_speaks_nonsense_is_left(desk: Desk) -> None:
    client = desk.attach()
    (peer,) = desk.serving._peers.values()
    peer.connection.send([b"\xc1"])
    until(lambda: client.lost)
    assert client.lost == [("eof", [])]


def test_leases_that_arrived_stay_when_their_process_goes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "REJOIN_SECONDS", 0.0)
    monkeypatch.setattr(serving_module, "BEAT_SECONDS", 0.05)
    client = desk.attach()
    desk.q.put(b"x")
    (lease,) = client.q.reserve()
    client.attached._connection.cut()
    until(lambda: client.lost and not desk.serving._peers)
    time.sleep(0.8)  # longer than from one beat to the next
    assert desk.q.stats().chunks_leased == 1, "or a chunk that kills its worker would never count"
    desk.q.complete(lease)


def test_leases_reach_nobody_before_the_host_is_told_that_they_came(desk: Desk) -> None:
    client = desk.attach()
    out = client.attached._out
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.q.reserve, wait_seconds=60)
        until(lambda: desk.q.stats().waiters == 1 and not out._busy)
        out._busy = True  # as if another thread were in the middle of a write
        try:
            desk.q.put(b"x")
            until(lambda: desk.q.stats().chunks_leased == 1)
            time.sleep(0.3)
            assert not waiting.done(), "or a chunk that kills its worker would never count"
        finally:
            out._busy = False
            out.flush()
        (lease,) = waiting.result(30)
        client.q.complete(lease)


def test_a_call_is_sent_again_with_the_wait_that_is_left(desk: Desk) -> None:
    client = desk.attach()
    assert client.q.reserve(wait_seconds=0.001) == []
    pending = Pending(Reserve(wait_seconds=0.0), lambda _: None)
    pending.call = Call(Reserve(wait_seconds=600.0), client.lanes.clients()[0], 2, 1)
    client.attached.send(pending)
    until(lambda: pending.left)
    assert not pending.reply.spans


def test_a_number_that_was_taken_by_an_interrupted_caller_holds_nobody_back(desk: Desk) -> None:
    client = desk.attach()
    client.q.set_weight("a", 1)
    first = client.numbers.client
    for broken in ("numbers", "registering"):
        pending = Pending(SetWeight("a", 2), lambda _: None)
        with pytest.MonkeyPatch.context() as patch:
            if broken == "numbers":
                patch.setattr(type(client.numbers), "call", interrupted_after(type(client.numbers).call))
            else:
                client.numbers.__init__()
                patch.setattr(client.attached._numbering, "_ask", interrupted_after(lambda pending: None))
            with pytest.raises(KeyboardInterrupt):
                client.attached.send(pending)
        client.attached.give_up(pending)
        for n in range(5):
            client.q.set_weight("a", n + 1)
        assert client.numbers.client != first
        assert client.numbers.received == 5
        first = client.numbers.client


def interrupted_after(function: Any) -> Any:
    def call(*args: Any) -> None:
        function(*args)
        raise KeyboardInterrupt

    return call


# -- clients that are forgotten


def test_a_forgotten_client_registers_anew(desk: Desk) -> None:
    client = desk.attach()
    client.q.set_weight("a", 1)
    assert client.q.reserve(wait_seconds=0.001) == []
    first, lanes = client.numbers.client, client.lanes.clients()
    talk = Talk(desk.path)
    for id in (first, *lanes):
        talk.call(Goodbye(), id)
    talk.close()
    sub = client.q.submit([b"x"])
    assert client.numbers.client != first
    assert len(client.q.reserve(wait_seconds=1)) == 1
    assert client.lanes.clients() != lanes
    assert client.q.stats().submissions_active == 1
    assert client.q.submission(sub.id).leased == 1


def test_a_call_that_was_sent_before_to_another_host_is_not_begun_anew(desk: Desk) -> None:
    client = desk.attach()
    pending = Pending(offers(), lambda _: None)
    pending.call, pending.lives = Call(pending.command, 4711, 1), 2  # type: ignore[arg-type]
    client.attached.send(pending)
    until(lambda: pending.left)
    assert type(pending.error) is fairway.ClientUnknown
    assert client.q.stats().submissions_active == 0


# -- the end


def test_a_close_says_goodbye(desk: Desk) -> None:
    client = desk.attach()
    client.q.set_weight("a", 1)
    client.q.reserve(wait_seconds=0.001)
    assert desk.host.engine is not None
    mine = {client.numbers.client, *client.lanes.clients()}
    assert len(mine) == 2
    assert mine <= set(desk.host.engine.state.clients)
    client.q.close()
    assert not mine & set(desk.host.engine.state.clients)
    until(lambda: not desk.serving._peers)
    with pytest.raises(Closed):
        client.q.stats()
    assert not client.lost
    pending = Pending(Stats(), lambda _: None)
    client.attached.send(pending)
    assert type(pending.error) is Closed


@pytest.mark.parametrize("goodbye", [True, False])
def test_a_close_lets_calls_end_that_do_not_wait(memory_desk: Desk, goodbye: bool) -> None:
    client = memory_desk.attach()
    client.q.set_weight("a", 1)
    with ThreadPoolExecutor(2) as pool, stopped_store(memory_desk) as go_on:
        call = pool.submit(client.q.submit, [b"x"])
        until(lambda: memory_desk.host.storing)
        later = threading.Timer(0.2, go_on)
        later.start()
        client.close(goodbye)
        assert call.result(30).total == 1
        later.join()


# -- another process


@pytest.mark.real
def test_a_second_real_process(tmp_path: Path) -> None:
    from tests.attach.conftest import _desk

    desk = _desk("sqlite", tmp_path)
    script = f"""
        from pathlib import Path
        from types import SimpleNamespace
        from tests.attach.conftest import Client
        from fairway.runtime import hearing
        from fairway.store.sqlite import SqliteStore
        hearing.SILENT_SECONDS = 600.0
        there = SimpleNamespace(
            path={desk.path!r}, open_store=lambda: SqliteStore.open({str(tmp_path / "work.db")!r}, "default")
        )
        client = Client(there)
        sub = client.q.submit([b"from the child" * 1000], tenant="child")
        (lease,) = client.q.reserve(wait_seconds=60)
        assert lease.payload == b"from the parent" * 1000, lease.payload
        client.q.complete(lease, result=lease.payload[::-1])
        print(client.q.wait(sub.id, 60).state, list(client.q.results(sub.id))[0].data == b"r" * 100_000, flush=True)
        client.close()
        assert not client.lost
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        (lease,) = desk.q.reserve(wait_seconds=60)
        assert lease.payload == b"from the child" * 1000
        desk.q.complete(lease, result=b"r" * 100_000)
        sub = desk.q.submit([b"from the parent" * 1000], tenant="parent")
        assert desk.q.wait(sub.id, 60).state == "completed"
        assert next(iter(desk.q.results(sub.id))).data == (b"from the parent" * 1000)[::-1]
        assert child.communicate(timeout=60)[0] == "completed True\n"
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()
        desk.close()


# -- connections that a test meddles with


class Meddled:
    """A connection that behaves as the one inside it, except where it does not."""

    def __init__(self, inner: Connection) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Counted(Meddled):
    """Counts frames and writes, and takes its time for a write."""

    frames = writes = 0
    slow = 0.0

    def send(self, frames: list[bytes]) -> bool:
        self.frames += len(frames)
        self.writes += 1
        time.sleep(self.slow)
        return self.inner.send(frames)


class Lossy(Meddled):
    """Loses the next call on its way there, or its answer on its way back, and breaks."""

    _lose = ""

    def lose(self, arrived: bool) -> None:
        self._lose = "answer" if arrived else "call"

    def send(self, frames: list[bytes]) -> bool:
        if self._lose == "call":
            self.inner.cut()
            raise PeerGone("broken")
        return self.inner.send(frames)

    def receive(self) -> list[bytes]:
        frames = self.inner.receive()
        if self._lose == "answer" and any(isinstance(wire.at_attached(f), wire.Answer) for f in frames):
            self.inner.cut()
            raise PeerGone("broken")
        return frames


def test_who_is_attached_loads_no_engine(tmp_path: Path) -> None:
    """Spark's processes and commands live for a call or two: what they load is most of what they cost."""
    path = str(tmp_path / "work.db")
    script = textwrap.dedent(
        f"""
        import sys
        import fairway
        with fairway.open({path!r}, host=False) as q:
            q.complete(q.reserve(max=5))
            assert q.stats().chunks_waiting == 0
        print([name for name in ("fairway.engine.state", "fairway.strategy.plan") if name in sys.modules])
        """
    )
    with fairway.open(path) as q:
        q.put_many([b"a", b"b"])
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout, run.stderr) == ("[]\n", "")
