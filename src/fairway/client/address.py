"""Addresses of a server: one URL or several nodes, a queue, a token.

Guards: a token never stands in a URL, so it is in no log, and is not sent in the clear beyond this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from fairway import limits
from fairway.client.wire import MSGPACK
from fairway.errors import BadArgument
from fairway.face import checks

if TYPE_CHECKING:
    import ssl

_HOST: Final = re.compile(r"[!-~]+")


def is_http(url: object) -> bool:
    """Whether what was given to `open` names a server."""
    if isinstance(url, list | tuple):
        return bool(url) and all(is_http(one) for one in url)
    return isinstance(url, str) and url.split("://")[0].lower() in ("http", "https") and "://" in url


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Address:
    """A queue on a server."""

    nodes: tuple[str, ...]
    queue: str
    token: str = ""

    @classmethod
    def of(cls, url: str | Sequence[str], queue: str, token: str | None) -> Address:
        """Check what was given; a token that is not given is taken from FAIRWAY_TOKEN."""
        given = url.split(",") if isinstance(url, str) else list(url)
        if not 1 <= len(given) <= limits.NODES_MAX:
            checks.refuse("url", f"1 to {limits.NODES_MAX} addresses", url)
        secret = os.environ.get("FAIRWAY_TOKEN", "") if token is None else token
        if not isinstance(secret, str) or not secret.isascii() or not secret.isprintable():
            raise BadArgument("token must be the text that `fairway token create` showed", argument="token")
        nodes = tuple(_node(one, secret) for one in given)
        return cls(nodes, checks.queue_name(queue), secret)

    @property
    def path(self) -> str:
        """The queue's own; its calls go to /call behind it."""
        return f"/v1/queues/{quote(self.queue, safe='')}"

    @property
    def calls(self) -> list[str]:
        """Where calls are sent, one address per node."""
        return [f"{node}{self.path}/call" for node in self.nodes]

    def path_of(self, path: str) -> str:
        """A path behind the queue's own, or, if it begins with /v1/, any of the server's."""
        return path if path.startswith("/v1/") else self.path + path

    @property
    def headers(self) -> dict[str, str]:
        told = {"Content-Type": MSGPACK, "Accept": MSGPACK}
        return {**told, "Authorization": f"Bearer {self.token}"} if self.token else told

    def context(self) -> ssl.SSLContext | None:
        """By what certificates of servers are checked; None: none of them has one."""
        import ssl

        return ssl.create_default_context() if any(one.startswith("https:") for one in self.nodes) else None

    def options(self) -> dict[str, Any]:
        """What an awaiting HTTP client is made with. Proxies of the environment are not for queues."""
        return {
            "headers": self.headers,
            "trust_env": False,
            "follow_redirects": False,
            "verify": self.context() or False,
        }


def _node(url: object, token: str) -> str:
    if not isinstance(url, str):
        checks.refuse("url", "http://host:7420 or https://host", url)
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname if parts.port != 0 else None
    except ValueError:  # of brackets without an address, of a port that is none
        parts, host = urlsplit(""), None
    plain = _HOST.fullmatch(parts.netloc)  # a space would be looked up as if its server were down
    if not host or parts.scheme not in ("http", "https") or not plain:
        checks.refuse("url", "http://host:7420 or https://host, in ASCII", url)
    if parts.username is not None or parts.password is not None:
        raise BadArgument(
            "url: give the token as token= or in FAIRWAY_TOKEN, never in the URL", argument="url"
        )
    if parts.query or parts.fragment or parts.path.strip("/"):
        checks.refuse("url", "an address without a path; the queue is an argument of its own", url)
    exposed = token and parts.scheme == "http" and not is_loopback(host)
    if exposed and os.environ.get("FAIRWAY_PLAIN_HTTP", "").lower() not in ("1", "true"):
        raise BadArgument(
            "url: a token is not sent over plain http beyond this machine; use https, or set"
            " FAIRWAY_PLAIN_HTTP=1 if the network itself is safe",
            argument="url",
        )
    return f"{parts.scheme}://{parts.netloc}"
