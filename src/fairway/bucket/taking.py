"""Taking: a consumer leases what is due, bucket by bucket.

Guards: a lease is somebody's: a take of unknown outcome is looked up until it is known to be his or nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from fairway import limits
from fairway.bucket.config import BucketConfig, unpacked
from fairway.bucket.places import LOWEST, time_of
from fairway.bucket.rows import ACKED, WAITING, Bucket, Found, IndexRow, QueueRow, Row
from fairway.bucket.statements import (
    APPLIED,
    FRESH,
    REFUSED,
    UNKNOWN,
    FindDue,
    Machine,
    Moment,
    Outcome,
    ReadIndex,
    ReadQueue,
    ReadRows,
    Rest,
    Take,
    Taken,
    read,
)

_REST = Rest(0.05)
_TRIES_MAX = 3  # refused takes in one bucket: others are at work there, so on to the next
TOP = b"\xff" * 16
"""Above every place."""


class Leased(msgspec.Struct, frozen=True):
    """A message in somebody's hands."""

    bucket: bytes
    row: Row  # with its body; version, nonce, lease and attempts are those of this lease


class Reader:
    """What a node knows as a reader of one generation: where nothing is due before when.

    It is only advice: a sealed bucket is looked at again after a second, since others give back what they hold.
    """

    def __init__(self, name: str, queue: QueueRow, node: str) -> None:
        self.name, self.generation, self.node = name, queue.generation, node
        self.config: BucketConfig = unpacked(queue.config)  # as of the last reserve
        self.floor = b""
        self.until: dict[bytes, float] = {}
        self.next_due: float | None = None  # the next one that the last reserve met
        self.index: tuple[int, list[IndexRow]] = (
            -1,
            [],
        )  # by the version of the queue that was read before it
        self.begin: dict[bytes, tuple[bytes, float]] = {}  # where a look into a bucket begins, and until when
        # For the other threads of this node: who is looking, what is about to be taken, and what was, meanwhile.
        self.looking: set[object] = set()
        self.taking: set[bytes] = set()
        self.taken: dict[bytes, int] = {}

    def saw(self, bucket: bytes, found: Found | None, now: float) -> None:
        """Remember what a look at a bucket showed."""
        if found is None or found.state == "done":
            self.until[bucket] = float("inf")
        elif found.state == "sealed" and not found.rows:
            wait = limits.SIGHTING_SECONDS_MAX
            if found.next_due is not None:
                wait = min(wait, max(0.0, found.next_due - now))
            self.until[bucket] = now + wait
        else:
            self.until.pop(bucket, None)
        if found is not None and found.next_due is not None:
            self.next_due = min(self.next_due or found.next_due, found.next_due)

    def touched(self, bucket: bytes) -> None:
        """Something in a bucket was given back here."""
        self.begin.pop(bucket, None)
        if self.until.get(bucket) != float("inf"):
            self.until.pop(bucket, None)

    def order(self, index: list[IndexRow], now: float) -> Iterator[bytes]:
        """The buckets to look at: oldest first, and among neighbours each node in an order of its own."""
        live = [row.bucket for row in index if row.due <= now and self.until.get(row.bucket, 0.0) <= now]
        for start in range(0, len(live), limits.SPREAD_BUCKETS):
            yield from sorted(live[start : start + limits.SPREAD_BUCKETS], key=self._rank)

    def choose(self, rows: list[Row], count: int, *, spread: bool) -> list[Row]:
        """Which due rows to take: the oldest; where others were faster, each node some of its own."""
        # A version below that of this node's own take: the look is older than the take.
        free = [
            row for row in rows if row.uid not in self.taking and row.version >= self.taken.get(row.uid, 0)
        ]
        return (sorted(free, key=lambda row: self._rank(row.uid)) if spread else free)[:count]

    def above(self, bucket: bytes, now: float) -> bytes:
        """Up to where nothing was due a moment ago; the first row, where that is too long ago."""
        place, until = self.begin.get(bucket, (LOWEST, 0.0))
        return place if now < until <= now + limits.SIGHTING_SECONDS_MAX else LOWEST

    def took(self, bucket: bytes, rows: list[Row], above: bytes, now: float) -> None:
        """The first due rows above a place are taken; who looks next begins behind them."""
        until = self.begin[bucket][1] if above != LOWEST and bucket in self.begin else 0.0
        self.begin[bucket] = (max(row.uid for row in rows), until or now + limits.SIGHTING_SECONDS_MAX)

    def remember(self, rows: list[Row]) -> None:
        """What was taken, for looks that began before."""
        if len(self.taken) > limits.TAKEN_ROWS_MAX:
            self.taken = {}
        if len(self.looking) > 1:
            self.taken |= {row.uid: row.version for row in rows}

    def _rank(self, place: bytes) -> bytes:
        return blake2b(place, key=self.node.encode()[:64], digest_size=8).digest()


def read_index(generation: bytes, above: bytes, up_to: bytes = TOP) -> Machine[list[IndexRow]]:
    """Every entry above a place, page by page."""
    found: list[IndexRow] = []
    while True:
        page: list[IndexRow] = yield from read(ReadIndex(generation, above, up_to, limits.INDEX_PAGE_ROWS))
        found += page
        if len(page) < limits.INDEX_PAGE_ROWS:
            return found
        above = page[-1].bucket


def reserve(reader: Reader, count: int, lease_seconds: float | None = None) -> Machine[list[Leased] | None]:
    """Lease up to `count` messages that are due, for the queue's own lease time if none is given.

    None: the queue is gone.
    """
    look = object()
    reader.looking.add(look)
    try:
        return (yield from _reserve(reader, count, lease_seconds))
    finally:
        reader.looking.discard(look)
        if not reader.looking:
            reader.taken = {}


