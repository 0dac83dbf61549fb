"""Making the keyspace, the tables and a queue where there are none.

Guards: a queue has one number and one key for ever, whoever opens it first; a number is given once.
"""

from __future__ import annotations

import socket
import time
import uuid
from typing import Any, Final

from cassandra.query import SimpleStatement

from fairway.errors import BadArgument, GroupUnknown, NotFound, StoreFailed
from fairway.limits import CASSANDRA_SCHEMA_SECONDS, QUEUE_NAME_BYTES_MAX, QUEUES_PER_FILE_MAX
from fairway.store.cassandra.connection import Connection, statements
from fairway.store.cassandra.translate import translate

_TRIES: Final = 20
_REST_SECONDS: Final = 0.1
_SCHEMA: Final = "schema.cql"  # the tables of fair queues


def prepare(connection: Connection, create: bool, schema: str = _SCHEMA) -> None:
    """See to it that the keyspace and every table are there."""
    address, session = connection.address, connection.session
    keyspaces: Any = getattr(connection.cluster.metadata, "keyspaces", {})
    tables = statements(schema)
    try:
        if address.keyspace not in keyspaces:
            if not create:
                raise NotFound(f"there is no keyspace {address.keyspace}; leave create=False out to make it")
            text = statements("keyspace.cql")["keyspace"]
            text = text.format(keyspace=address.keyspace, copies=_copies(connection))
            session.execute(text, timeout=CASSANDRA_SCHEMA_SECONDS)
        there = keyspaces[address.keyspace].tables if address.keyspace in keyspaces else {}
        for name, text in tables.items():
            if name not in there:
                if not create:
                    raise NotFound(f"there is no queue in {address}; leave create=False out to make it")
                made = SimpleStatement(text, keyspace=address.keyspace)
                session.execute(made, timeout=CASSANDRA_SCHEMA_SECONDS)
    except NotFound:
        raise
    except Exception as error:
        raise translate(error) from error
    if schema == _SCHEMA:
        connection.prepare_writes()


def _copies(connection: Connection) -> str:
    """How many copies each data centre keeps: as many as asked for, or as it has nodes.

    A node that has just started may not know the others yet, and the number of copies stays: so the nodes that the
    caller names count as well, seen or not.
    """
    wanted = connection.address.replication
    nodes: dict[str, int] = {}
    metadata: Any = connection.cluster.metadata
    for host in metadata.all_hosts():
        nodes[host.datacenter or ""] = nodes.get(host.datacenter or "", 0) + 1
    dc = connection.address.dc
    if dc and dc not in nodes:
        raise BadArgument(
            f"url: there is no data centre {dc!r}; there are {', '.join(sorted(nodes))}", argument="url"
        )
    chosen = {dc: nodes[dc]} if dc else nodes
    if len(chosen) == 1:
        named = len({_address_of(host, port) for host, port in connection.address.hosts})
        chosen = {name: max(many, named) for name, many in chosen.items()}
    return ", ".join(f"'{name}': {min(wanted, many)}" for name, many in sorted(chosen.items()))


def _address_of(host: str, port: int) -> str:
    """Where a node is: one that has two names is one node."""
    try:
        return str(socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return host


def find_queue(connection: Connection, name: str, realm: str, create: bool) -> tuple[uuid.UUID, int]:
    """The key and the number of a queue, which is added if there is none."""
    if not name or len(name.encode()) > QUEUE_NAME_BYTES_MAX:
        raise BadArgument(f"queue: a name of 1 to {QUEUE_NAME_BYTES_MAX} bytes; got {name!r}.")
    failed: Exception | None = None
    for _ in range(_TRIES):
        try:
            found = connection.read("find_queue", (realm, name))
            if not found and not create:
                raise NotFound(f"there is no queue {name!r}; leave create=False out to make it")
            if found:
                key, number = found[0]
                if not connection.read("fence", (key,)):
                    connection.conditional(("make_fence", (key, uuid.uuid4())))
                return key, number
            _add(connection, realm, name)
        except GroupUnknown as error:
            failed = error  # there or not: the next look tells
            time.sleep(_REST_SECONDS)
    raise StoreFailed(f"the queue {name!r} can be neither found nor made; repeat the call") from failed


def _add(connection: Connection, realm: str, name: str) -> None:
    """Try to add a queue; whether it is there is found out by looking again."""
    found = connection.read("next_queue", (realm,))
    number = found[0][0] if found else None
    if number is None:
        connection.conditional(("open_realm", (realm,)))
        return
    if number >= QUEUES_PER_FILE_MAX:
        raise BadArgument(f"queue: there are {QUEUES_PER_FILE_MAX} already; use another keyspace.")
    claim = ("claim_number", (number + 1, realm, number))
    connection.conditional(claim, ("add_queue", (realm, name, uuid.uuid4(), number)))


def queue_names(connection: Connection) -> dict[str, int]:
    """The fair queues of the connection's realm by name, with their numbers."""
    found = connection.read("queue_names", (connection.address.realm,))
    return {name: number for name, number in found if name is not None and not name.startswith("/")}
