"""Plans: what Spark would do for a stream, asked before it starts.

Guards: nothing is read and nothing is printed. A query whose plan cannot be had counts as one without a state, and
the commit still refuses rows that come too late.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The operators of a physical plan that keep something from batch to batch, each at the beginning of its line.
_STATE = re.compile(
    r"^[\s:+!-]*(?:\*\(\d+\) )?(\w*State\w*|Streaming(?!Relation\b|LocalLimit\b)\w+)", re.MULTILINE
)


def keeping_state(df: DataFrame) -> str | None:
    """The first operator with a state, by Spark's name for it."""
    found = _STATE.search(_plan(df))
    return found[1] if found else None


def _plan(df: Any) -> str:
    """What df.explain() would print: what other threads print meanwhile would be caught with it."""
    if hasattr(df, "_explain_string"):  # through Connect
        return df._explain_string()
    jvm = getattr(df.sparkSession, "_jvm", None)
    return "" if jvm is None else jvm.PythonSQLUtils.explainString(df._jdf.queryExecution(), "simple")
