"""The port every storage of bucket queues implements; `fairway.testing.bucket.conformance` is its executable meaning.

Guards: one statement is one atomic step, and a storage never says "refused" or "applied" when it does not know.
"""

from __future__ import annotations

from typing import Any, Protocol

from fairway.bucket.statements import Statement


class BucketStorage(Protocol):
    """Where bucket queues are kept. Any thread of any process may execute statements."""

    def execute(self, statement: Statement) -> Any:
        """Carry out one statement: a read gives its value, a write APPLIED or REFUSED, either UNKNOWN.

        Raises a FairwayError if it was surely not carried out and asking again at once is of no use.
        """
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...
