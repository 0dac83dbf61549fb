"""The documentation builds as a site without a warning, asks nothing of other machines, and its menu has every page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tools.pages import ABOVE, gather, moved

# What a page may load: its own files. A link to elsewhere is no load.
LOADS = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\"' >]+")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(config.replace("build/", ""), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "-f", "mkdocs.yml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    gather(folder / "pages")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert LOADS.findall(page.read_text(encoding="utf-8")) == [], page.name


def test_no_page_has_what_makes_the_theme_fetch_a_script(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert 'class="mermaid"' not in page.read_text(encoding="utf-8"), page.name


def test_no_page_shows_the_source_of_a_diagram(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"stateDiagram|flowchart (LR|TD)|language-mermaid", text), page.name


def test_a_link_to_nowhere_stops_the_build(tmp_path: Path) -> None:
    gather(tmp_path / "pages")
    with (tmp_path / "pages" / "tutorial.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    assert build(tmp_path).returncode != 0


def test_the_menu_has_every_page() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages | set(ABOVE.values()))


@pytest.mark.parametrize(
    ("text", "path", "uri", "there"),
    [
        ("[a](docs/spark.md#options)", "README.md", "index.md", "[a](spark.md#options)"),
        ("![p](docs/img/x.svg)", "README.md", "index.md", "![p](img/x.svg)"),
        ("[a](../ARCHITECTURE.md)", "docs/server.md", "server.md", "[a](architecture.md)"),
        ("[a](../../README.md)", "docs/howto/backup.md", "howto/backup.md", "[a](../index.md)"),
        ("[a](../ring.md)", "docs/howto/backup.md", "howto/backup.md", "[a](../ring.md)"),
        ("[limits](src/fairway/limits.py)", "README.md", "index.md", "limits (`src/fairway/limits.py`)"),
        ("[a](https://example.com/x)", "README.md", "index.md", "[a](https://example.com/x)"),
    ],
)
def test_a_link_is_right_at_the_pages_place_in_the_site(text: str, path: str, uri: str, there: str) -> None:
    assert moved(text, path, uri) == there


def test_the_builder_is_there() -> None:
    assert shutil.which("zensical", path=str(Path(sys.executable).parent))
