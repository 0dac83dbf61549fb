"""What REST takes and gives: a type for every body, from which the OpenAPI document is made.

Guards: an id is a text in JSON, for its 63 bits do not fit into the numbers of every reader.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fairway import limits
from fairway.face.results import Result
from fairway.model.lease import Lease
from fairway.model.submission import Submission

Id = Annotated[str, Meta(pattern="^[0-9]{1,19}$", description="a submission's id, in decimal")]
Receipt = Annotated[
    str, Meta(min_length=9, max_length=limits.RECEIPT_CHARS_MAX, description="a lease's receipt, as it came")
]
Name = Annotated[str, Meta(max_length=limits.TENANT_BYTES_MAX)]
Consumer = Annotated[str, Meta(min_length=1, max_length=limits.CONSUMER_NAME_BYTES_MAX)]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0, le=limits.DELAY_SECONDS_MAX)]
Time = Annotated[float, Meta(ge=0, le=1e11, description="seconds since 1970")]
LeaseSeconds = Annotated[float, Meta(ge=limits.LEASE_SECONDS_MIN, le=limits.LEASE_SECONDS_MAX)]
WaitSeconds = Annotated[float, Meta(ge=0, le=limits.HTTP_WAIT_SECONDS_MAX)]
Weight = Annotated[float, Meta(ge=limits.WEIGHT_MIN, le=limits.WEIGHT_MAX)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
MetaValue = Annotated[str, Meta(max_length=limits.METADATA_VALUE_BYTES_MAX)] | Int64
Metadata = dict[Annotated[str, Meta(min_length=1, max_length=limits.METADATA_KEY_BYTES_MAX)], MetaValue]
Prefix = Annotated[str, Meta(min_length=1, max_length=limits.OBJECT_PREFIX_BYTES_MAX)]
StrategyText = Annotated[str, Meta(max_length=limits.STRATEGY_CHARS_MAX)]
StrategyList = Annotated[
    list[Any],
    Meta(
        min_length=1,
        max_length=4,  # a block's name and at most three arguments
        description="a block as a list: its name and its arguments, of which a strategy is a list or a text again",
        examples=[["SelectOnly", "mode", "preview", "Random"]],
    ),
]
StrategyForm = StrategyText | StrategyList
Priority = Annotated[int, Meta(ge=-limits.PRIORITY_MAX, le=limits.PRIORITY_MAX)]
Receipts = Annotated[list[Receipt], Meta(max_length=limits.CALL_CHUNKS_MAX)]


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """Root of what is taken: a field that is not known is refused."""


# -- taken ----------------------------------------------------------------------------------------------------


class Segment(Body, frozen=True):
    """Chunks whose payloads are the objects prefix/0, prefix/1, ..."""

    prefix: Prefix  # the names before the slash, such as s3://bucket/folder
    count: Annotated[int, Meta(ge=0, le=limits.CHUNKS_MAX)]  # chunks of this prefix


class _Work(Body, frozen=True, kw_only=True):
    tenant: Name = ""
    metadata: Metadata = {}
    info: bytes = b""  # for the worker
    priority: Priority = 0
    # makes it safe to repeat: the same key with the same content is the same submission
    key: Annotated[str, Meta(min_length=1, max_length=limits.KEY_BYTES_MAX)] | None = None
    weight: Weight | None = None  # the tenant's share from now on
    not_before: Time | None = None
    delay_seconds: Seconds | None = None  # nothing is handed out for so long
    deadline: Time | None = None
    # a deadline, counted from now
    deadline_seconds: Annotated[float, Meta(ge=0.001, le=limits.DELAY_SECONDS_MAX)] | None = None
    # deliveries of a chunk, then it is dead; the queue's setting if left out
    attempts_max: Annotated[int, Meta(ge=1, le=limits.ATTEMPTS_MAX_MAX)] | None = None


class NewSubmission(_Work, frozen=True, kw_only=True):
    """A submission: `payloads` in base64, or `chunks` with or without `objects`."""

    payloads: list[bytes] | None = None  # one chunk each
    chunks: Annotated[int, Meta(ge=0, le=limits.CHUNKS_MAX)] | None = None  # how many, without payloads
    # where the payloads are: a prefix for all chunks, or segments
    objects: Prefix | list[Segment] | None = None
    policy: Literal["fail_fast", "dead_letter"] = "fail_fast"
    delete_objects: bool = False  # its objects go when the submission is forgotten


class NewMessage(_Work, frozen=True, kw_only=True):
    """A message: a submission of one chunk with an inline payload, in base64."""

    payload: bytes  # the bytes of its one chunk
    policy: Literal["fail_fast", "dead_letter"] = "dead_letter"


NewSubmissions = Annotated[list[NewSubmission], Meta(max_length=limits.CALL_OFFERS_MAX)]
NewMessages = Annotated[list[NewMessage], Meta(max_length=limits.CALL_OFFERS_MAX)]


class Reserving(Body, frozen=True, kw_only=True):
    """What is to be reserved; with `consumer`, its `epoch` (of `join`) and `seq` the reservation has a name."""

    max: Annotated[int, Meta(ge=1, le=limits.RESERVE_CHUNKS_MAX)] = 1  # chunks at most
    strategy: StrategyForm | None = None  # how to choose; the queue's own if left out
    lease_seconds: LeaseSeconds | None = None  # how long the leases last; the queue's setting if left out
    wait_seconds: WaitSeconds = 0.0  # how long to wait if there is nothing
    consumer: Consumer | None = None  # a name of `join`
    epoch: Seq | None = None  # what `join` gave
    seq: Seq | None = None  # asked again with the same one, the same chunks come back until `trim`


class Joining(Body, frozen=True, kw_only=True):
    """A consumer's name to take over; whoever had it before is refused from then on."""

    consumer: Consumer  # its name


