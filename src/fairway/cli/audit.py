"""`fairway audit`: what a queue's own log proves, in a table and an HTML report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich import box
from rich.markup import escape
from rich.table import Table

from fairway.cli.saying import clean, console
from fairway.cli.sparkling import spark_session
from fairway.errors import BadArgument

if TYPE_CHECKING:
    from fairway.spark.auditing.summary import Summary


def audit(
    url: str,
    /,
    *,
    queue: str = "default",
    report: Path = Path("fairway-audit.html"),
    window_seconds: float | None = None,
    json: bool = False,
) -> int:
    """Audit a queue: lost, duplicate and stale chunks, fairness over time, waiting per tenant. It changes nothing.

    Parameters
    ----------
    url
        The queue's file.
    queue
        The queue in the file.
    report
        Where the HTML report goes.
    window_seconds
        How wide a window of time is; a fortieth of the log if left out.
    json
        Print one JSON object and nothing else.
    """
    if report.is_dir():
        raise BadArgument(f"--report {report} is a folder; name a file, such as {report / 'audit.html'}")
    # What goes wrong is raised here too; Spark's greetings are in nobody's way this way.
    with spark_session("fairway audit", quiet=json, log=Path(os.devnull)) as spark:
        from fairway.spark.auditing.audit import audit as run
        from fairway.spark.auditing.report import write_report
        from fairway.spark.auditing.summary import summary

        shown = summary(queue, run(spark, url, queue=queue, window_seconds=window_seconds, progress=not json))
        written = write_report(report, [shown], note=f"{url}, queue {queue}")
    if json:
        print(msgspec.json.encode(shown.plain() | {"report": str(written)}).decode())
    else:
        screen = console()
        screen.print(table(shown))
        counts = shown.counts
        style = "bold red" if counts.faults else "green"
        screen.print(
            f"[{style}]lost {counts.lost:,}, duplicate {counts.duplicate:,}, stale {counts.stale:,}[/],"
            f" out of order {counts.disorder:,}, of {counts.chunks:,} chunks"
        )
        screen.print(f"[green]The report:[/] {escape(str(written))}", soft_wrap=True)
    return 1 if shown.counts.faults else 0


def table(shown: Summary) -> Table:
    """The tenants, the largest first."""
    made = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=f"Tenants of {escape(clean(shown.name))}",
        title_justify="left",
    )
    made.add_column("tenant")
    for head in ("chunks", "done", "retries", "wait p50", "p99", "run p50", "p99", "lag"):
        made.add_column(head, justify="right")
    for row in shown.tenants:
        times = (row["wait_p50"], row["wait_p99"], row["run_p50"], row["run_p99"])
        made.add_row(
            escape(clean(row["tenant"])) or "(no name)",
            f"{row['chunks']:,}",
            f"{row['completed']:,}",
            f"{row['retries'] or 0:,}",
            *("" if time is None else f"{time:.2f} s" for time in times),
            "" if row["lag"] is None else f"{row['lag']:.1f}",
        )
    return made
