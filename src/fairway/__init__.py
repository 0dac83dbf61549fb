"""Fairway: a fair, durable work queue for multi-tenant data pipelines."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from fairway import errors
from fairway.bucket.config import BucketConfig
from fairway.bucket.counting import BucketStats
from fairway.engine.commands import ConsumerView, QueueStats, TenantView
from fairway.errors import (
    AlreadyEnded,
    BadArgument,
    BadMedia,
    BadMethod,
    BadStrategy,
    Busy,
    CallerError,
    ClientUnknown,
    Closed,
    ConsumerFenced,
    FairwayError,
    Fenced,
    Forbidden,
    GroupUnknown,
    HostStuck,
    KeyConflict,
    LeaseLost,
    NoHost,
    NotFairway,
    NotFound,
    NothingToRedrive,
    NotOwner,
    NotRing,
    ObjectMissing,
    OurError,
    OutcomeUnknown,
    OwnerGone,
    PayloadCorrupt,
    QueueDeleted,
    QueueHeld,
    ReadOnly,
    RequestDropped,
    ReservationLapsed,
    ReservationOpen,
    RingCorrupt,
    RingCrowded,
    RingForeign,
    RingForked,
    RingFull,
    RingMissing,
    SchemaNewer,
    SeqTrimmed,
    SlowBody,
    StateError,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    TooLarge,
    TooManyCalls,
    TooManyStrategies,
    Unauthorized,
    Unreachable,
    WaitTimeout,
    WrongKind,
)
from fairway.face.bucket.leases import BucketLease, DeadMessage
from fairway.face.bucket.queue import AsyncBucketQueue, BucketQueue
from fairway.face.queue import AsyncQueue, Queue
from fairway.face.results import Result
from fairway.model.config import QueueConfig
from fairway.model.event import Event
from fairway.model.lease import Lease
from fairway.model.submission import DeadChunk, Submission
from fairway.strategy.terms import (
    CustomPriority,
    Fair,
    MaxSimultaneous,
    NewestFirst,
    OldestFirst,
    OrElse,
    PreferDistinct,
    Random,
    SelectOnly,
    Strategy,
)

if _TYPE_CHECKING:
    from fairway import aio
    from fairway.deleting import delete
    from fairway.opening import open
    from fairway.ring.face import Ring
    from fairway.worker.working import work

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 - grouped
    # opening
    "open",
    "delete",
    "aio",
    "Queue",
    "AsyncQueue",
    "BucketQueue",
    "AsyncBucketQueue",
    "work",
    # what queues give
    "Submission",
    "Lease",
    "Result",
    "DeadChunk",
    "Event",
    "QueueConfig",
    "QueueStats",
    "TenantView",
    "ConsumerView",
    # messages between processes
    "Ring",
    # what bucket queues give
    "BucketLease",
    "DeadMessage",
    "BucketConfig",
    "BucketStats",
    # strategies
    "Strategy",
    "Fair",
    "Random",
    "OldestFirst",
    "NewestFirst",
    "CustomPriority",
    "SelectOnly",
    "PreferDistinct",
    "MaxSimultaneous",
    "OrElse",
    # errors: the root, the caller's mistakes, states that changed, our failures
    "errors",
    "FairwayError",
    "CallerError",
    "BadArgument",
    "BadStrategy",
    "TooLarge",
    "NotFound",
    "KeyConflict",
    "NothingToRedrive",
    "NotFairway",
    "WrongKind",
    "SchemaNewer",
    "ReadOnly",
    "NotRing",
    "RingForeign",
    "RingMissing",
    "Unauthorized",
    "Forbidden",
    "BadMethod",
    "SlowBody",
    "BadMedia",
    "StateError",
    "LeaseLost",
    "AlreadyEnded",
    "ConsumerFenced",
    "SeqTrimmed",
    "ReservationOpen",
    "ReservationLapsed",
    "ClientUnknown",
    "RequestDropped",
    "Fenced",
    "QueueHeld",
    "HostStuck",
    "NoHost",
    "NotOwner",
    "Closed",
    "RingCrowded",
    "RingForked",
    "RingFull",
    "QueueDeleted",
    "WaitTimeout",
    "TooManyCalls",
    "TooManyStrategies",
    "Busy",
    "OurError",
    "StoreFailed",
    "StoreFull",
    "StoreCorrupt",
    "GroupUnknown",
    "OutcomeUnknown",
    "OwnerGone",
    "PayloadCorrupt",
    "Unreachable",
    "ObjectMissing",
    "RingCorrupt",
    "__version__",
]


def __getattr__(name: str) -> _Any:
    # The engine and asyncio are most of the time of an import, and a program that only names things needs neither.
    if name == "open":
        found = _import_module("fairway.opening").open
    elif name == "delete":
        found = _import_module("fairway.deleting").delete
    elif name == "work":
        found = _import_module("fairway.worker.working").work
    elif name == "aio":
        found = _import_module("fairway.aio")
    elif name == "Ring":
        found = _import_module("fairway.ring.face").Ring
    else:
        raise AttributeError(f"module 'fairway' has no attribute {name!r}")
    globals()[name] = found
    return found
