"""The page of limits, from limits.py: name, value and reason of each.

Guards: a bound that the code has is on the page, with the reason that stands beside it.
"""

from __future__ import annotations

import ast
from pathlib import Path

from fairway import limits
from tools.reference import beside
from tools.reference.writing import code, opening, table

SOURCE = Path(limits.__file__)


def page() -> str:
    parts = [
        opening(
            "Limits",
            "src/fairway/limits.py",
            "Every bound of Fairway, with its reason. The unit is the last word of a name; `MAX` and `MIN` say that a"
            " call beyond it is refused, with an error that names it. The others are sizes and times that"
            " Fairway itself works with. What can be set per queue is in [configuration](configuration.md).",
        )
    ]
    for title, rows in sections():
        parts += [f"\n## {title[0].upper()}{title[1:]}\n", table(("limit", "value", "reason"), rows)]
    return "\n".join(parts)


def sections() -> list[tuple[str, list[tuple[str, str, str]]]]:
    text = SOURCE.read_text(encoding="utf-8")
    titles = {
        line: told[4:].strip()
        for line, (told, _) in beside.comments(SOURCE).items()
        if told.startswith("# --")
    }
    found: list[tuple[str, list[tuple[str, str, str]]]] = []
    lines = sorted(titles)
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.AnnAssign)]
    for begin, end in zip(lines, [*lines[1:], 10**9], strict=True):
        rows = [_row(node) for node in nodes if begin < node.lineno < end]
        found.append((titles[begin].split(";")[0], rows))
    return found


def _row(node: ast.AnnAssign) -> tuple[str, str, str]:
    assert isinstance(node.target, ast.Name)
    value = getattr(limits, node.target.id)
    return (
        code(node.target.id),
        f"{int(value):,}" if value >= 1 and value == int(value) else str(value),
        beside.words(node, SOURCE),
    )
