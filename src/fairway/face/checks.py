"""Checks of arguments: each returns the value in the form the queue works with, or raises BadArgument.

Guards: what passes is within its limits, and of the plain type that every store and every wire takes, also when a
derived one was given; the message names the argument, its bounds and what was given.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from fairway import limits
from fairway.errors import BadArgument, BadStrategy
from fairway.model.submission import Policy, Submission
from fairway.strategy.terms import StrategyLike
from fairway.strategy.text import canonical

_INT64_MAX = 2**63 - 1
_MOMENT_MAX = 1e11  # the year 5138: later is a number in milliseconds
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^?#\n]+")  # a URL's path ends at "?" and "#"
_POLICIES: tuple[Policy, ...] = ("fail_fast", "dead_letter")


def refuse(name: str, bounds: str, value: object) -> NoReturn:
    shown = (
        f"{len(value)} bytes"
        if isinstance(value, bytes | bytearray) and len(value) > 60
        else f"{value!r:.80}"
    )
    raise BadArgument(f"{name} must be {bounds}, not {shown}", argument=name)


def whole(name: str, value: object, low: int, high: int) -> int:
    bounds = f"a whole number from {low} to {high}"
    if isinstance(value, bool):
        refuse(name, bounds, value)
    try:
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:  # also of what has `__index__` and is no single number, such as an array
        refuse(name, bounds, value)
    if not low <= number <= high:
        refuse(name, bounds, value)
    return number


def number(name: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        refuse(name, f"a number from {low:g} to {high:g}", value)
    return float(value)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        refuse(name, "True or False", value)
    return value


def text(name: str, value: object, bytes_max: int, bytes_min: int = 0) -> str:
    if not isinstance(value, str):
        refuse(name, f"a str of {bytes_min} to {bytes_max} bytes", value)
    # A character has at most four bytes, so most texts need no encoding to be measured.
    if len(value) * 4 > bytes_max or len(value) < bytes_min or not value.isascii():
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            refuse(name, "a str that can be written as UTF-8", value)
        if not bytes_min <= size <= bytes_max:
            refuse(name, f"a str of {bytes_min} to {bytes_max} bytes", f"{value[:40]}... ({size} bytes)")
    return value if type(value) is str else str.__str__(value)


def blob(name: str, value: object, bytes_max: int) -> bytes:
    if type(value) is not bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            hint = "; encode the text first" if isinstance(value, str) else ""
            refuse(name, f"bytes{hint}", value)
        value = bytes(memoryview(value))
    if len(value) > bytes_max:
        refuse(name, f"at most {bytes_max} bytes", f"{len(value)} bytes")
    return value


def error_text(value: object) -> str:
    """An error's text; what is too long loses its beginning, for the end of a traceback tells the error."""
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    if not isinstance(value, str):
        refuse("error", "a str or an exception", value)
    if len(value) * 4 <= limits.ERROR_BYTES_MAX:
        return value.encode(errors="replace").decode()
    return value.encode(errors="replace")[-limits.ERROR_BYTES_MAX :].decode(errors="ignore")


def moment(name: str, value: object) -> float:
    """Seconds since 1970, or a datetime with a time zone; None is 0.0."""
    if value is None:
        return 0.0
    if isinstance(value, datetime):
        if value.tzinfo is None:
            refuse(name, "a datetime with a time zone, or seconds since 1970", value)
        value = value.timestamp()
    return number(name, value, 0.0, _MOMENT_MAX)


def seconds(name: str, value: object, low: float, high: float) -> float:
    """None is 0.0, which means: not given."""
    return 0.0 if value is None else number(name, value, low, high)


def metadata(value: object, name: str = "metadata") -> dict[str, str | int]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        refuse(name, "a mapping of str to str or int", value)
    if len(value) > limits.METADATA_KEYS_MAX:
        refuse(name, f"at most {limits.METADATA_KEYS_MAX} keys", f"{len(value)} keys")
    return {_metadata_key(name, key): _metadata_value(name, key, item) for key, item in value.items()}


def _metadata_key(name: str, key: object) -> str:
    if key == "tenant":
        raise BadArgument(f"{name} cannot hold 'tenant'; give it as tenant=", argument=name)
    return text(f"a key of {name}", key, limits.METADATA_KEY_BYTES_MAX, 1)


def _metadata_value(name: str, key: object, value: object) -> str | int:
    if isinstance(value, str):
        return text(f"{name}[{key!r}]", value, limits.METADATA_VALUE_BYTES_MAX)
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        refuse(f"{name}[{key!r}]", "a str or a whole number of 64 bits", value)
    return operator.index(value)


def policy(value: object) -> Policy:
    for known in _POLICIES:
        if value == known:
            return known
    refuse("policy", "'fail_fast' or 'dead_letter'", value)


def strategy(value: StrategyLike | None) -> str:
    """The strategy's text; None is the queue's own."""
    try:
        return "" if value is None else canonical(value)
    except BadStrategy as error:
        raise BadStrategy(f"strategy: {error}", argument="strategy", **error.details) from None


def submission_id(value: object) -> int:
    """A submission's id, or the submission itself."""
    if isinstance(value, Submission):
        return value.id
    return whole("submission", value, 1, _INT64_MAX)


def seq(value: object) -> int:
    return whole("seq", value, 0, _INT64_MAX)


def tenant(value: object) -> str:
    return text("tenant", value, limits.TENANT_BYTES_MAX)


def consumer(value: object) -> str:
    return text("consumer", value, limits.CONSUMER_NAME_BYTES_MAX, 1)


def prefix(name: str, value: object) -> str:
    """An object prefix, without the slash at its end."""
    found = text(name, value, limits.OBJECT_PREFIX_BYTES_MAX, 1).rstrip("/")
    if not _URL.fullmatch(found):
        refuse(
            name,
            "a URL such as s3://bucket/prefix or file:///data/prefix, without '?' and '#' (in file:// %3F and %23)",
            value,
        )
    return found


def queue_name(value: object) -> str:
    name = text("queue", value, limits.QUEUE_NAME_BYTES_MAX, 1)
    if not _QUEUE_NAME.fullmatch(name):
        refuse("queue", "letters, digits and '_', '.', '-', not beginning with '.' or '-'", value)
    return name


def keywords(item: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse a keyword that a verb does not have."""
    for name in item:
        if name not in known:
            raise BadArgument(
                f"there is no argument {name!r}; there are {', '.join(sorted(known))}", argument=str(name)
            )
