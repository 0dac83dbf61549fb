"""`fairway sim`: many simulated histories, each checked; a failing seed is replayed and told as a short story."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fairway.errors import BadArgument, NeedMissing
from fairway.testing.bucket import simulate as bucket
from fairway.testing.history import load
from fairway.testing.shrink import Shrunk, Simulate, shrink
from fairway.testing.simulate import STEPS, Outcome, Tally, outcome, simulate, simulate_many

Count = Annotated[int, Parameter(validator=Number(gte=1, lte=10_000_000))]
Kind = Literal["fair", "bucket"]
StoreKind = Literal["memory", "cassandra"]
_STORIES_MAX = 3  # failing seeds that are shrunk; the others are named


def sim(
    *,
    kind: Kind = "fair",
    store: StoreKind = "memory",
    seeds: Count = 100,
    steps: Count = STEPS,
    start: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    jobs: Annotated[int, Parameter(validator=Number(gte=1, lte=256))] = 1,
    save: Path | None = None,
    json: bool = False,
) -> int:
    """Simulate histories under faults and check each of them.

    Parameters
    ----------
    kind
        Which kind of queue is simulated.
    store
        Where a fair queue is kept: in memory, or by the Cassandra store on an imagined cluster.
    seeds
        How many histories; each seed is one history, the same on every machine.
    steps
        How long each of them is, before everything is drained.
    start
        The first seed.
    jobs
        How many processes work at it.
    save
        A folder; the history of every seed that fails is written there (of a single seed: in any case).
    json
        Print one JSON object and nothing else.
    """
    if save is not None:
        _make(save)
    began = monotonic()
    run, outcome_of = _simulator(kind, store)
    tally = _run(range(start, start + seeds), steps, jobs, outcome_of, quiet=json)
    failing = tally.failing[:_STORIES_MAX]
    stories = [story for seed in failing if (story := shrink(seed, steps, run=run)) is not None]
    saved = [] if save is None else _save(save, tally, start, seeds, steps, run)
    seconds = monotonic() - began
    if json:
        print(msgspec.json.encode(_plain(tally, stories, saved, seconds)).decode())
    else:
        _tell(tally, stories, saved, seconds, f"--kind {kind} --store {store} --steps {steps}")
    return 1 if tally.failing else 0


def _simulator(kind: Kind, store: StoreKind) -> tuple[Simulate, Callable[[int, int], Outcome]]:
    """What simulates one seed, and what does so without its history."""
    if kind == "bucket":
        if store != "memory":
            raise BadArgument("store: bucket queues are simulated in memory; leave --store out")
        return bucket.simulate, bucket.outcome_of
    if store == "cassandra":
        try:
            from fairway.testing.imagined import world
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.split(".")[0] != "cassandra":
                raise
            raise NeedMissing(
                "--store cassandra needs the driver: pip install 'fairway[cassandra]'"
            ) from missing
        return world.simulate, world.outcome_of
    return simulate, outcome


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadArgument(
            f"{folder} cannot be made a folder: {error.strerror}; give --save another one"
        ) from None


def _run(
    seeds: range, steps: int, jobs: int, outcome_of: Callable[[int, int], Outcome], *, quiet: bool
) -> Tally:
    tally = Tally()
    columns = (
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[bad]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task("", total=len(seeds), bad="")
        for outcome in simulate_many(seeds, steps, jobs, outcome_of):
            tally.add(outcome)
            bad = f"[red]{len(tally.failing)} failing" if tally.failing else ""
            progress.update(task, advance=1, bad=bad)
    return tally


def _save(folder: Path, tally: Tally, start: int, seeds: int, steps: int, run: Simulate) -> list[str]:
    saved: list[str] = []
    for seed in [start] if seeds == 1 else tally.failing:
        path = folder / f"seed-{seed}.jsonl"
        path.write_bytes(run(seed, steps).recorder.dump())
        load(path)  # what was written can be read
        saved.append(str(path))
    return saved


def _plain(tally: Tally, stories: list[Shrunk], saved: list[str], seconds: float) -> dict[str, Any]:
    return {
        "seeds": tally.seeds,
        "steps": tally.steps,
        "calls": tally.calls,
        "owners": tally.starts,
        "faults": dict(tally.faults),
        "violations": dict(tally.violations),
        "failing": tally.failing,
        "stories": [story.story() for story in stories],
        "saved": saved,
        "seconds": round(seconds, 3),
    }


def _tell(tally: Tally, stories: list[Shrunk], saved: list[str], seconds: float, replay: str) -> None:
    console = Console()
    table = Table(title=f"{tally.seeds:,} simulated histories in {seconds:.1f} s", show_header=False)
    table.add_row("steps", f"{tally.steps:,}")
    table.add_row("calls", f"{tally.calls:,}")
    table.add_row("owners started", f"{tally.starts:,}")
    for name, count in tally.faults.most_common():
        table.add_row(f"fault: {name.replace('_', ' ')}", f"{count:,}")
    for name, count in tally.violations.most_common():
        table.add_row(f"[red]violation: {name}", f"[red]{count:,}")
    table.add_row("failing seeds", f"{len(tally.failing):,}")
    console.print(table)
    for story in stories:
        console.print(story.story(), markup=False, highlight=False, soft_wrap=True)
    for path in saved:
        console.print(
            f"saved {path}; check it with: fairway verify {path}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if tally.failing:
        console.print(f"failing seeds: {', '.join(map(str, tally.failing))}", markup=False)
        again = f"fairway sim {replay} --start {tally.failing[0]} --seeds 1"
        console.print(f"replay one with: {again}", markup=False, highlight=False, soft_wrap=True)
