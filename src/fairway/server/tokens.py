"""Tokens: who may do what with which queues, in a file beside the store.

Guards: a token's secret is shown once and never stored; a token that is not in the file, or has expired, opens
nothing from the moment on in which the file or the clock says so; without the file nothing is open that was closed.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from fairway import limits
from fairway.errors import BadArgument, NotFound, OurError, TooLarge, Unauthorized
from fairway.face import checks
from fairway.server.rights import RIGHTS, Right, matches

_MARK: Final = "fw"  # so that scanners for leaked secrets know one
_CLOSED: Final = (
    b"There was a token, so the server wants one, also without their file; remove both to open it.\n"
)


class Token(msgspec.Struct, frozen=True):
    """What is stored of a token. `digest` is of the secret, which has 256 random bits and so needs no slow hash."""

    id: str
    name: str
    digest: str
    queues: tuple[str, ...]
    rights: tuple[Right, ...]
    created: float
    expires: float = 0.0  # 0.0: never
    tenant: str | None = None  # whoever submits with it is this tenant

    def allows(self, right: Right | None, queue: str | None) -> bool:
        """Whether it has a right (None: any) on a queue (None: any)."""
        return (right is None or right in self.rights) and (queue is None or matches(queue, self.queues))


OPEN: Final = Token("", "anybody on this machine", "", ("*",), ("submit", "work", "read", "operate"), 0.0)

_decode = msgspec.json.Decoder(list[Token]).decode


class Tokens:
    """The tokens of one file. Any thread may ask; a change of the file is seen by the next question."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}
        self._lock = threading.Lock()
        self._wanted = False

    @property
    def wanted(self) -> bool:
        """From the first token on, everybody needs one; also if their file is away by now, and after a restart."""
        if not self._wanted:  # asked at every request
            self._wanted = os.access(self.path, os.F_OK) or _size(_beside(self.path, "lock")) > 0
        return self._wanted

    def find(self, text: str) -> Token:
        """The token whose text this is, or Unauthorized."""
        mark, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self._read().get(id) if mark == _MARK else None
        known = token.digest if token is not None else _digest("")
        # Compared in constant time, and also if there is no such token: nobody learns which ids exist.
        same = hmac.compare_digest(_digest(secret), known)
        if token is None or not same or (token.expires and token.expires <= time.time()):
            raise Unauthorized("this token is not valid, has expired or was revoked; ask for a new one")
        return token

    def known(self, id: str) -> Token:
        """A token by its id, or Unauthorized; it is for the caller to know that its secret was shown."""
        token = self._read().get(id)
        if token is None or (token.expires and token.expires <= time.time()):
            raise Unauthorized("this token has expired or was revoked; ask for a new one")
        return token

    def create(
        self,
        name: str,
        *,
        queues: Sequence[str] = ("*",),
        rights: Sequence[str] = ("read",),
        seconds: float | None = None,
        tenant: str | None = None,
    ) -> tuple[Token, str]:
        """A new token, and the text that is shown once."""
        checks.text("name", name, limits.TOKEN_NAME_CHARS_MAX, 1)
        _check_patterns(queues)
        for right in rights:
            if right not in RIGHTS:
                checks.refuse("rights", f"some of {', '.join(RIGHTS)}", right)
        if not rights:
            checks.refuse("rights", f"some of {', '.join(RIGHTS)}", rights)
        if tenant is not None:
            checks.tenant(tenant)
        life = checks.seconds("expires", seconds, 1.0, limits.TOKEN_SECONDS_MAX)
        id, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), time.time()
        expires = now + life if life else 0.0
        ordered: tuple[Right, ...] = tuple(right for right in RIGHTS if right in rights)  # pyright: ignore[reportAssignmentType]
        token = Token(id, name, _digest(secret), tuple(queues), ordered, now, expires, tenant)
        with self._changing() as tokens:
            if len(tokens) >= limits.TOKENS_MAX:
                raise TooLarge(f"there are {limits.TOKENS_MAX} tokens already; revoke some")
            tokens[id] = token
        return token, f"{_MARK}_{id}_{secret}"

    def revoke(self, id: str) -> Token:
        """Remove a token by its id; whoever uses it is refused from now on."""
        with self._changing() as tokens:
            if id not in tokens:
                raise NotFound(f"there is no token {id!r}; `fairway token list` shows them")
            return tokens.pop(id)

    def list(self) -> list[Token]:
        return sorted(self._read().values(), key=lambda token: token.created)

    # -- the file

    def _read(self) -> dict[str, Token]:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return {}
        seen = (found.st_mtime_ns, found.st_ino, found.st_size)
        if seen != self._seen:
            with self._lock:
                with open(self.path, "rb") as file:
                    try:
                        listed = _decode(file.read())
                    except msgspec.DecodeError as error:
                        raise OurError(f"the file of tokens is damaged: {error}") from error
                self._tokens = {token.id: token for token in listed}
                self._seen = seen
        return self._tokens

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """One writer at a time, among all processes; readers see the old file or the new one."""
        try:
            lock = open(_beside(self.path, "lock"), "ab")  # noqa: SIM115 - held by the `with` below
        except OSError as error:
            raise BadArgument(f"tokens: {self.path} cannot be written: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = dict(self._read())
            yield tokens
            body = msgspec.json.format(msgspec.json.encode(list(tokens.values())))
            if not lock.tell():
                lock.write(_CLOSED)  # before the file: there is no moment in which it could vanish unnoticed
                lock.flush()
            replace_file(self.path, body)


def replace_file(path: str, body: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    fd, name = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path))
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _beside(path: str, what: str) -> str:
    return f"{path}.{what}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _check_patterns(queues: Sequence[str]) -> None:
    if not 1 <= len(queues) <= limits.TOKEN_QUEUES_MAX:
        raise BadArgument(f"queues: give 1 to {limits.TOKEN_QUEUES_MAX} patterns such as 'orders-*'")
    for pattern in queues:
        checks.text("queues", pattern, limits.QUEUE_NAME_BYTES_MAX, 1)
