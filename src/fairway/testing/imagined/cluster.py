"""The imagined cluster: its tables, what is on its way to them, and what goes wrong on the way.

Guards: a conditional write is decided at one instant; a plain write arrives at once, late, or after its writer is dead,
and a writer that did not hear of it does not know which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final
from uuid import UUID

from cassandra.query import UNSET_VALUE, BatchStatement

from fairway.errors import GroupUnknown, StoreFailed
from fairway.store.cassandra.connection import Wanted, statements
from fairway.store.cassandra.store import CassandraStore
from fairway.store.memory.shelf import Fault
from fairway.testing.imagined.cql import Statement, understand
from fairway.testing.imagined.tables import UNSET, Table

_FILES: Final = ("fence.cql", "write.cql", "read.cql")
_TIME_OUTS_MAX: Final = 3
_UNUSED: Final = ("registry",)  # queues are made without it: its static column is not imagined


class TimedOut(Exception):
    """No answer came; the write may arrive yet."""


class Bound:
    """A statement with its values; what the driver's batch asks a statement for."""

    keyspace = routing_key = custom_payload = None

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.name = name
        self.values = tuple(UNSET if value is UNSET_VALUE else value for value in values)
        self.query_string = self


class Cluster:
    """Tables, and writes under way. `faults` says what becomes of the next group."""

    def __init__(self, seed: object = 0, trouble: float = 0.0) -> None:
        self.tables = {
            name: Table(text) for name, text in statements("schema.cql").items() if name not in _UNUSED
        }
        self.known: dict[str, Statement] = {}
        texts = {name: text for file in _FILES for name, text in statements(file).items()}
        for name, text in texts.items():
            statement = understand(text)
            if statement.table in self.tables:
                self.known[name] = statement
        self.dice = Random(f"{seed} cluster")
        self.trouble = trouble  # of plain writes
        self.faults: Callable[[Any], Fault] = lambda group: Fault.OK
        self.ballot = 1
        self.under_way: list[Future] = []
        self.late: list[Callable[[], object]] = []
        self.queues: dict[str, tuple[UUID, int]] = {}
        self.timed_out = 0  # one after the other

    # -- plain writes

    def write(self, some: list[Bound]) -> None:
        for bound in some:
            statement = self.known[bound.name]
            assert statement.stamp is not None, f"{bound.name} has no timestamp: a late one would win"
            self._apply(statement, bound.values, statement.stamp.of(bound.values))

    def _apply(self, statement: Statement, values: tuple[Any, ...], stamp: int) -> None:
        getattr(self.tables[statement.table], statement.verb)(statement, values, stamp)

    # -- conditional writes

    def decide(self, parts: Sequence[Bound]) -> bool:
        """One conditional batch on one partition, at one instant."""
        some = [(self.known[part.name], part.values) for part in parts]
        conditional = [(one, values) for one, values in some if one.only_if or one.if_not_exists]
        if not all(self.tables[one.table].holds(one, values) for one, values in conditional):
            return False
        self.ballot += 1
        for one, values in some:
            self._apply(one, values, self.ballot)
        return True

    def conditional(self, parts: Sequence[Bound]) -> bool:
        """As `decide`, when the weather allows."""
        fault = self.faults(parts) if parts[0].name == "claim" else Fault.OK
        if fault is Fault.FAIL:
            raise StoreFailed()
        if fault in (Fault.LATE, Fault.ECHO):
            self.late.append(lambda: self.decide(parts))
        applied = self.decide(parts) if fault not in (Fault.LATE, Fault.UNKNOWN_LOST) else False
        if fault not in (Fault.OK, Fault.ECHO):
            raise GroupUnknown()
        return applied

    # -- what the world does to it

    def deliver_late(self) -> None:
        """What is late arrives, in any order, whoever sent it and whether or not he lives."""
        self.dice.shuffle(self.late)
        late, self.late = self.late, []
        for arrive in late:
            arrive()

    def power_loss(self) -> None:
        """An owner's machine goes dark; what it had sent may be on its way still."""
        self.late += [future.arrive for future in self.under_way]
        self.under_way.clear()

    def open(self, name: str) -> CassandraStore:
        """A handle on a queue; it is made if there is none."""
        connection = Connection(self)
        if name not in self.queues:
            self.queues[name] = (UUID(int=len(self.queues) + 1), len(self.queues))
            connection.conditional(("make_fence", (self.queues[name][0], UUID(int=0))))
        return CassandraStore(connection, *self.queues[name])  # pyright: ignore[reportArgumentType]


class Future:
    """A plain write on its way. It arrives when its writer looks, or at its own time, or late."""

    def __init__(self, cluster: Cluster, some: list[Bound]) -> None:
        self._cluster, self._some = cluster, some
        self._event = self  # what the store asks of the driver's future
        self.done = False
        cluster.under_way.append(self)

    def arrive(self) -> None:
        if not self.done:
            self.done = True
            self._cluster.write(self._some)

    def is_set(self) -> bool:
        if not self.done and self._cluster.dice.random() < 0.5:
            self.wait()
        return self.done

    def wait(self) -> None:
        self._leave()
        self.arrive()

    def result(self) -> None:
        cluster = self._cluster
        if not self.done:
            self._leave()
            # The store repeats a write some times, then it gives up: a cluster that never answers is another test.
            if cluster.dice.random() < cluster.trouble and cluster.timed_out < _TIME_OUTS_MAX:
                cluster.timed_out += 1
                cluster.late.append(self.arrive)
                raise TimedOut
            cluster.timed_out = 0
            self.arrive()

    def _leave(self) -> None:
        if self in self._cluster.under_way:
            self._cluster.under_way.remove(self)


class Connection:
    """What the store uses of a connection."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def read(self, name: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        statement = self._cluster.known[name]
        return self._cluster.tables[statement.table].read(statement, tuple(values))

    def each(self, name: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        yield from self.read(name, values)

    def read_many(self, wanted: Iterator[Wanted] | list[Wanted]) -> list[list[tuple[Any, ...]]]:
        return [self.read(name, values) for name, values in wanted]

    def bound(self, name: str, values: Sequence[Any]) -> Bound:
        return Bound(name, values)

    def send(self, statement: Bound | BatchStatement) -> Future:
        some = [statement] if isinstance(statement, Bound) else _of_batch(statement)
        return Future(self._cluster, some)

    def conditional(self, *parts: Wanted) -> tuple[bool, tuple[Any, ...]]:
        return self._cluster.conditional([Bound(*part) for part in parts]), ()

    def close(self) -> None:
        """Nothing to let go of."""


def _of_batch(batch: BatchStatement) -> list[Bound]:
    return [one for _, one, _ in batch._statements_and_parameters or ()]
