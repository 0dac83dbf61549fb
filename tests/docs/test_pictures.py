"""The pictures of docs/fairness.md are what a queue does now, and its table has their figures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tests.docs.pages import ROOT
from tools.pictures import FOLDER, PICTURES, table

PAGE = ROOT / "docs" / "fairness.md"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_queue_does(name: str) -> None:
    drawn = PICTURES[name]()
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, (
        "draw it anew with `python -m tools.pictures`"
    )
    assert f"(img/{name})" in PAGE.read_text(encoding="utf-8")
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "prefers-color-scheme: dark" in drawn


def test_the_page_has_the_figures_of_the_picture() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "`python -m tools.pictures` prints the table"
