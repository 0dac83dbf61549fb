"""The pictures of a report: bars and lines that need no script and fit a phone.

A line is an SVG that is stretched to its box; words stand beside it as text, so that they keep their size.
Guards: every name that comes from a queue is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10

from fairway.spark.auditing.summary import Summary

Line = tuple[str, Sequence[tuple[float, float | None]], float]
"""A name, values at the beginnings of windows (None is a gap), and the width of a window."""


def bars(summaries: Sequence[Summary]) -> str:
    """One block per tenant, one bar per audit: the average wait of its chunks."""
    order = summaries[-1].tenants
    waits = [[s.wait(row["tenant"]) for s in summaries] for row in order]
    longest = max((wait for some in waits for wait in some if wait is not None), default=0.0) or 1.0
    made: list[str] = []
    for row, some in zip(order, waits, strict=True):
        lines = "".join(
            _bar(colour(i, len(some)), wait, longest, summaries[i].name) for i, wait in enumerate(some)
        )
        made.append(
            f'<div class="tenant"><div class="who"><b>{escape(row["tenant"]) or "(no name)"}</b>'
            f"<span>{row['chunks']:,} chunks</span></div><div class='bars'>{lines}</div></div>"
        )
    more = summaries[-1].tenants_all - len(order)
    rest = f'<p class="note">And {more:,} smaller tenants.</p>' if more > 0 else ""
    return f'<div class="waits">{"".join(made)}</div>{rest}'


def colour(place: int, audits: int) -> int:
    """The last of two is blue, and so is one alone."""
    return 1 if audits == 1 else place


def _bar(place: int, wait: float | None, longest: float, name: str) -> str:
    if wait is None:
        return f'<div class="row"><span class="value">{escape(name)}: none handed out</span></div>'
    width = max(100 * wait / longest, 0.4)
    return (
        f'<div class="row" title="{escape(name)}: {seconds(wait)} on average">'
        f'<i class="bar s{place}" style="width:{width:.2f}%"></i><span class="value">{seconds(wait)}</span></div>'
    )


def lines(series: Sequence[Line], top: float | None, unit: str) -> str:
    """Lines over time in seconds; `top` is the top of the scale, None: what the values need."""
    values = [y for _, points, _ in series for _, y in points if y is not None]
    high = top or round_up(max(values, default=1.0))
    long = max((x + width for _, points, width in series for x, _ in points), default=1.0)
    marks = [high * i / 4 for i in range(5)]
    paths = "".join(_path(colour(i, len(series)), line, high, long) for i, line in enumerate(series))
    grid = "".join(f'<line class="grid" x1="0" x2="100" y1="{25 * i}" y2="{25 * i}"/>' for i in range(5))
    labels = "".join(
        f'<span style="bottom:{25 * i}%">{short(mark)}{unit if i == 4 else ""}</span>'
        for i, mark in enumerate(marks)
    )
    times = "".join(f'<span style="left:{100 * at / long:.2f}%">{short(at)} s</span>' for at in ticks(long))
    return (
        f'<div class="plot"><div class="y">{labels}</div><svg viewBox="0 0 100 100" preserveAspectRatio="none"'
        f' role="img" aria-label="{escape(", ".join(name for name, _, _ in series))}">{grid}{paths}</svg></div>'
        f'<div class="x">{times}</div>'
    )


def _path(place: int, line: Line, high: float, long: float) -> str:
    """Steps: a value holds for its whole window."""
    name, points, width = line
    drawn: list[str] = []
    pen_up = True
    for x, y in points:
        if y is None:
            pen_up = True
            continue
        left, right = 100 * x / long, 100 * (x + width) / long
        up = 100 - 100 * min(y / high, 1.0)
        drawn.append(f"{'M' if pen_up else 'L'}{left:.2f},{up:.2f} L{right:.2f},{up:.2f}")
        pen_up = False
    return f'<path class="line s{place}" d="{" ".join(drawn)}"><title>{escape(name)}</title></path>'


def round_up(value: float) -> float:
    """The next 1, 2, 4, 6 or 8 times a power of ten: a quarter of it is a round number too."""
    return _next(value, (1, 2, 4, 6, 8, 10))


def ticks(long: float) -> list[float]:
    """Round times from 0 to the end of a picture, seven at most, so that a phone has room for them."""
    step = _next(long / 6, (1, 2, 5, 10))
    return [step * i for i in range(int(long / step + 1e-9) + 1)]


def _next(value: float, steps: Sequence[int]) -> float:
    """The next of these, times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in steps if step * power >= value)


def short(value: float) -> str:
    """A number for an axis."""
    return f"{value:,.0f}" if value >= 20 else f"{value:.3g}"


def seconds(value: float) -> str:
    """A time as a person says it."""
    if value < 0.0005:
        return "0 s"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"
