"""A connection to a cluster: the driver with the settings that Fairway needs, and its prepared statements.

Guards: nothing is ever retried behind Fairway's back; conditional writes are never taken for stored, or for not
stored, without certainty.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import repeat
from typing import Any, Final

from cassandra import ConsistencyLevel, UnresolvableContactPoints
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, ResponseFuture, Session
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    FallthroughRetryPolicy,
    LoadBalancingPolicy,
    ReconnectionPolicy,
    TokenAwarePolicy,
)
from cassandra.query import BatchStatement, BatchType, PreparedStatement, Statement, tuple_factory

from fairway.errors import Closed, StoreFailed
from fairway.limits import (
    CASSANDRA_CONNECT_SECONDS,
    CASSANDRA_DRIVER_THREADS,
    CASSANDRA_HEARTBEAT_SECONDS,
    CASSANDRA_IN_FLIGHT_MAX,
    CASSANDRA_REQUEST_SECONDS,
)
from fairway.store.cassandra.address import Address
from fairway.store.cassandra.translate import translate, translate_conditional
from fairway.store.statements import parse

_PACKAGE: Final = "fairway.store.cassandra"
_FILES: Final = ("fence.cql", "write.cql", "read.cql", "remove.cql")
_DECIDED: Final = (
    "find_queue",
    "queue_names",
    "next_queue",
    "fence",
    "logged",
    "owner",
    "buried_queues",
)  # read at serial consistency
# Rows that are fetched at once: of what is rarely read to its end, and of what may be large (four shards at a time).
_FEW: Final = {"endings_before": 16, "levels_above": 500}
_RECONNECT_SECONDS: Final = 1.0

Wanted = tuple[str, Sequence[Any]]
Row = tuple[Any, ...]


def statements(file: str) -> dict[str, str]:
    """The statements of a file beside this one, by name."""
    return parse(files(_PACKAGE).joinpath(file).read_text("utf-8"))


class Connection:
    """One driver session, shared by the queues of a process that use the same address."""

    def __init__(self, address: Address, cluster: Cluster, session: Session) -> None:
        self.address = address
        self.cluster = cluster
        self.session = session
        self._lock = threading.Lock()
        self._users = 1
        self._texts = {name: text for file in _FILES for name, text in statements(file).items()}
        self._prepared: dict[str, PreparedStatement] = {}
        self._serial = serial_of(address)

    @classmethod
    def open(cls, address: Address, policy: LoadBalancingPolicy | None = None) -> Connection:
        """Connect; the keyspace need not exist."""
        try:
            cluster = _cluster(address, policy)
        except UnresolvableContactPoints as error:
            names = ", ".join(host for host, _ in address.hosts)
            raise StoreFailed(
                f"no address is found for {names}; the call had no effect. Check the URL, and how names are looked up"
            ) from error
        try:
            session = cluster.connect()
        except Exception as error:
            cluster.shutdown()
            raise translate(error) from error
        return cls(address, cluster, session)

    # -- life
    def share(self) -> Connection:
        """One more user; each of them closes it once."""
        with self._lock:
            if not self._users:
                raise Closed
            self._users += 1
        return self

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.cluster.shutdown()

    # -- reading
    def read(self, name: str, values: Sequence[Any]) -> list[Row]:
        """All rows of one statement."""
        try:
            return list(self.session.execute(self.prepared(name), values))
        except Exception as error:
            raise translate(error) from error

    def each(self, name: str, values: Sequence[Any]) -> Iterator[Row]:
        """The rows of one statement, fetched as they are needed."""
        try:
            yield from self.session.execute(self.prepared(name), values)
        except Exception as error:
            raise translate(error) from error

    def read_many(self, wanted: Iterable[Wanted]) -> list[list[Row]]:
        """The rows of many statements at once, in the order they were given."""
        waiting: list[ResponseFuture] = []
        found: list[list[Row]] = []
        try:
            for name, values in wanted:
                if len(waiting) - len(found) >= CASSANDRA_IN_FLIGHT_MAX:
                    found.append(list(waiting[len(found)].result()))
                waiting.append(self.session.execute_async(self.prepared(name), values))
            found += [list(future.result()) for future in waiting[len(found) :]]
        except Exception as error:
            raise translate(error) from error
        return found

    # -- writing
    def send(self, statement: Statement) -> ResponseFuture:
        """Start a write that may be repeated; its future is looked at later."""
        try:
            return self.session.execute_async(statement)
        except Exception as error:
            raise translate(error) from error

    def bound(self, name: str, values: Sequence[Any]) -> Statement:
        return self.prepared(name).bind(values)

    def conditional(self, *parts: Wanted) -> tuple[bool, Row]:
        """One conditional write, of several statements if need be: whether it was applied, and what stood there."""
        bound = [self.bound(*part) for part in parts]
        statement: Statement = bound[0]
        if len(bound) > 1:
            statement = BatchStatement(BatchType.UNLOGGED, serial_consistency_level=self._serial)
            statement.add_all(bound, [()] * len(bound))
        try:
            answer = self.session.execute(statement).one()
        except Exception as error:
            raise translate_conditional(error) from error
        return bool(answer[0]), tuple(answer[1:])

    def prepare_writes(self) -> None:
        """Prepare what a group may need now, so that none fails in the middle for want of a statement."""
        for name in (*statements("fence.cql"), *statements("write.cql")):
            self.prepared(name)

    def prepared(self, name: str) -> PreparedStatement:
        known = self._prepared.get(name)
        if known is None:
            try:
                statement: Any = self.session.prepare(self._texts[name], keyspace=self.address.keyspace)
            except Exception as error:
                raise translate(error) from error
            if name in _DECIDED:
                statement.consistency_level = self._serial
            if name in _FEW:
                statement.fetch_size = _FEW[name]
            statement.serial_consistency_level = self._serial
            known = self._prepared[name] = statement
        return known


class _Reconnecting(ReconnectionPolicy):
    """A node that was away is tried again for as long as it takes."""

    def new_schedule(self) -> Any:
        return repeat(_RECONNECT_SECONDS)


def serial_of(address: Address) -> int:
    """The consistency at which what is decided is read."""
    local = address.consistency == "local_quorum"
    return ConsistencyLevel.LOCAL_SERIAL if local else ConsistencyLevel.SERIAL


def _cluster(address: Address, policy: LoadBalancingPolicy | None) -> Cluster:
    local = address.consistency == "local_quorum"
    profile = ExecutionProfile(
        policy or TokenAwarePolicy(DCAwareRoundRobinPolicy(address.dc)),
        retry_policy=FallthroughRetryPolicy(),  # the driver's own would send a conditional write twice
        consistency_level=ConsistencyLevel.LOCAL_QUORUM if local else ConsistencyLevel.QUORUM,
        serial_consistency_level=serial_of(address),
        request_timeout=CASSANDRA_REQUEST_SECONDS,
        row_factory=tuple_factory,
    )
    context = None
    if address.tls:
        context = ssl.create_default_context(cafile=address.ca or None)
        # Nodes are found by address, which a private authority need not know; a public one signs for anybody.
        context.check_hostname = not address.ca
    auth = PlainTextAuthProvider(address.user, address.password) if address.user else None
    return Cluster(
        [*address.hosts],
        port=address.hosts[0][1],
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        auth_provider=auth,
        ssl_context=context,
        executor_threads=CASSANDRA_DRIVER_THREADS,
        connect_timeout=CASSANDRA_CONNECT_SECONDS,
        control_connection_timeout=CASSANDRA_CONNECT_SECONDS,
        # A paused coordinator is noticed by its heartbeat only; the defaults would take a minute.
        idle_heartbeat_interval=CASSANDRA_HEARTBEAT_SECONDS,
        idle_heartbeat_timeout=CASSANDRA_HEARTBEAT_SECONDS,
        reconnection_policy=_Reconnecting(),
        # Without it a batch of a hundred rows takes ten times as long.
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        compression=False,
        monitor_reporting_enabled=False,
    )
