"""The text form of strategies, used in REST, the CLI, logs and options.

Guards: `parse(str(s)) == s` for every strategy; an error points at the place with a caret.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NoReturn

import msgspec

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.terms import BLOCKS, INNER, Strategy, StrategyLike, parameters_of

_TOKEN: Final = re.compile(
    r"""\s*(?:([A-Za-z_][A-Za-z_0-9]*)|("(?:[^"\\]|\\.)*")|([-+]?[0-9][0-9A-Za-z_.%+-]*)|(.)|$)""", re.DOTALL
)
_KINDS: Final = {None: "end", 1: "name", 2: "text", 3: "number", 4: "mark"}
_NUMBER: Final = re.compile("-?[0-9]+")
_SHOWN_BEFORE: Final = 60  # a long text is shown around the place of the error only
_SHOWN_AFTER: Final = 30


def canonical(strategy: StrategyLike) -> str:
    """The one text form of a strategy, a block or a text; BadStrategy if it is none."""
    text = str(as_strategy(strategy))
    if len(text) > limits.STRATEGY_CHARS_MAX:
        raise BadStrategy(f"a strategy has at most {limits.STRATEGY_CHARS_MAX} characters, not {len(text)}")
    return text


def as_strategy(strategy: object) -> Strategy:
    """The strategy that a value, a block or a text stands for; BadStrategy if it is none."""
    if isinstance(strategy, str):
        return parse(strategy)
    if isinstance(strategy, Strategy):
        return strategy
    for block in BLOCKS.values():
        if strategy is block:
            if parameters_of(block):
                raise BadStrategy(f"{block.__name__} needs its arguments: {usage(block)}")
            return block()
    raise BadStrategy(f"a strategy is a block such as Fair() or its text, not {strategy!r:.100}; {known()}")


@lru_cache(maxsize=4 * limits.PLANS_MAX)  # every reserve names one, usually the same
def parse(text: str) -> Strategy:
    """The strategy a text stands for, with white space anywhere between the parts."""
    if len(text) > limits.STRATEGY_CHARS_MAX:
        raise BadStrategy(f"a strategy has at most {limits.STRATEGY_CHARS_MAX} characters, not {len(text)}")
    reader = _Reader(text)
    strategy = reader.block(1)
    if reader.kind != "end":
        reader.fail(f"unexpected {reader.token!r:.60} after the end of the strategy")
    return strategy


def usage(block: type[Strategy]) -> str:
    """How a block is written."""
    return f"{block.__name__}({', '.join(parameters_of(block))})"


def known() -> str:
    """The names of all blocks, for an error about one that is not among them."""
    return "known are " + ", ".join(sorted(BLOCKS))


class _Reader:
    """One token ahead: its kind (name, text, number, mark or end), its text and where it begins."""

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
        kind = _KINDS[match.lastindex]
        self.at = match.end() if kind == "end" else match.start(match.lastindex or 0)
        self.kind, self.token = kind, match.group(match.lastindex or 0).strip()
        self._next = match.end()

    def block(self, level: int) -> Strategy:
        if self.kind == "end":
            self.fail(f"a strategy is missing here; {known()}")
        if self.kind != "name":
            self.fail(f"unexpected {self.token!r:.60} where a block should begin; {known()}")
        block = BLOCKS.get(self.token)
        if block is None:
            self.fail(f"unknown block {self.token!r:.60}; {known()}")
        if level > limits.STRATEGY_LEVELS_MAX:
            self.fail(
                f"{self.token} is inside {level - 1} blocks; {limits.STRATEGY_LEVELS_MAX} levels are the most"
            )
        start = self.at
        self.step()
        places: dict[str, int] = {}
        if not parameters_of(block):
            if self.passed("("):
                self.close(f"{block.__name__} takes no argument")
            return block()
        given = self.arguments(block, level, places)
        try:
            return block(*given)
        except BadStrategy as error:
            self.at = places.get(str(error.details.get("argument")), start)
            self.fail(str(error))

    def arguments(self, block: type[Strategy], level: int, places: dict[str, int]) -> list[object]:
        names, given = parameters_of(block), list[object]()
        takes = f"{block.__name__} takes {len(names)} arguments: {usage(block)}"
        if not self.passed("("):
            self.fail(takes)
        for name in names:
            if given and not self.passed(","):
                self.fail(takes if self.token == ")" else "a ',' is missing here")
            if self.token == ")":
                self.fail(takes)
            places[name] = self.at
            given.append(self.block(level + 1) if name in INNER else self.literal(name))
        self.close(takes if self.token == "," else "a ')' is missing here")
        return given

    def literal(self, name: str) -> object:
        kind, token = self.kind, self.token
        value: object = None
        if kind == "text":
            try:
                value = msgspec.json.decode(token, type=str)
            except (msgspec.DecodeError, UnicodeError):
                self.fail(f"{name} has a bad escape: texts are written as in JSON")
        elif kind == "number" and _NUMBER.fullmatch(token):
            value = int(token)
        elif kind == "number" and token.endswith("%"):
            self.fail(f'{name} stands in double quotes if it is a share: "{token:.20}"')
        elif token == '"':
            self.fail(f"the text of {name} has no end")
        else:
            self.fail(f"{name} should stand here: a text in double quotes or a whole number")
        self.step()
        return value

    def passed(self, mark: str) -> bool:
        if self.token != mark or self.kind != "mark":
            return False
        self.step()
        return True

    def close(self, otherwise: str) -> None:
        if self.kind == "end":
            self.fail("a ')' is missing here")
        if not self.passed(")"):
            self.fail(otherwise)

    def fail(self, why: str) -> NoReturn:
        start = max(0, self.at - _SHOWN_BEFORE)
        shown = "".join(c if c.isprintable() else " " for c in self.text[start : self.at + _SHOWN_AFTER])
        caret = " " * (self.at - start) + "^"
        raise BadStrategy(f"{why}\n  {shown}\n  {caret}", at=self.at)
