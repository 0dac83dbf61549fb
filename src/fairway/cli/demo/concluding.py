"""What the demo on Spark says: the opening, the table, the verdict, the report, and how to play on."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table

from fairway.cli.demo import dataset
from fairway.cli.demo.telling import ratio, short

if TYPE_CHECKING:
    from fairway.cli.demo.pipeline import Served
    from fairway.spark.auditing.summary import Summary


def opening(tenants: Sequence[tuple[str, int]], dir: Path) -> str:
    """The story in a few lines."""
    whale, small = tenants[0][1], sum(chunks for _, chunks in tenants[1:])
    return (
        f"A whale submits {whale:,} chunks of {dataset.CHUNK_ROWS} rows to a queue on SQLite;"
        f" a moment later {len(tenants) - 1} small tenants submit {small:,}."
        " Spark works on all of them, first under OldestFirst, then under Fair."
        " Every row is compared with plain Spark, and the queue's own log is audited."
        f"\nFiles go to {escape(str(dir))}.\n"
    )


def summaries(served: Sequence[Served]) -> list[Summary]:
    """The audits as plain values."""
    from fairway.spark.auditing.summary import summary

    return [summary(one.strategy, one.audit) for one in served]


def report(served: Sequence[Served], shown: Sequence[Summary], path: Path, note: str) -> Path:
    """Write the HTML report."""
    from fairway.spark.auditing.report import write_report

    checks = [(one.differing == 0, _compared(one)) for one in served]
    return write_report(path, shown, checks=checks, note=note)


def _compared(one: Served) -> str:
    if one.differing:
        return f"{one.strategy}: {one.differing:,} rows differ from plain Spark"
    return f"{one.strategy}: {one.rows:,} rows equal to plain Spark"


def table(shown: Sequence[Summary]) -> Table:
    """Waiting under both, Jain's index, the worst lag."""
    before, after = shown
    made = Table(box=box.SIMPLE_HEAD, title="What a chunk waited, on average", title_justify="left")
    made.add_column("")
    for one in shown:
        made.add_column(one.name, justify="right", no_wrap=True)
    made.add_column("Fair against OldestFirst", justify="right", style="bold")
    for name, waits in (
        (before.largest, [one.wait(before.largest) for one in shown]),
        ("small tenants, median", [one.small_wait for one in shown]),
    ):
        then, now = (wait or 0.0 for wait in waits)
        made.add_row(name, f"{then:.1f} s", f"{now:.1f} s", ratio(then, now) if then and now else "")
    made.add_section()
    made.add_row("Jain's index*", *(f"{one.jain:.2f}" if one.jain is not None else "" for one in shown))
    made.add_row("worst lag, in chunks**", f"{before.lag:.1f}", f"{after.lag:.1f}")
    made.add_row("chunks per second", f"{before.per_second:.1f}", f"{after.per_second:.1f}")
    made.caption = (
        "*  how evenly those who waited were served: 1 is the same for all, near 0 is all for one\n"
        "** how far behind its fair share anybody ever was"
    )
    made.caption_justify = "left"
    return made


def problems(served: Sequence[Served], shown: Sequence[Summary]) -> list[str]:
    """Every way in which the job was not what it should be."""
    found = [_compared(one) for one in served if one.differing]
    for one in shown:
        counts = one.counts
        if counts.faults:
            found.append(
                f"{one.name}: lost {counts.lost}, duplicate {counts.duplicate}, stale {counts.stale},"
                f" out of order {counts.disorder}"
            )
        if counts.completed != counts.chunks:
            found.append(f"{one.name}: {counts.completed:,} of {counts.chunks:,} chunks are completed")
    return found


def verdict(served: Sequence[Served], shown: Sequence[Summary], seconds: float) -> str:
    """One line: whether everything was as promised."""
    found = problems(served, shown)
    if found:
        return "[bold red]Not as promised:[/] " + escape("; ".join(found))
    return (
        f"[green]Checked in {seconds:.0f} s:[/] {sum(one.rows for one in served):,} result rows equal to plain Spark,"
        " row for row; [bold]lost 0, duplicate 0, stale 0[/]."
    )


def play_on(dir: Path) -> tuple[str, ...]:
    """Commands that go on from here, as a shell takes them."""
    python, command = (
        short(Path(sys.executable).with_name(name)) for name in (Path(sys.executable).name, "fairway")
    )
    fair = str(dir / "fair.db")
    look = (
        f"import fairway.spark as f; f.collect(f.session(), {json.dumps(fair)}, schema={json.dumps(dataset.RESULT)})"
        '.groupBy("tenant").count().show()'
    )
    more = (
        f"import fairway; q = fairway.open({json.dumps(fair)});"
        ' q.submit(chunks=9, tenant="whale"); q.put(b"hi", tenant="me"); print(q.explain())'
    )
    return (
        shlex.join([command, "audit", fair, "--report", str(dir / "audit.html")]),
        shlex.join([python, "-c", look]),
        shlex.join([python, "-c", more]),
        shlex.join([command, "demo", "--embedded", "--dir", str(dir / "embedded")]),
    )
