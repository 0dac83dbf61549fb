"""The tables of what the long runs showed, written into docs/reliability.md from the rows that they left beside it.

Guards: no figure in those tables was typed by a person; a run that failed has no good row; the rest of the page is
left as it is. `python -m tools.proof` writes it; tools/proof.sh does so at the end of `make proof`.
`python -m tools.proof --seeds N NAME` makes a row of what `fairway sim --json` printed of N seeds, which it reads: a
line, or one for each part. `python -m tools.proof --died FILE SINCE` is for a file of tests that took its process with
it: of the rows of the tests that it reads, those failed that are older than the file SINCE.
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

from fairway.cli.verify import checker_of
from fairway.testing.history import History, load, save

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
    lost: int | None,
    seconds: int,
    faults: int = 0,
    seed: object = "",
    note: str = "",
    passed: bool = True,
    simulated: bool = False,
    test: str = "",
    history: History | None = None,
    part: str = "",
    last: History | None = None,
    folder: Path = ROWS,
    histories: Path = HISTORIES,
    kept: Path = LONG,
) -> Path:
    """Leave the row of one run, with the commit, the day and the machine; a row of the same name is replaced.

    `history` lies beside the page, so that whoever reads it can check it again; `part` says of how much it tells.
    `last` is the one that a run which failed stopped at. `lost` is None if a run failed before it could count.
    """
    slug = _slug(name)
    published = _publish(history, last, passed, kept, histories, f"{slug}.jsonl.xz")
    row: Row = {
        "name": name,
        "operations": operations,
        "faults": faults,
        "lost": lost,
        "seed": str(seed),
        "note": note,
        "passed": passed,
        "simulated": simulated,
        "test": test,
        "history": f"{slug}.jsonl.xz" if published else "",
        "part": part if published else "",
        "seconds": seconds,
        "commit": commit_here(),
        "here": True,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
    }
    return _write(row, folder)


def write_failed(
    test: str,
    why: str,
    *,
    seconds: int = 0,
    told: frozenset[str] = frozenset(),
    since: float = float("inf"),
    chosen: frozenset[str] = frozenset(),
    folder: Path = ROWS,
) -> list[Path]:
    """Leave failed rows for a test that did not come to tell its figures, in the place of those that it left last.

    `test` is its id, or a file of tests, of which only some may have been `chosen`. Rows that it `told` now, or that
    were written after `since`, stay.
    """
    old = [row for row in rows_of(folder) if row["test"] == test or row["test"].startswith(f"{test}::")]
    if chosen:
        old = [row for row in old if row["test"] in chosen]
    stale = [
        row for row in old if row["name"] not in told and _place(row["name"], folder).stat().st_mtime < since
    ]
    rows = [(row["name"], row["test"]) for row in stale]
    if not old and not told:
        rows = [(test.rpartition("::")[2].removeprefix("test_").replace("_", " "), test)]
    figures: Row = {"operations": 0, "lost": None, "seconds": seconds, "note": why, "passed": False}
    return [write_row(name, test=of, **figures, folder=folder) for name, of in rows]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _place(name: str, folder: Path) -> Path:
    return folder / f"{_slug(name)}.json"


def _write(row: Row, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = _place(row["name"], folder)
    path.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    return path


def _git(*asked: str) -> subprocess.CompletedProcess[str] | None:
    """What git says; None where there is no git, or this is no clone."""
    try:
        done = subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return None if "not a git repository" in done.stderr else done


def commit_here() -> str:
    """What the tree is; rows and pages that other long runs wrote meanwhile do not change what ran."""
    head = _git("rev-parse", "--short", "HEAD")
    if head is None or not head.stdout.strip():
        return "unknown"
    changed = _git("status", "--porcelain", "-uno", "--", ".", ":!docs")
    return head.stdout.strip() + ("-dirty" if changed is not None and changed.stdout.strip() else "")


def is_here(commit: str) -> bool | None:
    """Whether a commit led to this tree; None if that cannot be told, as in a shallow clone or without git."""
    shallow = _git("rev-parse", "--is-shallow-repository")
    if shallow is None or shallow.stdout.strip() != "false" or commit == "unknown":
        return None
    asked = _git("merge-base", "--is-ancestor", commit.removesuffix("-dirty"), "HEAD")
    return asked is not None and asked.returncode == 0


def look_for_commits(folder: Path) -> None:
    """Write into each row whether its commit led to this tree; where that cannot be told, it stays as it was."""
    for row in rows_of(folder):
        here = is_here(row["commit"])
        if here is not None and here != row["here"]:
            _write(row | {"here": here}, folder)


def _publish(
    history: History | None, last: History | None, passed: bool, kept: Path, published: Path, name: str
) -> bool:
    """Keep a history; one that is short and that anyone will find nothing wrong with is put beside the page."""
    (published / name).unlink(missing_ok=True)  # what lies there is of the row that is replaced
    shown = history if passed else last or history
    if shown is None:
        return False
    path = kept / name
    save(shown, path)
    if not passed or path.stat().st_size > HISTORY_BYTES_MAX:
        return False
    again = load(path)  # as who fetches it will read it, without what a storm's own judge knew
    if checker_of(again).check_history(again):
        return False
    published.mkdir(parents=True, exist_ok=True)
    shutil.move(path, published / name)
    return True


def write_simulated(name: str, parts: list[Row], wanted: int = 0, folder: Path = ROWS) -> bool:
    """Leave the row of a simulation, from what `fairway sim --json` printed: one object, or one for each part of it.

    It passed if no history failed, and if as many ran as were `wanted`.
    """
    seeds, failing = sum(part["seeds"] for part in parts), sum(len(part["failing"]) for part in parts)
    steps = round(sum(part["steps"] for part in parts) / seeds) if seeds else 0
    passed = bool(parts) and not failing and seeds >= wanted
    write_row(
        name,
        operations=sum(part["calls"] for part in parts),
        faults=sum(sum(part["faults"].values()) for part in parts),
        lost=failing if parts else None,
        note=f"it died, {wanted - seeds:,} seeds did not run" if seeds < wanted else "",
        seed=f"{seeds:,} seeds x {steps:,} steps",
        seconds=round(sum(part["seconds"] for part in parts)),
        passed=passed,
        simulated=True,
        folder=folder,
    )
    return passed


def rows_of(folder: Path) -> list[Row]:
    """Every row that was left, by name."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    for row in found:  # earlier rows say less
        absent = {"simulated": row["name"].startswith("simulated"), "test": "", "part": "", "here": True}
        for field, value in absent.items():
            row.setdefault(field, value)
    return sorted(found, key=lambda row: row["name"])


