"""Run the benches one after the other, and write their tables into the marked regions of a page.

    python -m tools.bench [NAME ...] [--quick] [--full] [--install] [--found] [--page FILE]

Guards: between `<!-- bench:NAME:begin -->` and `<!-- bench:NAME:end -->` stands what that bench wrote last, with date,
machine, versions and load; everything around it stays as it was written by hand.
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

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
FOUND = ROOT / "build" / "bench"  # what each bench wrote
PEERS = ROOT / "build" / "peers"


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
    return json.loads(wrote.read_text())


def last(name: str) -> dict[str, Any] | None:
    """What a bench wrote last."""
    wrote = FOUND / f"{name}.json"
    return json.loads(wrote.read_text()) if wrote.exists() else None


def region(found: dict[str, Any]) -> str:
    """What a bench found, as Markdown."""
    before, after = found["load"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [
        f"`fairway bench {found['bench']}` on {found['date']} UTC, {found['seconds']:,.0f} s;"
        f" {found['machine']}; load {before} before and {after} after; {versions}."
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benches; all if none is named")
    parser.add_argument("--quick", action="store_true", help="runs of seconds; nothing is written")
    parser.add_argument("--full", action="store_true", help="the largest sizes too")
    parser.add_argument("--install", action="store_true", help="bring the peers into build/peers first")
    parser.add_argument("--found", action="store_true", help="run nothing; write what was found last")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "performance.md")
    parser.add_argument("--no-write", action="store_true", help="leave the page alone")
    given = parser.parse_args(arguments)
    known = names()
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"there is no bench {', '.join(unknown)}; there are: {', '.join(known)}")
    if given.install:
        install()
    failed: list[str] = []
    for name in given.names or known:
        found = last(name) if given.found else run(name, given.quick, given.full)
        if found is None:
            failed.append(name)
        elif not (given.quick or given.no_write):
            write(given.page, found)
    done = len(given.names or known) - len(failed)
    print(
        f"\n{done} benches {'written' if given.found else 'run'}"
        + (f", FAILED: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
