"""The screen of `fairway top`: a head, the tenants, the consumers, cut to the height there is."""

from __future__ import annotations

import time

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairway.cli import saying
from fairway.cli.top.sampling import Share, View

_BLOCKS = " ▁▂▃▄▅▆▇█"
_BAR_CHARS = 20
_BARS_COLUMNS, _DUE_COLUMNS = 90, 75  # on a narrower terminal they are left out
_NAME_CHARS_MIN = 8
_HEAD_LINES = 7  # the head, the empty lines and the heads of the tables
_CONSUMERS_MAX = 5
_CONSUMERS_LINES = 20  # on a lower terminal the tenants have all of it


def drawn(view: View, width: int, height: int | None) -> RenderableType:
    """A view for a terminal of this size; None: as long as it is."""
    parts: list[RenderableType] = [_head(view), _figures(view), _trend(view, width), Text()]
    consumers = view.consumers
    if height is not None:
        consumers = consumers[:_CONSUMERS_MAX] if height >= _CONSUMERS_LINES else []
    rows = len(view.tenants)
    if height is not None:
        rows = max(1, height - _HEAD_LINES - (len(consumers) + 3 if consumers else 0) - 1)
    parts.append(
        _tenants(view.tenants[:rows], width) if view.tenants else Text("no tenant has work", style="dim")
    )
    if rows < len(view.tenants):
        parts.append(Text(f"and {len(view.tenants) - rows:,} more tenants", style="dim"))
    if consumers:
        parts += [Text(), _consumers(view, len(consumers))]
    return Group(*parts)


def _head(view: View) -> Text:
    clock = time.strftime("%H:%M:%S", time.localtime(view.time))
    text = _line(("fairway top", "bold"), f"  {view.place}  ", (view.queue, "cyan"), f"  {clock}  ")
    if not view.hosted:
        text.append("nobody has it open", style="yellow")
    elif view.stats.paused:
        text.append("paused", style="yellow")
    else:
        text.append("at work" if view.completed_per_second else "at rest", style="green")
    return text


def _line(*parts: str | tuple[str, str]) -> Text:
    """Text that stays on one line, however narrow that is."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _figures(view: View) -> Text:
    stats = view.stats
    parts: list[tuple[str, str] | str] = []
    for value, name in (
        (stats.submissions_active, "active"),
        (stats.chunks_waiting, "waiting"),
        (stats.chunks_leased, "leased"),
        (stats.chunks_done, "done"),
        (stats.chunks_dead, "dead"),
        (stats.tenants, "tenants"),
        (stats.waiters, "idle workers"),
    ):
        style = "bold red" if name == "dead" and value else "bold"
        parts += [(f"{value:,}", style), f" {name}  "]
    return _line(*parts)


def _trend(view: View, width: int) -> Text:
    rate = _line(
        (f"{view.completed_per_second:,.1f}", "bold green"),
        " completed/s  ",
        (f"{view.handed_per_second:,.1f}", "bold"),
        " handed out/s  ",
    )
    room = max(0, min(len(view.trend), width - len(rate) - 1))
    most = max(view.trend, default=0.0)
    if room > 1 and most > 0:
        steps = len(_BLOCKS) - 1
        line = "".join(
            _BLOCKS[-(-int(value * 1000) * steps // int(most * 1000 + 1))] for value in view.trend[-room:]
        )
        rate.append(line, style="green")
    return rate


def _tenants(shares: list[Share], width: int) -> Table:
    bars, due = width >= _BARS_COLUMNS, width >= _DUE_COLUMNS
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1))
    figures = {"weight": 6, "share": 6, **({"due": 6} if due else {})}
    amounts = {"waiting": 9, "leased": 7, "oldest": 8}
    taken = sum(figures.values()) + sum(amounts.values()) + 3 * len((*figures, *amounts))
    room = width - taken - (_BAR_CHARS + 3 if bars else 0)
    table.add_column("tenant", overflow="ellipsis", no_wrap=True, max_width=max(_NAME_CHARS_MIN, room))
    for name, wide in figures.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=wide)
    if bars:
        table.add_column("", width=_BAR_CHARS, no_wrap=True)
    for name, wide in amounts.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=wide)
    most = max((max(one.share, one.due) for one in shares), default=0.0) or 1.0
    for one in shares:
        tenant = one.tenant
        name = saying.tenant(tenant.name)
        if tenant.paused:
            name.append(" (paused)", style="yellow")
        cells: list[RenderableType] = [name, f"{tenant.weight:g}", f"{one.share:.1%}"]
        cells += [Text(f"{one.due:.1%}", style="dim")] if due else []
        cells += [_bar(one.share / most, one.due / most)] if bars else []
        age = saying.span(one.age) if one.age else ""
        table.add_row(*cells, f"{tenant.waiting:,}", f"{tenant.leased:,}", age)
    return table


def _bar(share: float, due: float) -> Text:
    """What it got; a mark stands where its weight would have it. Both are parts of the largest."""
    filled, mark = round(share * _BAR_CHARS), min(_BAR_CHARS - 1, round(due * _BAR_CHARS))
    line = "━" * filled + " " * (_BAR_CHARS - filled)
    if not due:
        return Text(line, style="green")
    return Text.assemble((line[:mark], "green"), ("┃", "yellow"), (line[mark + 1 :], "green"))


def _consumers(view: View, many: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in ("consumer", "open batches", "seen"):
        table.add_column(name, justify="left" if name == "consumer" else "right", no_wrap=True)
    for one in view.consumers[:many]:
        table.add_row(Text(one.name), f"{len(one.seqs):,}", saying.ago(one.seen, view.time) + " ago")
    return table
