"""The picture: what a chunk of each tenant waited under both strategies, one line per tenant.

Importing this module needs matplotlib, which comes with the extra `fairway[plots]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from fairway.cli.demo.story import WHALE
from fairway.cli.demo.waits import Wait, Waits

# Told apart by people with any kind of colour vision, and by lightness in print; the shapes differ too.
OLDEST: Final = "#D55E00"
FAIR: Final = "#0072B2"
INK: Final = "#333333"
FAINT: Final = "#C8C8C8"


def draw(oldest: Waits, fair: Waits, note: str, folder: Path) -> list[Path]:
    """Draw fairness.svg and fairness.png into the folder."""
    settings: dict[Any, Any] = {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "text.color": INK,
        "svg.fonttype": "path",
        "svg.hashsalt": "fairway",
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(9, 6.4), facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.2, 0.115, 0.775, 0.745))
        _lines(axes, oldest, fair)
        _words(figure, axes, oldest, fair, note)
        made = [folder / "fairness.svg", folder / "fairness.png"]
        figure.savefig(made[0], metadata={"Date": None})
        figure.savefig(made[1], dpi=160)
    return made


def rows(waits: Waits) -> list[Wait]:
    """The whale, then the small tenants, the largest first."""
    return sorted(
        waits.by_tenant.values(), key=lambda wait: (wait.tenant != WHALE, -wait.chunks, wait.tenant)
    )


def _lines(axes: Axes, oldest: Waits, fair: Waits) -> None:
    order = rows(fair)
    places = _places(len(order))
    before = [oldest.by_tenant[wait.tenant].mean_work for wait in order]
    after = [wait.mean_work for wait in order]
    axes.hlines(places, before, after, color=FAINT, linewidth=2, zorder=1)
    axes.scatter(before, places, s=46, color=OLDEST, marker="s", zorder=2)
    axes.scatter(after, places, s=54, color=FAIR, marker="o", zorder=3)
    axes.set_xscale("log")
    low, high = min(*before, *after), max(*before, *after)
    axes.set_xlim(low / 1.6, high * 1.8)
    axes.set_ylim(places[-1] + 0.9, -0.9)
    axes.set_yticks(places, [f"{wait.tenant}: {wait.chunks:,} chunks" for wait in order], fontsize=8.5)
    axes.tick_params(length=0, colors=INK)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", color="#EDEDED", zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def _places(tenants: int) -> list[float]:
    """A gap sets the whale apart."""
    return [0.0, *(i + 2.3 for i in range(tenants - 1))]


def _words(figure: Figure, axes: Axes, oldest: Waits, fair: Waits, note: str) -> None:
    order = rows(fair)
    places = _places(len(order))
    small = order[1:]
    ratio = oldest.means(WHALE)[1] / fair.means(WHALE)[1]
    figure.text(
        0.03, 0.945, "Under Fair a small tenant no longer waits for the whale", fontsize=15, weight="bold"
    )
    figure.text(
        0.03,
        0.9,
        "Average wait of a tenant's chunks, counted in chunks handed out to anybody since it submitted."
        " Logarithmic scale.",
        fontsize=9.5,
    )
    figure.text(0.03, 0.022, note, fontsize=8, color="#6B6B6B")
    first = small[0]
    _label(axes, oldest.by_tenant[first.tenant].mean_work, places[1], "OldestFirst", OLDEST)
    _label(axes, first.mean_work, places[1], "Fair", FAIR)
    middle = small[len(small) // 2]
    between = (oldest.by_tenant[middle.tenant].mean_work * middle.mean_work) ** 0.5
    axes.text(
        between,
        places[1 + len(small) // 2],
        f"median: {ratio:,.1f} times less waiting",
        ha="center",
        va="center",
        fontsize=10,
        backgroundcolor="white",
        zorder=4,
    )
    axes.annotate(
        _price(oldest.by_tenant[WHALE], fair.by_tenant[WHALE]),
        (oldest.by_tenant[WHALE].mean_work, places[0]),
        xytext=(-12, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=9.5,
    )


def _label(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    axes.annotate(
        text,
        (x, y),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=color,
        weight="bold",
        fontsize=11,
    )


def _price(oldest: Wait, fair: Wait) -> str:
    percent = (fair.mean_work / oldest.mean_work - 1) * 100
    return f"the whale waits {percent:.0f} % more"
