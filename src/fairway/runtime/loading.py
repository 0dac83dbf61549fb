"""Loading an engine: taking the queue over and reading it whole.

Guards: what is read is read after taking over, so nobody else can have changed it since.
"""

from __future__ import annotations

import gc
import secrets

from fairway.engine.engine import Engine
from fairway.engine.state import Start
from fairway.runtime.clock import Clock
from fairway.store.port import Store

_RUNS_FROZEN_MIN = 10_000  # from here on the collector's walks over the engine can be felt


def load(name: str, store: Store, clock: Clock, forget_leases: bool = False, above_id: int = 0) -> Engine:
    """An engine that owns the queue."""
    meta = store.take_over()
    start = Start(name, secrets.randbits(32), secrets.randbits(64), clock.now(), forget_leases, above_id)
    collecting = gc.isenabled()
    gc.disable()  # nothing that a load makes is garbage, and the collector would walk over all of it many times
    try:
        engine = Engine.load(store, meta, start)
    finally:
        if collecting:
            gc.enable()
    if len(engine.state.runs) >= _RUNS_FROZEN_MIN:
        gc.freeze()
    return engine


def let_go() -> None:
    """An engine is no longer used: what was frozen with it can be collected again."""
    gc.unfreeze()
