"""What commands print: tables and sentences for people, JSON for programs.

Guards: with --json standard output holds JSON and nothing else; an id is a text in it and bytes are base64, as in REST.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

_PIPE_COLUMNS: Final = 200  # what is read by a program is not cut to a screen
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_IDS: Final = {"id", "submission"}
_STATES: Final = {"active": "cyan", "completed": "green", "failed": "red", "cancelled": "yellow"}


def console(stderr: bool = False) -> Console:
    """Where people read."""
    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS
    return Console(stderr=stderr, highlight=False, width=wide)


def say(text: str) -> None:
    """One sentence, as it is."""
    console().print(clean(text), markup=False, soft_wrap=True)


def complain(text: str, style: str = "") -> None:
    """One sentence on standard error."""
    console(stderr=True).print(clean(text), style=style, markup=False, soft_wrap=True)


def clean(text: str) -> str:
    """A text that says nothing to a terminal: names, payloads and errors come from others."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def say_json(value: Any) -> None:
    """One JSON document on one line."""
    print(msgspec.json.encode(plain(value)).decode(), flush=True)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, msgspec.Struct):
        return plain({name: getattr(value, name) for name in value.__struct_fields__})
    if isinstance(value, dict):
        return {
            name: str(item) if name in _IDS and type(item) is int else plain(item)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def with_text(fields: dict[str, Any], name: str, data: bytes | None) -> dict[str, Any]:
    """Bytes under their name and, if they are a text, that beside them."""
    fields[name] = data
    try:
        fields["text"] = None if data is None else data.decode()
    except UnicodeDecodeError:
        fields["text"] = None
    return fields


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """Rows under their names; columns in `right` hold numbers."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(clean(str(cell))) for cell in row))
    console().print(made)


def fields(pairs: Iterable[tuple[str, object]]) -> None:
    """One thing, a line for each of its fields."""
    given = list(pairs)
    wide = max(len(name) for name, _ in given)
    for name, value in given:
        line = Text(f"{name:<{wide}}  ", style="dim") if name else Text()
        shown = value if isinstance(value, Text) else Text(clean(str(value)))
        console().print(Text.assemble(line, shown), soft_wrap=True)


def many(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def state(name: str, paused: bool = False) -> Text:
    text = Text(name, style=_STATES.get(name, ""))
    return text.append(" (paused)", style="yellow") if paused else text


def tenant(name: str) -> Text:
    return Text(clean(name)) if name else Text("(none)", style="dim")


def number(value: int) -> str:
    return f"{value:,}"


def ago(moment: float, now: float | None = None) -> str:
    """How long ago, in one or two units."""
    return "" if not moment else span((time.time() if now is None else now) - moment)


def span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.1f}s"
    for size, name, small, below in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            rest = int(seconds % size // small)
            return f"{int(seconds // size)}{name}{f' {rest}{below}' if rest else ''}"
    return f"{int(seconds)}s"


def clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment else ""


def size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def progress(json: bool, in_bytes: bool = False) -> Progress:
    """A bar on standard error, for people who wait at a terminal."""
    counted = DownloadColumn(binary_units=True) if in_bytes else MofNCompleteColumn()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        counted,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=json or not sys.stderr.isatty(),
        transient=True,
    )
