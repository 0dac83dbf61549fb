"""Faults on a real cluster of three nodes whose clocks are 5 s apart: what callers were told stays true.

Guards: neither a former owner's late write nor the owner's own appears after it was settled; a node, and then a
quorum, may go and come back with nobody's help.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from cassandra.connection import DefaultEndPoint, DefaultEndPointFactory

from fairway.errors import FairwayError, Fenced, GroupUnknown
from fairway.model.stored import Group
from fairway.store.cassandra import CassandraStore, Connection
from fairway.testing.cassandra import Cluster
from fairway.testing.cassandra.cluster import free_port
from fairway.testing.conformance import Owner
from tests.cassandra.proxy import Proxy
from tests.cassandra.storm import Load, Storm
from tests.cassandra.three import PATIENCE_SECONDS, Through, address_of, patiently, url_of
from tests.proving import number
from tests.server.live import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
ROUNDS = 24  # a node may stop while only reads, or only plain writes, are under way


@pytest.fixture
def handle(three: Cluster) -> Iterator[Callable[[Through], CassandraStore]]:
    """Handles on one queue of this test, each through nodes of its own."""
    realm, opened = uuid.uuid4().hex, list[CassandraStore]()

    def handle(through: Through) -> CassandraStore:
        connection = Connection.open(address_of(three), through)
        try:
            opened.append(patiently(lambda: CassandraStore.open(connection, "q", realm=realm)))
        finally:
            connection.close()
        return opened[-1]

    yield handle
    for node in three.nodes:
        node.resume()
    for store in opened:
        store.close()


def _unknown(store: CassandraStore, group: Group) -> None:
    with pytest.raises(GroupUnknown):
        store.commit(group)


def test_a_node_is_killed_under_load_and_nobody_notices(three: Cluster, tmp_path: Path) -> None:
    with Storm(url_of(three), tmp_path) as storm:
        load = storm.here()
        load.works()
        three.nodes[2].kill()
        load.works(60)
        three.nodes[2].start()
        load.works(20)
        three.nodes[2].wait()
        load.works(20)


def test_a_quorum_is_killed_under_load_and_service_comes_back_by_itself(
    three: Cluster, tmp_path: Path
) -> None:
    for node in three.nodes:
        node.wait()
    with Storm(url_of(three), tmp_path) as storm:
        load = storm.here()
        load.works()
        for node in three.nodes[1:]:
            node.kill()
        time.sleep(4.0)
        for node in three.nodes[1:]:
            node.start()
        for node in three.nodes[1:]:
            node.wait()
        print(f"after the quorum was back: {load.works(30):.1f} s")


@pytest.fixture
def paused(three: Cluster) -> Iterator[Callable[..., None]]:
    """Pauses nodes; whatever happens they go on after the test."""
    yield lambda *nodes: [three.nodes[n].pause() for n in nodes]
    for node in three.nodes:
        node.resume()


def test_a_coordinator_is_paused_with_writes_in_flight(
    three: Cluster, tmp_path: Path, paused: Callable[..., None]
) -> None:
    with Storm(url_of(three), tmp_path) as storm:
        load = storm.here()
        load.works()
        paused(0)
        load.works(20)  # the others carry on, when it is noticed
        three.nodes[0].resume()
        load.works(20)


def test_two_replicas_are_paused_so_that_conditional_writes_time_out(
    three: Cluster, tmp_path: Path, paused: Callable[..., None]
) -> None:
    with Storm(url_of(three), tmp_path) as storm:
        load = storm.here()
        load.works()
        doubted, _ = _settled(load)
        for _ in range(ROUNDS):
            paused(1, 2)
            writing = threading.Thread(target=lambda: _tried(lambda: load.q.set_weight("acme", 1.0)))
            writing.start()  # a group, which changes nothing
            time.sleep(4.0)  # longer than a write may take; much later the two would be known to be away
            for node in three.nodes:
                node.resume()
            writing.join()
            load.works(10)
            if doubted:
                break
        assert doubted, "no group was of unknown outcome"


def test_the_same_owners_late_group_under_load(
    three: Cluster, tmp_path: Path, paused: Callable[..., None]
) -> None:
    """A coordinator sleeps with a group, which is settled through another: when it wakes the number is burnt."""
    with Storm(url_of(three), tmp_path) as storm:
        load = storm.here()
        load.works()
        doubted, settled = _settled(load, by=three.hosts[0])
        for _ in range(ROUNDS):
            paused(0)
            _tried(lambda: load.q.set_weight("acme", 1.0))  # a group, which changes nothing
            until(lambda: len(settled) == len(doubted), PATIENCE_SECONDS)
            if False in settled:
                break
            # It was known to be away before any group was sent to it, or stopped when it had stored one.
            three.nodes[0].resume()
            load.works(10)
        assert False in settled, "no group was burnt"
        load.works(5)
        three.nodes[0].resume()
        load.works(20)


def _tried(ask: Callable[[], object]) -> None:
    with suppress(FairwayError):
        ask()


def _settled(load: Load, by: str = "") -> tuple[list[Group], list[bool]]:
    """Groups of unknown outcome, and whether they were stored; all go by a named node until one was not."""
    store: Any = load.q._port._member.store  # type: ignore[attr-defined]
    policy: Any = store.connection.cluster.profile_manager.default.load_balancing_policy
    real, plan = store.settle, policy.make_query_plan
    doubted, found = list[Group](), list[bool]()

    def settle(group: Group) -> bool:
        doubted.append(group)
        found.append(real(group))
        return found[-1]

    def make_query_plan(*asked: Any) -> list[Any]:
        away = len(doubted) > found.count(True)
        return [host for host in plan(*asked) if not by or (host.address == by) is not away]

    store.settle, policy.make_query_plan = settle, make_query_plan
    return doubted, found


def test_an_owner_that_slept_wakes_up_as_a_zombie_under_load(three: Cluster, tmp_path: Path) -> None:
    with Storm(url_of(three), tmp_path) as storm:
        owner = storm.elsewhere()
        owner.works()
        standby = storm.here(standby=True)
        time.sleep(1.0)
        assert not standby.answered, "it stands by"
        os.kill(owner.process.pid, signal.SIGSTOP)
        print(f"taken over and at work after {standby.works(20):.1f} s")
        os.kill(owner.process.pid, signal.SIGCONT)
        storm.works(
            40
        )  # on a slow machine the standby may be silent for so long that they change places again
        assert owner.process.poll() is None, "it goes on, and is told that it is nobody"


def test_the_lost_write_of_a_former_owner_is_refused_under_load(
    three: Cluster, tmp_path: Path, paused: Callable[..., None]
) -> None:
    """The document's nine steps with callers: a coordinator sleeps with the owner's group, and wakes under the next."""
    first = f"{three.hosts[0]}:{three.port}"
    with Storm(url_of(three), tmp_path) as storm:
        owner = storm.here(storm.url.replace(",".join(f"{host}:{three.port}" for host in three.hosts), first))
        owner.works()
        connection: Any = owner.q._port._member.store.connection  # type: ignore[attr-defined]
        policy: Any = connection.cluster.profile_manager.default.load_balancing_policy
        plan, real, late = policy.make_query_plan, connection.conditional, list[Any]()
        standby = storm.here(standby=True)

        def conditional(*parts: Any) -> Any:
            if parts[0][0] == "claim" and not late:
                late.append(parts)
                paused(0)  # the group is sent to it, and it wakes up with it
            return real(*parts)

        policy.make_query_plan = lambda *asked: [one for one in plan(*asked) if one.address == three.hosts[0]]
        connection.conditional = conditional
        print(f"taken over and at work after {standby.works(20):.1f} s")
        assert late, "the owner was replaced while its group was under way"
        three.nodes[0].resume()
        storm.works(40)


def test_an_owner_is_cut_off_from_every_node_under_load(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay open and nothing comes through: a standby goes on; when they heal it is nobody."""
    real: Any = DefaultEndPointFactory.create

    def behind_a_proxy(factory: Any, row: Any) -> DefaultEndPoint:
        """Also a node that is found by asking another."""
        return DefaultEndPoint(real(factory, row).address, factory.cluster.port)

    monkeypatch.setattr(DefaultEndPointFactory, "create", behind_a_proxy)
    url, port = url_of(three), free_port()
    with Storm(url, tmp_path) as storm, ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(host, three.port, (host, port))) for host in three.hosts]
        owner = storm.here(url.replace(f":{three.port}", f":{port}"))
        owner.works()
        standby = storm.here(standby=True)
        for proxy in proxies:
            proxy.cut()
        print(f"taken over and at work after {standby.works(20):.1f} s")
        for proxy in proxies:
            proxy.heal()
        storm.works(40)  # whoever is the owner: one that is silent on a slow machine is replaced again
        storm.end()  # before the proxies do


