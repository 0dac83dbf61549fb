"""The pages in docs/ tell the truth: their examples run, their links lead somewhere, the tests they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from fairway.server.settings import settings
from fairway.server.views import Reserving
from fairway.strategy.lists import from_json
from tests.docs.consoles import alike
from tests.docs.pages import PAGES, ROOT, blocks, every_block, execute, links
from tests.ring.need import need_ring

ALL = [*PAGES, *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# Their examples need Spark: tests/spark/test_pages.py runs them where there is one.
ELSEWHERE = {"audit", "spark"}
# A page with commands is run as a whole by tests/docs/test_consoles.py.
RUN = [
    page
    for page in PAGES
    if blocks(page, "python") and not blocks(page, "console") and page.stem not in ELSEWHERE
]


@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_python_example_of_a_page_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page.stem == "ring":
        need_ring()
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    shown = {
        block.line: block.text for block in blocks(page, "text")
    }  # right behind a program: what it prints
    for block in blocks(page, "python"):
        if not block.not_run:
            capsys.readouterr()
            execute(page, block, names)
            printed = capsys.readouterr().out.splitlines()
            said = shown.get(block.next_line)
            assert said is None or list(map(alike, printed)) == list(map(alike, said.splitlines()))


@pytest.mark.parametrize("page", ALL, ids=name)
def test_every_block_has_a_language_and_one_that_is_not_run_has_a_reason(page: Path) -> None:
    found = every_block(page)
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(found), "a block is not closed, or what opens it is not understood"
    for block in found:
        assert block.language, f"{name(page)}:{block.line}: text, python, console, sh, ...?"
        assert block.language in ("python", "sh") or not block.not_run
        program = re.search(r"^(?:import|from) \w", block.text, re.MULTILINE)
        assert block.language == "python" or not program, f"{name(page)}:{block.line} is a program"


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


def test_the_page_of_examples_has_every_one() -> None:
    told = set(re.findall(r"\(\.\./examples/(\w+\.py)\)", (ROOT / "docs/examples.md").read_text()))
    assert told == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_the_alerts_name_metrics_that_exist() -> None:
    named = set(re.findall(r"fairway_\w+", (ROOT / "docs/howto/monitoring.md").read_text()))
    known = set(re.findall(r"`(fairway_\w+)`", (ROOT / "docs/reference/metrics.md").read_text()))
    assert len(named) >= 7 and named <= known
    for block in blocks(ROOT / "docs/howto/monitoring.md", "yaml"):
        assert yaml.safe_load(block.text)


def test_the_servers_settings_on_the_page_are_taken(tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "docs/howto/production.md", "toml")
    file = tmp_path / "fairway.toml"
    file.write_text(block.text)
    taken = settings({}, {}, str(file))
    assert (taken.workers, taken.queues, taken.local) == (2, ["default", "images"], False)


def test_the_body_on_the_page_of_strategies_is_the_strategy_that_stands_above_it() -> None:
    page = ROOT / "docs/strategies.md"
    (block,) = blocks(page, "json")
    body = msgspec.json.decode(block.text, type=Reserving)
    assert f"assert text == '{from_json(body.strategy)}'" in page.read_text(encoding="utf-8")
