"""Deleting a queue of a cluster; `sweeping` removes what it held.

Guards: from the moment on in which it is deleted nobody owns it, and nothing is stored in it; its number and its key
are never given again.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import Final

from fairway.errors import GroupUnknown, StoreFailed
from fairway.store.cassandra.connection import Connection
from fairway.store.cassandra.fencing import DELETED, Fencing
from fairway.store.cassandra.planning import Fence

_TRIES: Final = 50
_REST_SECONDS: Final = 0.1


def bury(connection: Connection, name: str) -> bool:
    """Free a queue's name and close its fence for good. False: there is no such queue."""
    realm = connection.address.realm
    found = connection.read("find_queue", (realm, name))
    if not found:
        return False
    queue, number = found[0]
    for _ in range(_TRIES):
        try:
            # First the fence: a name that is free may be taken at once, and then nothing may go into the old queue.
            if _closed(connection, queue):
                free = ("free_name", (realm, name, queue))
                connection.conditional(free, ("mark_buried", (realm, f"/{queue}", queue, number)))
                now = connection.read("find_queue", (realm, name))
                if not now or now[0][0] != queue:
                    return True
        except GroupUnknown:
            pass  # the next look tells
        time.sleep(_REST_SECONDS)
    raise StoreFailed(f"the queue {name!r} cannot be deleted now; repeat the call")


def _closed(connection: Connection, queue: uuid.UUID) -> bool:
    """Whether nobody can own the queue any more; if somebody can, that is tried to be changed."""
    found = connection.read("fence", (queue,))
    if not found or found[0][0] >= DELETED:
        return True
    fence = Fence(*found[0])
    closed, _ = connection.conditional(("take_over", (DELETED, uuid.uuid4(), queue, fence.range_id)))
    if closed:
        # Nobody names the pages of a group that was about to be stored; only here are its owners still known.
        with suppress(StoreFailed):
            Fencing(connection, queue).sweep(fence, range(fence.swept + 1, fence.range_id + 1))
    return closed
