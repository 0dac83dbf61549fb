"""Results of a batch: what rows mode registers, on the first chunk of each submission that is in the batch.

Guards: the results of a batch are registered in the step that ends its chunks, and stay named until the queue has
forgotten every submission of the batch. Whoever reads them counts each object once.
"""

from __future__ import annotations

import msgspec

from fairway.errors import TooLarge
from fairway.limits import PAYLOAD_BYTES_MAX

_MARK = b"FWBATCH1"
_TOKEN_BYTES = 16
_encode = msgspec.msgpack.Encoder().encode


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """What an inline result says of its batch. It is stored for every submission, so its objects are told shortly."""

    number: int
    consumer: str = ""
    complete: bool = False  # it has the rows of all batches before it
    folder: str = ""
    tokens: bytes = b""  # one for each object; none: they are with another chunk of the submission

    @property
    def objects(self) -> list[str]:
        found = (self.tokens[at : at + _TOKEN_BYTES] for at in range(0, len(self.tokens), _TOKEN_BYTES))
        return [f"{self.folder}/{token.hex()}" for token in found]


_decode = msgspec.msgpack.Decoder(Batch).decode


def batch_result(number: int, consumer: str, complete: bool, objects: list[str]) -> bytes:
    """The inline result that names the objects of a batch: all in one folder, each called by a token."""
    folders = {name.rpartition("/")[0] for name in objects}
    assert len(folders) <= 1
    tokens = b"".join(bytes.fromhex(name.rpartition("/")[2]) for name in objects)
    assert len(tokens) == len(objects) * _TOKEN_BYTES
    found = _MARK + _encode(Batch(number, consumer, complete, min(folders, default=""), tokens))
    if len(found) > PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"{len(objects)} result objects are too many for one batch; let fewer tasks write, by coalesce"
        )
    return found


def in_batch(number: int) -> bytes:
    """The inline result of the other chunks."""
    return _MARK + _encode(Batch(number))


def batch_of(data: bytes | None) -> Batch | None:
    """The batch that an inline result stands for; None if it is a result of its own."""
    return _decode(data[len(_MARK) :]) if data is not None and data.startswith(_MARK) else None


def newest(found: list[Batch]) -> list[Batch]:
    """The batches that count: all, but of a consumer whose every batch has all rows only the last one."""
    last: dict[str, int] = {}
    for one in found:
        if one.complete:
            last[one.consumer] = max(one.number, last.get(one.consumer, 0))
    return [one for one in found if not one.complete or one.number == last[one.consumer]]
