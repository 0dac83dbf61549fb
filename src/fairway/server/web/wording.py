"""Wording: numbers, times and names as people read them.

Guards: pure; every value becomes plain text, which the templates escape.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

NONE = "\N{EN DASH}"  # what is not known, or not there
_UNITS = ((1e9, "G"), (1e6, "M"), (1e4, "k"))


def count(value: int) -> str:
    """A number with its thousands apart."""
    return f"{value:,}"


def short(value: float | None) -> str:
    """A number that fits on a tile; beyond ten thousand with three digits and a letter."""
    if value is None:
        return NONE
    for size, letter in _UNITS:
        if value >= size:
            scaled = value / (1e3 if letter == "k" else size)
            return f"{scaled:.3g}{letter}" if scaled < 1000 else f"{scaled:.0f}{letter}"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def duration(seconds: float | None) -> str:
    """A time span in one or two units."""
    if seconds is None:
        return NONE
    if seconds < 0.9995:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes < 10 and rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if hours < 10 and minutes else f"{hours} h"
    return f"{hours // 24} d"


def age(then: float, now: float) -> str:
    """How long ago a moment was; a dash for none."""
    return duration(max(0.0, now - then)) if then else NONE


def moment(then: float) -> str:
    """A moment, in UTC."""
    try:
        return datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if then else NONE
    except (OverflowError, ValueError, OSError):
        return NONE


def percent(part: float) -> str:
    """A share of one."""
    if 0 < part < 0.001:
        return "<0.1%"
    return f"{part * 100:.1f}%"


def index(value: float | None) -> str:
    """An index between 0 and 1."""
    return NONE if value is None else f"{value:.3f}"


def weight(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def mark(name: str) -> str:
    """A name for an element of a page, the same each time it is drawn."""
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def blob(value: bytes) -> str:
    """The beginning of some bytes: as text if they are, else in hexadecimal."""
    try:
        text = value[:400].decode()
        told = text if text.isprintable() else value[:100].hex(" ")
    except UnicodeDecodeError:
        told = value[:100].hex(" ")
    return f"{told} …" if len(value) > 400 else told


def progress(done: int, failed: int, total: int) -> tuple[float, float]:
    """The parts of a bar of 100 that are done and dead."""
    return (100 * done / total, 100 * failed / total) if total else (100.0, 0.0)


FILTERS = {
    "count": count, "short": short, "duration": duration, "age": age, "moment": moment, "percent": percent,
    "index": index, "weight": weight, "mark": mark, "blob": blob,
}  # fmt: skip
