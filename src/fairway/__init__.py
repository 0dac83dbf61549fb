"""Fairway: a fair, durable work queue for multi-tenant data pipelines."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from fairway import errors
from fairway.engine.commands import ConsumerView, QueueStats, TenantView
from fairway.errors import (
    AlreadyEnded,
    BadArgument,
    BadStrategy,
    CallerError,
    ClientUnknown,
    Closed,
    ConsumerFenced,
    FairwayError,
    Fenced,
    GroupUnknown,
    HostStuck,
    KeyConflict,
    LeaseLost,
    NoHost,
    NotFairway,
    NotFound,
    NothingToRedrive,
    ObjectMissing,
    OurError,
    PayloadCorrupt,
    QueueHeld,
    ReadOnly,
    RequestDropped,
    ReservationOpen,
    SchemaNewer,
    SeqTrimmed,
    StateError,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    TooLarge,
    WaitTimeout,
)
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
    from fairway.runtime.opening import open

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 - grouped
    # opening
    "open",
    "aio",
    "Queue",
    "AsyncQueue",
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
    "SchemaNewer",
    "ReadOnly",
    "StateError",
    "LeaseLost",
    "AlreadyEnded",
    "ConsumerFenced",
    "SeqTrimmed",
    "ReservationOpen",
    "ClientUnknown",
    "RequestDropped",
    "Fenced",
    "QueueHeld",
    "HostStuck",
    "NoHost",
    "Closed",
    "WaitTimeout",
    "OurError",
    "StoreFailed",
    "StoreFull",
    "StoreCorrupt",
    "GroupUnknown",
    "PayloadCorrupt",
    "ObjectMissing",
    "__version__",
]


def __getattr__(name: str) -> _Any:
    # The engine and asyncio are most of the time of an import, and a program that only names things needs neither.
    if name == "open":
        found = _import_module("fairway.runtime.opening").open
    elif name == "aio":
        found = _import_module("fairway.aio")
    else:
        raise AttributeError(f"module 'fairway' has no attribute {name!r}")
    globals()[name] = found
    return found
