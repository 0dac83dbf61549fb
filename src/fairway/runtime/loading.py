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


def load(name: str, store: Store, clock: Clock, forget_leases: bool = False) -> Engine:
    """An engine that owns the queue."""
    meta = store.take_over()
    start = Start(name, secrets.randbits(32), secrets.randbits(64), clock.now(), forget_leases)
    engine = Engine.load(store, meta, start)
    if len(engine.state.runs) >= _RUNS_FROZEN_MIN:
        # Young garbage is collected first; else it would be frozen with the rest and never leave.
        gc.collect(1)
        gc.freeze()
    return engine
