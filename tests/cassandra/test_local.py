"""A queue whose copies are asked in one data centre: `dc` and `consistency=local_quorum`, on a real node."""

from __future__ import annotations

import uuid

import pytest
from cassandra import ConsistencyLevel

import fairway
from fairway.errors import StoreFailed
from fairway.store.cassandra import Address, CassandraStore, Connection
from fairway.testing.cassandra.sharing import Address as Cluster
from fairway.testing.conformance import Owner

pytestmark = pytest.mark.real


@pytest.fixture
def url(cassandra: Cluster, connection: Connection) -> str:
    """The keyspace of the other tests, through its data centre."""
    ((dc,),) = connection.session.execute("SELECT data_center FROM system.local")
    return f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}&dc={dc}&consistency=local_quorum"


def test_a_queue_lives_in_one_data_centre(url: str) -> None:
    with fairway.open(url) as q:
        sub = q.submit([b"a" * 3000, b"b"], key="once")
        assert q.submit([b"a" * 3000, b"b"], key="once").id == sub.id
        leases = q.reserve(max=2)
        assert q.complete(leases, results=[b"r" * 3000] * 2) == ["done", "done"]
        assert [q.read(one) for one in q.results(sub.id)] == [b"r" * 3000] * 2
        assert [one.id for one in q.submissions(state="completed")] == [sub.id]
    with fairway.open(url) as q:  # taken over, from what is stored
        assert q.submission(sub.id).done == 2


def test_what_is_decided_is_decided_in_that_data_centre(url: str) -> None:
    """Every statement carries the local consistency: a single one at SERIAL would not see what others decide."""
    connection = Connection.open(Address.parse(url))
    sent = []
    try:
        real = connection.session.execute

        def execute(statement, *values, **given):  # type: ignore[no-untyped-def]
            sent.append((statement.consistency_level, statement.serial_consistency_level))
            return real(statement, *values, **given)

        owner = Owner(CassandraStore.open(connection, "q"))
        connection.session.execute = execute  # type: ignore[method-assign]
        group = owner.group(rows=[owner.row(1)])
        owner.store.commit(group)
        assert owner.store.settle(group) is True
        old, owner = owner, Owner(owner.store)
        with pytest.raises(fairway.FairwayError):
            old.write(rows=[old.row(2)])
        owner.store.close()
    finally:
        connection.close()
    assert len(sent) > 5 and {serial for _, serial in sent} == {ConsistencyLevel.LOCAL_SERIAL}
    assert {level for level, _ in sent} <= {
        None,
        ConsistencyLevel.LOCAL_SERIAL,
        ConsistencyLevel.LOCAL_QUORUM,
    }


def test_a_data_centre_that_is_not_there_is_told(url: str) -> None:
    with pytest.raises(StoreFailed, match="no node of the cluster answers"):
        fairway.open(url.replace("&dc=", "&dc=un"))