def _reserve(reader: Reader, count: int, lease_seconds: float | None) -> Machine[list[Leased] | None]:
    queue: QueueRow | None = yield from read(ReadQueue(reader.name, reader.generation))
    if queue is None or queue.state != "live":
        return None
    reader.config = unpacked(queue.config)
    seconds = reader.config.lease_seconds if lease_seconds is None else lease_seconds
    version, index = reader.index
    if version != queue.version:
        # A bucket that is published, or a floor that moves, is another version: until then the index is this one.
        index = yield from read_index(reader.generation, queue.floor)
        reader.index = (queue.version, index)
    if queue.floor != reader.floor:
        reader.floor = queue.floor
        # A list first: other threads of this node may be writing down what they saw.
        known = list(reader.until.items())
        reader.until = {bucket: until for bucket, until in known if bucket > queue.floor}
        begun = list(reader.begin.items())
        reader.begin = {bucket: begin for bucket, begin in begun if bucket > queue.floor}
    moment: Moment = yield FRESH
    # Buckets whose time has not come are not looked at: nothing in them is due.
    reader.next_due = min((row.due for row in index if row.due > moment.now), default=None)
    leased: list[Leased] = []
    for bucket in reader.order(index, moment.now):
        leased += yield from _take_from(reader, bucket, count - len(leased), seconds)
        if len(leased) >= count:
            break
        later: Moment = yield FRESH
        if leased and later.now - moment.now > seconds / 2:
            break  # who is held up so long would lose the first ones while he looks for more
    # The same message twice: its first lease ran out on the way, and only the last one counts.
    return list({one.row.uid: one for one in leased}.values())


def _take_from(reader: Reader, bucket: bytes, count: int, lease_seconds: float) -> Machine[list[Leased]]:
    leased: list[Leased] = []
    refused = 0
    while len(leased) < count and refused < _TRIES_MAX:
        moment: Moment = yield FRESH
        want = min(count - len(leased), limits.BUCKET_BATCH_ROWS_MAX)
        limit = want + len(reader.taking) + (limits.BUCKET_BATCH_ROWS_MAX if refused else 0)
        above = reader.above(bucket, moment.now)
        find = FindDue(reader.generation, bucket, moment.now, reader.config.attempts_max, limit, above)
        found: Found | None = yield from read(find)
        if above != LOWEST and (found is None or not found.rows):
            reader.begin.pop(bucket, None)  # nothing more from there on: once more from the first row
            continue
        reader.saw(bucket, found, moment.now)
        if found is None or not found.rows:
            break
        rows = reader.choose(found.rows, want, spread=refused > 0)
        if not rows:
            refused += 1  # other threads have all of these
            continue
        uids = {row.uid for row in rows}
        reader.taking |= uids
        try:
            taken = yield from take(reader.generation, bucket, rows, moment.nonce, moment.now + lease_seconds)
            reader.remember(taken)
        finally:
            reader.taking -= uids
        if not taken:
            refused += 1
            continue
        if not refused:
            reader.took(bucket, taken, above, moment.now)
        leased += yield from _with_bodies(reader.generation, bucket, taken)
        if len(found.rows) < limit and above == LOWEST:
            break
    return leased


def take(generation: bytes, bucket: bytes, rows: list[Row], nonce: int, lease: float) -> Machine[list[Row]]:
    """Lease rows of one bucket, all or none; gives them as they are then, or nothing if others were faster."""
    statement = Take(
        generation, bucket, [Taken(row.uid, row.version, row.attempts + 1) for row in rows], nonce, lease
    )
    doubt = False
    while True:
        outcome: Outcome = yield statement
        if outcome is APPLIED:
            return [_leased(row, nonce, lease) for row in rows]
        if outcome is REFUSED and not doubt:
            return []
        doubt = True
        found: Bucket | None = yield from read(ReadRows(generation, bucket, [row.uid for row in rows]))
        mine = [row for row in found.rows if row.nonce == nonce and row.status == WAITING] if found else []
        if mine:
            return mine
        if found is None or _never(rows, found):
            return []
        if outcome is UNKNOWN:
            yield _REST


def _leased(row: Row, nonce: int, lease: float) -> Row:
    return msgspec.structs.replace(
        row, version=row.version + 1, nonce=nonce, lease=lease, attempts=row.attempts + 1, held=True
    )


def _never(rows: list[Row], found: Bucket) -> bool:
    """Whether the take can never apply any more: a version moved on, or a row is finished or gone."""
    now = {row.uid: row for row in found.rows}
    return any(
        (known := now.get(row.uid)) is None or known.version != row.version or known.status >= ACKED
        for row in rows
    )


def _with_bodies(generation: bytes, bucket: bytes, rows: list[Row]) -> Machine[list[Leased]]:
    found: Bucket | None = yield from read(ReadRows(generation, bucket, [row.uid for row in rows], True))
    bodies = {row.uid: row for row in found.rows} if found else {}
    leased: list[Leased] = []
    for row in rows:
        full = bodies.get(row.uid)
        # Whoever was so slow that others finished the message meanwhile holds nothing.
        if full is not None and full.body is not None and full.nonce == row.nonce:
            leased.append(Leased(bucket, msgspec.structs.replace(row, body=full.body, headers=full.headers)))
    return leased


def age_of(bucket: bytes, now: float) -> float:
    """About how long ago a bucket was made, by the clock of its node."""
    return max(0.0, now - time_of(bucket))
