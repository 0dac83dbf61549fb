"""The SQL of this store, read from the files beside it.

Guards: the steps of the schema are complete and in order.
"""

from __future__ import annotations

from importlib.resources import files

from fairway.store.statements import parse as parse

_PACKAGE = "fairway.store.sqlite"


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
