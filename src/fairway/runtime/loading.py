"""Loading an engine: taking the queue over and reading it whole.

Guards: what is read is read after taking over, so nobody else can have changed it since.
"""

from __future__ import annotations

import secrets

from fairway.engine.engine import Engine
from fairway.engine.source import Source
from fairway.engine.state import Start
from fairway.errors import FairwayError, StoreCorrupt
from fairway.limits import WINDOW_ROWS
from fairway.model.stored import Meta
from fairway.runtime.clock import Clock
from fairway.runtime.collecting import Pause
from fairway.store.port import Store


def load_sound(source: Source, meta: Meta, start: Start, clock: Clock) -> Engine:
    """An engine from what is stored; bytes that make no sense are damage, whatever error they lead to."""
    try:
        engine = Engine.load(source, meta, start)
    except FairwayError:
        raise
    except Exception as error:
        raise StoreCorrupt(
            f"The file is damaged: what is stored cannot be read ({error!r}); nothing was changed. Restore a backup."
        ) from error
    clock.go_on_from(engine.state.now)
    return engine


def load(
    name: str,
    store: Store,
    clock: Clock,
    forget_leases: bool = False,
    above_id: int = 0,
    window_rows: int = WINDOW_ROWS,
) -> Engine:
    """An engine that owns the queue."""
    meta = store.take_over()
    start = Start(
        name,
        secrets.randbits(32),
        secrets.randbits(64),
        clock.now(),
        forget_leases,
        above_id,
        window_rows,
    )
    pause = Pause()
    pause.begin()  # the collector would walk over all of it many times
    try:
        engine = load_sound(store, meta, start, clock)
        pause.end(engine)
    finally:
        pause.end()
    return engine
