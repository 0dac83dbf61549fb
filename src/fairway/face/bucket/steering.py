"""Steering: dead letters, sizes, settings, and the end of a bucket queue."""

from __future__ import annotations

from collections.abc import Iterable

from fairway import limits
from fairway.bucket import naming
from fairway.bucket.burying import read_dead
from fairway.bucket.config import BucketConfig, changed
from fairway.bucket.counting import BucketStats, count
from fairway.bucket.places import LOWEST
from fairway.bucket.redriving import renewed
from fairway.bucket.rows import DeadLetter, Message
from fairway.bucket.statements import DropDead, insist
from fairway.bucket.writing import Told
from fairway.errors import BadArgument, QueueDeleted
from fairway.face.bucket.desk import Desk
from fairway.face.bucket.leases import DeadMessage, dead_of
from fairway.face.bucket.putting import PutVerbs
from fairway.face.steps import Do, Items, Listing, Steps


class SteerVerbs(PutVerbs):
    """The operator's verbs."""

    _desk: Desk

    def dead(self) -> Listing[DeadMessage]:
        """The dead letters, page by page."""
        after = LOWEST
        while True:
            page = yield from self._dead_after(after)
            yield Items([dead_of(letter) for letter in page])
            if len(page) < limits.DEAD_PAGE_ROWS:
                return
            after = page[-1].uid

    def dead_page(self, after: str, rows: int) -> Steps[list[DeadMessage]]:
        """Some dead letters that follow an id, from the first one if it is empty."""
        page = yield from self._dead_after(_uid(after) if after else LOWEST, rows)
        return [dead_of(letter) for letter in page]

    def redrive(self, ids: Iterable[str] | None = None) -> Steps[int]:
        """Put dead letters back as new messages, all or those of some ids; gives how many.

        Each is put under a new id and then removed. Who is stopped in between leaves both: at least once.
        """
        return (yield from self._leave(ids, again=True))

    def purge(self, ids: Iterable[str] | None = None) -> Steps[int]:
        """Remove dead letters for good, all or those of some ids; gives how many."""
        return (yield from self._leave(ids, again=False))

    def _leave(self, ids: Iterable[str] | None, *, again: bool) -> Steps[int]:
        wanted = None if ids is None else {_uid(one) for one in ids}
        generation, after, gone = self._desk.queue.generation, LOWEST, 0
        while True:
            page = yield from self._dead_after(after)
            some = [letter for letter in page if wanted is None or letter.uid in wanted]
            if again:
                yield from self._put_back(some)
            elif some:
                drop = DropDead(generation, [letter.uid for letter in some])
                yield Do(lambda drop=drop: self._desk.run(insist(drop)))
            gone += len(some)
            if len(page) < limits.DEAD_PAGE_ROWS:
                return gone
            after = page[-1].uid

    def _put_back(self, letters: list[DeadLetter]) -> Steps[None]:
        now, uids = self._desk.now(), self._desk.fresh_uids(len(letters))
        of = dict(zip(uids, letters, strict=True))

        def put(hour: int, batch: list[Message]) -> Told:
            return self._desk.redrive([of[message.uid] for message in batch], batch)

        yield from self._store(renewed(letters, uids, now), now, put)

    def _dead_after(self, after: bytes, rows: int = limits.DEAD_PAGE_ROWS) -> Steps[list[DeadLetter]]:
        generation = self._desk.queue.generation
        return (yield Do(lambda: self._desk.run(read_dead(generation, after, rows))))

    def stats(self) -> Steps[BucketStats]:
        """The sizes of the queue; true when nothing moves. It reads every bucket."""
        name, generation = self._desk.reader.name, self._desk.queue.generation
        found: BucketStats | None = yield Do(lambda: self._desk.run(count(name, generation)))
        if found is None:
            raise QueueDeleted()
        return found

    def configure(self, **settings: object) -> Steps[BucketConfig]:
        """Change settings of the queue, for every process that has it open; gives all of them."""
        changed(BucketConfig(), settings)  # a wrong one is refused before anything is asked
        name, generation = self._desk.reader.name, self._desk.queue.generation
        machine = naming.configure(name, generation, settings)
        found: BucketConfig | None = yield Do(lambda: self._desk.run(machine))
        if found is None:
            raise QueueDeleted()
        self._desk.reader.config = found
        return found

    def delete(self) -> Steps[None]:
        """Delete the queue with everything in it; its name is free then, and a new queue under it is another one."""
        yield Do(self._desk.delete)


def _uid(value: object) -> bytes:
    try:
        uid = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        uid = b""
    if len(uid) != 16:
        raise BadArgument(f"ids: {value!r:.60} is not the id of a message", argument="ids")
    return uid
