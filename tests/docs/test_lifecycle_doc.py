"""docs/lifecycle.md holds exactly what engine/lifecycle.py says; with FAIRWAY_WRITE_DOCS=1 it is brought up to date."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree

import pytest

from fairway.engine.lifecycle import CHUNK, SUBMISSION
from tests.docs.pages import ROOT
from tools.lifelines import FOLDER, lifelines

PAGE = ROOT / "docs" / "lifecycle.md"
TABLES = {"submission": SUBMISSION, "chunk": CHUNK}


def made(name: str) -> str:
    """What the page holds of a table: the picture, and a line per transition."""
    rows = [
        f"| {before or '(none)'} | {event} | {after} |" for (before, event), after in TABLES[name].items()
    ]
    table = ["| from | event | to |", "|---|---|---|", *rows]
    return "\n".join(["", f"![The states of a {name}](img/{name}.svg)", "", *table, ""])


def place(name: str) -> re.Pattern[str]:
    mark = f"from engine/lifecycle.py: {name}"
    return re.compile(rf"(<!-- {mark} -->\n)(.*?)(\n<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_holds_what_the_table_says(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("FAIRWAY_WRITE_DOCS"):
        text = place(name).sub(lambda match: match[1] + made(name) + match[3], text)
        PAGE.write_text(text, encoding="utf-8")
        (FOLDER / f"{name}.svg").write_text(lifelines(name, TABLES[name]), encoding="utf-8")
    found = place(name).findall(text)
    assert [body for _, body, _ in found] == [made(name)], "write it anew with FAIRWAY_WRITE_DOCS=1"
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == lifelines(name, TABLES[name])


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_a_word_on_each_state(name: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"## A {name}")[1].split("\n## ")[0]
    told = re.findall(r"^\| \*\*([\w ]+)\*\* \| \S.*\|$", section, re.MULTILINE)
    assert sorted(told) == sorted({*TABLES[name].values()})


def test_the_picture_has_every_state_and_draws_every_transition_once() -> None:
    for name, table in TABLES.items():
        drawn = ElementTree.fromstring(lifelines(name, table))
        texts = ["".join(one.itertext()) for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
        for state in {*table.values()}:
            assert texts.count(state) == 1, state
        events = [event for _, event in table]
        assert [text for text in texts if text in events] == events
        arrows = [one for one in drawn.iter("{http://www.w3.org/2000/svg}path") if one.get("marker-end")]
        assert len(arrows) == len(table)
