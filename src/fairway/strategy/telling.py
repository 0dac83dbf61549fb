"""Why a strategy does not choose a run first, in words that a person understands.

Guards: it says that a run cannot be picked exactly when no tier admits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fairway.strategy.candidate import Candidate, value_of
from fairway.strategy.terms import Base, CustomPriority, Fair, NewestFirst, OldestFirst, Random
from fairway.strategy.tiers import Tier, Value

Counts = Mapping[str, Mapping[Value, int]]
"""Chunks in flight by key and value."""

_FIRST: dict[type[Base], str] = {
    Fair: "tenants take turns, and the turn of tenant {tenant} comes when it is the lowest",
    Random: "every chunk is equally likely",
    OldestFirst: "older submissions are first",
    NewestFirst: "newer submissions are first",
    CustomPriority: "higher priorities are first, and tenants take turns at priority {priority}",
}


def held_back(tiers: Iterable[Tier], run: Candidate, counts: Counts, consumers: int) -> str:
    """Why the run is not picked now, or, if it can be, what is before it."""
    if not run.eligible:
        return "it has no chunk that can be handed out now"
    reasons: list[str] = []
    for tier in tiers:
        reason = refused(tier, run, counts, consumers)
        if reason is None:
            words = _FIRST[tier.base].format(tenant=_shown(run.tenant), priority=run.priority)
            reasons.append(f"after what is free of that, {words}" if reasons else words)
            break
        if reason not in reasons:
            reasons.append(reason)
    return "; ".join(reasons)


def refused(tier: Tier, run: Candidate, counts: Counts, consumers: int) -> str | None:
    """Why a tier does not admit an eligible run; None if it does."""
    for key, wanted in tier.selection:
        value = value_of(run, key)
        if value is None:
            return f"not selected: it has no {key}"
        if value != wanted:
            return f"not selected: {key} is {_shown(value)}, not {_shown(wanted)}"
    for key, cap in tier.limits:
        value = value_of(run, key)
        if value is not None:
            out, most = counts.get(key, {}).get(value, 0), cap.at(consumers)
            if out >= most:
                share = f" ({cap.percent}% of {consumers} consumers)" if most != cap.chunks else ""
                return f"limit {key}={value}: {out} of {most} in flight{share}"
    return None


def _shown(value: Value) -> str:
    return msgspec.json.encode(value).decode()
