"""The garbage collector, kept away from structures that are large and no garbage.

Guards: whoever paused the collector lets it run again; a caller that had it off finds it off.
"""

from __future__ import annotations

import gc

from fairway.engine.engine import Engine

_RUNS_FROZEN_MIN = 10_000  # from here on the collector's walks over the engine can be felt


class Pause:
    """A time in which nothing is collected, while something is made of which nothing is garbage."""

    __slots__ = ("_on",)

    def __init__(self) -> None:
        self._on = False

    def begin(self) -> None:
        """May be called again before `end`."""
        if gc.isenabled():
            gc.disable()
            self._on = True

    def end(self, engine: Engine | None = None) -> None:
        """Collect again, but do not walk over a large engine; does nothing if there was no pause."""
        if not self._on:
            return
        self._on = False
        if engine is not None and len(engine.state.runs) >= _RUNS_FROZEN_MIN:
            gc.freeze()
        gc.enable()


def let_go() -> None:
    """An engine is no longer used: what was frozen with it can be collected again."""
    gc.unfreeze()
