"""The data pipeline on Spark: produce, process, collect, audit; it needs the extra `fairway[spark]`.

Guards: importing this package starts nothing and imports no pyspark; the first use of a name does.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from fairway.spark.auditing.audit import audit as audit
    from fairway.spark.collecting import collect as collect
    from fairway.spark.collecting import read as read
    from fairway.spark.mapping import map_chunks as map_chunks
    from fairway.spark.processing import Processed as Processed
    from fairway.spark.processing import process as process
    from fairway.spark.producing import produce as produce
    from fairway.spark.queues import hosting as hosting
    from fairway.spark.queues import release as release
    from fairway.spark.sessions import session as session
    from fairway.spark.sources import register as register
    from fairway.spark.sweeping import sweep as sweep

# The modules have other names than what they give: importing one must not hide it.
_WHERE = {
    "audit": "auditing.audit",
    "Processed": "processing",
    "collect": "collecting",
    "hosting": "queues",
    "map_chunks": "mapping",
    "process": "processing",
    "produce": "producing",
    "read": "collecting",
    "register": "sources",
    "release": "queues",
    "session": "sessions",
    "sweep": "sweeping",
}


def __getattr__(name: str) -> _Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'fairway.spark' has no attribute {name!r}")
    try:
        module = _import_module(f"fairway.spark.{_WHERE[name]}")
    except ImportError as error:
        if error.name in ("pyspark", "pyarrow"):
            raise ImportError(
                f"fairway.spark needs {error.name}; install it with `pip install 'fairway[spark]'`",
                name=error.name,
            ) from None
        raise
    found = getattr(module, name)
    globals()[name] = found
    return found
