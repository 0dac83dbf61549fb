"""The page of Python names, from signatures and docstrings.

Guards: a public name of Fairway is on the page, with the arguments that it takes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import fairway
import fairway.aio
import fairway.spark
from fairway.errors import FairwayError
from fairway.strategy.terms import Strategy
from tools.reference import beside
from tools.reference.writing import code, opening, table

WORDS = """\
Public names are those of `fairway`, `fairway.aio`, `fairway.spark` and `fairway.testing`; everything else may move.
Errors have [a page of their own](errors.md), so have [strategies](../strategies.md). Times are seconds since 1970,
durations are seconds.
"""
VALUES = (
    *("Submission", "Lease", "Result", "DeadChunk", "Event", "QueueConfig", "QueueStats", "TenantView"),
    *("ConsumerView", "BucketLease", "DeadMessage", "BucketConfig", "BucketStats"),
)
CLASSES = ("Queue", "BucketQueue", "Ring")
INSIDE = {"fetch", "described", "seal"}  # fields that are no business of a caller
WIDTH = 100  # columns of a signature on one line
# Their verbs are those of Queue and BucketQueue with `await`.
AWAITED = ("AsyncQueue", "AsyncBucketQueue")


def page() -> str:
    parts = [opening("Python", "the docstrings", WORDS), "\n## Opening and working\n"]
    parts += [_function("fairway.open", fairway.open), _function("fairway.delete", fairway.delete)]
    parts += [_function("fairway.work", fairway.work)]
    parts += [_function("fairway.aio.open", fairway.aio.open, signature=False)]
    for name in CLASSES:
        kind = getattr(fairway, name)
        parts += [f"\n## {name}\n", f"{inspect.getdoc(kind)}\n"]
        parts += [_function(f"{name}.{verb}", member) for verb, member in verbs(kind)]
        parts += native() if name == "Ring" else []
    parts += ["\n## Queues in an event loop\n"]
    parts += [f"`{name}`: {inspect.getdoc(getattr(fairway, name))}\n" for name in AWAITED]
    parts += ["\n## Strategies\n", table(("block", "what it hands out"), _strategies())]
    parts += ["\n## What queues give\n"]
    parts += [_value(getattr(fairway, name)) for name in VALUES]
    parts += ["\n## fairway.spark\n"]
    parts += [_function(f"fairway.spark.{name}", getattr(fairway.spark, name)) for name in _spark()]
    return "\n".join(parts)


def listed() -> set[str]:
    """The public names that the page tells of, or that have a page of their own."""
    errors = {name for name in fairway.__all__ if _is(name, FairwayError)}
    blocks = {name for name in fairway.__all__ if _is(name, Strategy)}
    return (
        {"open", "delete", "aio", "work", "errors", "__version__", *VALUES, *CLASSES, *AWAITED}
        | errors
        | blocks
    )


def _is(name: str, kind: type) -> bool:
    found = getattr(fairway, name)
    return isinstance(found, type) and issubclass(found, kind)


def verbs(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods that a class has in Python, in the order in which they are written."""
    for name, member in vars(kind).items():
        if not name.startswith("_") and callable(getattr(kind, name)):
            yield name, getattr(kind, name) if isinstance(member, staticmethod | classmethod) else member


def native() -> list[str]:
    """The verbs of the ring that are written in C, as its stub has them; they are the same without a compiler."""
    tree = ast.parse((Path(fairway.__file__).parent / "ring" / "_ring.pyi").read_text(encoding="utf-8"))
    (handle,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Handle")
    return [_native(node) for node in handle.body if isinstance(node, ast.FunctionDef) and _told(node)]


def _told(node: ast.FunctionDef) -> bool:
    return not (node.name.startswith("_") or node.decorator_list or node.name in vars(fairway.Ring))


def _native(node: ast.FunctionDef) -> str:
    name = f"Ring.{node.name}"
    line = ast.unparse(node).partition(":\n")[0].replace("def ", "Ring.")
    line = line.replace("(self, ", "(").replace("(self)", "()").replace("=", " = ")
    return f"### {name}\n\n```text\n{line}\n```\n\n{ast.get_docstring(node) or ''}\n"


def _function(name: str, function: Any, signature: bool = True) -> str:
    words = inspect.getdoc(function) or ""
    head = f"### {name}\n"
    if not signature:
        return f"{head}\n{words}\n"
    return f"{head}\n```text\n{_signature(name, function)}\n```\n\n{words}\n"


def _signature(name: str, function: Any) -> str:
    found = inspect.signature(function)
    parts: list[str] = []
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if one.name != "self":
            parts.append(_parameter(one))
    gives = "" if found.return_annotation is found.empty else f" -> {_type(found.return_annotation)}"
    line = f"{name}({', '.join(parts)}){gives}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){gives}"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation is one.empty else f": {_type(one.annotation)}"
    if one.default is one.empty:
        return f"{stars}{one.name}{kind}"
    return f"{one.name}{kind} = {one.default!r}" if kind else f"{one.name}={one.default!r}"


def _strategies() -> list[tuple[str, str]]:
    found = [name for name in fairway.__all__ if _is(name, Strategy) and name != "Strategy"]
    return [(code(name), inspect.getdoc(getattr(fairway, name)) or "") for name in found]


def _value(kind: type) -> str:
    told = beside.meanings(kind)
    fields = [
        (code(field.name), _type(field.type), told.get(field.name, ""))
        for field in msgspec.structs.fields(kind)
        if field.name not in INSIDE
    ]
    made = [(code(name), told[name]) for name in beside.computed(kind)]
    parts = [
        f"### {kind.__name__}\n",
        f"{inspect.getdoc(kind)}\n",
        table(("field", "type", "meaning"), fields),
    ]
    return "\n".join([*parts, "", table(("also", "meaning"), made)] if made else parts)


def _type(kind: Any) -> str:
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    text = text.strip("'")
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def _spark() -> list[str]:
    return sorted(getattr(fairway.spark, "_WHERE"))  # noqa: B009 - the names that it gives
