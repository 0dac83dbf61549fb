"""Opening a queue on a cluster.

Guards: a process has one owner per cluster and queue, however often the queue is opened in it.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.errors import NeedMissing
from fairway.runtime.asked import Asked
from fairway.runtime.registry import Member, registry

try:
    from fairway.runtime.owning import Node, Owner
    from fairway.store.cassandra import Address
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.split(".")[0] != "cassandra":
        raise
    raise NeedMissing("cassandra:// needs its driver: pip install 'fairway[cassandra]'") from missing


def enter_cluster(
    url: str, name: str, asked: Asked, node: Node | None = None
) -> tuple[Member, Callable[[], None]]:
    """What ports stand on, and the function that ends its use."""
    address = Address.parse(url, asked.options)

    def make() -> Owner:
        return Owner(address, name, asked, node)

    realm = f"{address}#{address.realm}"
    if node is not None:
        realm += f"#{node.url}"  # a node stands by in another way than a program does
    return registry.enter((realm, name), True, make)
