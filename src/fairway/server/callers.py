"""Callers: who sends a request, and whether a page of another site makes a browser send it.

Guards: without a valid token nobody gets further than this, unless the server is for this machine alone and never had
one.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from fairway.client.address import is_loopback
from fairway.errors import Forbidden, Unauthorized
from fairway.limits import KEPT_NAME_CHARS_MAX, KEPT_NAMES_MAX
from fairway.server.settings import Settings
from fairway.server.tokens import OPEN, Token, Tokens


class Callers:
    """Tells callers by their headers."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._local, self._private = settings.local, settings.private
        self._hosts = {host.lower() for host in settings.hosts}
        if settings.listen not in ("", "0.0.0.0", "::"):
            self._hosts.add(settings.listen.lower())
        self._tokens = tokens
        self._check = lru_cache(KEPT_NAMES_MAX)(self._check_names)  # what is refused is not kept

    @property
    def open(self) -> bool:
        """Whether everybody who reaches the server may do everything."""
        return self._private and not self._tokens.wanted

    def known(self, id: str) -> Token:
        """A token by its id, for who showed it before; Unauthorized if it is over."""
        return self._tokens.known(id)

    def find(self, header: bytes | None) -> Token:
        """The token in an Authorization header, or Unauthorized."""
        if self.open:
            return OPEN
        if header is None:
            raise Unauthorized
        scheme, _, text = header.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("give the token as `Authorization: Bearer TOKEN`")
        return self._tokens.find(text.strip())

    def check_site(self, headers: dict[bytes, bytes]) -> None:
        """Refuse what a page of another site, or a name that was bent to this address, makes a browser send."""
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        short = len(host) + len(origin or b"") <= KEPT_NAME_CHARS_MAX
        (self._check if short else self._check_names)(host, origin)

    def _check_names(self, given: bytes, origin: bytes | None) -> None:
        host = given.decode("latin-1").lower()
        name = _name(host)
        if self._local and not (is_loopback(name) or name in self._hosts):
            raise Forbidden(
                f"this server is not {name[:80]!r}; if it is, add that name to its `hosts` setting"
            )
        if origin is not None and _site(origin.decode("latin-1")) != host:
            raise Forbidden("requests of pages of other sites are not taken")


def _site(origin: str) -> str | None:
    """The host and port in an Origin header; None: it is no address, and so not ours."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
