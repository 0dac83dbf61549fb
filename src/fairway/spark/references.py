"""References: one row per chunk on its way to a function, and one row per chunk on its way back.

Guards: a reference carries everything a task needs, so that no executor has to ask the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from fairway.model.lease import Lease

REFERENCE_ARROW = pa.schema(
    [
        ("submission", pa.int64()),
        ("index", pa.int32()),
        ("tenant", pa.string()),
        ("attempt", pa.int32()),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("object", pa.string()),
        ("payload", pa.binary()),
        ("receipt", pa.string()),
        ("result", pa.string()),
        ("epoch", pa.int64()),
    ]
)
DONE_ARROW = pa.schema(
    [
        ("receipt", pa.string()),
        ("epoch", pa.int64()),
        ("writer", pa.int64()),
        ("object", pa.string()),
        ("data", pa.binary()),
        ("rows", pa.int64()),
        ("error", pa.string()),
    ]
)


@dataclass
class References(InputPartition):
    """The chunks of one task."""

    rows: list[dict[str, Any]]


def reference(lease: Lease, epoch: int) -> dict[str, Any]:
    """A chunk as a row; `result` is the name of its result object without the writer."""
    result = lease.result_object(0)
    return {
        "submission": lease.submission,
        "index": lease.index,
        "tenant": lease.tenant,
        "attempt": lease.attempt,
        "metadata": [(key, str(value)) for key, value in lease.metadata.items()],
        "object": lease.object,
        "payload": lease.data if lease.object is None else None,
        "receipt": lease.receipt,
        "result": None if result is None else result.rpartition(".")[0],
        "epoch": epoch,
    }


def told(row: dict[str, Any]) -> str:
    """A chunk in words, for errors."""
    return f"chunk {row['index']} of submission {row['submission']} (tenant {row['tenant']!r})"


def tasks(rows: Sequence[dict[str, Any]], per_task: int) -> list[References]:
    """The chunks cut into tasks."""
    return [References(list(rows[at : at + per_task])) for at in range(0, len(rows), per_task)]
