"""Owners: one at a time, the next one soon, and no success from one that was deposed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairway
from fairway.engine.commands import SetWeight
from fairway.errors import FairwayError, NotFound, NotOwner, StoreFailed
from fairway.face.queue import Queue
from fairway.face.verbs import Verbs
from fairway.limits import OWNER_CONFIRMED_SECONDS
from fairway.model.stored import Group
from fairway.runtime.asked import Asked
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.host import Host
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.opening import writer
from fairway.runtime.owning import Owner
from fairway.runtime.pending import Pending
from fairway.store.cassandra import Address, CassandraStore, Connection
from fairway.store.cassandra.owning import Seen
from fairway.testing.cassandra.sharing import Address as Cluster
from tests.cassandra.proxy import Proxy
from tests.runtime.running import acknowledges_all, running

pytestmark = pytest.mark.real
SCRIPT = Path(__file__).with_name("owner_script.py")
SOON_SECONDS = 60.0  # on two busy cores; by itself a takeover takes six
TAKE_OVER_SECONDS = 10.0  # what is promised of a standby after its owner's death
BUSY_SECONDS = 20.0  # more of it on two busy cores

Join = Callable[..., tuple[Owner, Queue]]


@pytest.fixture
def url(cassandra: Cluster, connection: Connection) -> str:
    """A queue of this test alone."""
    return f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}"


@pytest.fixture
def join(url: str) -> Iterator[Join]:
    """One more member, as if it were in a process of its own: not shared with others."""
    joined: list[Owner] = []

    def join(standby: bool = False, at: str = url) -> tuple[Owner, Queue]:
        owner = Owner(Address.parse(at), "default", Asked(standby=standby))
        owner.start()
        joined.append(owner)
        port = ThreadPort(owner, owner.close)
        return owner, Queue("default", Verbs(ObstoreObjects(), writer, read, threading.get_ident), port, None)

    yield join
    for owner in joined:
        owner.close()


def test_a_second_process_is_told_who_owns_the_queue(join: Join) -> None:
    owner, q = join()
    began = time.time()
    with pytest.raises(NotOwner) as raised:
        join()
    assert raised.value.owner == owner._lease.me and raised.value.owner in str(raised.value)
    assert began - 5 < raised.value.until < time.time() + 10
    assert q.put(b"x").id, "and the owner goes on"


def test_opening_twice_in_one_process_shares_the_queue(url: str) -> None:
    with fairway.open(url) as one, fairway.open(url) as other:
        sub = one.submit([b"a"])
        assert [lease.submission for lease in other.reserve()] == [sub.id]


def _claims(owner: Owner) -> list[tuple[Seen | None, int]]:
    """What a standby saw when it claimed, and how many looks before it the silence had been long enough already."""
    lease, found, late = owner._lease, list[tuple[Seen | None, int]](), [0]
    look, claim = lease.look, lease.claim

    def looked() -> Seen | None:
        late[0] += owner._watch.seen is not None and owner._watch.free
        return look()

    def claimed(seen: Seen | None) -> bool:
        found.append((seen, late[0]))
        return claim(seen)

    lease.look, lease.claim = looked, claimed  # type: ignore[method-assign]
    return found


def test_a_standby_goes_on_at_once_after_a_clean_stop(join: Join) -> None:
    _, first = join()
    sub = first.submit([b"payload"], tenant="acme")
    owner, second = join(standby=True)
    claims = _claims(owner)
    answers: list[list[fairway.Lease]] = []
    waiting = threading.Thread(target=lambda: answers.append(second.reserve(max=5)))
    waiting.start()
    time.sleep(1.0)
    assert not answers, "it stands by"
    first.close()
    closed = time.monotonic()
    waiting.join(SOON_SECONDS)
    assert time.monotonic() - closed < BUSY_SECONDS, "at once"
    assert [(lease.submission, lease.payload) for lease in answers[0]] == [(sub.id, b"payload")]
    ((seen, _),) = claims
    assert seen is not None and seen.owner == "", "it saw that the owner had left, and waited for no silence"


def test_a_standby_takes_over_after_a_death_and_nothing_acknowledged_is_lost(url: str, join: Join) -> None:
    process = subprocess.Popen([sys.executable, str(SCRIPT), url], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        acknowledged = [int(process.stdout.readline()) for _ in range(20)]
        owner, q = join(standby=True)
        claims = _claims(owner)
        process.kill()
        died = time.monotonic()
        acknowledged += [int(line) for line in process.stdout.read().split()]
        leases = q.reserve(max=10_000)
        took = time.monotonic() - died
        assert took < TAKE_OVER_SECONDS + BUSY_SECONDS, (
            "from the death to the first answer, the load included"
        )
        (seen, late) = claims[0]  # one that the cluster did not answer in time is made again
        assert seen is not None and seen.owner, "it did not leave"
        assert late <= 1, "claimed at the first look after the silence: 5 s and a look, below 10 s"
        assert {lease.submission for lease in leases} >= set(acknowledged)
        assert len(leases) <= len(acknowledged) + 1, "at most the one that was under way"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _silence(owner: Owner) -> None:
    """An owner that others hear nothing of, though it lives."""
    owner._lease.beat = lambda: True  # type: ignore[method-assign]


def test_a_deposed_owner_never_answers_success(join: Join) -> None:
    old, q = join()
    sub = q.submit([b"a", b"b"])
    (held, _) = q.reserve(max=2, lease_seconds=600)
    _silence(old)
    _, new = join(standby=True)
    assert new.submission(sub.id).total == 2  # it waits until it owns
    time.sleep(OWNER_CONFIRMED_SECONDS)
    host = old.way
    assert isinstance(host, Host) and time.monotonic() - host.confirmed > OWNER_CONFIRMED_SECONDS
    for call in (  # first a read of the tables: whatever is refused, it knows afterwards
        lambda: list(q.submissions(state="completed")),
        lambda: q.stats(),
        lambda: q.submission(sub.id),
        lambda: q.put(b"late"),
        lambda: q.complete(held),
    ):
        with pytest.raises(NotOwner):
            call()
    assert new.submission(sub.id).done == 0
    new.complete(held, result=b"r")
    assert new.submission(sub.id).done == 1, "the receipt is good at the new owner"


@pytest.mark.parametrize("late", [False, True], ids=["the answer is lost", "the answer comes too late"])
def test_a_call_that_may_be_stored_is_not_told_that_another_owns(
    join: Join, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Its group was stored, the answer was lost, and another took over: NotOwner would say that nothing happened."""
    old, q = join()
    q.put(b"first")
    real = old.store.commit
    taken: list[fairway.Queue] = []

    def commit(group: Group) -> None:
        real(group)
        _silence(old)
        taken.append(join(standby=True)[1])
        assert taken[0].stats().submissions_active == 2  # it waits until it owns
        if not late:
            raise fairway.GroupUnknown
        assert isinstance(old.way, Host)
        old.way.confirm()  # as another thread does, which finds out that this one was replaced
        until = time.monotonic() + SOON_SECONDS
        while old._running is not None:
            assert time.monotonic() < until
            time.sleep(0.01)

    monkeypatch.setattr(old.store, "commit", commit)
    with pytest.raises(fairway.GroupUnknown, match="look before you repeat it"):
        q.put(b"second")
    monkeypatch.undo()
    with pytest.raises(NotOwner):
        q.put(b"surely not")
    assert sorted(lease.payload for lease in taken[0].reserve(max=9)) == [b"first", b"second"]


