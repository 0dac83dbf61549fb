"""Deleting a queue with all that is in it, by its URL.

Guards: from the moment on in which it returns nobody finds the queue, and whoever has it open is told that it is gone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fairway.client.address import Address, is_http
from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.runtime.opening import Place, on_cassandra, path_of
from fairway.store.sqlite import queues


def delete(url: Place | Sequence[str], queue: str, *, token: str | None = None) -> None:
    """Delete a queue of either kind, with all that is in it, for good. NotFound if there is none.

    A file: other processes may have it open; their next call says that it was deleted. What it held is removed before
    this returns. A server: `token` needs the right `operate`; FAIRWAY_TOKEN by default. A queue on a cluster is deleted
    through a server.
    """
    if is_http(url):
        _on_server(Address.of(url, queue, token))  # pyright: ignore[reportArgumentType]
        return
    if on_cassandra(url):
        raise BadArgument("a queue on a cluster is deleted through a server; give the server's URL")
    path = path_of(url)
    if path is None:
        raise BadArgument("a queue in memory is gone when it is closed; there is nothing to delete")
    _in_file(os.path.realpath(path), checks.queue_name(queue))


def _on_server(address: Address) -> None:
    from fairway.client.blocking import HttpPort
    from fairway.client.rest import Call, RestCore

    port = HttpPort(address, RestCore)
    try:
        port.ask(Call("DELETE", "", once=True))
    finally:
        port.close()


def _in_file(path: str, queue: str) -> None:
    if not os.path.exists(path):
        raise NotFound(f"there is no file {path}")
    queues.check_file(path)
    if queue in queues.bucket_names(path):
        from fairway.runtime.bucket.opening import open_bucket

        with open_bucket(path, queue, create=False) as found:
            found.delete()
    elif queue not in queues.names(path) or not queues.bury(path, queue):
        raise NotFound(f"there is no queue {queue!r} in {path}")
    queues.sweep(path)
