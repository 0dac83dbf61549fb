"""Knocking: before a command speaks to a server, whether anybody is there.

Guards: who mistypes an address, or forgot to start the server, is told so in seconds, and that nothing was sent.
"""

from __future__ import annotations

import socket
import ssl
import time
from urllib.parse import urlsplit

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
                    if _speaks_tls(address.nodes[node]):
                        raise Unreachable(
                            f"what answers at {place} speaks TLS; say https://", nodes=list(address.nodes)
                        ) from None
                    return  # somebody is there; the command itself knows how to repeat what is not answered
            if time.monotonic() > until:
                raise Unreachable(_told(place, why), nodes=list(address.nodes))
            time.sleep(limits.CLIENT_PAUSE_SECONDS)
    finally:
        http.close()


def _speaks_tls(node: str) -> bool:
    """Whether a node that is called without TLS wants it. Nothing is said to it: any certificate will do."""
    where = urlsplit(node)
    if where.scheme != "http":
        return False
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((where.hostname or "", where.port or 80), limits.KNOCK_SECONDS) as end,
            context.wrap_socket(end),
        ):
            return True
    except OSError:
        return False


def _told(place: str, why: NotConnected) -> str:
    if isinstance(why.__cause__, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {place} is not trusted here ({why}); nothing was sent."
            " Name the file of who signed it in SSL_CERT_FILE, or give the name that it was made for"
        )
    if getattr(why.__cause__, "reason", "") == "WRONG_VERSION_NUMBER":  # its first bytes are no TLS
        return f"what answers at {place} speaks no TLS; nothing was sent. Say http:// if it is the server you mean"
    return (
        f"no server answers at {place} ({why}); nothing was sent."
        " Start it with `fairway serve`, or mend the address"
    )
