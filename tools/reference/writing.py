"""Markdown for the reference pages: a heading that says where a page comes from, and tables.

Guards: a cell never breaks its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def opening(title: str, source: str, words: str) -> str:
    """The first lines of a page."""
    return f"<!-- made from {source} by `make docs`; do not edit -->\n\n# {title}\n\n{words}\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell(one) for one in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(value: object) -> str:
    """A value as code; nothing for nothing."""
    text = str(value)
    return f"`{text}`" if text else ""
