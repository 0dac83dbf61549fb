"""The picture of docs/performance.md, drawn from the tables that stand on the page.

Guards: every mark is a figure of the page's own table; tests/docs/test_charts.py draws it again and compares.
`python -m tools.charts` draws it; `make bench` does so whenever it has written the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.pictures import FOLDER, svg, words

PAGE = FOLDER.parent / "performance.md"
PICTURE = "peers.svg"
NAMES, WIDE, GAP, ROW, DOT = 230, 240, 40, 24, 4.5  # pixels
# Messages a second on the scale of both panels, on which each ten times is as wide.
TICKS = {100: "100", 1_000: "1k", 10_000: "10k", 100_000: "100k", 1_000_000: "1M"}
PANELS = ("put/s", "take + ack/s")
GROUPS = ("in a process and a file", "behind a server, each through a Python client")


class Line(NamedTuple):
    """A queue of the table: messages a second by how many at a time, and whether a put outlives a power loss."""

    name: str
    rates: dict[str, dict[int, float]]  # by panel
    durable: bool


def groups(page: str) -> list[list[Line]]:
    """The queues of the two tables of `fairway bench queues`, in their order."""
    region = page.partition("<!-- bench:queues:begin -->")[2].partition("<!-- bench:queues:end -->")[0]
    return [_lines(table) for table in _tables(region)]


def _tables(region: str) -> Iterator[list[dict[str, str]]]:
    for block in region.split("\n\n"):
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in block.splitlines()
            if line.startswith("|")
        ]
        if rows:
            yield [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def _lines(table: list[dict[str, str]]) -> list[Line]:
    lines: dict[str, Line] = {}
    for row in table:
        durable = row["kept through"] == "power loss"
        line = lines.setdefault(row["queue"], Line(row["queue"], {panel: {} for panel in PANELS}, durable))
        for panel in PANELS:
            line.rates[panel][int(row["at a time"])] = float(row[panel].replace(",", ""))
    return list(lines.values())


def _along(rate: float) -> float:
    """How far to the right a rate is."""
    least, most = math.log10(min(TICKS)), math.log10(max(TICKS))
    part = (math.log10(rate) - least) / (most - least)
    return round(WIDE * min(1.0, max(0.0, part)), 1)


def _marks(line: Line, panel: str, left: float, y: float) -> list[str]:
    rates = sorted(line.rates[panel].items())
    kind = "b" if line.name.startswith("Fairway") else "c" if line.durable else "a"
    at = [left + _along(rate) for _, rate in rates]
    near, far = min(at) + DOT, max(at) - DOT
    parts = [f'<path class="{kind} path" d="M{near:g} {y:g}H{far:g}"/>'] if near < far else []
    for (many, _), x in zip(rates, at, strict=True):
        hollow = ' fill-opacity="0"' if many == 1 else ""
        parts.append(f'<circle class="{kind}" stroke-width="2" cx="{x:g}" cy="{y:g}" r="{DOT}"{hollow}/>')
    return parts


def _scale(left: float, top: float, bottom: float) -> list[str]:
    parts: list[str] = []
    for rate, label in TICKS.items():
        x = left + _along(rate)
        parts.append(f'<path class="line" d="M{x:g} {top:g}V{bottom:g}"/>')
        parts.append(words(x, bottom + 15, label, "small", "middle"))
    return parts


def _legend(y: float) -> list[str]:
    said = (("b", "Fairway"), ("c", "kept through power loss"), ("a", "answered before it is on the disk"))
    parts, x = [], 0.0
    for kind, text in said:
        parts.append(f'<circle class="{kind}" cx="{x + 6:g}" cy="{y - 4:g}" r="{DOT}"/>')
        parts.append(words(x + 16, y, text, "small"))
        x += 36 + 6.2 * len(text)
    parts.append(words(x, y, "hollow: one at a time; filled: by 100", "small"))
    return parts


def peers(page: str) -> str:
    """How many messages a second each queue of the table takes in, and hands out and settles."""
    parts, y = _legend(14), 44.0
    lefts = [NAMES + i * (WIDE + GAP) for i in range(len(PANELS))]
    for panel, left in zip(PANELS, lefts, strict=True):
        parts.append(words(left, y, f"{panel.removesuffix('/s')}, messages a second"))
    y += 8
    for title, lines in zip(GROUPS, groups(page), strict=True):
        top = y + 24
        bottom = top + ROW * len(lines)
        parts.append(words(0, y + 16, title, "small"))
        for left in lefts:
            parts += _scale(left, top, bottom)
        for i, line in enumerate(lines):
            middle = top + ROW * (i + 0.5)
            parts.append(words(NAMES - 12, middle + 4, line.name, "", "end"))
            for panel, left in zip(PANELS, lefts, strict=True):
                parts += _marks(line, panel, left, middle)
        y = bottom + 24
    width = NAMES + len(PANELS) * WIDE + (len(PANELS) - 1) * GAP + 30
    return svg(width, math.ceil(y), "Messages a second of Fairway and its peers, by one caller", parts)


def draw(page: Path = PAGE, folder: Path = FOLDER) -> None:
    (folder / PICTURE).write_text(peers(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    draw()
