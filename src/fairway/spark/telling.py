"""Errors as Spark tells them, with Python's and Java's traces around: what was raised, and which error of ours it was.

Guards: a caller of this package catches Fairway's errors, wherever in Spark they were raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fairway import errors
from fairway.errors import BadArgument, FairwayError

_NAMED = re.compile(r"fairway\.errors\.(\w+): (.*)")
_AROUND = (
    "[STREAM_FAILED]",
    "Traceback (most recent call last)",
    "Driver stacktrace",
)  # lines that say nothing
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
# What Spark says of a checkpoint whose state is not that of the query, by the names of its conditions.
_OF_ANOTHER_QUERY = re.compile(
    r"\[(STREAMING_STATEFUL_OPERATOR_(?:MISSING_STATE_DIRECTORY|NOT_MATCH_IN_STATE_METADATA)"
    r"|STATE_STORE_(?:KEY_SCHEMA_NOT_COMPATIBLE|VALUE_SCHEMA_NOT_COMPATIBLE|COLUMN_FAMILY_SCHEMA_INCOMPATIBLE"
    r"|INVALID_CONFIG_AFTER_RESTART|INVALID_VARIABLE_TYPE_CHANGE|INVALID_VALUE_SCHEMA_EVOLUTION)"
    r"|STREAMING_CHECKPOINT_MISSING_METADATA_FILE|STREAM_STREAM_JOIN_INCOMPATIBLE_STATE_STORE_CONFIGS)\] (.*)"
)
_ERROR_CHARS = 1500  # of one: it goes along as an option of Spark's reader, and into a dead letter


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise an error of ours that Spark wrapped as itself, without what Spark put around it."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        found = told(error)
        if found is error:
            raise
        raise found from None


def brief(error: Exception) -> str:
    """An error in a few lines: around what was raised Spark tells where, in Python and in Java, and its whole plan."""
    if isinstance(error, FairwayError):
        return f"{type(error).__name__}: {error}"
    raised = str(error).partition("\n=== Streaming Query ===")[0]
    lines = [line for line in raised.splitlines() if line and not line[0].isspace()]
    lines = [line for line in dict.fromkeys(lines) if not line.startswith(_AROUND)]
    return "\n".join(lines)[-_ERROR_CHARS:] or f"{type(error).__name__}: {raised}"[:_ERROR_CHARS]


def told(error: Exception) -> Exception:
    """The error of ours that Spark wrapped into its text, or Spark's own."""
    missing = _MISSING.search(str(error))
    if missing:  # fn's own errors fail its chunk; this one came before fn
        return BadArgument(
            f"the executors cannot import {missing[1]!r}, which the function or query needs; install it there, or give"
            " it with spark.addArtifacts or spark.executorEnv.PYTHONPATH",
            argument="fn",
        )
    other = _OF_ANOTHER_QUERY.search(str(error))
    if other:
        return BadArgument(
            "the checkpoint is another query's, or its state is gone. Start the query that it belongs to, or this one"
            " with a new consumer name and checkpoint; what the old one still holds comes back when it was silent for"
            f" consumer_silent_seconds. Spark says: {other[1]}: {other[2].strip()}",
            argument="checkpoint",
        )
    matches = list(_NAMED.finditer(str(error)))
    match = matches[-1] if matches else None  # what was raised last is told last
    kind = getattr(errors, match[1], None) if match else None
    if match and isinstance(kind, type) and issubclass(kind, FairwayError):
        found = kind(match[2].strip())
        found.__cause__ = error
        return found
    return error
