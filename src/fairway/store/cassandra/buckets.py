"""Bucket queues on Cassandra: any number of nodes and processes, no owner.

Guards: a partition that takes conditional writes takes nothing else, deletes included; every key that is written
plainly is written once, at a timestamp that no clock gives.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST
from fairway.bucket.statements import UNKNOWN, Outcome
from fairway.errors import Closed
from fairway.store.cassandra.address import Address
from fairway.store.cassandra.bucket_reading import BucketReads, plain, to_uuid
from fairway.store.cassandra.bucket_session import BucketSession, Unanswered
from fairway.store.cassandra.connection import Connection, Wanted
from fairway.store.cassandra.opening import prepare


class CassandraBuckets(BucketReads):
    """The bucket queues of a realm in a keyspace."""

    def __init__(self, connection: Connection, realm: str = "") -> None:
        super().__init__(BucketSession(connection), realm)
        self._closed = False
        self._do: dict[type[s.Statement], Callable[[Any], Any]] = {
            kind: getattr(self, _snake(kind.__name__))
            for base in (s.Read, s.Write)
            for kind in base.__subclasses__()
        }

    @classmethod
    def open(cls, address: Address, *, create: bool = True) -> CassandraBuckets:
        """Connect, and make the keyspace and the tables where there are none."""
        connection = Connection.open(address)
        try:
            prepare(connection, create, "bucket_schema.cql")
        except BaseException:
            connection.close()
            raise
        return cls(connection, address.realm)

    @property
    def conditional_writes(self) -> int:
        """How many conditional writes were sent: what a bucket queue costs."""
        return self._session.conditional_writes

    def execute(self, statement: s.Statement) -> Any:
        if self._closed:
            raise Closed()
        try:
            return self._do[type(statement)](statement)
        except Unanswered:
            return UNKNOWN

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._session.close()

    # -- queues by name
    def create_queue(self, x: s.CreateQueue) -> Outcome:
        generation, lowest = plain(x.generation), to_uuid(LOWEST)
        # A name that never was has no number of changes at all.
        take = (generation, x.changes + 1, self._realm, x.name, x.changes or None)
        add = (self._realm, x.name, generation, lowest, lowest, x.config, x.secret)
        return self._session.conditional(("take_name", take), ("add_generation", add))

    def free_name(self, x: s.FreeName) -> Outcome:
        return self._session.conditional(("free_name", (self._realm, x.name, plain(x.generation))))

    def configure(self, x: s.Configure) -> Outcome:
        values = (x.new, self._realm, x.name, plain(x.generation), x.old)
        return self._session.conditional(("configure", values))

    def move_queue(self, x: s.MoveQueue) -> Outcome:
        key = (self._realm, x.name, plain(x.generation))
        # On the list before it begins and off it when it has ended: whoever dies in between leaves it there.
        if x.new == "deleting" and self._session.plain(("add_delete", key)) is UNKNOWN:
            return UNKNOWN
        outcome = self._session.conditional(("move_queue", (x.new, *key, x.old)))
        if (
            x.new == "deleted"
            and outcome is not UNKNOWN
            and self._session.plain(("drop_delete", key)) is UNKNOWN
        ):
            return UNKNOWN
        return outcome

    def publish(self, x: s.Publish) -> Outcome:
        bucket = to_uuid(x.bucket)
        values = (bucket, self._realm, x.name, plain(x.generation), bucket)
        return self._session.conditional(("publish", values))

    def move_floor(self, x: s.MoveFloor) -> Outcome:
        values = (to_uuid(x.floor), self._realm, x.name, plain(x.generation), x.version)
        return self._session.conditional(("move_floor", values))

    # -- the index
    def add_index(self, x: s.AddIndex) -> Outcome:
        return self._session.plain(("add_index", (plain(x.generation), to_uuid(x.bucket), x.creator, x.due)))

    def drop_index(self, x: s.DropIndex) -> Outcome:
        return self._session.plain(("drop_index", (plain(x.generation), to_uuid(x.up_to))))

    # -- buckets
    def create_bucket(self, x: s.CreateBucket) -> Outcome:
        values = (plain(x.generation), to_uuid(x.bucket), x.creator, x.born)
        return self._session.conditional(("create_bucket", values))

    def move_bucket(self, x: s.MoveBucket) -> Outcome:
        values = (x.new, plain(x.generation), to_uuid(x.bucket), x.old)
        return self._session.conditional(("move_bucket", values))

    def remove_bucket(self, x: s.RemoveBucket) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket))
        return self._session.conditional(("end_bucket", key), ("drop_bucket", key))

    def put(self, x: s.Put) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket))
        parts: list[Wanted] = [("begin_put", (uuid.uuid4(), *key))]
        for m in x.messages:
            parts.append(("put_row", (*key, to_uuid(m.uid), m.body, m.headers, m.created, m.not_before)))
        return self._session.conditional(*parts)

    def take(self, x: s.Take) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket))
        parts: list[Wanted] = []
        for row in x.rows:
            told = (row.version + 1, x.nonce, x.lease, row.attempts)
            parts.append(("take", (*told, *key, to_uuid(row.uid), row.version or None)))
        return self._session.conditional(*parts)

    def finish(self, x: s.Finish) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket))
        parts: list[Wanted] = [
            ("finish", (row.new_nonce, *key, to_uuid(row.uid), row.version, row.nonce)) for row in x.rows
        ]
        return self._session.conditional(*parts)

    def hold(self, x: s.Hold) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket))
        parts: list[Wanted] = []
        for row in x.rows:
            told = (row.version + 1, row.new_nonce, x.lease, x.held, row.attempts, x.error)
            parts.append(("hold", (*told, *key, to_uuid(row.uid), row.version, row.nonce)))
        return self._session.conditional(*parts)

    def doom(self, x: s.Doom) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket))
        parts: list[Wanted] = []
        for row in x.rows:
            told = (row.version + 1, row.new_nonce, x.error, *key, to_uuid(row.uid), row.version or None)
            parts.append(("give_up", (*told, row.nonce)) if row.nonce else ("doom", told))
        return self._session.conditional(*parts)

    def bury(self, x: s.Bury) -> Outcome:
        key = (plain(x.generation), to_uuid(x.bucket), to_uuid(x.uid))
        return self._session.conditional(("bury", key))

    # -- dead letters
    def add_dead(self, x: s.AddDead) -> Outcome:
        one = x.letter
        told = (one.body, one.headers, one.created, one.died, one.attempts, one.error)
        values = (plain(x.generation), to_uuid(one.uid), to_uuid(one.bucket), *told)
        return self._session.plain(("add_dead", values))

    def drop_dead(self, x: s.DropDead) -> Outcome:
        parts: list[Wanted] = [("drop_dead", (plain(x.generation), to_uuid(uid))) for uid in x.uids]
        return self._session.plain(*parts)

    def drop_generation(self, x: s.DropGeneration) -> Outcome:
        key = (plain(x.generation),)
        return self._session.plain(("drop_index_whole", key), ("drop_dead_whole", key))

    # -- who repairs
    def beat(self, x: s.Beat) -> Outcome:
        values = (x.owner, x.old_beat + 1, self._realm, x.name, x.old_owner or None, x.old_beat or None)
        return self._session.conditional(("beat", values))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")