def test_the_lost_write_of_a_former_owner_is_refused(
    three: Cluster, handle: Callable[..., CassandraStore]
) -> None:
    """The document's nine steps: a coordinator is paused with a write in flight, and the owner changes."""
    first, second, third = three.hosts
    old = Owner(handle(Through(first)))
    old.write(rows=[old.row(1, 1)])
    store = handle(Through(second))
    watcher = handle(Through(third))
    three.nodes[0].pause()
    try:
        late = old.group(rows=[old.row(2, 2)])
        writing = threading.Thread(target=_unknown, args=(old.store, late))
        writing.start()
        time.sleep(0.3)
        new = patiently(lambda: Owner(store))
        found = patiently(new.active)
        new.write(rows=[new.row(3, 3)])
        writing.join()
    finally:
        three.nodes[0].resume()
    assert found in ([1], [1, 2])
    time.sleep(3.0)
    then = patiently(lambda: [run.id >> 22 for run in watcher.active()])
    assert then == [*found, 3], "nothing appeared after the new owner had read"
    with pytest.raises(Fenced):
        patiently(lambda: old.store.settle(late))
    with pytest.raises(Fenced):
        patiently(lambda: old.store.commit(late))


def _late_group_of_the_same_owner(three: Cluster, handle: Callable[..., CassandraStore], rounds: int) -> None:
    first, second, _ = three.hosts
    through = Through(first)
    owner = Owner(handle(through))
    for n in range(1, rounds + 1):
        through.addresses = {first}
        patiently(lambda: owner.store.last_number())
        three.nodes[0].pause()
        try:
            late = owner.group(rows=[owner.row(n, n)])
            _unknown(owner.store, late)  # type: ignore[arg-type]
            through.addresses = {second}
            assert patiently(lambda late=late: owner.store.settle(late)) is False
            owner.number = late.number
        finally:
            three.nodes[0].resume()
        time.sleep(1.5)
        assert patiently(owner.active) == [], "the late group found its number burnt"
        patiently(lambda: owner.write(meta=b"on"))
        assert patiently(owner.store.last_number) == late.number + 1


