"""The SQL of this store, read from the files beside it.

Guards: every statement has a name of its own and a sentence that says what it is for.
"""

from __future__ import annotations

import re
from importlib.resources import files

_PACKAGE = "fairway.store.sqlite"
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """Named statements of one file: `-- name: x`, a comment that describes it, the SQL."""
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


def load(file: str) -> dict[str, str]:
    """The statements of `read.sql` or `write.sql`, by name."""
    return parse(files(_PACKAGE).joinpath(file).read_text("utf-8"))


def steps() -> list[str]:
    """The steps of the schema in order: step n brings a file from version n - 1 to n."""
    folder = files(_PACKAGE).joinpath("steps")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    found.sort(key=lambda entry: entry.name)
    for version, entry in enumerate(found, 1):
        if not entry.name.startswith(f"{version:04d}_"):
            raise ValueError(f"step {version} is missing; found {entry.name} in its place")
    return [entry.read_text("utf-8") for entry in found]
