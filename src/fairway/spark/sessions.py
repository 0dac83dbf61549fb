"""A Spark session with what Fairway needs: a Java, this Python for its workers, quiet settings.

Guards: settings that the caller gives are never replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairway.spark.archive import option
from fairway.spark.java import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short jobs on few cores: less compiling and collecting
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}


def session(
    master: str | None = "local[2]", *, app: str = "fairway", conf: dict[str, str] | None = None
) -> SparkSession:
    """The running session, or a new one; `conf` adds settings. Any other session works with Fairway too.

    `master=None` leaves the master to spark-submit or the environment.
    """
    local = master is not None and master.startswith("local")
    java = prepare(local)
    from pyspark.sql import SparkSession

    builder = SparkSession.Builder().appName(app)
    settings = dict(_SETTINGS)
    if master is not None:
        builder = builder.master(master)
    if local:
        options = LOCAL + option(java)
        settings |= _LOCAL_SETTINGS
        settings |= {"spark.driver.extraJavaOptions": options, "spark.executor.extraJavaOptions": options}
    for name, value in (settings | (conf or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def end(spark: SparkSession, seconds: float) -> None:
    """Stop a session and its JVM, and wait so long for that: the next session has a JVM of its own."""
    from pyspark import SparkContext

    spark.stop()
    held: Any = SparkContext
    gateway, held._gateway, held._jvm = held._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            if process.stdin:
                process.stdin.close()
            process.wait(seconds)