class Completed(Body, frozen=True, kw_only=True):
    """A lease that is done, with its result in base64 if there is one."""

    receipt: Receipt  # of the lease
    result: bytes | None = None  # its bytes


class Completing(Body, frozen=True, kw_only=True):
    """Leases that are done. `by_reference`: the results are objects already, under the names of `writer`."""

    leases: Annotated[list[Completed], Meta(max_length=limits.CALL_CHUNKS_MAX)]  # done ones
    by_reference: bool = False  # the results were written already, as objects
    writer: Annotated[int, Meta(ge=0, le=2**62 - 1)] = 0  # the number in the names of those objects


class Failing(Body, frozen=True, kw_only=True):
    """Leases that failed."""

    receipts: Receipts  # of the leases
    error: Annotated[str, Meta(max_length=limits.ERROR_BYTES_MAX)] = ""  # why, for the dead letter
    retry: bool = True  # false: give up at once
    delay_seconds: Seconds | None = None  # until it is tried again; the queue's back-off if left out


class Renewing(Body, frozen=True, kw_only=True):
    """Leases to hold for longer."""

    receipts: Receipts  # of the leases
    seconds: LeaseSeconds | None = None  # from now; the queue's lease time if left out


class Releasing(Body, frozen=True, kw_only=True):
    """Leases to give back untouched."""

    receipts: Receipts  # of the leases


class Trimming(Body, frozen=True, kw_only=True):
    """Named reservations to forget, up to `seq`."""

    consumer: Consumer  # its name
    epoch: Seq  # what `join` gave
    seq: Seq  # the last one to forget
    complete: bool = False  # complete what is left of them


class TenantChange(Body, frozen=True, kw_only=True):
    """A tenant's weight, its pause, or both."""

    tenant: Name  # its name
    weight: Weight | None = None  # its share beside the others'
    paused: bool | None = None  # true: hand out nothing of it; false: go on


# -- given ----------------------------------------------------------------------------------------------------


class SubmissionView(msgspec.Struct, frozen=True):
    """A submission as it is now."""

    id: str  # a 63-bit number, as a text
    state: Literal["active", "completed", "failed", "cancelled"]
    tenant: str
    total: int
    done: int
    failed: int
    leased: int
    created: float
    ended: float
    life: int
    paused: bool
    metadata: dict[str, str | int]
    info: bytes
    priority: int
    policy: Literal["fail_fast", "dead_letter"]
    not_before: float
    deadline: float
    key: str
    error: str
    error_index: int


class LeaseView(msgspec.Struct, frozen=True):
    """A chunk that is the caller's until `deadline`: `payload` in base64, or the name of its `object`.

    `late`: its payload did not fit into the answer; get it at submissions/{id}/chunks/{index}.
    """

    receipt: str  # text that proves the lease; give it back as it came
    submission: str  # its id; of a bucket queue the id of the message
    index: int
    attempt: int
    deadline: float
    tenant: str
    metadata: dict[str, str | int]
    info: bytes
    payload: bytes | None  # the bytes, if they are inline
    object: str | None  # the payload's object, if it is by reference
    result_object: str | None  # where a result by reference is expected from writer 0
    late: bool = False  # the payload did not fit into the answer
    put_at: float = 0.0  # when a message of a bucket queue was put


class ResultView(msgspec.Struct, frozen=True):
    """A registered result: its bytes in base64, or the name of its object."""

    index: int
    data: bytes | None
    object: str | None


