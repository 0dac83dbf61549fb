"""Run the benches one after the other, and write their tables into the marked regions of a page.

    python -m tools.bench [NAME ...] [--quick] [--full] [--install] [--found] [--force] [--page FILE]

Guards: between `<!-- bench:NAME:begin -->` and `<!-- bench:NAME:end -->` stands what that bench wrote last, with date,
commit, machine, versions and load; everything around it stays as it was written by hand. A table is not written over
by one that lacks a peer of it, nor one of a full run by one of a shorter run, unless that is asked for.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools import charts
from tools.proof import commit_here

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
FOUND = ROOT / "build" / "bench"  # what each bench wrote
PEERS = ROOT / "build" / "peers"
PAGE = ROOT / "docs" / "performance.md"


def names() -> list[str]:
    """The benches there are."""
    return sorted(path.stem for path in BENCH.glob("*.py"))


def takes(name: str, option: str) -> bool:
    """Whether a bench has an option beyond those that all have."""
    return f'"{option}"' in (BENCH / f"{name}.py").read_text(encoding="utf-8")


def install() -> None:
    """Bring the peers that Python packages are into a folder of their own."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    locked = ROOT / "requirements" / "bench.txt"
    target = ["--python", sys.executable, "--target", str(PEERS)]
    subprocess.run(
        [uv, "pip", "install", "--quiet", *target, "--require-hashes", "-r", str(locked)], check=True
    )


def run(name: str, quick: bool, full: bool) -> dict[str, Any] | None:
    """Run one bench; what it found, or nothing if it failed."""
    FOUND.mkdir(parents=True, exist_ok=True)
    wrote = FOUND / f"{name}.json"
    wrote.unlink(missing_ok=True)
    command = [sys.executable, str(BENCH / f"{name}.py"), "--json", str(wrote)]
    command += ["--quick"] if quick else []
    command += ["--full"] if full and takes(name, "--full") else []
    print(f"\n== {name}", flush=True)
    failed = subprocess.run(command).returncode
    if failed or not wrote.exists():
        print(f"{name}: FAILED", flush=True)
        return None
    found = {**json.loads(wrote.read_text()), "commit": commit_here()}
    wrote.write_text(json.dumps(found, indent=1) + "\n")
    return found


def last(name: str) -> dict[str, Any] | None:
    """What a bench wrote last."""
    wrote = FOUND / f"{name}.json"
    return json.loads(wrote.read_text()) if wrote.exists() else None


def region(found: dict[str, Any]) -> str:
    """What a bench found, as Markdown."""
    before, after = found["load"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    commit = f" at commit {found['commit']}" if found.get("commit") else ""
    taken = (
        f", {found['stolen']:.0%} of the cores' time taken by others"
        if found.get("stolen") is not None
        else ""
    )
    full = " -- --full" if found["options"].get("full") else ""
    lines = [
        f"`fairway bench {found['bench']}{full}` on {found['date']} UTC{commit}, {found['seconds']:,.0f} s;"
        f" {found['machine']}; load {before} before and {after} after{taken}; {versions}."
    ]
    for table in found["tables"]:
        lines += ["", f"{table['title']}:", ""] if table["title"] else [""]
        lines.append(row(table["columns"]))
        lines.append("|" + "---|" * len(table["columns"]))
        lines += [row(cells) for cells in table["shown"]]
    for note in found["notes"]:
        lines += ["", note]
    return "\n".join(lines)


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def put(page: str, name: str, text: str) -> str:
    """The page with a region filled anew."""
    begin, end = f"<!-- bench:{name}:begin -->", f"<!-- bench:{name}:end -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(
            f"the page has no region {begin} ... {end}, or more than one: write it where it belongs"
        )
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def regions(page: str) -> list[str]:
    """The benches that a page has a place for."""
    return re.findall(r"<!-- bench:(\w+):begin -->", page)


def write(page: Path, found: dict[str, Any]) -> None:
    page.write_text(put(page.read_text(encoding="utf-8"), found["bench"], region(found)), encoding="utf-8")


def standing(page: Path, name: str) -> str:
    """What stands in the region of a bench."""
    begin, end = f"<!-- bench:{name}:begin -->", f"<!-- bench:{name}:end -->"
    return page.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]


def is_shorter(page: Path, found: dict[str, Any]) -> bool:
    """Whether the page has a full run, and this is none."""
    full = re.search(r"`[^`\n]*--full` on ", standing(page, found["bench"]))
    return full is not None and not found["options"].get("full")


def would_lose(page: Path, found: dict[str, Any]) -> dict[str, str]:
    """The peers that the page has figures of and that were missing now, with what they lack."""
    old = standing(page, found["bench"])
    told = [line for line in old.splitlines() if not line.startswith("Left out")]
    return {
        peer: lack for peer, lack in found.get("left_out", {}).items() if any(peer in line for line in told)
    }


def warn_of_missing(chosen: list[str]) -> None:
    """Say before anything runs which peers are not here."""
    if {"queues", "server"} & set(chosen):
        command = [sys.executable, str(BENCH / "queues.py"), "--lacking"]
        lacking = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if lacking:
            print("MISSING HERE, and left out of the tables:\n  " + lacking.replace("\n", "\n  "), flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benches; all if none is named")
    parser.add_argument("--quick", action="store_true", help="runs of seconds; nothing is written")
    parser.add_argument("--full", action="store_true", help="the largest sizes too")
    parser.add_argument("--install", action="store_true", help="bring the peers into build/peers first")
    parser.add_argument("--found", action="store_true", help="run nothing; write what was found last")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--no-write", action="store_true", help="leave the page alone")
    parser.add_argument(
        "--force",
        action="store_true",
        help="write a table though it lacks a peer that the old one has, or the full run",
    )
    given = parser.parse_args(arguments)
    known = names()
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"there is no bench {', '.join(unknown)}; there are: {', '.join(known)}")
    if given.install:
        install()
    if not given.found:
        warn_of_missing(given.names or known)
    failed: list[str] = []
    kept: list[str] = []
    for name in given.names or known:
        found = last(name) if given.found else run(name, given.quick, given.full)
        if found is None:
            failed.append(name)
        elif not (given.quick or given.no_write):
            if is_shorter(given.page, found) and not given.force:
                print(f'{name}: kept the table of a full run; a new one: make bench BENCH="--full {name}"')
            elif (lost := would_lose(given.page, found)) and not given.force:
                kept.append(name)
                lacks = ", ".join(f"{peer} ({lack})" for peer, lack in lost.items())
                print(f"{name}: KEPT the old table, which has what is missing here: {lacks}", flush=True)
                print(
                    "  Install it and run again, or write what there is: python -m tools.bench --found --force"
                )
            else:
                write(given.page, found)
                if name == "queues" and given.page == PAGE:
                    charts.draw()
    done = len(given.names or known) - len(failed)
    print(
        f"\n{done} benches {'written' if given.found else 'run'}"
        + (f", FAILED: {', '.join(failed)}" if failed else "")
        + (f", old tables KEPT: {', '.join(kept)}" if kept else "")
    )
    return 1 if failed or kept else 0


if __name__ == "__main__":
    sys.exit(main())
