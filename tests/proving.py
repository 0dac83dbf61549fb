"""How long the long forms of `make proof` are: the number that was promised, or one from the environment."""

from __future__ import annotations

import os


def number(name: str, promised: int) -> int:
    """FAIRWAY_PROOF_<NAME>, for a short form of a proof on a small machine; what was promised without it."""
    return int(os.environ.get(f"FAIRWAY_PROOF_{name}", promised))
