"""Knocking: before a command speaks to a server, whether anybody is there.

Guards: who mistypes an address, or forgot to start the server, is told so in seconds, and that nothing was sent.
"""

from __future__ import annotations

import ssl
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
    until, why = time.monotonic() + limits.KNOCK_SECONDS, NotConnected()
    try:
        while True:
            for node in range(len(address.nodes)):
                try:
                    http.call(node, "GET", "/healthz", None, limits.KNOCK_SECONDS)
                    return
                except NotConnected as error:
                    why = error
                except LOST:
                    return  # somebody is there; the command itself knows how to repeat what is not answered
            if time.monotonic() > until:
                raise Unreachable(_told(place, why), nodes=list(address.nodes))
            time.sleep(limits.CLIENT_PAUSE_SECONDS)
    finally:
        http.close()


def _told(place: str, why: NotConnected) -> str:
    if isinstance(why.__cause__, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {place} is not trusted here ({why}); nothing was sent."
            " Name the file of who signed it in SSL_CERT_FILE, or give the name that it was made for"
        )
    return (
        f"no server answers at {place} ({why}); nothing was sent."
        " Start it with `fairway serve`, or mend the address"
    )
