"""A class-data archive: classes that one JVM has loaded and checked, for the next ones of local sessions to map.

Guards: an archive is used only with the Java and the Spark it was made with, and is whole or not there.
`fairway dev spark` makes it, once, by running a small job; local sessions then start in half the time.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fairway.errors import BadArgument
from fairway.spark.java import prepare

if TYPE_CHECKING:
    from pyarrow import Table
    from pyspark.sql import SparkSession

_FOLDER = Path(sys.prefix) / "share" / "fairway" / "java"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # else a JVM names every class that it leaves out
_END_SECONDS = 300.0  # a JVM writes its classes down when it ends


def option(java: str) -> str:
    """What a JVM of local Spark is told so that it uses the archive; nothing if there is none."""
    path = _place(java)
    return f" -XX:SharedArchiveFile={path} {_QUIET}" if path.is_file() else ""


def make() -> Path | None:
    """Make the archive unless it is there. None: this Java cannot."""
    from fairway.spark.sessions import LOCAL, end, session

    path = _place(prepare())
    if path.is_file():
        return path
    if len(str(path).split()) > 1:
        raise BadArgument(
            f"{path}: Spark cuts options at white space; use a Python environment in another place"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadArgument(
            f"{path.parent} cannot be made ({error}); use a Python environment of your own"
        ) from error
    half = path.with_suffix(f".{os.getpid()}")
    dumping = f"{LOCAL} -XX:ArchiveClassesAtExit={half} {_QUIET}"
    try:
        spark = session(app="fairway archive", conf={"spark.driver.extraJavaOptions": dumping})
        with tempfile.TemporaryDirectory() as folder:
            _use(spark, folder)
        end(spark, _END_SECONDS)
        if not half.is_file():
            return None
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    return path


def _place(java: str) -> Path:
    """Where the archive of a Java and this Spark is. A JVM compares the jars themselves."""
    import pyspark

    program = os.path.realpath(java)
    known = (program, str(os.stat(program).st_mtime_ns), pyspark.__version__, pyspark.__file__)
    return _FOLDER / f"spark-{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}.jsa"


def _use(spark: SparkSession, folder: str) -> None:
    """Run what most jobs run, so that its classes are loaded."""
    import fairway.spark

    url = os.path.join(folder, "q.db")
    rows = spark.range(4).selectExpr("cast(id % 2 as string) tenant", "id")
    fairway.spark.produce(rows, url, tenant_column="tenant", progress=False)
    fairway.spark.process(spark, url, fn=_same, schema="id long", progress=False)
    fairway.spark.collect(spark, url).count()
    fairway.spark.audit(spark, url, progress=False)


def _same(table: Table) -> Table:
    return table.select(["id"])
