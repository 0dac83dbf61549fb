"""A process that is attached works as if it hosted; one that never hosts attaches or fails."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway.engine.closing import Closing
from fairway.engine.commands import Reserve, SetWeight, Submit
from fairway.errors import StoreFailed
from fairway.face.offers import offer
from fairway.model.stored import Group
from fairway.runtime import member as member_module
from fairway.runtime.between import Between
from fairway.runtime.blocking import ask
from fairway.runtime.committer import Committer
from fairway.runtime.door import Door
from fairway.runtime.pending import Pending
from fairway.store.memory import MemoryStore
from fairway.store.memory.shelf import Fault, Shelf
from tests.attach.conftest import over_both
from tests.attach.member_script import PATIENT_SECONDS, Child, ChildError, wait_until
from tests.runtime.running import acknowledges_all, running

pytestmark = pytest.mark.real


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def host(path: Path) -> Iterator[Child]:
    with Child.opened(path) as child:
        yield child


def way(q: fairway.Queue) -> str:
    return type(q._port._member.way).__name__  # type: ignore[attr-defined]


@over_both
def test_every_verb_works_through_the_host(path: Path, host: Child) -> None:
    with fairway.open(path) as q:
        assert way(q) == "Attached"
        sub = q.submit(
            [b"one", b"two", b"x" * 300_000], tenant="acme", metadata={"mode": "a"}, info=b"i", key="k"
        )
        assert (
            q.submit(
                [b"one", b"two", b"x" * 300_000], tenant="acme", metadata={"mode": "a"}, info=b"i", key="k"
            )
            == sub
        )
        with pytest.raises(fairway.KeyConflict):
            q.submit([b"other"], tenant="acme", key="k")
        leases = q.reserve(max=3, wait_seconds=5)
        assert [lease.payload[:3] for lease in leases] == [b"one", b"two", b"xxx"]
        assert q.complete(leases[0], result=b"done") == "done"
        assert q.renew(leases[1], 60)
        assert q.fail(leases[1], error="no", retry=False) == "dead"
        assert q.submission(sub.id).state == "failed"
        assert q.wait(sub.id, 5).state == "failed"
        with pytest.raises(fairway.NotFound):
            q.submission(12345)
        assert [r.data for r in q.results(sub.id)] == [b"done"]
        assert [s.id for s in q.submissions(state="failed", tenant="acme", metadata={"mode": "a"})] == [
            sub.id
        ]
        assert [d.index for d in q.dead()] == [1]
        q.redrive(sub.id)
        q.cancel(sub.id)
        q.pause(tenant="acme")
        q.resume(tenant="acme")
        q.set_weight("acme", 5)
        assert q.configure(attempts_max=7).attempts_max == 7
        assert [t.weight for t in q.tenants() if t.name == "acme"] == [5.0]
        q.put_many([b"m"] * 50)
        q.submit_many([{"payloads": [b"a"]}, {"payloads": [b"b"]}])
        named = q.reserve(max=5, consumer="c", seq=1)
        again = q.reserve(max=5, consumer="c", seq=1)
        assert [lease.receipt for lease in again] == [lease.receipt for lease in named]
        q.complete(named)
        q.trim("c", 1)
        assert [c.name for c in q.consumers()] == ["c"]
        lease = q.reserve()[0]
        assert q.payload(lease) == lease.payload
        assert q.release(lease) == "released"
        assert "Fair" in q.explain()
        assert len(list(q.events())) > 50
        there = host.do("q.stats().chunks_waiting")
        assert q.stats().chunks_waiting == there > 0


def test_both_sides_see_one_queue(path: Path, host: Child) -> None:
    with fairway.open(path) as q:
        host.do("put_many('a', 3)")
        assert [lease.payload for lease in q.reserve(max=9)] == [b"a-0", b"a-1", b"a-2"]
        q.put(b"b")
        assert host.do("q.reserve()[0].payload.decode()") == "b"


@over_both
def test_waits_through_the_host_end_when_work_comes(path: Path, host: Child) -> None:
    with fairway.open(path) as q:
        found: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(q.reserve(wait_seconds=50)[0].payload))
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: host.do("q.stats().waiters") == 5)
        host.do("put_many('a', 5)")
        for thread in threads:
            thread.join(50)
        assert sorted(found) == [f"a-{i}".encode() for i in range(5)]


def test_event_loops_attach_too(path: Path, host: Child) -> None:
    async def work() -> None:
        async with fairway.aio.open(path) as q:
            subs = await asyncio.gather(*(q.put(f"{i}".encode()) for i in range(200)))
            assert len({sub.id for sub in subs}) == 200
            waits = [asyncio.create_task(q.reserve(max=1, wait_seconds=50)) for _ in range(200)]
            leases = [lease for batch in await asyncio.gather(*waits) for lease in batch]
            assert len({lease.payload for lease in leases}) == 200
            cancelled = asyncio.create_task(q.reserve(wait_seconds=50))
            await asyncio.sleep(0.1)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await q.put(b"last")
            assert [lease.payload for lease in await q.reserve(wait_seconds=50)] == [b"last"]

    asyncio.run(work())
    assert host.do("q.stats().chunks_leased") == 201


@over_both
def test_a_client_that_dies_leaves_no_wait_behind(path: Path, host: Child) -> None:
    with Child.opened(path) as other:
        other.begin("q.reserve(wait_seconds=500)")
        wait_until(lambda: host.do("q.stats().waiters") == 1)
        other.kill()
        wait_until(lambda: host.do("q.stats().waiters") == 0)


def test_closing_an_attached_queue_leaves_nothing_behind(path: Path, host: Child) -> None:
    q = fairway.open(path)
    q.put(b"x")
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            while True:
                q.reserve(wait_seconds=500)
        except fairway.Closed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: host.do("q.stats().waiters") == 1)
    q.close()
    thread.join(30)
    assert len(errors) == 1
    assert not [t for t in threading.enumerate() if t.name.startswith("fairway ")]
    with pytest.raises(fairway.Closed):
        q.put(b"y")
    assert host.do("len(q._port._member.way.engine.state.clients)") == 0
    assert host.do("q.stats().chunks_leased") == 1


# -- host=False --------------------------------------------------------------------------------------------


def test_without_a_host_one_who_never_hosts_is_refused(path: Path) -> None:
    with pytest.raises(fairway.NoHost, match="host=True"):
        fairway.open(path, host=False)
    with pytest.raises(fairway.BadArgument):
        fairway.open(":memory:", host=False)
    assert not [t for t in threading.enumerate() if t.name.startswith("fairway ")]
    with fairway.open(path) as q, fairway.open(path, host=False) as shared:
        q.put(b"x")
        assert shared.stats().chunks_waiting == 1


def test_one_who_never_hosts_waits_for_the_next_host(path: Path, host: Child) -> None:
    with Child() as guest:
        open_as_guest(guest, path, "member", "HOST_WAIT_SECONDS", PATIENT_SECONDS)
        assert guest.way == "Attached"
        host.kill()
        call = guest.begin("q.put(b'x').id")
        time.sleep(0.3)
        assert not guest.came(call)
        with Child.opened(path) as next_host:
            guest.result(call)
            assert (guest.way, next_host.way) == ("Attached", "Host")


def test_one_who_never_hosts_comes_back_to_a_host_that_was_silent(path: Path, host: Child) -> None:
    with Child() as guest:
        open_as_guest(guest, path, "member", "HOST_WAIT_SECONDS", PATIENT_SECONDS)
        assert guest.way == "Attached"
        host.signal(signal.SIGSTOP)
        guest.do("heed_silence(True)")
        call = guest.begin("q.put(b'x').id")
        wait_until(lambda: guest.way != "Attached")
        guest.do("heed_silence(False)")
        host.signal(signal.SIGCONT)
        assert guest.result(call)
        assert (guest.way, host.way) == ("Attached", "Host")
        assert guest.do("q.stats().chunks_waiting") == 1


def open_as_guest(guest: Child, path: Path, module: str, limit: str, seconds: float) -> None:
    """Let a child open the queue that never hosts and waits less than usual, or longer."""
    guest.do("fairway.open(':memory:').close()")  # so that the modules are there
    guest.do(f"setattr(sys.modules['fairway.runtime.{module}'], {limit!r}, {seconds})")
    guest.do(f"use(fairway.open({str(path)!r}, host=False))")


def test_one_who_never_hosts_waits_while_the_door_is_held(path: Path, host: Child) -> None:
    with Child() as guest:
        open_as_guest(guest, path, "door", "DOOR_SECONDS", 0.1)
        guest.do(f"setattr(sys.modules['fairway.runtime.member'], 'HOST_WAIT_SECONDS', {PATIENT_SECONDS})")
        host.kill()
        door = Door(f"{path}-default.lock")
        with door.entered():
            call = guest.begin("q.put(b'x').id")
            time.sleep(1.0)
            assert not guest.came(call)
        door.close()
        with Child.opened(path):
            guest.result(call)


def test_one_who_never_hosts_gives_up_and_tries_again_with_the_next_call(path: Path, host: Child) -> None:
    with Child() as guest:
        open_as_guest(guest, path, "member", "HOST_WAIT_SECONDS", 0.3)
        host.kill()
        for _ in range(2):
            with pytest.raises(ChildError, match="NoHost"):
                guest.do("q.put(b'x').id")
        with Child.opened(path):
            assert guest.do("q.put(b'y').id")
            assert guest.way == "Attached"


def test_a_call_that_was_sent_when_its_host_died_is_told_what_is_unknown_and_holds_nothing_back(
    path: Path, host: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_module, "HOST_WAIT_SECONDS", 0.3)
    told: list[fairway.FairwayError] = []

    def put() -> None:
        try:
            q.put(b"perhaps")
        except fairway.FairwayError as error:
            told.append(error)

    with fairway.open(path, host=False) as q:
        q.put(b"before")
        numbers = q._port._member._numbers  # type: ignore[attr-defined]
        host.signal(signal.SIGSTOP)
        caller = threading.Thread(target=put)
        caller.start()
        wait_until(lambda: numbers._last == 2)
        host.kill()
        caller.join(60)
        (error,) = told
        assert isinstance(error, fairway.NoHost)
        assert "carried this call out is not known" in str(error)
        with pytest.raises(fairway.NoHost) as never_sent:
            q.put(b"no")
        assert "not known" not in str(never_sent.value)
        with Child.opened(path):
            q.put(b"after")
            q.put(b"after")
            assert acknowledges_all(numbers)
            assert q.stats().chunks_waiting == 3


def test_what_was_told_that_no_host_is_there_is_not_carried_out_later_and_its_leases_go_back() -> None:
    """The next host hears of its numbers: what the last one stored under them is asked for by nobody any more."""
    with running() as (q, run):
        q.put(b"x")
        host, left = run.host, list[Pending]()
        between = Between("default", lambda: None, lambda: run.store)
        reserve, submit = host.numbers.call(Reserve(1)), host.numbers.call(Submit([offer([b"y"])]))
        host.send(Pending(reserve.command, left.append, call=reserve))  # the answer is lost with the host
        wait_until(lambda: len(left) == 1)
        for call in (reserve, submit):
            pending = Pending(call.command, left.append)
            pending.call = call
            between.send(pending)
        with between.lock:
            between.fail(fairway.NoHost())
            assert [type(pending.error) for pending in left[1:]] == [fairway.NoHost] * 2
            waiting = between.take()
        for pending in waiting:
            pending.begin_again()
        host.resume(waiting)
        wait_until(lambda: q.stats().chunks_leased == 0 and acknowledges_all(host.numbers))
        assert [(lease.payload, lease.attempt) for lease in q.reserve(9)] == [(b"x", 1)]
        assert len(left) == 3


# -- moving ------------------------------------------------------------------------------------------------


def test_a_store_that_fails_while_taking_over_is_told_and_tried_again(
    path: Path, host: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fairway.open(path) as q:
        q.put(b"x")
        start = Committer.start

        def failing(committer: Committer) -> None:
            raise StoreFailed

        monkeypatch.setattr(Committer, "start", failing)
        host.kill()
        wait_until(lambda: way(q) == "Between")
        with pytest.raises(StoreFailed):
            q.put(b"y")
        monkeypatch.setattr(Committer, "start", start)
        q.put(b"z")
        assert way(q) == "Host"
        assert q.stats().chunks_waiting == 2


def test_calls_given_up_while_no_host_is_there_are_not_carried_out(
    path: Path, host: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_module, "HOST_WAIT_SECONDS", PATIENT_SECONDS)

    async def work() -> None:
        async with fairway.aio.open(path, host=False) as q:
            await q.put(b"before")
            host.kill()
            task = asyncio.create_task(q.put(b"never"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with Child.opened(path):
                await q.put(b"after")
                assert [lease.payload for lease in await q.reserve(max=9)] == [b"before", b"after"]

    asyncio.run(work())


class Fallen:
    """A shelter that only remembers."""

    def __init__(self) -> None:
        self.carried: list[Pending] = []

    def host_stopped(self) -> None: ...

    def carry_on(self, pending: Pending) -> None:
        self.carried.append(pending)
        pending.leave("carried on", None)


@pytest.mark.parametrize("fault", [Fault.OK, Fault.UNKNOWN_STORED])
@pytest.mark.parametrize("known", [False, True])
def test_a_number_goes_elsewhere_only_if_its_client_is_stored(fault: Fault, known: bool) -> None:
    """Of a client that was registered in the last group of a host that was replaced nobody knows anything."""
    shelf = Shelf()
    with running(shelf) as (_, run):
        shelter = run.host.shelter = Fallen()
        if known:
            ask(run, SetWeight("a", 1000))

        def taken_over(group: Group) -> Fault:
            if fault is Fault.OK:
                MemoryStore.open("default", shelf).take_over()
                return fault
            shelf.store("default", group)
            MemoryStore.open("default", shelf).take_over()
            return Fault.UNKNOWN_LOST

        shelf.faults = taken_over
        pending = Pending(SetWeight("a", 2000), lambda p: p.box.set(), threading.Event())
        todo = run.host.send(pending, lead=True)
        assert isinstance(todo, Closing)
        run.host.commit(todo)
        run.host.evacuate()
        assert pending.box.wait(30)
        if known:
            (carried,) = shelter.carried
            assert carried.call is not None
            assert carried.call.number == 2
        elif fault is Fault.OK:
            (carried,) = shelter.carried
            assert carried.call is None
        else:
            assert shelter.carried == []
            assert isinstance(pending.error, fairway.GroupUnknown)


def test_numbers_that_nobody_asks_for_any_more_go_through_a_host_that_is_replaced_too() -> None:
    with running() as (q, run):
        q.put(b"x")
        host = run.host
        shelter = host.shelter = Fallen()
        wait_until(lambda: host.sleeping_until > 0)  # else its store thread, still awake, would execute them
        ghosts = [Pending(command, lambda _: None) for command in (Reserve(1), SetWeight("a", 2000))]
        for ghost in ghosts:
            ghost.call = host.numbers.call(ghost.command)  # type: ignore[arg-type]
            ghost.leave(None, fairway.NoHost())
            ghost.forsake()
        with host.lock:
            host.later += ghosts
        host.stop(fairway.Fenced())
        host.evacuate()
        assert shelter.carried == ghosts[:1], "it may have leases, which the next host finds"
        assert host.numbers._early == {3}, "and this one is told to be over"


def test_who_is_replaced_while_a_group_is_being_stored_waits_for_what_became_of_it() -> None:
    """Another thread may find out first: the store still says whether the calls of a new client had an effect."""
    shelf = Shelf()
    with running(shelf) as (_, run):
        shelter = run.host.shelter = Fallen()

        def found_out_meanwhile(group: Group) -> Fault:
            MemoryStore.open("default", shelf).take_over()
            run.host.confirm()
            threading.Thread(target=leave).start()
            time.sleep(0.1)  # the other thread would have given the call away by now
            return Fault.OK

        def leave() -> None:
            run.host.come_to_rest()
            run.host.evacuate()

        shelf.faults = found_out_meanwhile
        pending = Pending(SetWeight("a", 2000), lambda p: p.box.set(), threading.Event())
        todo = run.host.send(pending, lead=True)
        assert isinstance(todo, Closing)
        run.host.commit(todo)
        assert pending.box.wait(30)
        assert (pending.error, pending.reply) == (None, "carried on")
        assert [carried.call for carried in shelter.carried] == [None]
