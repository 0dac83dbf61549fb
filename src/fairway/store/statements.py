"""Statements in files: each has a name of its own and a sentence that says what it is for.

Guards: no statement is without a name or a description, and no name is given twice.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """Named statements of one file: `-- name: x`, a comment that describes it, the statement."""
    parts = _NAME.split(text)
    if parts[0].strip():
        raise ValueError("there is text before the first name")
    found: dict[str, str] = {}
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        lines = part.strip().splitlines()
        if name in found:
            raise ValueError(f"two statements are called {name}")
        if not lines or not lines[0].startswith("-- "):
            raise ValueError(f"statement {name} is not described")
        found[name] = "\n".join(line for line in lines if not line.startswith("--")).rstrip(";")
    return found
