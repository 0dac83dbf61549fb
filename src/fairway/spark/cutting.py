"""Cutting: the rows of a task become chunks of one tenant each, written as they fill.

Guards: every row is in exactly one chunk; a task that fails here removes what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from fairway import limits
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.runtime.objects import ObstoreObjects
from fairway.spark.codec import encode
from fairway.spark.columns import split
from fairway.spark.places import task_prefix

_AT_ONCE = 8  # chunks written together


def check_tenants(column: str, type: pa.DataType) -> None:
    """A type of which no text can be made is refused before any work begins."""
    _texts(column, pa.chunked_array([], type))


def _texts(column: str, names: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return names.cast(pa.string())
    except pa.ArrowException as error:
        raise BadArgument(
            f"option tenantColumn: column {column!r} is {names.type} and gives no names: {error}; cast it to a string",
            argument="tenantColumn",
        ) from error


@dataclass
class _Tenant:
    prefix: str
    waiting: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    count: int = 0  # chunks cut so far


class Cutter:
    """Chunks per tenant, in the order of their rows."""

    def __init__(
        self, objects: str, token: str, partition: int, attempt: str, column: str, rows: int, format: str
    ) -> None:
        self._place = (objects, token)
        self._task = (partition, attempt)
        self._column, self._rows, self._format = column, rows, format
        self._tenants: dict[str, _Tenant] = {}
        self._full: dict[str, bytes] = {}
        self._written: list[str] = []
        self._store = ObstoreObjects()

    def cut(self, batches: Iterator[pa.RecordBatch]) -> list[tuple[str, str, int]]:
        """Write everything; (tenant, prefix, count) for each tenant."""
        try:
            for batch in batches:
                self._add(pa.Table.from_batches([batch]))
            for tenant in self._tenants.values():
                while tenant.rows:
                    self._chunk(tenant, min(self._rows, tenant.rows))
            self._flush()
        except BaseException:
            self._store.remove(self._written)
            raise
        return [(name, tenant.prefix, tenant.count) for name, tenant in self._tenants.items() if tenant.count]

    def _add(self, table: pa.Table) -> None:
        names = table.column(self._column)
        if names.null_count:
            raise BadArgument(
                f"option tenantColumn: column {self._column!r} is null in {names.null_count} rows;"
                " every row needs a tenant ('' is one)",
                argument="tenantColumn",
            )
        for name, part in split(table, _texts(self._column, names)):
            tenant = self._tenants.get(name)
            if tenant is None:
                checks.text(
                    f"option tenantColumn: each value of column {self._column!r}",
                    name,
                    limits.TENANT_BYTES_MAX,
                )
                prefix = task_prefix(*self._place, name, *self._task)
                tenant = self._tenants[name] = _Tenant(prefix)
            tenant.waiting.append(part)
            tenant.rows += part.num_rows
            while tenant.rows >= self._rows:
                self._chunk(tenant, self._rows)

    def _chunk(self, tenant: _Tenant, rows: int) -> None:
        whole = pa.concat_tables(tenant.waiting)
        tenant.waiting = [whole.slice(rows)] if whole.num_rows > rows else []
        tenant.rows -= rows
        name = f"{tenant.prefix}/{tenant.count}"
        tenant.count += 1
        self._full[name] = encode(whole.slice(0, rows), self._format)
        if len(self._full) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        full, self._full = self._full, {}
        self._written += full
        self._store.write(full)
