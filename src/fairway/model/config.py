"""A queue's configuration: one frozen value, checked whole.

Guards: a configuration that exists is within its limits.
"""

from __future__ import annotations

import msgspec

from fairway import limits
from fairway.errors import BadArgument


class QueueConfig(msgspec.Struct, frozen=True):
    """What `configure` sets, with the defaults of a new queue."""

    attempts_max: int = 5  # deliveries of a chunk, then it is dead; a submission may have its own
    lease_seconds: float = 60.0  # how long a lease lasts where a reserve does not say
    retention_seconds: float = 86_400.0  # how long what ended stays readable
    event_seconds: float = 7 * 86_400.0  # how long the event log is kept; the audit reads it
    # the first back-off after a failure; it doubles with every attempt
    retry_delay_seconds: float = limits.RETRY_DELAY_SECONDS
    retry_delay_seconds_max: float = limits.RETRY_DELAY_SECONDS_MAX  # where the doubling stops
    # a consumer that says nothing for so long loses its named reservations
    consumer_silent_seconds: float = limits.CONSUMER_SILENT_SECONDS
    # a client that numbers its calls and says nothing for so long is forgotten, with its stored answers
    client_silent_seconds: float = limits.CLIENT_SILENT_SECONDS
    strategy: str = "Fair"  # how to choose where a reserve does not say
    strategy_locked: bool = False  # a reserve that names another strategy is refused


_BOUNDS: dict[str, tuple[float, float]] = {
    "attempts_max": (1, limits.ATTEMPTS_MAX_MAX),
    "lease_seconds": (limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX),
    "retention_seconds": (0.0, limits.RETENTION_SECONDS_MAX),
    "event_seconds": (0.0, limits.EVENT_SECONDS_MAX),
    "retry_delay_seconds": (0.0, limits.DELAY_SECONDS_MAX),
    "retry_delay_seconds_max": (0.0, limits.DELAY_SECONDS_MAX),
    "consumer_silent_seconds": (1.0, limits.RETENTION_SECONDS_MAX),
    "client_silent_seconds": (1.0, limits.RETENTION_SECONDS_MAX),
}


def changed(config: QueueConfig, changes: dict[str, object]) -> QueueConfig:
    """The configuration with changes, or BadArgument that names the field and its bounds."""
    known = {field.name: field for field in msgspec.structs.fields(QueueConfig)}
    for name, value in changes.items():
        field = known.get(name)
        if field is None:
            raise BadArgument(f"configure has no setting {name!r}; it has {', '.join(known)}")
        if name in _BOUNDS:
            low, high = _BOUNDS[name]
            numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
            whole = isinstance(value, int) or field.type is float
            if not numeric or not whole or not low <= value <= high:  # pyright: ignore[reportOperatorIssue]
                raise BadArgument(f"{name} must be a number from {low} to {high}, not {value!r}")
        elif not isinstance(value, field.type):
            raise BadArgument(f"{name} must be a {field.type.__name__}, not {value!r}")
    plain = {name: known[name].type(value) for name, value in changes.items()}  # also of a derived type
    return msgspec.structs.replace(config, **plain)