def test_the_numbers_of_calls_that_an_owner_could_not_answer_hold_nothing_back() -> None:
    """Neither of one whose outcome is unknown nor of one for which no owner could be had. No cluster is needed."""
    owner = Owner(Address.parse("cassandra://nowhere/k"), "default", Asked())
    with running() as (q, run):
        q.put(b"x")
        numbers = owner._numbers = run.host.numbers
        told: list[Pending] = []
        calls = [numbers.call(SetWeight("a", n + 1)) for n in range(2)]
        pendings = [Pending(call.command, told.append) for call in calls]
        for pending, call in zip(pendings, calls, strict=True):
            pending.call = call
        owner._running = run
        run.host.unknown = True
        owner.carry_on(pendings[0])
        run.host.unknown = False
        owner.carry_on(pendings[1])
        owner._failed(NotOwner())
        assert [type(pending.error) for pending in told] == [fairway.GroupUnknown, NotOwner]
        with owner._between.lock:
            waiting = owner._between.take()
        for pending in waiting:
            pending.begin_again()
        run.host.resume(waiting)
        q.set_weight("a", 7)
        until = time.monotonic() + SOON_SECONDS
        while not acknowledges_all(numbers):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert [tenant.weight for tenant in q.tenants() if tenant.name == "a"] == [7]
    owner._running = None


