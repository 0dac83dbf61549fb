"""The picture of docs/performance.md shows the figures of its tables."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from tools.charts import FOLDER, PAGE, PANELS, PICTURE, groups, peers


def test_the_picture_is_drawn_from_the_tables_of_the_page() -> None:
    drawn = peers(PAGE.read_text(encoding="utf-8"))
    assert (FOLDER / PICTURE).read_text(encoding="utf-8") == drawn, "draw it anew: python -m tools.charts"
    assert f"(img/{PICTURE})" in PAGE.read_text(encoding="utf-8")
    assert ElementTree.fromstring(drawn).tag.endswith("svg")


def test_each_queue_of_the_tables_has_its_marks() -> None:
    page = PAGE.read_text(encoding="utf-8")
    both = groups(page)
    assert [len(lines) > 5 for lines in both] == [True, True]
    root = ElementTree.fromstring(peers(page))
    said = [element.text for element in root.iter() if element.text]
    for line in (line for lines in both for line in lines):
        assert line.name in said
    marks = [e for e in root.iter() if e.tag.endswith("circle") and e.get("stroke-width")]
    assert len(marks) == sum(len(line.rates[panel]) for lines in both for line in lines for panel in PANELS)


def test_another_figure_makes_another_picture() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rate = groups(page)[0][0].rates["put/s"][100]
    assert peers(page.replace(f"{rate:,.0f}", "1,234", 1)) != peers(page)
