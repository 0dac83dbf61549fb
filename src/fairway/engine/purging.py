"""Purging: what ended long ago leaves for good.

Guards: only submissions that have ended, and are not active again, are removed.
"""

from __future__ import annotations

from fairway.engine.commands import Purge
from fairway.engine.state import State


def purge(state: State, command: Purge) -> None:
    """Remove ended submissions, keys and events whose time is over."""
    filling = state.filling
    filling.purge += [id for id in command.ids if id not in state.runs and id not in state.recent_ends]
    filling.purge_keys += [where for where in command.keys if where not in state.recent_keys]
    filling.purge_events_before = max(filling.purge_events_before, command.events_before)
