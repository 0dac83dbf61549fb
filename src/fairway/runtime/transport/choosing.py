"""Which transport an attached process uses: what it was told, else the environment, else the socket.

Guards: every host takes both, so each process chooses for itself.
"""

from __future__ import annotations

import os

from fairway.errors import BadArgument
from fairway.ring.native import BUILT, missing
from fairway.runtime.transport import rings, unix
from fairway.runtime.transport.port import Connection

VARIABLE = "FAIRWAY_TRANSPORT"
_WAYS = {"socket": unix, "ring": rings}


def transport_of(told: object) -> str:
    """The name of the transport. Raises BadArgument, or RingMissing where the ring is wanted and not built."""
    name = os.environ.get(VARIABLE) or "socket" if told is None else told
    if not isinstance(name, str) or name not in _WAYS:
        source = "transport" if told is not None else VARIABLE
        raise BadArgument(f"{source}: socket or ring, not {name!r}", argument="transport")
    if name == "ring" and not BUILT:
        raise missing()
    return name


def connect(name: str, path: str, timeout: float) -> Connection:
    """Connect by it to who listens at a path. Raises PeerGone."""
    return _WAYS[name].connect(path, timeout)
