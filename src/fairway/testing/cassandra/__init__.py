"""A real Apache Cassandra of one or three nodes on this machine, for development and tests."""

from fairway.testing.cassandra.cluster import Cluster as Cluster
from fairway.testing.cassandra.cluster import Node as Node

__all__ = ["Cluster", "Node"]