def test_an_owner_that_was_paused_wakes_up_as_nobody(url: str, join: Join) -> None:
    """A zombie: it slept through its own replacement, with a call under way."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, str(SCRIPT), url], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout and process.stderr
    try:
        acknowledged = [int(process.stdout.readline()) for _ in range(20)]
        os.kill(process.pid, signal.SIGSTOP)
        _, q = join(standby=True)
        found = {lease.submission for lease in q.reserve(max=10_000)}
        os.kill(process.pid, signal.SIGCONT)
        told, errors = process.communicate(timeout=SOON_SECONDS)
        acknowledged += [int(line) for line in told.split()]
        assert process.returncode == 1
        assert "NotOwner" in errors or "GroupUnknown" in errors, errors
        assert set(acknowledged) <= found, "it acknowledged nothing that the new owner does not have"
        assert not q.reserve(max=10_000), "and wrote nothing afterwards"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_an_owner_that_is_cut_off_from_the_store_never_answers_success(
    url: str, cassandra: Cluster, join: Join
) -> None:
    with Proxy(cassandra.hosts[0], cassandra.port) as proxy:
        old, q = join(at=url.replace(f":{cassandra.port}/", f":{proxy.port}/"))
        acknowledged: list[int] = []
        failed: list[FairwayError] = []

        def produce() -> None:
            while not failed:
                try:
                    acknowledged.append(q.put(b"x").id)
                except FairwayError as error:
                    failed.append(error)

        producing = threading.Thread(target=produce)
        producing.start()
        while len(acknowledged) < 20:
            assert not failed, failed
            time.sleep(0.01)
        proxy.cut()
        _, new = join(standby=True)
        found = {lease.submission for lease in new.reserve(max=10_000)}
        assert not failed or not isinstance(failed[0], fairway.Closed)
        proxy.heal()
        producing.join(2 * SOON_SECONDS)
        assert failed, "it was told"
        assert set(acknowledged) <= found
        until = time.monotonic() + SOON_SECONDS
        told: FairwayError | None = None
        while not isinstance(told, NotOwner):
            assert time.monotonic() < until, repr(told)
            with pytest.raises(FairwayError) as raised:
                q.put(b"late")
            told = raised.value
        assert not new.reserve(max=10_000)
        old.close()


def test_a_deposed_owner_that_stands_by_sends_its_calls_again(join: Join) -> None:
    old, q = join(standby=True)
    q.put(b"one", tenant="acme")
    _silence(old)
    other, new = join(standby=True)
    new.put(b"two", tenant="acme")
    answers: list[object] = []
    waiting = threading.Thread(target=lambda: answers.append(q.put(b"three", tenant="acme")))
    waiting.start()
    time.sleep(1.0)
    assert not answers
    other.close()
    waiting.join(SOON_SECONDS)
    assert len(answers) == 1
    assert sorted(lease.payload for lease in q.reserve(max=9)) == [b"one", b"three", b"two"]


def test_an_owner_that_was_fenced_out_by_nobody_goes_on_by_itself(join: Join, connection: Connection) -> None:
    owner, q = join()
    q.put(b"one")
    store = CassandraStore(connection.share(), owner.store.queue, owner.store._number)
    store.take_over()
    store.close()
    q.put(b"two")
    assert sorted(lease.payload for lease in q.reserve(max=9)) == [b"one", b"two"]


def test_a_closed_standby_lets_go(join: Join) -> None:
    join()
    _, q = join(standby=True)
    failed: list[FairwayError] = []

    def call() -> None:
        try:
            q.put(b"x")
        except FairwayError as error:
            failed.append(error)

    waiting = threading.Thread(target=call)
    waiting.start()
    time.sleep(0.3)
    q.close()
    waiting.join(SOON_SECONDS)
    assert [type(error) for error in failed] == [fairway.Closed]


def test_a_url_of_hosts_and_a_keyspace_is_enough(cassandra: Cluster) -> None:
    with fairway.open(cassandra.url + "fairway_tests", queue=uuid.uuid4().hex) as q:
        assert q.put(b"x").id


def test_what_is_not_there_is_not_made_if_that_is_not_wanted(url: str, cassandra: Cluster) -> None:
    with pytest.raises(NotFound, match="no queue"):
        fairway.open(url, create=False)
    with pytest.raises(NotFound, match="no keyspace"):
        fairway.open(cassandra.url + "nowhere", create=False)


def test_a_cluster_that_does_not_answer_is_said_so() -> None:
    with pytest.raises(StoreFailed, match="no node of the cluster answers"):
        fairway.open("cassandra://127.0.0.9:1/fairway")
