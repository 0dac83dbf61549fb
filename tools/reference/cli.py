"""The page of commands, from their own `--help`.

Guards: an option that a command takes is on the page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from cyclopts import App
from rich.console import Console

from fairway.cli.app import app
from tools.reference.writing import opening

WIDTH = 100  # columns of a block; wider ones are scrolled in a browser


def page() -> str:
    words = "What `fairway COMMAND --help` prints. [The command line](../cli.md) shows them at work."
    parts = [opening("Commands", "`fairway --help`", words)]
    for chain in chains(app, ()):
        parts.append(f"\n## {' '.join(('fairway', *chain))}\n\n```text\n{told(chain)}\n```\n")
    return "\n".join(parts)


def chains(parent: App, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every command that can be called, as its words."""
    for name in sorted(name for name in parent if not name.startswith("-")):
        child, chain = parent[name], (*before, name)
        inner = list(chains(child, chain))
        yield from inner or [chain]


def told(chain: tuple[str, ...]) -> str:
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False)
    app.help_print(list(chain), console=console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().strip().splitlines())
