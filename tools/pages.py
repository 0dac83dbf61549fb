"""The pages of the documentation, gathered for the builder of the site: docs/ and what stands at the root.

Guards: every link that works in the repository works in the site, or is shown there as the name of a file.
`python -m tools.pages` writes them to build/pages; `make docs` then builds build/site from them.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"
# Pages at the root of the repository, and where the site has them.
ABOVE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def moved(text: str, path: str, uri: str) -> str:
    """The text of a page of the repository, with links that are right at its place in the site."""

    def link(match: re.Match[str]) -> str:
        picture, words, target, heading = match[1], match[2], match[3], match[4] or ""
        if "://" in target:
            return match[0]
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        found = ABOVE.get(full) or (full.removeprefix("docs/") if full.startswith("docs/") else None)
        if found is None:
            return f"{words} (`{full}`)" if full not in words else words
        return f"{picture}[{words}]({posixpath.relpath(found, posixpath.dirname(uri) or '.')}{heading})"

    return _LINK.sub(link, text)


def gather(folder: Path = PAGES) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    found = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT / "docs")) for path in _docs()}
    for path, uri in (found | ABOVE).items():
        text = (ROOT / path).read_text(encoding="utf-8")
        (folder / uri).write_text(moved(text, path, uri), encoding="utf-8")


def _docs() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


if __name__ == "__main__":
    gather()
