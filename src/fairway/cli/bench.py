"""`fairway bench`: a measurement of the source tree, run from here.

Guards: where there is no source tree, or no such bench, the answer says what to do.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairway.cli import saying
from fairway.errors import BadArgument


def bench(
    name: str | None = None,
    /,
    *options: str,
    quick: bool = False,
    json: bool = False,
) -> int:
    """Measure Fairway beside its peers, in a checkout of its source; without a name, list what there is.

    Peers that are missing are left out, and named: `make bench` brings those that are Python packages; beanstalkd,
    redis-server and postgresql are packages of Debian.

    Parameters
    ----------
    name
        What to measure.
    options
        More options of that bench, after --; `fairway bench NAME -- --help` tells them.
    quick
        A run of seconds, that shows it works and not how fast.
    json
        Print one JSON object and nothing else.
    """
    benches = {path.stem: path for path in _benches()}
    if name is None:
        told = {one: _sentence(path) for one, path in benches.items()}
        if json:
            saying.say_json(told)
        else:
            saying.table(("name", "what it measures"), told.items())
        return 0
    if name not in benches:
        raise BadArgument(f"there is no bench {name!r}; there are: {', '.join(benches)}")
    command = [sys.executable, str(benches[name]), *(["--quick"] if quick else []), *options]
    if not json:
        return min(1, abs(subprocess.run(command).returncode))
    with tempfile.TemporaryDirectory() as folder:
        wrote = Path(folder) / "found.json"
        ended = subprocess.run([*command, "--json", str(wrote)], stdout=subprocess.DEVNULL).returncode
        if ended or not wrote.exists():
            return 1
        saying.say_json(msgspec.json.decode(wrote.read_bytes()))
    return 0


def _benches() -> Iterator[Path]:
    """The benches of the source tree around this package, or around the working directory."""
    for root in (*Path(__file__).resolve().parents[3:4], Path.cwd()):
        if (root / "bench" / "figures").is_dir() and (root / "pyproject.toml").is_file():
            yield from sorted((root / "bench").glob("*.py"))
            return
    raise BadArgument(
        "benches are in Fairway's source tree, and this is an installed package: get the source, run"
        " `make setup` there, and `.venv/bin/fairway bench`"
    )


def _sentence(path: Path) -> str:
    """What a bench says of itself first."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.splitlines()[0] if said else ""
