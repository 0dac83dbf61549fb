"""Chunks as bytes: Arrow streams with a checksum behind them, or Parquet with page checksums.

Guards: what is read is what was written; damage is an error, never other rows.
"""

from __future__ import annotations

import io

import google_crc32c
import pyarrow as pa

from fairway.errors import BadArgument, PayloadCorrupt

_SEAL = b"FWCRC32C"  # behind the end of the stream, where readers of Arrow stop
_PARQUET = b"PAR1"
_STREAM = b"\xff\xff\xff\xff"


def encode(table: pa.Table, format: str) -> bytes:
    """A table as an object. Raises BadArgument if the format has no such column."""
    try:
        return _encode(table, format)
    except pa.ArrowException as error:
        told = str(error).splitlines()[0]
        raise BadArgument(f"a table cannot be written as {format}: {told:.300}", argument="format") from error


def _encode(table: pa.Table, format: str) -> bytes:
    sink = io.BytesIO()
    if format == "parquet":
        import pyarrow.parquet as pq  # here: a sink's commit is a new process, and needs none of it

        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        return sink.getvalue()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    body = sink.getvalue()
    return body + _SEAL + google_crc32c.value(body).to_bytes(4, "big")


def is_table(blob: bytes) -> bool:
    """Whether the bytes claim to be a table."""
    return blob.startswith((_PARQUET, _STREAM))


def decode(blob: bytes, what: str) -> pa.Table:
    """The table in an object; `what` is named in the error if it is damaged."""
    try:
        if blob.startswith(_PARQUET):
            import pyarrow.parquet as pq

            return pq.read_table(io.BytesIO(blob), page_checksum_verification=True)
        body, seal = blob[:-12], blob[-12:]
        if seal.startswith(_SEAL) and google_crc32c.value(body) == int.from_bytes(seal[8:], "big"):
            return pa.ipc.open_stream(body).read_all()
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        raise PayloadCorrupt(f"{what} cannot be read: {str(error).splitlines()[0]:.200}") from error
    raise PayloadCorrupt(f"{what} is damaged, or no chunk of format arrow or parquet")
