"""Seals: a checksum over what a row keeps and whose it is: in front of a body, or in a column of its own.

Guards: a row is read as it was written, from where it was written to, or StoreCorrupt is raised.
"""

from __future__ import annotations

from typing import Any, Final

import apsw
import google_crc32c
import msgspec

from fairway.errors import StoreCorrupt

_MARK: Final = 0xC1  # msgpack begins nothing with it: a body without it is of an older file
_START: Final = 5
_checksum = google_crc32c.value
_pack = msgspec.msgpack.Encoder().encode


def run(id: int, text: str) -> bytes:
    """Whose the body of a run is, with its tenant, or that of its end, with its state."""
    return b"%d %b" % (id, text.encode())


def thing(kind: int, key: str | int, part: int) -> bytes:
    """Whose the body of a small object is."""
    return b"%d %d %b" % (kind, part, str(key).encode())


def place(at: int) -> bytes:
    """Whose a body of the journal or the events is."""
    return b"%d" % at


def seal(body: bytes, whose: bytes) -> bytes:
    """The body as it is stored."""
    return (_MARK << 32 | _checksum(body + whose)).to_bytes(_START, "big") + body


def unseal(sealed: bytes, whose: bytes) -> bytes:
    """The body that was sealed."""
    if type(sealed) is bytes:  # what a bit made of the head of its record may be anything
        if not sealed or sealed[0] != _MARK:
            return sealed
        body = sealed[_START:]
        if _checksum(body + whose) == int.from_bytes(sealed[1:_START], "big"):
            return body
    raise damaged(whose)


def of(*values: Any) -> int:
    """The seal of a row that has one in a column, over its other values, types included."""
    return _checksum(_pack(values))


def teach(connection: apsw.Connection) -> None:
    """For rows of which not everything is at hand: `seal_of` in statements, never in the schema."""
    connection.create_scalar_function("seal_of", of, deterministic=True)


def damaged(whose: bytes) -> StoreCorrupt:
    """A row that is not as it was written."""
    return StoreCorrupt(f"The file is damaged (row {whose.decode(errors='replace')!r}); restore a backup.")
