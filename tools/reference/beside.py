"""What stands beside a name in the source: the comment on its line, or else those right above it.

Guards: what a field or a bound means is written once, where it is defined, and every page reads it there.
"""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from functools import cache, cached_property
from pathlib import Path

import msgspec


@cache
def comments(path: Path) -> dict[int, tuple[str, bool]]:
    """The comments of a file by line, each with whether it may tell of what comes below it."""
    read = io.StringIO(path.read_text(encoding="utf-8")).readline
    return {
        token.start[0]: (
            token.string,
            token.line.lstrip().startswith("#") and not token.string.startswith("# --"),
        )
        for token in tokenize.generate_tokens(read)
        if token.type == tokenize.COMMENT
    }


def words(node: ast.AnnAssign, path: Path) -> str:
    """What a definition says of itself; nothing if no comment stands beside it."""
    found = comments(path)
    places = [line for line in range(node.lineno, (node.end_lineno or node.lineno) + 1) if line in found]
    line = node.lineno - 1
    while (not places or places[0] < node.lineno) and found.get(line, ("", False))[1]:
        places.insert(0, line)
        line -= 1
    return " ".join(found[place][0].lstrip("# ") for place in places)


def meanings(kind: type) -> dict[str, str]:
    """What the fields of a value mean, and what it computes from them; a child's words before its parent's."""
    found: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        if parent is not msgspec.Struct and issubclass(parent, msgspec.Struct):
            found |= {name: told for name, told in _own(parent).items() if told}
    return found


def _own(kind: type) -> dict[str, str]:
    path = Path(inspect.getfile(kind))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (node,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == kind.__name__)
    fields = {
        one.target.id: words(one, path)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    return fields | {name: inspect.getdoc(member) or "" for name, member in computed(kind).items()}


def computed(kind: type) -> dict[str, property | cached_property[object]]:
    """The public properties of a class, in the order in which they are written."""
    return {
        name: member
        for name, member in vars(kind).items()
        if isinstance(member, property | cached_property) and not name.startswith("_")
    }
