"""Two rings for one connection: memory without a name, which goes with the processes that have it.

Guards: neither end can take the memory away under the other; an abandoned pair is reached by nobody, so no later
host can drain it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence

from fairway.errors import FairwayError
from fairway.limits import RING_TRANSPORT_BYTES
from fairway.ring import places
from fairway.ring.native import Handle

# Only Linux has them, and only there is a ring ever made.
_SEALS = sum(getattr(fcntl, f"F_SEAL_{name}", 0) for name in ("SHRINK", "GROW", "SEAL"))


def make_pair() -> tuple[list[Handle], list[int]]:
    """Rings for what goes out and what comes in, and the descriptors that the other end needs."""
    handles: list[Handle] = []
    fds: list[int] = []
    try:
        for name in ("fairway out", "fairway in"):
            fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fds.append(fd)
            places.fill(fd, RING_TRANSPORT_BYTES)
            handles.append(Handle(fd, RING_TRANSPORT_BYTES))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        let_go(handles, fds)
        raise
    return handles, fds


def take_pair(fds: Sequence[int]) -> list[Handle] | None:
    """The other end's rings, what comes in first; None: they cannot be used from here, and the socket is."""
    handles: list[Handle] = []
    try:
        for fd in fds:
            if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
                break
            handles.append(Handle(fd))
    except (FairwayError, OSError):  # no extension here, another pid namespace, something that is no ring
        pass
    if len(handles) == 2:
        return handles
    let_go(handles, [])
    return None


def let_go(handles: Sequence[Handle], fds: Sequence[int]) -> None:
    for handle in handles:
        handle.close()
    for fd in fds:
        os.close(fd)
