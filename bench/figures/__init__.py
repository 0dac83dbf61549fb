"""What a bench found, as tables: printed for people while it runs, written as JSON for `make bench`.

Guards: every bench takes --quick and --json, and what it writes says when, where and under which load it was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

import fairway

Cell = str | int | float | None
FIRST_COLUMNS, COLUMNS = 56, 11  # how wide a row is printed


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The options that every bench has; it adds its own."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    made.add_argument(
        "--quick", action="store_true", help="a run of seconds, that shows it works and not how fast"
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    return made


def shown(cell: Cell) -> str:
    """A cell as people read it: three digits that count."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    size = abs(cell)
    if size == 0 or size >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.1f}" if size >= 10 else f"{cell:.2f}" if size >= 1 else f"{cell:.3g}"


def times(ours: float, theirs: float) -> str:
    """How many times as much."""
    if not theirs:
        return ""
    ratio = ours / theirs
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:.2f} x" if ratio >= 0.1 else f"{ratio:.2g} x"


@dataclass
class Table:
    """Rows under their columns, printed as they come; the first column says what the others are of."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"\n{self.title}", flush=True)
        self._print(self.columns)

    def add(self, *cells: Cell) -> None:
        assert len(cells) == len(self.columns), (cells, self.columns)
        self.rows.append(list(cells))
        self._print([shown(cell) for cell in cells])

    def _print(self, cells: list[str]) -> None:
        first, *rest = cells
        wide = (max(COLUMNS, len(name) + 1) for name in self.columns[1:])
        print(
            f"{first:{FIRST_COLUMNS}}" + "".join(f" {c:>{w}}" for c, w in zip(rest, wide, strict=True)),
            flush=True,
        )


class Figures:
    """All that one run of a bench found."""

    def __init__(self, bench: str, given: argparse.Namespace) -> None:
        self.bench, self._json = bench, given.json
        self.options = {
            name: value
            for name, value in vars(given).items()
            if name != "json" and isinstance(value, str | int | float | list)
        }
        self.tables: list[Table] = []
        self.notes: list[str] = []
        self.left_out: dict[str, str] = {}  # peers that are missing here, and what they lack
        self.versions = {
            "Fairway": fairway.__version__,
            "Python": platform.python_version(),
            "SQLite": apsw.sqlite_lib_version(),
        }
        self._began, self._clock = datetime.now(UTC), time.perf_counter()
        self._load, self._cores = os.getloadavg()[0], cores()

    def table(self, title: str, *columns: str) -> Table:
        made = Table(title, list(columns))
        self.tables.append(made)
        return made

    def note(self, sentence: str) -> None:
        """What the figures do not say themselves."""
        self.notes.append(sentence)
        print(sentence, flush=True)

    def leave_out(self, peer: str, why: str) -> None:
        """A peer is not measured here; `make bench` does not write over a table that has it."""
        self.left_out[peer] = why
        self.note(f"Left out here: {peer} ({why}).")

    def end(self) -> None:
        """Write what was found, if it was asked for."""
        if self._json is not None:
            self._json.write_text(json.dumps(self.document(), indent=1) + "\n")

    def document(self) -> dict[str, Any]:
        return {
            "bench": self.bench,
            "date": self._began.strftime("%Y-%m-%d %H:%M"),
            "seconds": round(time.perf_counter() - self._clock, 1),
            "load": [round(self._load, 1), round(os.getloadavg()[0], 1)],
            "stolen": stolen(self._cores, cores()),
            "machine": machine(),
            "versions": self.versions,
            "options": self.options,
            "notes": self.notes,
            "left_out": self.left_out,
            "tables": [
                {
                    "title": one.title,
                    "columns": one.columns,
                    "rows": one.rows,
                    "shown": [[shown(cell) for cell in row] for row in one.rows],
                }
                for one in self.tables
            ],
        }


def cores() -> list[int]:
    """What the cores have done since the machine started, in ticks of each kind; nothing where nobody counts."""
    try:
        with open("/proc/stat", encoding="ascii") as stat:
            return [int(ticks) for ticks in stat.readline().split()[1:]]
    except OSError:
        return []


def stolen(before: list[int], after: list[int]) -> float | None:
    """The share of the time in which the machine had work and its host gave the cores to others."""
    if len(before) < 8 or len(after) < 8:
        return None
    spent = [late - early for early, late in zip(before, after, strict=True)]
    # All but idle and waiting for a disk; guests are counted in the first two.
    asked = sum(spent[:3]) + sum(spent[5:8])
    return round(spent[7] / asked, 3) if asked > 0 else 0.0


def machine() -> str:
    """The machine in a few words."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    memory = f", {kib / 2**20:.0f} GiB" if kib else ""
    return f"{os.cpu_count()} cores, {model}{memory}, {platform.system()} {platform.release().split('-')[0]}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def memory_mib() -> float:
    """The resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
