"""The page of limits, from limits.py: name, value and reason of each.

Guards: a bound that the code has is on the page, with the reason that stands beside it.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from fairway import limits
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
    comments = {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    titles = {line: words[4:].strip() for line, words in comments.items() if words.startswith("# --")}
    found: list[tuple[str, list[tuple[str, str, str]]]] = []
    lines = sorted(titles)
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.AnnAssign)]
    for begin, end in zip(lines, [*lines[1:], 10**9], strict=True):
        rows = [_row(node, comments) for node in nodes if begin < node.lineno < end]
        found.append((titles[begin].split(";")[0], rows))
    return found


def _row(node: ast.AnnAssign, comments: dict[int, str]) -> tuple[str, str, str]:
    assert isinstance(node.target, ast.Name)
    places = range(node.lineno - 1, (node.end_lineno or node.lineno) + 1)
    own = [comments[line] for line in places if line in comments and not comments[line].startswith("# --")]
    # A comment right above counts only where none stands on the line itself.
    reason = own[-1].lstrip("# ")
    value = getattr(limits, node.target.id)
    return (
        code(node.target.id),
        f"{int(value):,}" if value >= 1 and value == int(value) else str(value),
        reason,
    )
