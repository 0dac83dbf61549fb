"""Sessions: how a browser stays logged in, and how a form shows that it is one of our own pages.

Guards: a cookie holds no secret of a token and opens nothing once its token is revoked or has expired; a form without
the CSRF token of its session changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final

from fairway import limits
from fairway.errors import FairwayError, Forbidden, Unauthorized
from fairway.server.callers import Callers
from fairway.server.tokens import Token

_SPARE_SECONDS: Final = 3600.0  # a cookie of nobody that lasts less than this is given anew


@dataclass(frozen=True)
class Session:
    """A browser. `token` is what it may do; None: it has to log in first."""

    cookie: str
    csrf: str
    token: Token | None
    fresh: bool = False  # the browser does not have the cookie yet


class Sessions:
    """Makes and reads cookies. All processes of a server have one secret, so any of them reads any cookie."""

    def __init__(self, secret: bytes, callers: Callers, secure: bool) -> None:
        self._key = hmac.digest(secret, b"dashboard", "sha256")
        self._callers = callers
        self._secure = secure
        # Browsers do not tell ports apart: two servers on one machine must not share a cookie.
        mark = hashlib.sha256(self._key).hexdigest()[:8]
        self.name = f"{'__Host-' if secure else ''}fairway-{mark}"

    def find(self, headers: dict[bytes, bytes]) -> Session:
        """The session of a request; one of nobody if there is none."""
        value = self._cookie(headers.get(b"cookie", b"").decode("latin-1"))
        id, expires = self._read(value)
        open_ = self._callers.open
        if value and not id and expires > time.time() + _SPARE_SECONDS:
            return Session(value, self._csrf(value), self._callers.find(None) if open_ else None)
        if value and id and not open_:
            try:
                token = self._callers.known(id)
            except Unauthorized:
                return self._nobody()
            if hmac.compare_digest(value, self._sealed(id, token.digest, expires, value.split(".")[2])):
                return Session(value, self._csrf(value), token)
        return self._nobody()

    def begin(self, text: str) -> Session:
        """The session of who logs in with a token; Unauthorized if it is none."""
        token = self._callers.find(b"Bearer " + text.strip().encode("latin-1", "replace"))
        expires = time.time() + limits.SESSION_SECONDS_MAX
        if token.expires:
            expires = min(expires, token.expires)
        value = self._sealed(token.id, token.digest, int(expires), secrets.token_hex(8))
        return Session(value, self._csrf(value), token, True)

    def check(self, session: Session, given: str) -> None:
        """Forbidden, unless the form came from a page of this session."""
        if session.fresh or not hmac.compare_digest(session.csrf.encode(), given.encode()):
            raise Forbidden("this page is too old, or not ours; load it again")

    def header(self, session: Session | None) -> tuple[bytes, bytes]:
        """The header that gives the browser its cookie, or takes it away."""
        value, age = (session.cookie, int(limits.SESSION_SECONDS_MAX)) if session else ("", 0)
        more = "; Secure" if self._secure else ""
        text = f"{self.name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{more}"
        return b"set-cookie", text.encode("latin-1")

    # -- the cookie

    def _nobody(self) -> Session:
        value = self._sealed("", "", int(time.time() + limits.SESSION_SECONDS_MAX), secrets.token_hex(8))
        token = self._callers.find(None) if self._callers.open else None
        return Session(value, self._csrf(value), token, True)

    def _cookie(self, header: str) -> str:
        try:
            found = SimpleCookie(header).get(self.name)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _read(self, value: str) -> tuple[str, int]:
        """The id and the end in a cookie, ("", 0) if it is over or not ours; a token's seal is looked at later."""
        parts = value.split(".")
        if len(parts) != 4 or not parts[1].isdigit() or len(parts[1]) > 12 or not value.isascii():
            return "", 0
        id, expires = parts[0], int(parts[1])
        if expires <= time.time():
            return "", 0
        if not id and not hmac.compare_digest(value, self._sealed("", "", expires, parts[2])):
            return "", 0
        return id, expires

    def _sealed(self, id: str, digest: str, expires: int, nonce: str) -> str:
        seal = self._mac("session", id, digest, str(expires), nonce)
        return f"{id}.{expires}.{nonce}.{seal}"

    def _csrf(self, cookie: str) -> str:
        return self._mac("csrf", cookie)

    def _mac(self, *parts: str) -> str:
        return hmac.new(self._key, "\0".join(parts).encode(), hashlib.sha256).hexdigest()


def still(sessions: Sessions, headers: dict[bytes, bytes], queue: str | None) -> bool:
    """Whether the session of a long answer may still look."""
    try:
        token = sessions.find(headers).token
    except FairwayError:
        return False
    return token is not None and token.allows("read", queue)
