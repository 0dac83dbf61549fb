"""Knocking: before a command speaks to a server, whether anybody is there.

Guards: who mistypes an address, or forgot to start the server, is told so in seconds, and that nothing was sent.
"""

from __future__ import annotations

import time

from fairway import limits
from fairway.client.address import Address, is_http
from fairway.client.connections import LOST, Connections, NotConnected
from fairway.errors import Unreachable


def knock(place: str, queue: str) -> None:
    """Unreachable if no node of a server can be connected to; a program is more patient than the person at a shell."""
    if not is_http(place):
        return
    address = Address.of(place, queue, None)
    http = Connections(address)
    until, why = time.monotonic() + limits.KNOCK_SECONDS, ""
    try:
        while True:
            for node in range(len(address.nodes)):
                try:
                    http.call(node, "GET", "/healthz", None, limits.KNOCK_SECONDS)
                    return
                except NotConnected as error:
                    why = str(error)
                except LOST:
                    return  # somebody is there; the command itself knows how to repeat what is not answered
            if time.monotonic() > until:
                raise Unreachable(
                    f"no server answers at {place} ({why}); nothing was sent."
                    " Start it with `fairway serve`, or mend the address",
                    nodes=list(address.nodes),
                )
            time.sleep(limits.CLIENT_PAUSE_SECONDS)
    finally:
        http.close()
