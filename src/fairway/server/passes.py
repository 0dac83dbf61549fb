"""Passes: what a node sends with a request that it hands on, so that the next one believes whose it is.

Guards: a pass is made with the secret that nodes share, for one request, body included; without the secret nobody is
believed, wherever he calls from.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from fairway.errors import BadArgument, Unauthorized
from fairway.limits import NODE_CLOCK_SECONDS_MAX, NODE_SECRET_BYTES_MIN
from fairway.server.rights import Right
from fairway.server.tokens import Token

HEADER: Final = b"fairway-node"
# Every header that says what a request means; others are not handed on.
COVERED: Final = (
    b"accept",
    b"content-type",
    b"fairway-client",
    b"fairway-number",
    b"fairway-received",
    b"idempotency-key",
    b"last-event-id",
)


class Pass(msgspec.Struct, frozen=True):
    """Whose request it is, when it was handed on, and the digest of its body."""

    id: str
    name: str
    queues: tuple[str, ...]
    rights: tuple[Right, ...]
    tenant: str | None
    worker: int
    at: float
    body: str

    @property
    def token(self) -> Token:
        return Token(self.id, self.name, "", self.queues, self.rights, 0.0, 0.0, self.tenant)


_decode = msgspec.json.Decoder(Pass).decode


def shared_secret(path: str) -> bytes:
    """The secret in a file that is the same on every node."""
    try:
        with open(path, "rb") as file:
            found = file.read().strip()
    except OSError as error:
        raise BadArgument(
            f"secret_file: {path} cannot be read: {error.strerror}", argument="secret_file"
        ) from error
    if len(found) < NODE_SECRET_BYTES_MIN:
        raise BadArgument(
            f"secret_file: {path} has {len(found)} bytes; give {NODE_SECRET_BYTES_MIN} random ones or more",
            argument="secret_file",
        )
    return found


def derived(secret: bytes, purpose: str) -> bytes:
    """A key for one purpose; none of them tells anything of the others."""
    return hmac.new(secret, purpose.encode(), hashlib.sha256).digest()


class Passes:
    """Makes and reads passes with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(
        self,
        token: Token,
        worker: int,
        method: str,
        path: str,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
    ) -> str:
        told = Pass(
            token.id, token.name, token.queues, token.rights, token.tenant, worker, time.time(), digest(body)
        )
        text = base64.urlsafe_b64encode(msgspec.json.encode(told)).decode()
        return f"{text}.{self._seal(text, method, path, query, headers)}"

    def read(self, given: bytes, method: str, path: str, query: bytes, headers: dict[bytes, bytes]) -> Pass:
        """The pass of a request, or Unauthorized; its body is still to be compared."""
        text, _, seal = given.decode("latin-1").partition(".")
        right = self._seal(text, method, path, query, headers)
        if not seal.isascii() or not hmac.compare_digest(right, seal):
            raise Unauthorized("this request was not handed on by a node that shares our secret")
        try:
            told = _decode(base64.urlsafe_b64decode(text))
        except (msgspec.DecodeError, ValueError):
            raise Unauthorized("the pass of this request cannot be understood") from None
        if abs(time.time() - told.at) > NODE_CLOCK_SECONDS_MAX:
            raise Unauthorized(
                f"this request was handed on more than {NODE_CLOCK_SECONDS_MAX:g} s ago, or clocks differ by that"
            )
        return told

    def _seal(self, text: str, method: str, path: str, query: bytes, headers: dict[bytes, bytes]) -> str:
        # As values, not as they were written: a client library may write them in another way.
        pairs = sorted(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        covered = [headers.get(name, b"").decode("latin-1") for name in COVERED]
        said = msgspec.json.encode([text, method, path, pairs, covered])
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
