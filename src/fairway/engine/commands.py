"""What can be asked of the engine, and what it answers.

Guards: commands and replies are plain values, so they can be stored, sent and replayed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fairway.model.submission import DeadChunk, Described, Offer, Submission

Span = tuple[int, int, int]  # (submission, first index, count)
LeasedSpan = tuple[int, int, int, int]  # and the attempt
Outcome = Literal["done", "already", "lost", "ended", "retrying", "dead", "released", "renewed"]


class _Command(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Root of all commands."""


# -- mutating ---------------------------------------------------------------------------------------------


class Register(_Command, frozen=True, tag=1):
    """A new client; answered with its id."""


class Submit(_Command, frozen=True, tag=2):
    """Offers, all accepted or none; answered with Accepted."""

    offers: list[Offer]


class Reserve(_Command, frozen=True, tag=3):
    """Hand out up to `max` chunks; answered with Reserved."""

    max: int = 1
    strategy: str = ""  # "": the queue's own
    lease_seconds: float = 0.0  # 0.0: the queue's own
    wait_seconds: float = 0.0
    consumer: str = ""
    consumer_epoch: int = 0
    seq: int = 0
    worker: int = 0  # which of its client's workers asks: a thread, a task
    # A named one that comes again under a new epoch, with nothing completed, is halved; False: it is whole or refused.
    halve: bool = True


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Some leases of one reservation."""

    epoch: int
    count: int
    seal: int
    spans: list[Span]


class Complete(_Command, frozen=True, tag=4):
    """Results; answered with Settled."""

    parts: list[Part]
    results: list[bytes | None] | None = None  # one per chunk, in the order of parts and spans
    by_reference: bool = False  # the results are objects under their implied names
    writer: int = 0


class Fail(_Command, frozen=True, tag=5):
    """Failures; answered with Settled."""

    parts: list[Part]
    error: str = ""
    retry: bool = True
    delay_seconds: float = -1.0  # negative: the queue's back-off


class Renew(_Command, frozen=True, tag=6):
    """New deadlines; answered with Settled."""

    parts: list[Part]
    seconds: float = 0.0  # 0.0: the queue's lease time


class Release(_Command, frozen=True, tag=7):
    """Leases given back untouched: no attempt counts; answered with Settled."""

    parts: list[Part]


class Cancel(_Command, frozen=True, tag=8):
    """End a submission; answered with its Submission."""

    id: int


class Redrive(_Command, frozen=True, tag=9):
    """Open dead and skipped chunks again in a new life; answered with the Submission."""

    id: int


class Pause(_Command, frozen=True, tag=10):
    """Set or clear one of the three pause flags; answered with None."""

    on: bool
    tenant: str | None = None
    submission: int = 0  # with tenant None and submission 0: the queue


class SetWeight(_Command, frozen=True, tag=11):
    """A tenant's share, in thousandths; answered with None."""

    tenant: str
    weight: int


class Configure(_Command, frozen=True, tag=12):
    """Change the configuration; answered with the new QueueConfig as a dict."""

    changes: dict[str, int | float | str | bool]


class Join(_Command, frozen=True, tag=13):
    """Take a consumer name over; answered with its new epoch."""

    consumer: str
    run: str = ""  # what other processes of the same run can show instead of the epoch
    error: str = ""  # what the one before ended with, for the dead letter of a chunk that is given up for it


class Trim(_Command, frozen=True, tag=14):
    """Forget the named reservations up to seq; answered with None."""

    consumer: str
    consumer_epoch: int
    seq: int
    complete: bool = False  # first complete what is unfinished in them


class Purge(_Command, frozen=True, tag=15):
    """Remove what is over, for the runtime's sweeper; answered with how many submissions and keys went."""

    ids: list[int] = []
    keys: list[tuple[str, str]] = []
    events_before: float = 0.0


class Goodbye(_Command, frozen=True, tag=16):
    """The client is leaving: its waits vanish and its outcomes are forgotten."""


class Finish(_Command, frozen=True, tag=17):
    """Settle what a consumer was handed, whole: these results, these failures, and all the rest as done;
    answered with Finished."""

    consumer: str
    consumer_epoch: int = 0  # 0: the run speaks
    run: str = ""
    completed: list[Complete] = []
    failed: list[Fail] = []
    first: bytes | None = None  # an inline result for the rest: for the first chunk of each submission
    others: bytes | None = None  # and one for each of the others
    whole: bool = (
        False  # refuse if a chunk that was handed out is no longer leased: the result is of them all
    )


# -- reading ------------------------------------------------------------------------------------------------


class Show(_Command, frozen=True, tag=32):
    """One submission; answered with a Submission."""

    id: int


class Wait(_Command, frozen=True, tag=33):
    """Answered with the Submission when it has ended, or as it is when the time is over."""

    id: int
    seconds: float


