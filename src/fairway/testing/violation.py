"""A violation: which promise was broken, and the lines of the history that show it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairway.testing.history import Begin, End, Header, History, Line, Note, Request

_LINE_CHARS_MAX = 220  # one line of a story on a wide screen


class Violation(msgspec.Struct, frozen=True):
    """What is wrong, in a sentence, and the places of the lines that matter."""

    check: str
    what: str
    places: tuple[int, ...] = ()

    def story(self, history: History) -> str:
        """The sentence and its lines, as a person reads them."""
        told = [f"{self.check}: {self.what}"]
        told += [f"  {place + 1:>5}  {spoken(history.lines[place])}" for place in sorted(set(self.places))]
        return "\n".join(told)


def found(check: str, what: str, *requests: Request, places: Iterable[int] = ()) -> Violation:
    """A violation told with the lines of some requests."""
    lines = [place for request in requests for place in request.lines()]
    return Violation(check, what, tuple(sorted({*lines, *places})))


def spoken(line: Line) -> str:
    """A line of a history in words."""
    if isinstance(line, Header):
        told = f"header {line.origin}"
    elif isinstance(line, Note):
        told = f"{line.t:.3f} ** {line.what} {_plain(line.args)}"
    elif isinstance(line, Begin):
        number = f" #{line.client}.{line.number}" if line.number else ""
        told = f"{line.t:.3f} {line.who}{number} call {line.call}: {line.op} {_plain(line.args)}"
    else:
        told = f"{line.t:.3f} call {line.call} -> {_answer(line)}"
    return told if len(told) <= _LINE_CHARS_MAX else told[: _LINE_CHARS_MAX - 3] + "..."


def _answer(line: End) -> str:
    if line.error:
        return f"error {line.error}"
    if isinstance(line.ok, dict):
        return _plain({name: value for name, value in line.ok.items() if name not in ("runs", "payloads")})
    return _plain(line.ok)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(
            f"{name}={_plain(one)}" for name, one in value.items() if one not in (None, "", 0, [], {})
        )
    return msgspec.json.encode(value).decode()
