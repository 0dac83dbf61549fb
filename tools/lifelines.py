"""A table of transitions as a picture: a line down from each state, and an arrow for each event.

Guards: the picture has every transition of its table, once and in its order; tests/docs/test_lifecycle_doc.py draws
them again and compares, and with FAIRWAY_WRITE_DOCS=1 writes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tools.pictures import FOLDER, svg, words

__all__ = ["FOLDER", "lifelines"]

WIDTH = 760
ROW = 24  # from one arrow to the next
TOP = 44  # of the first
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
    ' markerUnits="userSpaceOnUse" orient="auto">'
    '<path class="b" d="M0 0L8 4L0 8Z"/></marker></defs>'
)


def lifelines(name: str, table: Mapping[tuple[str, str], str]) -> str:
    """The states from left to right in the order in which the table comes to them."""
    states = list(dict.fromkeys(state for (before, _), after in table.items() for state in (before, after)))
    gap = WIDTH / len(states)
    place = {state: gap * (i + 0.5) for i, state in enumerate(states)}
    bottom = TOP + ROW * len(table)
    parts = [_HEAD]
    for state, x in place.items():
        parts.append(words(x, 16, state or "(none)", anchor="middle"))
        parts.append(f'<path class="line" d="M{x:g} 24V{bottom}"/>')
    for row, ((before, event), after) in enumerate(table.items()):
        x, to, y = place[before], place[after], TOP + ROW * row
        line = f"M{x:g} {y - 8}h18v12h-18" if before == after else f"M{x:g} {y}H{to:g}"
        parts.append(f'<path class="b path" marker-end="url(#head)" d="{line}"/>')
        parts.append(
            _label(event, (x + 24, y + 2, "start") if before == after else ((x + to) / 2, y - 4, "middle"))
        )
    return svg(WIDTH, bottom, f"The states of a {name}, and what leads from one to another", parts)


def _label(event: str, at: tuple[float, float, str]) -> str:
    """Kept inside of the picture, where an arrow is shorter than its words."""
    x, y, anchor = at
    half = 2.9 * len(event)
    if anchor == "middle":
        x = min(max(x, half), WIDTH - half)
    return words(x, y, event, "small", anchor)
