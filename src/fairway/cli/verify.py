"""`fairway verify`: what a history proves to be wrong, told line by line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import msgspec
from rich.console import Console

from fairway.testing import checker
from fairway.testing.bucket import checker as bucket_checker
from fairway.testing.history import BadHistory, History, load
from fairway.testing.linear import checker as linear_checker

_STORIES_MAX = 20  # more of the same teaches nothing
_KINDS: dict[str, ModuleType] = {
    "bucket": bucket_checker,
    "linear": linear_checker,
}  # whose histories have a checker of their own


def checker_of(history: History) -> ModuleType:
    """The checker for a history of this kind: `check_history` gives what is wrong, CHECKS are what it looks for."""
    return _KINDS.get(str(history.header.origin.get("kind")), checker)


def verify(history: Path, /, *, json: bool = False) -> int:
    """Check a history that a simulation or a test wrote.

    Parameters
    ----------
    history
        A JSONL file: one line per begin and end of a call.
    json
        Print one JSON object and nothing else.
    """
    try:
        read = load(history)
        kind = checker_of(read)
        violations = kind.check_history(read)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Lines are open values, so that every kind has words of its own; only its checks know which they need.
        raise BadHistory(
            f"{history} lacks something that its checks read, or has something else where they look:"
            f" {type(error).__name__}: {error}; give a file that `fairway sim` or a test wrote, unaltered"
        ) from error
    if json:
        told = {
            "lines": len(read.lines),
            "requests": len(read.requests),
            "checks": len(kind.CHECKS),
            "violations": [
                {"check": v.check, "what": v.what, "lines": [n + 1 for n in v.places]} for v in violations
            ],
        }
        print(msgspec.json.encode(told).decode())
        return 1 if violations else 0
    console = Console()
    for violation in violations[:_STORIES_MAX]:
        console.print(violation.story(read), markup=False, highlight=False, soft_wrap=True)
    verdict = f"{len(violations)} violations" if violations else "nothing wrong"
    console.print(
        f"{len(read.lines):,} lines, {len(read.requests):,} requests, {len(kind.CHECKS)} checks: {verdict}",
        highlight=False,
    )
    return 1 if violations else 0
