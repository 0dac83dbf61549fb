"""Seals: a checksum in front of what a row keeps, over that and over whose it is.

Guards: a body is read as it was written, from the row it was written to, or StoreCorrupt is raised.
"""

from __future__ import annotations

from typing import Final

import google_crc32c

from fairway.errors import StoreCorrupt

_MARK: Final = 0xC1  # msgpack begins nothing with it: a body without it is of an older file
_START: Final = 5
_checksum = google_crc32c.value


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


def damaged(whose: bytes) -> StoreCorrupt:
    """A row that is not as it was written."""
    return StoreCorrupt(f"The file is damaged (row {whose.decode(errors='replace')!r}); restore a backup.")
