"""Which pages there are, and what makes each.

Guards: no page of docs/reference is written by hand, so none can tell what the code does not do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.reference import cli, configuration, errors, limits, metrics, python, rest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "python.md": python.page,
    "rest.md": rest.page,
    "cli.md": cli.page,
    "configuration.md": configuration.page,
    "metrics.md": metrics.page,
    "errors.md": errors.page,
    "limits.md": limits.page,
}
