"""Results of a batch: what rows mode registers, on the first chunk of the batch, for all of them.

Guards: the results of a batch are registered once, together with the end of its chunks.
"""

from __future__ import annotations

import msgspec

from fairway.errors import TooLarge
from fairway.limits import PAYLOAD_BYTES_MAX

_MARK = b"FWBATCH1"
_encode = msgspec.msgpack.Encoder().encode


class _Batch(msgspec.Struct, array_like=True):
    number: int
    objects: list[tuple[str, int]] | None  # None: they are with another chunk of the batch


_decode = msgspec.msgpack.Decoder(_Batch).decode


def batch_result(number: int, objects: list[tuple[str, int]]) -> bytes:
    """The inline result that names the objects of a batch."""
    found = _MARK + _encode(_Batch(number, objects))
    if len(found) > PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"{len(objects)} result objects are too many for one batch; let fewer tasks write, by coalesce"
        )
    return found


def in_batch(number: int) -> bytes:
    """The inline result of the other chunks."""
    return _MARK + _encode(_Batch(number, None))


def is_batch(data: bytes | None) -> bool:
    """Whether an inline result stands for a batch."""
    return data is not None and data.startswith(_MARK)


def objects_of(data: bytes) -> list[tuple[str, int]]:
    """(object, rows) of a batch that is registered here; none if it is with another chunk."""
    return _decode(data[len(_MARK) :]).objects or []