def test_the_same_owners_late_group_finds_its_number_burnt(
    three: Cluster, handle: Callable[..., CassandraStore]
) -> None:
    _late_group_of_the_same_owner(three, handle, 2)


@pytest.mark.proof
def test_the_same_owners_late_group_finds_its_number_burnt_twelve_times(
    three: Cluster, handle: Callable[..., CassandraStore], record_proof: Callable[..., None]
) -> None:
    rounds = number("ROUNDS", 12)
    _late_group_of_the_same_owner(three, handle, rounds)
    note = "every late group found its number burnt"
    record_proof(
        "an owner's own late group on Cassandra", operations=rounds, faults=rounds, lost=0, note=note
    )


def _timed_out(three: Cluster, handle: Callable[..., CassandraStore], rounds: int) -> tuple[int, int]:
    """How many groups were stored, and how many of unknown outcome are among them."""
    first, second, third = three.hosts
    owner, watcher = Owner(handle(Through(first))), handle(Through(second, third))
    expected: list[int] = []
    n, verdicts = 0, []
    for _ in range(rounds):
        stop = threading.Timer(0.4, lambda: [node.pause() for node in three.nodes[1:]])
        stop.start()
        try:
            while True:
                n += 1
                group = owner.group(rows=[owner.row(n, n)])
                try:
                    owner.store.commit(group)
                except GroupUnknown:
                    break
                owner.number = group.number
                expected.append(n)
        finally:
            stop.join()
            for node in three.nodes[1:]:
                node.resume()
        stored = patiently(lambda group=group: owner.store.settle(group))
        owner.number = group.number
        expected += [n] if stored else []
        verdicts.append(stored)
        assert patiently(lambda: owner.active()) == expected
        patiently(lambda: owner.write(meta=b"on"))
        assert patiently(lambda: [run.id >> 22 for run in watcher.active()]) == expected, (
            "it stays as it was settled"
        )
    return len(expected), sum(verdicts)


def test_a_group_that_timed_out_is_settled_once_and_for_all(
    three: Cluster, handle: Callable[..., CassandraStore]
) -> None:
    _timed_out(three, handle, 2)


@pytest.mark.proof
def test_a_group_that_timed_out_is_settled_once_and_for_all_many_times(
    three: Cluster, handle: Callable[..., CassandraStore], record_proof: Callable[..., None]
) -> None:
    rounds = number("ROUNDS", 15)
    groups, found = _timed_out(three, handle, rounds)
    note = f"of {rounds} groups of unknown outcome {found} were stored, the others burnt; none changed later"
    record_proof("conditional writes that timed out", operations=groups, faults=rounds, lost=0, note=note)


def test_clocks_that_differ_decide_nothing(three: Cluster, handle: Callable[..., CassandraStore]) -> None:
    """Removed through a node that is fast, written again through one that is slow: the later group wins."""
    _, fast, slow = three.hosts
    through = Through(fast)
    owner = Owner(handle(through))
    for n in range(1, 9):
        through.addresses = {fast if n % 2 else slow}
        owner.write(rows=[owner.row(n, n)])
        through.addresses = {fast}
        owner.write(ends=[owner.end(n, n)], purge=[owner.id(n)])
        through.addresses = {slow}
        owner.write(rows=[owner.row(n, n + 1)])
        assert owner.active() == list(range(1, n + 1))


def test_errors_of_a_cluster_are_fairways(three: Cluster, handle: Callable[..., CassandraStore]) -> None:
    """With two of three nodes paused nothing is told that is not true, and every error has the one root."""
    owner = Owner(handle(Through(three.hosts[0])))
    group = owner.group(rows=[owner.row(1, 1)])
    for node in three.nodes[1:]:
        node.pause()
    try:
        for ask in (lambda: owner.store.commit(group), lambda: owner.store.run(1), owner.store.last_number):
            with pytest.raises(FairwayError):
                ask()
    finally:
        for node in three.nodes[1:]:
            node.resume()
    assert patiently(lambda: owner.store.settle(group)) in (True, False)
