"""Pages as tests see them: their fenced blocks, and their links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which the text begins."""

    language: str
    text: str
    line: int


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = (Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in _FENCE.finditer(text))
    return [block for block in found if block.language == language]


def links(page: Path) -> list[str]:
    """What the page links to in this repository."""
    return [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]


def execute(page: Path, block: Block, names: dict[str, object]) -> None:
    """Run a block as it stands; a traceback shows the line of the page."""
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    exec(code, names)
