"""The text form of strategies, used in REST, the CLI, logs and options.

Guards: `parse(str(s)) == s` for every strategy; an error points at the place with a caret.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.terms import BLOCKS, Strategy, StrategyLike

_TOKEN: Final = re.compile(r"\s*(?:([A-Za-z_][A-Za-z_0-9]*)|(.)|$)", re.DOTALL)
_SHOWN_BEFORE: Final = 60  # a long text is shown around the place of the error only
_SHOWN_AFTER: Final = 30


def canonical(strategy: StrategyLike) -> str:
    """The one text form of a strategy, a block or a text; BadStrategy if it is none."""
    return str(as_strategy(strategy))


def as_strategy(strategy: object) -> Strategy:
    """The strategy that a value, a block or a text stands for; BadStrategy if it is none."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str):
        return parse(strategy)
    for block in BLOCKS.values():
        if strategy is block:
            return block()
    raise BadStrategy(f"a strategy is a block such as Fair() or its text, not {strategy!r:.100}; {_known()}")


def parse(text: str) -> Strategy:
    """The strategy a text stands for: `Fair`, `Fair()`, with white space anywhere between the parts."""
    if len(text) > limits.STRATEGY_CHARS_MAX:
        raise BadStrategy(f"a strategy has at most {limits.STRATEGY_CHARS_MAX} characters, not {len(text)}")
    reader = _Reader(text)
    strategy = reader.block()
    if reader.kind != "end":
        reader.fail(f"unexpected {reader.token!r} after the end of the strategy")
    return strategy


class _Reader:
    """One token ahead: its kind (name, mark or end), its text and where it begins."""

    __slots__ = ("_next", "at", "kind", "text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self._next = 0
        self.kind = "end"
        self.token = ""
        self.at = 0
        self.step()

    def step(self) -> None:
        match = _TOKEN.match(self.text, self._next)
        assert match is not None  # the pattern matches anything, the end included
        kind = {None: "end", 1: "name", 2: "mark"}[match.lastindex]
        self.at = match.end() if kind == "end" else match.start(match.lastindex or 0)
        self.kind, self.token = kind, match.group(match.lastindex or 0).strip()
        self._next = match.end()

    def block(self) -> Strategy:
        if self.kind == "end":
            self.fail(f"a strategy is missing here; {_known()}")
        if self.kind != "name":
            self.fail(f"unexpected {self.token!r} where a block should begin; {_known()}")
        block = BLOCKS.get(self.token)
        if block is None:
            self.fail(f"unknown block {self.token!r:.60}; {_known()}")
        self.step()
        if self.passed("("):
            self.close(block.__name__)
        return block()

    def passed(self, mark: str) -> bool:
        if self.token != mark:
            return False
        self.step()
        return True

    def close(self, name: str) -> None:
        if self.kind == "end":
            self.fail("a ')' is missing here")
        if not self.passed(")"):
            self.fail(f"{name} takes no argument")

    def fail(self, why: str) -> NoReturn:
        start = max(0, self.at - _SHOWN_BEFORE)
        shown = "".join(c if c.isprintable() else " " for c in self.text[start : self.at + _SHOWN_AFTER])
        caret = " " * (self.at - start) + "^"
        raise BadStrategy(f"{why}\n  {shown}\n  {caret}", at=self.at)


def _known() -> str:
    return "known are " + ", ".join(sorted(BLOCKS))
