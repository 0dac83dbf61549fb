"""The server's own secret: what it seals the names of its clients with.

Guards: a client's name works for the caller and the queue it was given to, and cannot be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
from functools import lru_cache

from fairway.errors import ClientUnknown
from fairway.limits import KEPT_NAME_CHARS_MAX, KEPT_NAMES_MAX

_BYTES = 32
_SEAL_CHARS = 32  # 128 bits


def load(path: str) -> bytes:
    """The secret in a file, made if there is none; all processes of a server share it, also after a restart."""
    while True:
        try:
            with open(path, "rb") as file:
                found = file.read()
            if len(found) == _BYTES:
                return found
            os.unlink(path)  # a machine that stopped while it was made
        except FileNotFoundError:
            _make(path)


def _make(path: str) -> None:
    fd, name = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=os.path.basename(path))
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        os.unlink(name)


class Seals:
    """The names of clients: an id and a seal over (queue, token, id)."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known = lru_cache(KEPT_NAMES_MAX)(self._id)  # a wrong one raises, which is not kept

    def name(self, queue: str, token: str, id: int) -> str:
        return f"{id:x}.{self._seal(queue, token, id)}"

    def id(self, queue: str, token: str, name: str) -> int:
        """The id in a name, or ClientUnknown."""
        return (self._known if len(name) <= KEPT_NAME_CHARS_MAX else self._id)(queue, token, name)

    def _id(self, queue: str, token: str, name: str) -> int:
        text, _, seal = name.partition(".")
        try:
            id = int(text, 16)
        except ValueError:
            id = -1
        if (
            not 0 < id < 1 << 62
            or not seal.isascii()
            or not hmac.compare_digest(self._seal(queue, token, id), seal)
        ):
            raise ClientUnknown("this client was not registered here by this caller; register one first")
        return id

    def _seal(self, queue: str, token: str, id: int) -> str:
        text = f"{queue}\x00{token}\x00{id:x}".encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:_SEAL_CHARS]
