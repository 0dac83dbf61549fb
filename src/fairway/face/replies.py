"""Replies: the form in which every command and every read is answered.

Guards: whatever carries an answer, it comes out with the type it had when it went in.
"""

from __future__ import annotations

from typing import Any, Final

from fairway.engine.commands import (
    Accepted,
    Cancel,
    Complete,
    Configure,
    Consumers,
    ConsumerView,
    Explain,
    Fail,
    Finish,
    Finished,
    Goodbye,
    Join,
    ListActive,
    ListDead,
    Pause,
    Purge,
    QueueStats,
    Redrive,
    Register,
    Release,
    Renew,
    Reserve,
    Reserved,
    Settled,
    SetWeight,
    Show,
    ShowConfig,
    Stats,
    Submit,
    Tenants,
    TenantView,
    Trim,
    Wait,
    Win,
    Winners,
)
from fairway.face.reads import Describe, ListEnded, ListEndedDead, ReadEvents, ReadPages, ReadResults
from fairway.model.stored import ResultPage
from fairway.model.submission import DeadChunk, Described, Submission

REPLIES: Final[dict[type[Any], Any]] = {
    Register: int,
    Submit: Accepted,
    Reserve: Reserved,
    Complete: Settled,
    Fail: Settled,
    Renew: Settled,
    Release: Settled,
    Cancel: Submission,
    Redrive: Submission,
    Pause: None,
    SetWeight: None,
    Configure: dict[str, Any],
    Join: int,
    Trim: None,
    Finish: Finished,
    Purge: int,
    Goodbye: None,
    Show: Submission,
    Wait: Submission,
    ListActive: list[Submission],
    ListDead: list[DeadChunk],
    Stats: QueueStats,
    Tenants: list[TenantView],
    Consumers: list[ConsumerView],
    Explain: str,
    ShowConfig: dict[str, Any],
    Winners: list[Win],
}

READ_REPLIES: Final[dict[type[Any], Any]] = {
    ReadPages: dict[tuple[int, int], bytes],
    ListEnded: list[Submission],
    ListEndedDead: tuple[int | None, list[DeadChunk]],
    Describe: Described,
    ReadResults: list[ResultPage],
    ReadEvents: list[tuple[int, float, bytes]],
}
