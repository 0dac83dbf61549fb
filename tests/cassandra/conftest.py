"""A real Cassandra for every test here; the suite's assertions are explained like those of any test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from fairway.store.cassandra import Address, Connection
from fairway.store.cassandra.opening import prepare
from fairway.testing.cassandra.fixtures import cassandra, cassandra_three  # noqa: F401
from fairway.testing.cassandra.sharing import Address as Cluster
from tests.cassandra.three import three  # noqa: F401

# The driver tells of every try to reach a node that a test killed: that would hide why the test failed.
logging.getLogger("cassandra").setLevel(logging.ERROR)
pytest.register_assert_rewrite("fairway.testing.conformance", "fairway.testing.bucket.conformance")


@pytest.fixture(scope="session")
def connection(cassandra: Cluster) -> Iterator[Connection]:  # noqa: F811
    """One connection of this worker; tests tell their queues apart by realms."""
    connection = Connection.open(Address.parse(cassandra.url + "fairway_tests"))
    prepare(connection, create=True)
    yield connection
    connection.close()
