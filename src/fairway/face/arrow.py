"""Events as Arrow, one column per field; importing this module needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow

from fairway.model.event import Event

SCHEMA = pyarrow.schema(
    [
        ("number", pyarrow.int64()),
        ("what", pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
        ("time", pyarrow.float64()),
        ("submission", pyarrow.int64()),
        ("start", pyarrow.int64()),
        ("count", pyarrow.int64()),
        ("epoch", pyarrow.int64()),
        ("reservation", pyarrow.int64()),
        ("attempt", pyarrow.int32()),
        ("tenant", pyarrow.string()),
        ("detail", pyarrow.string()),
        ("place", pyarrow.int32()),
    ]
)


def batch_of(events: Sequence[Event]) -> pyarrow.RecordBatch:
    """Some events as a batch."""
    columns = [
        pyarrow.array([getattr(event, field.name) for event in events], field.type) for field in SCHEMA
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=SCHEMA)


def table_of(batches: Sequence[pyarrow.RecordBatch]) -> pyarrow.Table:
    """Batches as one table."""
    return pyarrow.Table.from_batches(batches, SCHEMA).unify_dictionaries()
