"""Pages as tests see them: their fenced blocks, and their links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))

# A comment before a block says why no test runs it.
_FENCE = re.compile(r"^(?:<!-- not run: ([^\n]+) -->\n+)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line of the page on which the text begins; why it is not run."""

    language: str
    text: str
    line: int
    not_run: str = ""

    @property
    def next_line(self) -> int:
        """Where the text of a block begins that follows this one at once."""
        return self.line + self.text.count("\n") + 3


def every_block(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[2], m[3], text.count("\n", 0, m.start(3)) + 1, m[1] or "") for m in _FENCE.finditer(text)]


def blocks(page: Path, language: str) -> list[Block]:
    return [block for block in every_block(page) if block.language == language]


def links(page: Path) -> list[str]:
    """What the page links to in this repository."""
    return [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]


def execute(page: Path, block: Block, names: dict[str, object]) -> None:
    """Run a block as it stands; a traceback shows the line of the page."""
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    exec(code, names)
