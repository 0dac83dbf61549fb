"""The arguments of blocks: each check gives the value that the block keeps, or raises BadStrategy.

Guards: what passes is within its limits and of one type; the error names the argument, its bounds and what was given.
"""

from __future__ import annotations

import operator
import re
from typing import Final, NoReturn

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.tiers import Cap, Value

_INT64_MAX: Final = 2**63 - 1
_PERCENT: Final = re.compile(r"([1-9][0-9]?|100)%")


def refuse(block: str, argument: str, bounds: str, given: object) -> NoReturn:
    huge = isinstance(given, int) and given.bit_length() > 256  # Python refuses to print it
    shown = "such a long number" if huge else repr(given)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise BadStrategy(f"{argument} of {block} must be {bounds}, not {shown}", argument=argument)


def key(block: str, given: object) -> str:
    """The key of a pair: "tenant", or one of the metadata."""
    bounds = f"a text of 1 to {limits.METADATA_KEY_BYTES_MAX} bytes"
    return _text(block, "key", given, bounds, 1, limits.METADATA_KEY_BYTES_MAX)


def value(block: str, key: str, given: object) -> Value:
    """The value of a pair: a text, or a whole number of 64 bits."""
    if isinstance(given, str):
        bounds = f"a text of at most {limits.METADATA_VALUE_BYTES_MAX} bytes"
        return _text(block, "value", given, bounds, 0, limits.METADATA_VALUE_BYTES_MAX)
    if key == "tenant":
        refuse(block, "value", "a text, for a tenant is one", given)
    if isinstance(given, bool) or not isinstance(given, int) or not -_INT64_MAX - 1 <= given <= _INT64_MAX:
        refuse(block, "value", "a text or a whole number of 64 bits", given)
    return operator.index(given)


def count(block: str, given: object, hint: str = "") -> int:
    """The max of a limit as a number of chunks."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= limits.IN_FLIGHT_CHUNKS_MAX:
        refuse(block, "max", f"a whole number from 1 to {limits.IN_FLIGHT_CHUNKS_MAX}{hint}", given)
    return operator.index(given)


def count_or_percent(block: str, given: object) -> int | str:
    """The max of a hard limit: a number of chunks, or a share of the consumers such as "10%"."""
    if isinstance(given, str) and _PERCENT.fullmatch(given):
        return str.__str__(given)
    return count(block, given, ' or a share of the consumers from "1%" to "100%"')


def cap(max: int | str) -> Cap:
    """The limit that a checked max means."""
    return Cap(percent=int(max[:-1])) if isinstance(max, str) else Cap(max)


def _text(block: str, argument: str, given: object, bounds: str, low: int, high: int) -> str:
    if not isinstance(given, str):
        refuse(block, argument, bounds, given)
    try:
        size = len(given.encode())
    except UnicodeEncodeError:
        refuse(block, argument, "a text that can be written as UTF-8", given)
    if not low <= size <= high:
        refuse(block, argument, bounds, given)
    return str.__str__(given)  # what it holds: `str` of a text that is an Enum's is its name
