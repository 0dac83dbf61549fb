"""The story without Spark: a whale and twenty small tenants, served oldest first and then fairly, in one process."""

from __future__ import annotations

import os
from pathlib import Path
from platform import machine, python_version
from time import strftime
from typing import Any

from rich.console import Console
from rich.markup import escape

from fairway import Fair, OldestFirst
from fairway.cli.demo import telling
from fairway.cli.demo.racing import Run, race
from fairway.cli.demo.story import SMALL_TENANTS, story

CHUNKS = 1_000_000
QUICK_CHUNKS = 20_000


def embedded(chunks: int, dir: Path, seed: int, console: Console) -> dict[str, Any]:
    """Tell it with queues in `dir`; gives what was measured, and what was not as promised."""
    arrivals = story(chunks, seed)
    total, whale = sum(arrival.chunks for arrival in arrivals), arrivals[0]
    dir.mkdir(parents=True, exist_ok=True)
    console.print(
        f"A whale submits {whale.chunks:,} chunks. A moment later {SMALL_TENANTS} small tenants submit"
        f" {total - whale.chunks:,} between them.\n"
        f"Who waits for whom? Each run works on a SQLite file in {escape(str(dir))}.\n"
    )
    with telling.bars(console) as progress:
        oldest = race(
            dir / "oldest-first.db", OldestFirst(), arrivals, telling.bar(progress, "OldestFirst", total)
        )
        fair = race(dir / "fair.db", Fair(), arrivals, telling.bar(progress, "Fair", total))
    console.print()
    console.print(telling.table(oldest, fair))
    console.print(telling.verdict(total, (oldest, fair)))
    console.print(_picture(oldest, fair, total, dir))
    console.print("\nPlay on: submit some more, see who is next, tell another story.")
    for command in telling.play_on(dir):
        console.print(f"  $ {command}", soft_wrap=True, markup=False, highlight=False)
    return {
        "chunks": total,
        "folder": str(dir),
        "strategies": [telling.measured(run) for run in (oldest, fair)],
        "problems": telling.problems((oldest, fair)),
    }


def _picture(oldest: Run, fair: Run, chunks: int, folder: Path) -> str:
    try:
        from fairway.cli.demo.picture import draw
    except ImportError:
        return "[yellow]No picture:[/] it needs matplotlib; install it with `pip install 'fairway\\[plots]'`."
    note = (
        f"{chunks:,} chunks, embedded on SQLite; {os.cpu_count()} cores ({machine()}),"
        f" Python {python_version()}, {strftime('%Y-%m-%d')}. Made by `fairway demo`."
    )
    made = draw(oldest.waits, fair.waits, note, folder)
    return "[green]The picture:[/] " + escape(", ".join(str(path) for path in made))
