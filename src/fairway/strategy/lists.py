"""The form of strategies in JSON, for REST: a block is its name, or a list of its name and its arguments.

Guards: `from_json(to_json(s)) == s` for every strategy; an error names the place as a path such as [3][1].

`SelectOnly("mode", "preview", Random)` is `["SelectOnly", "mode", "preview", "Random"]`. Where a strategy is
expected a string is the text form, so a caller may send that as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, cast

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.terms import BLOCKS, INNER, Strategy, arguments_of, parameters_of
from fairway.strategy.text import known, parse, usage


def to_json(strategy: Strategy) -> object:
    """What `json.dumps` takes: a string for an order, a list for a block with arguments."""
    given = arguments_of(strategy)
    name = type(strategy).__name__
    return [name, *(to_json(a) if isinstance(a, Strategy) else a for a in given)] if given else name


def from_json(given: object) -> Strategy:
    """The strategy that decoded JSON stands for; BadStrategy if it is none."""
    return _block(given, "", 1)


def _block(given: object, path: str, level: int) -> Strategy:
    if isinstance(given, str):
        try:
            return parse(given)
        except BadStrategy as error:
            _fail(path, str(error))
    if not isinstance(given, list | tuple) or not given:
        _fail(path, f"a strategy is a name or a list of a name and its arguments, not {given!r:.60}")
    if level > limits.STRATEGY_LEVELS_MAX:
        _fail(path, f"{limits.STRATEGY_LEVELS_MAX} levels of blocks are the most")
    name, *parts = cast("Sequence[object]", given)
    block = BLOCKS.get(name) if isinstance(name, str) else None
    if block is None:
        _fail(path + "[0]", f"unknown block {name!r:.60}; {known()}")
    names = parameters_of(block)
    if len(parts) != len(names):
        takes = f"takes {len(names)} arguments: {usage(block)}" if names else "takes no argument"
        _fail(path, f"{name} {takes}, not {len(parts)}")
    for i, argument in enumerate(names):
        if argument in INNER:
            parts[i] = _block(parts[i], f"{path}[{i + 1}]", level + 1)
    try:
        return block(*parts)
    except BadStrategy as error:
        argument = error.details.get("argument")
        _fail(path + (f"[{names.index(str(argument)) + 1}]" if argument in names else ""), str(error))


def _fail(path: str, why: str) -> NoReturn:
    raise BadStrategy(f"at {path}: {why}" if path else why, path=path)
