"""What REST takes and gives of whole queues, of either kind.

Guards: a setting that a kind does not have is refused by name, not ignored.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fairway import limits
from fairway.bucket.config import BucketConfig
from fairway.bucket.counting import BucketStats
from fairway.engine.commands import QueueStats
from fairway.model.config import QueueConfig
from fairway.server import views as v

MessageId = Annotated[
    str, Meta(pattern="^[0-9a-f]{32}$", description="the id of a message of a bucket queue")
]


class QueueSettings(v.Body, frozen=True, kw_only=True):
    """What `configure` sets; a setting that is left out stays as it is. `kind` is that of a queue that is made."""

    kind: Literal["fair", "bucket"] | None = None  # fair if left out
    attempts_max: Annotated[int, Meta(ge=1, le=limits.ATTEMPTS_MAX_MAX)] | None = None
    lease_seconds: v.LeaseSeconds | None = None
    retention_seconds: v.Seconds | None = None
    event_seconds: v.Seconds | None = None
    retry_delay_seconds: v.Seconds | None = None
    retry_delay_seconds_max: v.Seconds | None = None
    consumer_silent_seconds: Annotated[float, Meta(ge=1, le=limits.RETENTION_SECONDS_MAX)] | None = None
    client_silent_seconds: Annotated[float, Meta(ge=1, le=limits.RETENTION_SECONDS_MAX)] | None = None
    strategy: v.StrategyForm | None = None
    strategy_locked: bool | None = None
    bucket_rows: Annotated[int, Meta(ge=1, le=limits.BUCKET_ROWS_MAX)] | None = None
    open_buckets: Annotated[int, Meta(ge=1, le=limits.OPEN_BUCKETS_MAX)] | None = None
    seal_seconds: Annotated[float, Meta(ge=0, le=limits.SEAL_SECONDS_MAX)] | None = None


class QueueView(msgspec.Struct, frozen=True):
    """A queue: its settings and its counts."""

    name: str  # of the queue
    settings: QueueConfig  # all of them
    stats: QueueStats  # its counts


class BucketView(msgspec.Struct, frozen=True):
    """A bucket queue: its settings and its sizes."""

    name: str  # of the queue
    settings: BucketConfig  # all of them
    stats: BucketStats  # its sizes
    kind: Literal["bucket"] = "bucket"  # which a fair queue does not tell


class Letters(v.Body, frozen=True, kw_only=True):
    """Dead letters of a bucket queue, all of them if no ids are given."""

    ids: Annotated[list[MessageId], Meta(max_length=limits.CALL_OFFERS_MAX)] | None = None  # of messages


class Count(msgspec.Struct, frozen=True):
    """How many there were."""

    count: int  # messages


class Queues(msgspec.Struct, frozen=True):
    """The queues that the caller may look at."""

    queues: list[str]  # their names
