"""A bucket queue's configuration: one frozen value, checked whole.

Guards: a configuration that exists is within its limits.
"""

from __future__ import annotations

import msgspec

from fairway import limits
from fairway.errors import BadArgument


class BucketConfig(msgspec.Struct, frozen=True):
    """What `configure` sets, with the defaults of a new bucket queue."""

    attempts_max: int = 5  # deliveries of a message, then it is a dead letter
    lease_seconds: float = 60.0  # how long a lease lasts where a reserve does not say
    # the first back-off after a failure; it doubles with every delivery
    retry_delay_seconds: float = limits.RETRY_DELAY_SECONDS
    retry_delay_seconds_max: float = limits.RETRY_DELAY_SECONDS_MAX  # where the doubling stops
    bucket_rows: int = 1000  # messages in one bucket; then its node goes on to the next
    open_buckets: int = 4  # buckets that one node fills side by side
    seal_seconds: float = 30.0  # a bucket that nobody put into for so long is sealed

    def back_off(self, attempts: int) -> float:
        """How long a message rests after its n-th failed delivery."""
        return min(self.retry_delay_seconds * 2.0 ** (attempts - 1), self.retry_delay_seconds_max)


_BOUNDS: dict[str, tuple[float, float]] = {
    "attempts_max": (1, limits.ATTEMPTS_MAX_MAX),
    "lease_seconds": (limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX),
    "retry_delay_seconds": (0.0, limits.DELAY_SECONDS_MAX),
    "retry_delay_seconds_max": (0.0, limits.DELAY_SECONDS_MAX),
    "bucket_rows": (1, limits.BUCKET_ROWS_MAX),
    "open_buckets": (1, limits.OPEN_BUCKETS_MAX),
    "seal_seconds": (0.0, limits.SEAL_SECONDS_MAX),
}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(BucketConfig).decode


def changed(config: BucketConfig, changes: dict[str, object]) -> BucketConfig:
    """The configuration with changes, or BadArgument that names the setting and its bounds."""
    plain: dict[str, float] = {}
    for name, value in changes.items():
        if name not in _BOUNDS:
            raise BadArgument(
                f"a bucket queue has no setting {name!r}; it has {', '.join(_BOUNDS)}", argument=name
            )
        low, high = _BOUNDS[name]
        whole = isinstance(low, int)
        numeric = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not numeric or not low <= value <= high:  # pyright: ignore[reportOperatorIssue]
            kind = "a whole number" if whole else "a number"
            raise BadArgument(f"{name} must be {kind} from {low} to {high}, not {value!r}", argument=name)
        plain[name] = int(value) if whole else float(value)  # pyright: ignore[reportArgumentType]
    return msgspec.structs.replace(config, **plain)


def packed(config: BucketConfig) -> bytes:
    """A configuration as it is stored."""
    return _encode(config)


def unpacked(body: bytes) -> BucketConfig:
    """A stored configuration; settings of a later Fairway are left out."""
    return _decode(body)
