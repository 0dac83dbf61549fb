"""The words of a command line, put in order before they are read.

Guards: wherever a place was named (an option, a variable), it is the first argument of its command. This module is
loaded for every command, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

STORE: Final = "FAIRWAY_STORE"
STDIN: Final = "/dev/stdin"


def placed(
    commands: set[tuple[str, ...]],
    chain: tuple[str, ...],
    rest: Sequence[str],
    environment: Mapping[str, str],
) -> list[str]:
    """The command line with its place as the first argument, wherever it was given."""
    if chain not in commands:
        return [*chain, *rest]
    words, store = list(rest), environment.get(STORE)
    end = words.index("--") if "--" in words else len(words)
    for i, word in enumerate(words[:end]):
        if word == "--store" and i + 1 < end:
            store = words[i + 1]
            del words[i : i + 2]
            break
        if word.startswith("--store="):
            store = word.removeprefix("--store=")
            del words[i]
            break
    if chain == ("submit",):
        # A lone "-" would be read as an option without a name.
        words = [STDIN if word == "-" else word for word in words]
    return [*chain, *([store] if store else []), *words]
