"""The table of what the long runs showed, written into docs/reliability.md from the rows that they left beside it.

Guards: no figure in that table was typed by a person; the rest of the page is left as it is.
`python -m tools.proof` writes it; tools/proof.sh does so at the end of `make proof`. `python -m tools.proof NAME` makes
a row of what `fairway sim --json` printed, which it reads.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairway.testing.history import History, save

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
HISTORIES = ROOT / "docs" / "histories"
ROWS = HISTORIES / "rows"  # kept with the project, so that a part can be run again and the rest stays
LONG = ROOT / "build" / "proof" / "histories"
HISTORY_BYTES_MAX = (
    1_000_000  # a longer one stays with the rows: whoever clones the project should not wait for it
)
BEGIN, END = "<!-- proof:begin -->", "<!-- proof:end -->"

Row = dict[str, Any]


def write_row(
    name: str,
    *,
    operations: int,
    lost: int,
    seconds: int,
    faults: int = 0,
    seed: object = "",
    note: str = "",
    passed: bool = True,
    history: History | None = None,
    folder: Path = ROWS,
    histories: Path = HISTORIES,
) -> Path:
    """Leave the row of one run, with the commit, the day and the machine; a row of the same name is replaced.

    Its history lies beside the page, so that whoever reads it can check it again.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    published = history is not None and _publish(history, LONG, histories, f"{slug}.jsonl.xz")
    row: Row = {
        "name": name,
        "operations": operations,
        "faults": faults,
        "lost": lost,
        "seed": str(seed),
        "note": note,
        "passed": passed,
        "history": f"{slug}.jsonl.xz" if published else "",
        "seconds": seconds,
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slug}.json"
    path.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    return path


def _commit() -> str:
    """What the tree is; rows and pages that other long runs wrote meanwhile do not change what ran."""

    def git(*asked: str) -> str:
        return subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    commit = git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{commit}-dirty" if git("status", "--porcelain", "-uno", "--", ".", ":!docs") else commit


def _publish(history: History, kept: Path, published: Path, name: str) -> bool:
    """Keep a history; one that is short is put beside the page, which is told."""
    save(history, kept / name)
    short = (kept / name).stat().st_size <= HISTORY_BYTES_MAX
    if short:
        published.mkdir(parents=True, exist_ok=True)
        shutil.move(kept / name, published / name)
    return short


def write_simulated(name: str, told: Row, folder: Path = ROWS) -> Path:
    """Leave the row of a simulation, from what `fairway sim --json` printed."""
    return write_row(
        name,
        operations=told["calls"],
        faults=sum(told["faults"].values()),
        lost=len(told["failing"]),
        seed=f"{told['seeds']:,} seeds",
        seconds=round(told["seconds"]),
        passed=not told["failing"],
        folder=folder,
    )


def rows_of(folder: Path) -> list[Row]:
    """Every row that was left, by name."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(found, key=lambda row: row["name"])


def table(rows: list[Row]) -> str:
    """The rows as a table, with their sum, and where they come from."""
    lines = [
        "| what | operations acknowledged | faults | lost or wrong | seeds | seconds | commit, date |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        note = ("" if row["passed"] else " **failed**") + (f" ({row['note']})" if row["note"] else "")
        if file := row.get("history"):
            note += f" [history](histories/{file})"
        lines.append(
            f"| {row['name']}{note} | {row['operations']:,} | {row['faults']:,} | {row['lost']:,} "
            f"| {row['seed']} | {row['seconds']:,} | {row['commit']}, {row['date']} |"
        )
    sums = {field: sum(row[field] for row in rows) for field in ("operations", "faults", "lost", "seconds")}
    lines.append(
        f"| **all** | **{sums['operations']:,}** | **{sums['faults']:,}** | **{sums['lost']:,}** | "
        f"| {sums['seconds']:,} | |"
    )
    machines = sorted({row["machine"] for row in rows})
    return "\n".join([*lines, "", f"Run on: {'; '.join(machines)}."])


def filled(page: str, rows: list[Row]) -> str:
    """The page with the table between its two marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page has no {BEGIN} followed by {END}; put them where the table belongs")
    return f"{head}{BEGIN}\n\n{table(rows)}\n\n{END}{tail}"


def main() -> int:
    if sys.argv[1:]:
        write_simulated(" ".join(sys.argv[1:]), json.load(sys.stdin))
        return 0
    rows = rows_of(ROWS) if ROWS.is_dir() else []
    if not rows:
        print("There is no row in docs/histories/rows yet; `make proof` leaves them there.")
        return 1
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
