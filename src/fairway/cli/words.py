"""What people write in arguments: durations, pairs of metadata, bytes from a file.

Guards: what cannot be read is a usage error that shows what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter, Token

from fairway.errors import BadArgument

_UNITS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")


def seconds(text: str) -> float:
    """A duration: 90, 90s, 1.5h."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration; write 90, 90s, 5m, 1.5h or 2d")
    return float(found[1]) * _UNITS[found[2]]


def _convert(_: Any, tokens: Sequence[Token]) -> float:
    return seconds(tokens[0].value)


Seconds = Annotated[float, Parameter(converter=_convert, metavar="DURATION")]


def pairs(given: Sequence[str]) -> dict[str, str | int]:
    """Metadata: key=text, key:=number."""
    found: dict[str, str | int] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.removesuffix(":"):
            raise ValueError(f"{pair!r} is not a pair; write key=text, or key:=5 for a number")
        if name.endswith(":"):
            try:
                found[name[:-1]] = int(value)
            except ValueError:
                raise ValueError(f"{pair!r}: {value!r} is not a whole number; write key=text") from None
        else:
            found[name] = value
    return found


def _check_pairs(_: Any, given: Sequence[str] | None) -> None:
    pairs(given or ())


Pairs = Annotated[
    list[str] | None,
    Parameter(
        name="--meta",
        validator=_check_pairs,
        negative="",
        help="Metadata: key=text, or key:=5 for a number; may be repeated.",
    ),
]


def blob(text: str) -> bytes:
    """A text as it stands, or @FILE for what is in a file."""
    if not text.startswith("@"):
        return text.encode(errors="surrogateescape")
    return read(text[1:])


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadArgument(f"{path} cannot be read: {error.strerror}; give a file that is there") from None
