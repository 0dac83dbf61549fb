"""The store on Apache Cassandra, for when one machine is outgrown."""

from fairway.store.cassandra.address import Address as Address
from fairway.store.cassandra.connection import Connection as Connection
from fairway.store.cassandra.store import CassandraStore as CassandraStore
