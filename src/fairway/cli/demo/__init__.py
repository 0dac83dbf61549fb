"""`fairway demo`: the main job, on Spark; or the same story in one process."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fairway.cli import saying


def run(
    *,
    chunks: int | None = None,
    dir: Path = Path("fairway-demo"),
    quick: bool = False,
    seed: int = 1,
    embedded: bool = False,
    json: bool = False,
) -> int:
    """Watch one whale and many small tenants share a queue: OldestFirst against Fair, on real files.

    The whole pipeline runs on Spark: produce, process under both strategies, collect, check every row against
    plain Spark, audit, report. About two minutes on two cores.

    Parameters
    ----------
    chunks
        How many chunks there are in all; 480 on Spark, 1,000,000 embedded.
    dir
        Where the queues, the report and the pictures go; files of an earlier demo are replaced.
    quick
        A small story.
    seed
        Chooses the sizes of the tenants.
    embedded
        The same story without Spark: consumers in one process, a million chunks, no payloads.
    json
        Print what was measured as JSON at the end, and all that is to be watched on standard error.
    """
    from fairway.cli.demo import embedded as plain
    from fairway.cli.sparkling import missing

    console = Console(stderr=json)
    lacking = None if embedded else missing()
    if lacking is not None:
        console.print(
            f"The demo of the whole pipeline runs on Spark, and {lacking}\n"
            "Meanwhile the same story without Spark; `fairway demo --embedded` tells it at once.\n",
            markup=False,
            highlight=False,
        )
    if embedded or lacking is not None:
        told = plain.embedded(
            _asked(chunks, plain.QUICK_CHUNKS if quick else plain.CHUNKS), dir, seed, console
        )
    else:
        from fairway.cli.demo import pipeline

        told = pipeline.pipeline(
            _asked(chunks, pipeline.QUICK_CHUNKS if quick else pipeline.CHUNKS), dir, seed, console
        )
    if json:
        saying.say_json(told)
    return 1 if told["problems"] else 0


def _asked(chunks: int | None, unless: int) -> int:
    return unless if chunks is None else chunks
