"""The columns of chunk references, and of what was done with them, in Spark's text form.

Guards: whoever only names columns loads no Arrow: every commit of a sink by hand is a new process, and Spark waits.
"""

from __future__ import annotations

REFERENCE = (
    "submission bigint, index int, tenant string, attempt int, metadata map<string,string>, object string,"
    " payload binary, receipt string, result string, epoch bigint"
)
DONE = "receipt string, epoch bigint, writer bigint, object string, data binary, rows bigint, error string"
DONE_NAMES = [column.split()[0] for column in DONE.split(", ")]