_PLANTED = "planted bugs"
KINDS = (
    (
        "Real faults: processes, disks, clocks and clusters",
        ("operations", "faults", "lost or wrong"),
        lambda row: not row["simulated"] and (row["faults"] or row["lost"] is None),
    ),
    (
        "Real runs without faults: load, size and order",
        ("operations", "faults", "lost or wrong"),
        lambda row: not row["simulated"] and not row["faults"] and row["lost"] is not None,
    ),
    (
        "Simulated: calls and faults of imagined time",
        ("calls sent", "simulated faults", "lost or wrong"),
        lambda row: row["simulated"] and not row["name"].startswith(_PLANTED),
    ),
    (
        "Simulated with a bug that was planted on purpose: what the checks have to find",
        ("calls sent", "simulated faults", "not found"),
        lambda row: row["simulated"] and row["name"].startswith(_PLANTED),
    ),
)
_ELSEWHERE = "†"


def tables(rows: list[Row]) -> str:
    """The rows as tables, what is real apart from what is simulated, each with its sum, and where they come from."""
    lines: list[str] = []
    for title, columns, belongs in KINDS:
        chosen = [row for row in rows if belongs(row)]
        if chosen:
            lines += [f"**{title}.**", "", *_table(chosen, columns), ""]
    if not all(row["here"] for row in rows):
        lines += [
            f"{_ELSEWHERE} This commit is not in the history of this project: the run was made on a tree from before"
            " that history was put in order, and cannot be checked out.",
            "",
        ]
    machines = sorted({row["machine"] for row in rows})
    return "\n".join([*lines, f"Run on: {'; '.join(machines)}."])


def _table(rows: list[Row], columns: tuple[str, str, str]) -> list[str]:
    lines = [
        f"| what | {' | '.join(columns)} | seeds | seconds | commit, date |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        note = ("" if row["passed"] else " **failed**") + (f" ({row['note']})" if row["note"] else "")
        if file := row.get("history"):
            note += f" [history{' of ' * bool(row['part'])}{row['part']}](histories/{file})"
        lost = "not told" if row["lost"] is None else f"{row['lost']:,}"
        lines.append(
            f"| {row['name']}{note} | {row['operations']:,} | {row['faults']:,} | {lost} | {row['seed']} "
            f"| {row['seconds']:,} | {row['commit']}{'' if row['here'] else f' {_ELSEWHERE}'}, {row['date']} |"
        )
    sums = {
        field: sum(row[field] or 0 for row in rows) for field in ("operations", "faults", "lost", "seconds")
    }
    failed = sum(not row["passed"] for row in rows)
    lines.append(
        f"| **all**{f', {failed} failed' if failed else ''} | **{sums['operations']:,}** | **{sums['faults']:,}** "
        f"| **{sums['lost']:,}** | | {sums['seconds']:,} | |"
    )
    return lines


def filled(page: str, rows: list[Row]) -> str:
    """The page with the tables between its two marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page has no {BEGIN} followed by {END}; put them where the table belongs")
    return f"{head}{BEGIN}\n\n{tables(rows)}\n\n{END}{tail}"


def main(given: list[str]) -> int:
    if given[:1] == ["--died"]:
        file, since = given[1:]
        chosen = frozenset(line.rstrip("\n") for line in sys.stdin)
        write_failed(file, "its process died", since=Path(since).stat().st_mtime, chosen=chosen)
        return 0
    if given[:1] == ["--seeds"]:
        seeds, name = given[1:]
        parts = [json.loads(line) for line in sys.stdin if line.startswith("{")]
        return 0 if write_simulated(name, parts, int(seeds)) else 1
    rows = rows_of(ROWS) if ROWS.is_dir() else []
    if not rows:
        print("There is no row in docs/histories/rows yet; `make proof` leaves them there.")
        return 1
    look_for_commits(ROWS)
    rows = rows_of(ROWS)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(tables(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
