"""Directing: machines stepped by hand on a storage of any kind, so that one interleaving happens exactly."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from fairway.bucket import naming, repairing, settling, taking, writing
from fairway.bucket import statements as s
from fairway.bucket.config import BucketConfig
from fairway.bucket.places import LOWEST, place_after
from fairway.bucket.port import BucketStorage
from fairway.bucket.receipts import Ticket, ticket_for
from fairway.bucket.rows import DeadLetter, Message, QueueRow, Row
from fairway.bucket.statements import UNKNOWN, Machine
from fairway.bucket.taking import read_index
from fairway.store.memory.buckets import MemoryBuckets
from tests.bucket import keeping

R = TypeVar("R")
BEGIN = 1_800_000_000.0
UNKNOWN_MAX = 20  # answers that a storage itself may fail to give for one statement


class StageOf(Protocol):
    """Makes a stage on the storage that is tried, with some settings of the queue."""

    def __call__(self, **settings: Any) -> Stage: ...


class Stage:
    """One queue, a clock and random bits that are the same in every run."""

    def __init__(self, storage: BucketStorage | None = None, bits: int = 0, **settings: Any) -> None:
        """`bits` tells apart the stages of one storage: the first of them make the queue's generation."""
        self.storage: BucketStorage = MemoryBuckets() if storage is None else storage
        self.now = BEGIN
        self.bits = bits
        self.config = BucketConfig(
            **{"attempts_max": 3, "lease_seconds": 5.0, "bucket_rows": 4, "seal_seconds": 10.0, **settings}
        )
        self.queue: QueueRow = self.run(naming.create_queue("q", self.config))

    @property
    def generation(self) -> bytes:
        return self.queue.generation

    def execute(self, statement: s.Statement) -> Any:
        """Carry out one statement; a read of a real storage is repeated until it is answered."""
        for _ in range(UNKNOWN_MAX):
            found = self.storage.execute(statement)
            if found is not UNKNOWN or isinstance(statement, s.Write):
                return found
        raise AssertionError(f"the storage does not answer {statement}")

    def moment(self) -> s.Moment:
        self.bits += 1
        return s.Moment(self.now, self.bits << 66 | self.bits)

    def play(self, machine: Machine[R]) -> Play[R]:
        return Play(self, machine)

    def run(self, machine: Machine[R]) -> R:
        return self.play(machine).finish()

    # -- the usual actors
    def writer(self, node: str = "w") -> writing.Writer:
        return writing.Writer("q", self.queue, node)

    def message(self, body: bytes = b"m", delay: float = 0.0) -> Message:
        moment = self.moment()
        return Message(place_after(moment.now, [], moment.bits), body, b"", self.now, self.now + delay)

    def put(self, *bodies: bytes, slot: writing.Slot | None = None, delay: float = 0.0) -> list[bytes]:
        messages = [self.message(body, delay) for body in bodies]
        told = self.run(writing.put(self.writer(), slot or writing.Slot(), messages))
        assert told is writing.Told.ACCEPTED
        return [message.uid for message in messages]

    def reader(self, node: str = "c") -> taking.Reader:
        return taking.Reader("q", self.queue, node)

    def reserve(self, count: int = 50, lease: float | None = None) -> list[taking.Leased]:
        leased = self.run(taking.reserve(self.reader(), count, lease))
        assert leased is not None
        return leased

    def complete(self, leased: list[taking.Leased]) -> list[str]:
        return [
            word
            for one in leased
            for word in self.run(settling.complete(self.generation, one.bucket, [ticket(one)]))
        ]

    def repair(self, rounds: int = 1) -> None:
        repairer = repairing.Repairer("q", self.generation)
        for _ in range(rounds):
            self.run(repairing.repair(repairer))

    def drain(self) -> set[bytes]:
        """Deliver and complete everything, repair until nothing is left; gives the bodies that came."""
        bodies: set[bytes] = set()
        for _ in range(30):
            self.now += 20.0
            leased = self.reserve()
            bodies |= {one.row.body or b"" for one in leased}
            self.complete(leased)
            self.repair()
            if not self.index():
                return bodies  # there is nothing that a reserve would look at
        raise AssertionError("the floor is stuck")

    # -- what is there
    def index(self) -> list[bytes]:
        """Every bucket in the index."""
        return [row.bucket for row in self.run(read_index(self.generation, LOWEST))]

    def kept(self) -> keeping.Kept:
        """Every bucket with its rows, as they lie in the storage; there is never a ghost among them."""
        found = keeping.kept(self.storage, self.generation)
        assert not keeping.ghosts(found), found
        return found

    def rows_kept(self) -> int:
        return sum(len(bucket.rows) for bucket in self.kept().values())

    def floor(self) -> bytes:
        return self.execute(s.ReadQueue("q", self.generation)).floor

    def dead(self) -> list[DeadLetter]:
        return self.execute(s.ReadDead(self.generation, LOWEST, 99))

    def bucket_of(self, uid: bytes) -> bytes:
        """The bucket in the index that holds a message."""
        return next(bucket for bucket in self.index() if self.row(bucket, uid) is not None)

    def row(self, bucket: bytes, uid: bytes) -> Row | None:
        found = self.execute(s.ReadRows(self.generation, bucket, [uid], True))
        return found.row(uid) if found is not None else None


def ticket(leased: taking.Leased) -> Ticket:
    return ticket_for(leased.bucket, leased.row)


class Play(Generic[R]):
    """A machine that stops before each of its statements."""

    def __init__(self, stage: Stage, machine: Machine[R]) -> None:
        self._stage, self._machine = stage, machine
        self.at: s.Statement | None = None
        self.value: Any = None
        self.over = False
        self._go(None)

    def _go(self, value: Any) -> None:
        while True:
            try:
                step = self._machine.send(value)
            except StopIteration as end:
                self.at, self.value, self.over = None, end.value, True
                return
            if isinstance(step, s.Fresh):
                value = self._stage.moment()
            elif isinstance(step, s.Rest):
                value = None
            else:
                assert isinstance(step, s.Statement)
                self.at = step
                return

    def step(self) -> Any:
        """Carry out the statement it stands at."""
        assert self.at is not None, "it is over"
        found = self._stage.execute(self.at)
        self._go(found)
        return found

    def tell(self, answer: Any) -> None:
        """Go on with an answer that was fetched before."""
        self._go(answer)

    def until(self, kind: type[s.Statement]) -> Play[R]:
        """Go on up to a statement of a kind, and stop before it."""
        while not isinstance(self.at, kind):
            self.step()
        return self

    def lose(self) -> s.Statement:
        """Its answer never comes. What is given back may be carried out later, or never."""
        lost = self.at
        assert lost is not None
        self._go(UNKNOWN)
        return lost

    def die(self) -> None:
        """Its node is gone."""
        self._machine.close()

    def finish(self) -> R:
        while not self.over:
            self.step()
        return self.value
