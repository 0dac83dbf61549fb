"""`fairway verify`: what each history proves to be wrong, told line by line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from rich.console import Console

from fairway.testing import checker
from fairway.testing.bucket import checker as bucket_checker
from fairway.testing.history import BadHistory, History, load
from fairway.testing.linear import checker as linear_checker
from fairway.testing.violation import Violation

_STORIES_MAX = 20  # more of the same teaches nothing
_KINDS: dict[str, ModuleType] = {
    "bucket": bucket_checker,
    "linear": linear_checker,
}  # whose histories have a checker of their own


def checker_of(history: History) -> ModuleType:
    """The checker for a history of this kind: `check_history` gives what is wrong, CHECKS are what it looks for."""
    return _KINDS.get(str(history.header.origin.get("kind")), checker)


def verify(history: Path, /, *more: Path, json: bool = False) -> int:
    """Check histories that a simulation or a test wrote.

    Parameters
    ----------
    history
        A JSONL file: one line per begin and end of a call; packed by xz, or not.
    more
        Others, each checked by itself.
    json
        Print one JSON object for each and nothing else.
    """
    tell = _print_plain if json else _print_story
    wrong = 0
    for path in (history, *more):
        wrong += tell(path, *_judged(path), named=bool(more))
    return 1 if wrong else 0


def _judged(path: Path) -> tuple[History, ModuleType, list[Violation]]:
    try:
        read = load(path)
        kind = checker_of(read)
        return read, kind, kind.check_history(read)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Lines are open values, so that every kind has words of its own; only its checks know which they need.
        raise BadHistory(
            f"{path} lacks something that its checks read, or has something else where they look:"
            f" {type(error).__name__}: {error}; give a file that `fairway sim` or a test wrote, unaltered"
        ) from error


def _print_plain(
    path: Path, read: History, kind: ModuleType, violations: list[Violation], *, named: bool
) -> int:
    told: dict[str, Any] = {"history": str(path)} if named else {}
    told |= {
        "lines": len(read.lines),
        "requests": len(read.requests),
        "checks": len(kind.CHECKS),
        "violations": [
            {"check": v.check, "what": v.what, "lines": [n + 1 for n in v.places]} for v in violations
        ],
    }
    print(msgspec.json.encode(told).decode())
    return len(violations)


def _print_story(
    path: Path, read: History, kind: ModuleType, violations: list[Violation], *, named: bool
) -> int:
    console = Console()
    for violation in violations[:_STORIES_MAX]:
        console.print(violation.story(read), markup=False, highlight=False, soft_wrap=True)
    verdict = f"{len(violations)} violations" if violations else "nothing wrong"
    console.print(
        f"{f'{path}: ' if named else ''}{len(read.lines):,} lines, {len(read.requests):,} requests,"
        f" {len(kind.CHECKS)} checks: {verdict}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return len(violations)
