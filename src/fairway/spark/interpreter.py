"""The Python of Spark's own processes: the one of this program.

Guards: what the caller chose is never replaced.
Before the pyspark that is installed Spark puts a zip of the same, without compiled modules, so that each new process
compiles it anew, for a second of CPU. The processes of a local session go past it.
"""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from fairway.spark.scripts import placed

_PAST_THE_ZIP = """#!/bin/sh
IFS=:
kept=
for place in $PYTHONPATH; do
    case $place in
    */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
    *) kept=$kept${{kept:+:}}$place ;;
    esac
done
unset IFS
export PYTHONPATH="$kept"
exec {python} "$@"
"""
_given: set[str] = set()  # by this module, so that the next session may have another


def choose(local: bool) -> None:
    """Name the interpreter to Spark, unless somebody has."""
    python = (_past_the_zip() if local else None) or sys.executable
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if os.environ.get(name, "") in ("", sys.executable, *_given):
            os.environ[name] = python
    _given.add(python)


def _past_the_zip() -> str | None:
    """A program that is this Python with the installed pyspark; None where Spark is not the one that is installed."""
    found = find_spec("pyspark")
    if found is None or not found.origin or not os.path.isfile(found.origin):
        return None
    home = Path(found.origin).parent
    if os.path.realpath(os.environ.get("SPARK_HOME") or home) != os.path.realpath(home):
        return None
    made = placed("python/python3", _PAST_THE_ZIP.format(python=shlex.quote(sys.executable)))
    return str(made) if made else None