class DeadView(msgspec.Struct, frozen=True):
    """A chunk that was given up; of a bucket queue a message, with all it held: its payload for the right `work`."""

    submission: str  # its id; of a bucket queue the id of the message
    index: int
    tenant: str
    attempts: int
    error: str
    at: float
    payload: bytes | None = None  # of a message of a bucket queue, for who may `work`
    metadata: dict[str, str | int] = {}  # its headers
    put_at: float = 0.0  # when it was put
    payload_bytes: int | None = None  # how long its payload is


class EventView(msgspec.Struct, frozen=True):
    """What happened to chunks [start, start + count) of a submission; `number` is that of the group it is in."""

    number: int
    what: str
    time: float
    submission: str
    start: int
    count: int
    attempt: int
    tenant: str
    detail: str


class TenantRow(msgspec.Struct, frozen=True):
    """A tenant as it is now."""

    name: str
    weight: float
    paused: bool
    submissions: int
    waiting: int
    leased: int


class ConsumerRow(msgspec.Struct, frozen=True):
    """A named consumer as it is now."""

    name: str
    seqs: list[int]
    seen: float


class Ids(msgspec.Struct, frozen=True):
    """The ids of messages, in the order they were given."""

    ids: list[str]  # one for each message


class Submissions(msgspec.Struct, frozen=True):
    """A page of submissions; `next` is the `after` of the next page, null at the end."""

    submissions: list[SubmissionView]  # this page
    next: str | None  # the `after` of the next page; null: this is the last


class Leases(msgspec.Struct, frozen=True):
    """A reservation."""

    leases: list[LeaseView]  # none if nothing came in time


class Outcomes(msgspec.Struct, frozen=True):
    """An outcome per lease, in the order given; `deadline` is that of renewed leases.

    A bucket queue gives each renewed lease another receipt; the old one counts no more.
    """

    # one for each lease
    outcomes: list[
        Literal["done", "already", "lost", "ended", "retrying", "dead", "released", "renewed", "unknown"]
    ]
    deadline: float = 0.0  # when the renewed leases end
    receipts: list[str] = []  # of a bucket queue: the new receipts of renewed leases


class Results(msgspec.Struct, frozen=True):
    """A page of results in index order."""

    results: list[ResultView]  # this page
    next: int | None  # the `after` of the next page; null: this is the last


class DeadChunks(msgspec.Struct, frozen=True):
    """A page of chunks that were given up."""

    dead: list[DeadView]  # this page
    next: str | None  # the `after` of the next page; null: this is the last


class Events(msgspec.Struct, frozen=True):
    """A page of the event log; `next` is the `after` of the next page, there or not yet there."""

    events: list[EventView]  # this page
    next: int  # the `after` of the next page


class TenantsPage(msgspec.Struct, frozen=True):
    """A page of tenants, by name; `more` says whether others follow the last one."""

    tenants: list[TenantRow]  # this page
    more: bool  # others follow


class ConsumersPage(msgspec.Struct, frozen=True):
    """The named consumers, by name."""

    consumers: list[ConsumerRow]  # all of them


class Explained(msgspec.Struct, frozen=True):
    """What a strategy would hand out next, in words."""

    text: str  # several lines


class Joined(msgspec.Struct, frozen=True):
    """The epoch of a consumer: it goes with its reservations."""

    epoch: int  # rises with every join


class ClientView(msgspec.Struct, frozen=True):
    """A registered client, for the header Fairway-Client."""

    client: str  # what the header takes


class Health(msgspec.Struct, frozen=True):
    """Whether the server works."""

    status: str


# -- made -----------------------------------------------------------------------------------------------------

_SUBMISSION = [field.name for field in msgspec.structs.fields(SubmissionView)][1:]


def submission_view(found: Submission) -> SubmissionView:
    return SubmissionView(str(found.id), *(getattr(found, name) for name in _SUBMISSION))


def lease_view(lease: Lease) -> LeaseView:
    d = lease.described
    return LeaseView(
        lease.receipt, str(lease.submission), lease.index, lease.attempt, lease.deadline, d.tenant, d.metadata,
        d.info, lease.data, lease.object, lease.result_object(0), lease.data is None and bool(d.page_starts),
    )  # fmt: skip


def result_view(result: Result) -> ResultView:
    return ResultView(result.index, result.data, result.object)


def words(body: Body) -> dict[str, Any]:
    """The fields of a body that were given, as keywords of a verb."""
    return {
        name: value
        for name in body.__struct_fields__
        if (value := getattr(body, name)) is not None and value != {}
    }
