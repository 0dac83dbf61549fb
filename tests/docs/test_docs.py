"""The pages in docs/ tell the truth: their examples run, their links lead somewhere, the tests they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, execute, links

PAGES = sorted((ROOT / "docs").glob("*.md"))
ALL = [*PAGES, ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_every_python_example_of_a_page_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        execute(page, block, names)


def test_the_pages_that_teach_have_examples() -> None:
    taught = {page.stem: len(blocks(page, "python")) for page in PAGES}
    assert taught["embedded"] >= 10 and taught["fairness"] >= 5


@pytest.mark.parametrize("page", ALL, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{name(page)} links to {link}"
        if heading:
            assert heading in headings(target), f"{name(page)} links to {link}"


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ALL, ids=name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text):
        assert (ROOT / path).is_file(), f"{name(page)} names {path}"
        if test:
            defined = re.findall(r"^\s*(?:async )?def (test_\w+)", (ROOT / path).read_text(), re.MULTILINE)
            assert test in defined, f"{name(page)} names {path}::{test}"


@pytest.mark.parametrize("page", ALL, ids=name)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    for path in re.findall(r"`(src/[\w/]+(?:\.\w+)?)`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"{name(page)} names {path}"


def test_the_glossary_has_one_line_per_word() -> None:
    words = re.findall(
        r"^\| ((?:\*\*[\w -]+\*\*(?:, )?)+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )
    single = [word for line in words for word in re.findall(r"\*\*([\w -]+)\*\*", line)]
    assert len(single) > 50
    assert len(single) == len(set(single))