class ListActive(_Command, frozen=True, tag=34):
    """Active submissions with id > after; answered with a list of Submission in id order."""

    tenant: str | None = None
    metadata: dict[str, str | int] = {}
    after: int = 0
    limit: int = 1000


class ListDead(_Command, frozen=True, tag=35):
    """Dead chunks of active submissions; answered with a list of DeadChunk."""

    after: int = 0
    limit: int = 1000


class Stats(_Command, frozen=True, tag=36):
    """Counts; answered with a QueueStats."""


class Tenants(_Command, frozen=True, tag=37):
    """Answered with a list of TenantView, by name."""

    after: str | None = None
    limit: int = 1000


class Consumers(_Command, frozen=True, tag=38):
    """Answered with a list of ConsumerView."""


class Explain(_Command, frozen=True, tag=39):
    """What a strategy would hand out next, and why others wait; answered with text."""

    strategy: str = ""
    limit: int = 10


class Winners(_Command, frozen=True, tag=40):
    """Which attempts won [start, start + count) of a submission; answered with a list of Win."""

    id: int
    start: int
    count: int


class ShowConfig(_Command, frozen=True, tag=41):
    """The configuration; answered with the QueueConfig as a dict."""


Command = (
    Register | Submit | Reserve | Complete | Fail | Renew | Release | Cancel | Redrive | Pause | SetWeight
    | Configure | Join | Trim | Purge | Goodbye | Finish
    | Show | Wait | ListActive | ListDead | Stats | Tenants | Consumers | Explain | Winners
    | ShowConfig
)  # fmt: skip

READS = (Show, Wait, ListActive, ListDead, Stats, Tenants, Consumers, Explain, Winners, ShowConfig)


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A command with its request number; number 0 promises nothing on retry."""

    command: Command
    client: int = 0
    number: int = 0
    received: int = 0  # every number up to this was answered and the answer received


# -- replies ------------------------------------------------------------------------------------------------


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Ids in the order of the offers; `known` marks those whose key was there already."""

    ids: list[int]
    known: list[bool]


class Reserved(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Leases in the order of the picks; `runs` describes the submissions in them."""

    epoch: int
    count: int
    seal: int
    deadline: float
    spans: list[LeasedSpan]
    runs: dict[int, Described] = {}


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """An outcome per chunk, in the order asked, as runs of equal ones: (outcome, how many)."""

    outcomes: list[tuple[Outcome, int]]
    deadline: float = 0.0  # of renewed leases


class Win(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Chunks [start, start + count) were completed by this attempt; kind 0: no result, 1: inline, 2: object."""

    start: int
    count: int
    epoch: int
    reservation: int
    writer: int
    kind: int


class Finished(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """What became of each completion and failure, and how many chunks of the rest are done now."""

    completed: list[Settled]
    failed: list[Settled]
    rest: int
    before: int = 0  # reservations that were handed out again though a batch had settled them: it is a replay


class QueueStats(msgspec.Struct, frozen=True):
    """Counts that are the truth at rest; `chunks_*` count chunks of active submissions."""

    queue: str  # its name
    submissions_active: int  # submissions that have not ended
    chunks_waiting: int  # not leased, done or dead: those that wait for a time or are paused count too
    chunks_leased: int  # in the hands of workers
    chunks_done: int  # completed
    chunks_dead: int  # given up
    tenants: int  # with work, a weight of their own or a pause
    reservations: int  # sets of leases that are out, each handed out or renewed together
    waiters: int  # reserves that wait for work
    paused: bool  # the queue itself
    groups: int  # transactions since the queue was opened
    calls: int  # commands carried out since then
    syncs: int  # groups since then that waited for the disk or the cluster
    chunks_retrying: int = 0  # of those that wait: in a back-off
    handed: int = 0  # chunks handed out since the queue was opened, retries included
    completed: int = 0  # chunks completed since then
    died: int = 0  # chunks given up since then, those of ended submissions and messages included


class TenantView(msgspec.Struct, frozen=True):
    """A tenant as it is now."""

    name: str  # of the tenant
    weight: float  # its share beside the others'; 1 unless set
    paused: bool  # nothing of it is handed out
    submissions: int  # active ones
    waiting: int  # chunks that are not leased, done or dead
    leased: int  # chunks in the hands of workers
    handed: int = 0  # chunks handed out since the queue was opened, or since the tenant last had nothing
    oldest: float = 0.0  # when its oldest active submission was made; 0.0: it has none


class ConsumerView(msgspec.Struct, frozen=True):
    """A named consumer as it is now."""

    name: str  # of the consumer
    epoch: int  # how often the name was taken over with `join`
    seqs: list[int]  # its named reservations that are not trimmed
    seen: float  # when it last called


Reply = (
    Accepted | Reserved | Settled | Finished | Submission | list[Submission] | list[DeadChunk] | list[Win] | QueueStats
    | list[TenantView] | list[ConsumerView] | str | int | dict[str, object] | None
)  # fmt: skip
