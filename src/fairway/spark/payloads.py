"""Payloads as tables, in the tasks that work on them.

Guards: a payload that is gone or damaged is told with its chunk and tenant.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fairway.errors import ObjectMissing, PayloadCorrupt
from fairway.runtime.objects import read
from fairway.spark.codec import decode
from fairway.spark.references import told


def table_of(row: dict[str, Any]) -> pa.Table:
    """The payload of a reference."""
    what = f"the payload of {told(row)}"
    name = row["object"]
    if name is None:
        if row["payload"] is None:
            raise PayloadCorrupt(f"{what} is none: it was submitted without one")
        return decode(row["payload"], what)
    try:
        blob = read(name)
    except ObjectMissing as error:
        raise ObjectMissing(
            f"{what}, the object {name}, is not there; put it back, or cancel the submission"
        ) from error
    return decode(blob, f"{what}, the object {name},")


def origin_of(row: dict[str, Any]) -> dict[str, Any]:
    """Where the rows of a chunk come from, for schemas that ask."""
    return {
        "_tenant": row["tenant"],
        "_submission": row["submission"],
        "_index": row["index"],
        "_chunk": f"{row['receipt']} {row['result'] or ''}",
    }
