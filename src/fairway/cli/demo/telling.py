"""What the demo says: the bars while it runs, the table at the end, and how to play on."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from fairway.cli.demo.racing import Run, Told
from fairway.cli.demo.story import SMALL_TENANTS, WHALE

_GROUPS: Final = (WHALE, "small tenants, median", "small tenants, worst")


class _Speed(ProgressColumn):
    """Chunks per second: of late while it runs, of the whole run at its end."""

    def render(self, task: Task) -> Text:
        speed = task.completed / task.finished_time if task.finished_time else task.speed
        return Text(f"{speed or 0:>7,.0f} chunks/s", style="cyan")


def bars(console: Console) -> Progress:
    """A bar per run, with its speed and how many small tenants have got everything."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        _Speed(),
        TextColumn("[green]{task.fields[served]:>2}/{task.fields[tenants]} small served"),
        TimeElapsedColumn(),
        console=console,
    )


def bar(progress: Progress, strategy: str, chunks: int) -> Told:
    """A new bar; call what it gives with what was done."""
    task = progress.add_task(strategy, total=chunks, served=0, tenants=SMALL_TENANTS)
    served = 0

    def told(more: int, tenants: int) -> None:
        nonlocal served
        served += tenants
        progress.update(task, advance=more, served=served)

    return told


def table(oldest: Run, fair: Run) -> Table:
    """Waiting under both, per group, with Jain's index below."""
    made = Table(box=box.SIMPLE_HEAD, title="What a chunk waited, on average", title_justify="left")
    made.add_column("")
    for strategy in (oldest.strategy, fair.strategy):
        made.add_column(strategy, justify="right", no_wrap=True)
    made.add_column("Fair against OldestFirst", justify="right", style="bold")
    for in_seconds in (False, True):
        before, after = oldest.waits.means(WHALE, in_seconds), fair.waits.means(WHALE, in_seconds)
        for group, then, now in zip(_GROUPS, before, after, strict=True):
            shown = (f"{then:,.1f} s", f"{now:,.1f} s") if in_seconds else (f"{then:,.0f}*", f"{now:,.0f}*")
            made.add_row(group, *shown, ratio(then, now))
        made.add_section()
    made.add_row("Jain's index**", f"{oldest.waits.jain:.3f}", f"{fair.waits.jain:.3f}")
    made.caption = (
        "*  in chunks handed out to anybody since the tenant submitted\n"
        "** of what each was handed while all of them waited: 1 is the same for all,"
        f" {1 / (SMALL_TENANTS + 1):.3f} is all for one"
    )
    made.caption_justify = "left"
    return made


def ratio(before: float, after: float) -> str:
    """How much less (or more) there is after."""
    if f"{before:,.1f}" == f"{after:,.1f}":
        return "the same"
    if before >= after:
        return f"{before / after:,.1f} x less"
    return f"{after / before:,.1f} x more"


def measured(run: Run) -> dict[str, Any]:
    """What a run was like, for programs."""
    whale, median, worst = run.waits.means(WHALE, True)
    waits = {"whale": whale, "small_median": median, "small_worst": worst}
    return {"name": run.strategy, "wait_seconds": waits, "jain": run.waits.jain}


def problems(runs: tuple[Run, ...]) -> list[str]:
    """Every way in which a run was not what it should be."""
    return [f"{run.strategy}: {problem}" for run in runs for problem in run.problems]


def verdict(chunks: int, runs: tuple[Run, ...]) -> str:
    """One line: whether everything was as promised."""
    if found := problems(runs):
        return "[bold red]Not as promised:[/] " + escape("; ".join(found))
    return (
        f"[green]Checked:[/] in both runs each of the {chunks:,} chunks was completed exactly once,"
        " and at rest nothing waits, is leased or is dead."
    )


def play_on(folder: Path) -> tuple[str, ...]:
    """Three commands that go on from here, as a shell takes them."""
    python, command = (
        short(Path(sys.executable).with_name(name)) for name in (Path(sys.executable).name, "fairway")
    )
    opened = f"import fairway; q = fairway.open({json.dumps(str(folder / 'fair.db'))})"
    submit = f'{opened}; q.submit(chunks=1000, tenant="whale"); q.put(b"hi", tenant="me"); print(q.explain())'
    reserve = f"{opened}; print([lease.tenant for lease in q.reserve(max=10)]); print(q.stats())"
    return (
        shlex.join([python, "-c", submit]),
        shlex.join([python, "-c", reserve]),
        shlex.join(
            [
                command,
                "demo",
                "--embedded",
                "--chunks",
                "100000",
                "--seed",
                "2",
                "--dir",
                str(folder / "another"),
            ]
        ),
    )


def short(path: Path) -> str:
    """The path as one would type it here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
