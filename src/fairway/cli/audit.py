"""`fairway audit`: what a queue's own log proves, in a table and an HTML report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich import box
from rich.markup import escape
from rich.table import Table

from fairway.cli.places import HERE, Place, Where
from fairway.cli.saying import clean, console
from fairway.cli.sparkling import spark_session
from fairway.errors import BadArgument

if TYPE_CHECKING:
    from fairway.spark.auditing.summary import Summary


def audit(
    place: Place,
    /,
    *,
    report: Path = Path("fairway-audit.html"),
    window_seconds: float | None = None,
    where: Where = HERE,
) -> int:
    """Audit a queue: lost, duplicate and stale chunks, fairness over time, waiting per tenant. It changes nothing.

    Parameters
    ----------
    report
        Where the HTML report goes.
    window_seconds
        How wide a window of time is; a fortieth of the log if left out.
    """
    if report.is_dir():
        raise BadArgument(f"--report {report} is a folder; name a file, such as {report / 'audit.html'}")
    shown, written = audited(place, where, report, window_seconds)
    if where.json:
        print(msgspec.json.encode(shown.plain() | {"report": str(written)}).decode())
    else:
        _print(shown, written)
    return 1 if shown.counts.faults else 0


def audited(place: str, where: Where, report: Path, window_seconds: float | None) -> tuple[Summary, Path]:
    """What the log of a queue proves, and the file of the report."""
    # What goes wrong is raised here too; Spark's greetings are in nobody's way this way.
    with spark_session("fairway audit", quiet=where.json, log=Path(os.devnull)) as spark:
        from fairway.spark.auditing.audit import audit as run
        from fairway.spark.auditing.report import write_report
        from fairway.spark.auditing.summary import summary

        told = run(spark, place, queue=where.queue, window_seconds=window_seconds, progress=not where.json)
        shown = summary(where.queue, told)
        return shown, write_report(report, [shown], note=f"{place}, queue {where.queue}")


def _print(shown: Summary, written: Path) -> None:
    screen = console()
    screen.print(table(shown))
    counts = shown.counts
    style = "bold red" if counts.faults else "green"
    screen.print(
        f"[{style}]lost {counts.lost:,}, duplicate {counts.duplicate:,}, stale {counts.stale:,}[/],"
        f" out of order {counts.disorder:,}, of {counts.chunks:,} chunks"
    )
    screen.print(f"[green]The report:[/] {escape(str(written))}", soft_wrap=True)


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
