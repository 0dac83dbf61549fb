"""A strategy as it stands in a body: a text, or lists of names and arguments.

Guards: both forms of one strategy are the same to everything behind this.
"""

from __future__ import annotations

from typing import Any

from fairway.errors import BadStrategy
from fairway.face import checks
from fairway.strategy.lists import from_json


def text_of(form: str | list[Any] | None) -> str:
    """The strategy's text; "" if none is given. BadStrategy names the place, by a caret or by a path."""
    if not isinstance(form, list):
        return checks.strategy(form)
    try:
        strategy = from_json(form)
    except BadStrategy as error:
        raise BadStrategy(f"strategy: {error}", argument="strategy", **error.details) from None
    return checks.strategy(strategy)
