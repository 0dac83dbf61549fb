"""What every storage of bucket queues must do: subclass `BucketConformance`, say how to open yours, run it with pytest.

Guards: a storage is one when it passes this suite; the machines rely on nothing that is not checked here.

    class TestMyStorage(BucketConformance):
        @pytest.fixture
        def storage(self, tmp_path):
            storage = MyStorage.open(tmp_path / "data")
            yield storage
            storage.close()
"""

from __future__ import annotations

from secrets import token_bytes
from typing import Any

import pytest

from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST, place_after
from fairway.bucket.port import BucketStorage
from fairway.bucket.rows import DeadLetter, Deleting, IndexRow, Message, RepairLease, Row, Sums
from fairway.bucket.statements import APPLIED, REFUSED

__all__ = ["BucketConformance"]

NOW = 1_800_000_000.0
TOP = b"\xff" * 16


class Made:
    """A queue with one open, published bucket."""

    def __init__(self, storage: BucketStorage) -> None:
        self.do = storage.execute
        self.name = f"q{token_bytes(6).hex()}"
        self.generation = token_bytes(16)
        assert self.do(s.CreateQueue(self.name, 0, self.generation, b"config", b"secret")) is APPLIED
        self.bucket = self.open_bucket(NOW)

    def open_bucket(self, now: float) -> bytes:
        bucket = place_after(now, [], int.from_bytes(token_bytes(8)))
        assert self.do(s.CreateBucket(self.generation, bucket, "node", now)) is APPLIED
        assert self.do(s.AddIndex(self.generation, bucket, "node")) is APPLIED
        assert self.do(s.Publish(self.name, self.generation, bucket)) is APPLIED
        return bucket

    def put(self, *bodies: bytes, not_before: float = NOW) -> list[bytes]:
        uids = [place_after(NOW + n, [], int.from_bytes(token_bytes(8))) for n in range(len(bodies))]
        messages = [Message(uid, body, b"h", NOW, not_before) for uid, body in zip(uids, bodies, strict=True)]
        assert self.do(s.Put(self.generation, self.bucket, messages)) is APPLIED
        return uids

    def rows(self, *uids: bytes, bodies: bool = False) -> list[Row]:
        found = self.do(s.ReadRows(self.generation, self.bucket, list(uids), bodies))
        return sorted(found.rows, key=lambda row: row.uid)

    def take(self, uid: bytes, version: int = 0, nonce: int = 7, lease: float = NOW + 60) -> Any:
        taken = [s.Taken(uid, version, version + 1)]
        return self.do(s.Take(self.generation, self.bucket, taken, nonce, lease))

    def move(self, old: Any, new: Any) -> Any:
        return self.do(s.MoveBucket(self.generation, self.bucket, old, new))

    def queue(self) -> Any:
        return self.do(s.ReadQueue(self.name, self.generation))

    def index(self, above: bytes = LOWEST) -> list[IndexRow]:
        return self.do(s.ReadIndex(self.generation, above, TOP, 100))

    def letter(self, uid: bytes) -> DeadLetter:
        return DeadLetter(uid, self.bucket, b"body", b"h", NOW, NOW + 1, 3, "why")


class BucketConformance:
    """The suite. `storage` must be given by a fixture of the subclass."""

    @pytest.fixture
    def storage(self) -> BucketStorage:
        pytest.fail("give a fixture `storage`")

    @pytest.fixture
    def made(self, storage: BucketStorage) -> Made:
        return Made(storage)

    # -- queues by name
    def test_a_name_has_one_generation(self, made: Made) -> None:
        row = made.do(s.ReadName(made.name))
        assert (row.current, row.changes, len(row.queues)) == (made.generation, 1, 1)
        assert made.do(s.CreateQueue(made.name, 1, token_bytes(16), b"c", b"s")) is REFUSED
        assert made.do(s.ReadName("never" + made.name)).current is None

    def test_a_create_that_comes_late_is_refused(self, made: Made) -> None:
        assert made.do(s.FreeName(made.name, token_bytes(16))) is REFUSED
        assert made.do(s.FreeName(made.name, made.generation)) is APPLIED
        assert made.do(s.FreeName(made.name, made.generation)) is REFUSED
        assert made.do(s.CreateQueue(made.name, 0, token_bytes(16), b"c", b"s")) is REFUSED, "an old number"
        second = token_bytes(16)
        assert made.do(s.CreateQueue(made.name, 2, second, b"c", b"s")) is APPLIED
        row = made.do(s.ReadName(made.name))
        assert row.current == second and {queue.generation for queue in row.queues} >= {second}

    def test_a_configuration_replaces_the_one_that_was_read(self, made: Made) -> None:
        assert made.do(s.Configure(made.name, made.generation, b"other", b"new")) is REFUSED
        assert made.do(s.Configure(made.name, made.generation, b"config", b"new")) is APPLIED
        assert made.queue().config == b"new" and made.queue().secret == b"secret"

    def test_publish_needs_a_live_queue_and_a_floor_below(self, made: Made) -> None:
        version = made.queue().version
        later = place_after(NOW + 9, [], 5)
        assert made.do(s.Publish(made.name, made.generation, later)) is APPLIED
        assert (made.queue().version, made.queue().newest) == (version + 1, later)
        assert made.do(s.MoveFloor(made.name, made.generation, version, made.bucket)) is REFUSED
        assert made.do(s.MoveFloor(made.name, made.generation, version + 1, made.bucket)) is APPLIED
        assert (made.queue().floor, made.queue().version) == (made.bucket, version + 2)
        assert made.do(s.Publish(made.name, made.generation, made.bucket)) is REFUSED, "at the floor"
        assert made.do(s.MoveQueue(made.name, made.generation, "live", "deleting")) is APPLIED
        assert made.do(s.MoveQueue(made.name, made.generation, "live", "deleting")) is REFUSED
        assert made.do(s.Publish(made.name, made.generation, place_after(NOW + 10, [], 6))) is REFUSED
        assert made.do(s.MoveFloor(made.name, made.generation, version + 3, later)) is REFUSED

    def test_places_compare_by_time_then_signed_bytes(self, made: Made) -> None:
        low = place_after(NOW + 20, [], 1)
        high = low[:8] + bytes([0x00] + [0xFF] * 7)
        assert low < high
        assert made.do(s.MoveFloor(made.name, made.generation, made.queue().version, low)) is APPLIED
        assert made.do(s.Publish(made.name, made.generation, high)) is APPLIED
        assert made.do(s.Publish(made.name, made.generation, low)) is REFUSED
        for place in (high, low):
            made.do(s.AddIndex(made.generation, place, "n"))
        assert [row.bucket for row in made.index(above=made.bucket)] == [low, high]

    def test_what_is_being_deleted_is_found_without_its_name(self, made: Made) -> None:
        def listed() -> bool:
            return Deleting(made.name, made.generation) in made.do(s.ReadDeletes(1000))

        assert not listed()
        assert made.do(s.MoveQueue(made.name, made.generation, "live", "deleting")) is APPLIED
        assert listed() and made.do(s.FreeName(made.name, made.generation)) is APPLIED
        assert listed(), "the name stands for nothing any more"
        assert made.do(s.MoveQueue(made.name, made.generation, "deleting", "deleted")) is APPLIED
        assert not listed()
        assert made.do(s.MoveQueue(made.name, made.generation, "live", "deleting")) is REFUSED
        assert not listed(), "a copy that comes late changes nothing"

    # -- the index
    def test_a_dropped_entry_stays_without_effect(self, made: Made) -> None:
        second = made.open_bucket(NOW + 1)
        assert made.index() == [IndexRow(made.bucket, "node"), IndexRow(second, "node")]
        assert made.index(above=made.bucket) == [IndexRow(second, "node")]
        assert made.do(s.ReadIndex(made.generation, LOWEST, made.bucket, 9)) == [
            IndexRow(made.bucket, "node")
        ]
        assert len(made.do(s.ReadIndex(made.generation, LOWEST, TOP, 1))) == 1
        assert made.do(s.DropIndex(made.generation, made.bucket)) is APPLIED
        assert made.do(s.AddIndex(made.generation, made.bucket, "node")) is APPLIED
        assert made.index() == [IndexRow(second, "node")]
        third = place_after(NOW + 30, [], 3)
        assert made.do(s.AddIndex(made.generation, third, "node", NOW + 3600.5)) is APPLIED
        assert made.index()[-1] == IndexRow(third, "node", NOW + 3600.5)

    # -- buckets
    def test_a_bucket_is_created_once(self, made: Made) -> None:
        assert made.do(s.CreateBucket(made.generation, made.bucket, "other", NOW)) is REFUSED
        found = made.do(s.ReadBucket(made.generation, made.bucket))
        assert (found.state, found.creator, found.born, found.rows) == ("open", "node", NOW, [])

    def test_put_is_refused_once_sealed(self, made: Made) -> None:
        (uid,) = made.put(b"one")
        assert made.move("sealed", "done") is REFUSED
        assert made.move("open", "sealed") is APPLIED
        assert made.move("open", "sealed") is REFUSED
        late = Message(place_after(NOW, [], 3), b"late", b"", NOW, NOW)
        assert made.do(s.Put(made.generation, made.bucket, [late])) is REFUSED
        nowhere = place_after(NOW + 99, [], 4)
        assert made.do(s.Put(made.generation, nowhere, [late])) is REFUSED
        assert made.do(s.ReadBucket(made.generation, nowhere)) is None
        assert [row.uid for row in made.do(s.ReadBucket(made.generation, made.bucket)).rows] == [uid]

    def test_a_put_that_comes_late_takes_nothing_back(self, made: Made) -> None:
        (uid,) = made.put(b"one")
        assert made.take(uid) is APPLIED
        again = Message(uid, b"one", b"h", NOW, NOW)
        assert made.do(s.Put(made.generation, made.bucket, [again])) is APPLIED
        (row,) = made.rows(uid)
        assert (row.version, row.nonce, row.attempts, row.held) == (1, 7, 1, True)
        done = s.Finish(made.generation, made.bucket, [s.Change(uid, 1, 7, 8)])
        assert made.do(done) is APPLIED
        assert made.do(s.Put(made.generation, made.bucket, [again])) is APPLIED
        (row,) = made.rows(uid)
        assert (row.status, row.nonce) == (1, 8)
        assert made.take(uid, version=1) is REFUSED

    def test_a_take_is_of_all_rows_or_none(self, made: Made) -> None:
        one, two = made.put(b"one", b"two")
        taken = [s.Taken(one, 0, 1), s.Taken(two, 0, 1)]
        assert made.take(two) is APPLIED
        assert made.do(s.Take(made.generation, made.bucket, taken, 9, NOW + 5)) is REFUSED
        assert made.rows(one)[0].version == 0
        taken = [s.Taken(one, 0, 1), s.Taken(two, 1, 2)]
        assert made.do(s.Take(made.generation, made.bucket, taken, 9, NOW + 5)) is APPLIED
        assert [(row.version, row.nonce, row.lease, row.attempts) for row in made.rows(one, two)] == [
            (1, 9, NOW + 5, 1),
            (2, 9, NOW + 5, 2),
        ]

    def test_a_take_makes_no_ghosts(self, made: Made) -> None:
        nobody, nowhere = place_after(NOW, [], 8), place_after(NOW + 99, [], 9)
        assert made.take(nobody) is REFUSED
        assert made.do(s.Take(made.generation, nowhere, [s.Taken(nobody, 0, 1)], 7, NOW)) is REFUSED
        assert made.rows(nobody) == [] and made.do(s.ReadBucket(made.generation, nowhere)) is None
        (uid,) = made.put(b"one")
        self.clean(made, uid)
        assert made.take(uid) is REFUSED
        assert made.do(s.ReadBucket(made.generation, made.bucket)) is None

    def clean(self, made: Made, uid: bytes) -> None:
        made.take(uid)
        made.do(s.Finish(made.generation, made.bucket, [s.Change(uid, 1, 7, 8)]))
        made.move("open", "sealed")
        assert made.do(s.RemoveBucket(made.generation, made.bucket)) is REFUSED, "not done yet"
        assert made.move("sealed", "done") is APPLIED
        assert made.do(s.RemoveBucket(made.generation, made.bucket)) is APPLIED
        assert made.do(s.RemoveBucket(made.generation, made.bucket)) is REFUSED

    def test_a_removed_bucket_takes_nothing(self, made: Made) -> None:
        (uid,) = made.put(b"one")
        self.clean(made, uid)
        again = Message(uid, b"one", b"h", NOW, NOW)
        assert made.do(s.Put(made.generation, made.bucket, [again])) is REFUSED
        assert made.move("open", "sealed") is REFUSED
        assert made.do(s.ReadRows(made.generation, made.bucket, [uid])) is None
        assert made.do(s.FindDue(made.generation, made.bucket, NOW, 5, 9)) is None
        assert made.do(s.CountRows(made.generation, made.bucket, NOW)) is None

    def test_only_the_holder_changes_a_row(self, made: Made) -> None:
        (uid,) = made.put(b"one")
        made.take(uid)
        for wrong in (s.Change(uid, 0, 7, 8), s.Change(uid, 1, 6, 8), s.Change(uid, 2, 7, 8)):
            assert made.do(s.Finish(made.generation, made.bucket, [wrong])) is REFUSED
            assert made.do(s.Hold(made.generation, made.bucket, [wrong], NOW, True)) is REFUSED
            assert made.do(s.Doom(made.generation, made.bucket, [wrong])) is REFUSED
        right = s.Change(uid, 1, 7, 8, attempts=4)
        assert made.do(s.Hold(made.generation, made.bucket, [right], NOW + 9, False, "why")) is APPLIED
        (row,) = made.rows(uid)
        assert (row.version, row.nonce, row.lease, row.held, row.attempts, row.error) == (
            2,
            8,
            NOW + 9,
            False,
            4,
            "why",
        )
        assert made.do(s.Hold(made.generation, made.bucket, [right], NOW, True)) is REFUSED, "once"

    def test_completed_is_terminal_and_without_body(self, made: Made) -> None:
        (uid,) = made.put(b"one")
        assert made.rows(uid, bodies=True)[0].body == b"one"
        assert made.rows(uid, bodies=True)[0].headers == b"h"
        assert made.rows(uid)[0].body is None
        made.take(uid)
        done = s.Finish(made.generation, made.bucket, [s.Change(uid, 1, 7, 8)])
        assert made.do(done) is APPLIED and made.do(done) is REFUSED
        (row,) = made.rows(uid, bodies=True)
        assert (row.status, row.version, row.body) == (1, 1, None)
        assert made.do(s.Doom(made.generation, made.bucket, [s.Change(uid, 1, 0, 9)])) is REFUSED

    def test_what_is_due_is_found_in_order(self, made: Made) -> None:
        one, two, three = made.put(b"1", b"2", b"3")
        made.put(b"later", not_before=NOW + 30)
        made.take(two, lease=NOW + 10)
        found = made.do(s.FindDue(made.generation, made.bucket, NOW, 5, 9))
        assert [row.uid for row in found.rows] == [one, three]
        assert (found.state, found.next_due) == ("open", NOW + 10)
        assert len(made.do(s.FindDue(made.generation, made.bucket, NOW, 5, 1)).rows) == 1
        found = made.do(s.FindDue(made.generation, made.bucket, NOW + 10, 1, 9))
        assert [row.uid for row in found.rows] == [one, three], "delivered often enough"
        assert len(made.do(s.FindDue(made.generation, made.bucket, NOW + 30, 5, 9)).rows) == 4

    def test_what_is_due_is_found_above_a_place(self, made: Made) -> None:
        uids = made.put(*(b"%d" % n for n in range(45)))
        for uid in uids[:40]:
            made.take(uid)

        def found(above: bytes, limit: int) -> Any:
            return made.do(s.FindDue(made.generation, made.bucket, NOW, 5, limit, above))

        assert [row.uid for row in found(LOWEST, 1).rows] == uids[40:41], "however many lie before it"
        assert [row.uid for row in found(uids[2], 9).rows] == uids[40:]
        assert [row.uid for row in found(uids[41], 2).rows] == uids[42:44]
        nothing = found(uids[44], 9)
        assert (nothing.state, nothing.rows) == ("open", [])

    def test_rows_are_counted_by_what_they_wait_for(self, made: Made) -> None:
        one, two, three = made.put(b"1", b"2", b"3")
        made.put(b"later", not_before=NOW + 30)
        made.take(one)
        made.take(two)
        made.do(s.Finish(made.generation, made.bucket, [s.Change(one, 1, 7, 8)]))
        tally = made.do(s.CountRows(made.generation, made.bucket, NOW))
        assert (tally.ready, tally.delayed, tally.leased, tally.finished) == (1, 1, 1, 1)
        made.do(s.Hold(made.generation, made.bucket, [s.Change(two, 1, 7, 8)], NOW + 5, False))
        made.do(s.Doom(made.generation, made.bucket, [s.Change(three, 0, 0, 9)]))
        tally = made.do(s.CountRows(made.generation, made.bucket, NOW))
        assert (tally.ready, tally.delayed, tally.leased, tally.dying) == (0, 2, 0, 1)

    # -- dead letters
    def test_a_message_dies_in_steps(self, made: Made) -> None:
        (uid,) = made.put(b"one")
        made.take(uid)
        assert made.do(s.Bury(made.generation, made.bucket, uid)) is REFUSED
        doom = s.Doom(made.generation, made.bucket, [s.Change(uid, 1, 0, 9)], "why")
        assert made.do(doom) is APPLIED and made.do(doom) is REFUSED
        (row,) = made.rows(uid, bodies=True)
        assert (row.status, row.version, row.nonce, row.error, row.body) == (2, 2, 9, "why", b"one")
        assert made.take(uid, version=2) is REFUSED
        assert made.do(s.AddDead(made.generation, made.letter(uid))) is APPLIED
        assert made.do(s.Bury(made.generation, made.bucket, uid)) is APPLIED
        assert made.do(s.Bury(made.generation, made.bucket, uid)) is REFUSED
        (row,) = made.rows(uid, bodies=True)
        assert (row.status, row.body) == (3, None)
        assert made.do(s.ReadDead(made.generation, LOWEST, 9)) == [made.letter(uid)]

    def test_a_dead_letter_is_written_once(self, made: Made) -> None:
        one, two = made.put(b"1", b"2")
        for uid in (one, two, one):
            assert made.do(s.AddDead(made.generation, made.letter(uid))) is APPLIED
        assert made.do(s.CountDead(made.generation)) == 2
        assert [letter.uid for letter in made.do(s.ReadDead(made.generation, one, 9))] == [two]
        assert made.do(s.DropDead(made.generation, [one])) is APPLIED
        assert made.do(s.AddDead(made.generation, made.letter(one))) is APPLIED
        assert [letter.uid for letter in made.do(s.ReadDead(made.generation, LOWEST, 9))] == [two]

    def test_a_generation_goes_whole(self, made: Made) -> None:
        (uid,) = made.put(b"1")
        made.do(s.AddDead(made.generation, made.letter(uid)))
        assert made.do(s.DropGeneration(made.generation)) is APPLIED
        made.do(s.AddIndex(made.generation, made.bucket, "node"))
        assert made.index() == [] and made.do(s.CountDead(made.generation)) == 0

    def test_a_glance_shows_every_change(self, made: Made) -> None:
        def glance() -> Any:
            return made.do(s.Glance(made.generation, made.bucket))

        assert glance() == Sums("open", NOW, 0, NOW, 0, 0, 0, 0)
        one, two, three = made.put(b"1", b"2", b"3")
        seen = [glance()]
        assert seen[0] == Sums("open", NOW, 3, NOW, 0, 0, 0, 0)
        key = (made.generation, made.bucket)
        for change in (
            lambda: made.take(one),
            lambda: made.take(two),
            lambda: made.do(s.Hold(*key, [s.Change(two, 1, 7, 8, 1)], NOW + 90, True)),
            lambda: made.do(s.Finish(*key, [s.Change(one, 1, 7, 9)])),
            lambda: made.do(s.Doom(*key, [s.Change(two, 2, 8, 9)], "why")),
            lambda: made.do(s.Bury(*key, two)),
            lambda: made.move("open", "sealed"),
        ):
            assert change() is APPLIED
            assert glance() not in seen
            seen.append(glance())
        assert seen[-1] == Sums("sealed", NOW, 3, NOW, 4, 2, 4, 1) and len(made.rows(three)) == 1
        assert made.do(s.Glance(made.generation, place_after(NOW + 99, [], 1))) is None

    # -- who repairs
    def test_one_repairs(self, made: Made) -> None:
        assert made.do(s.ReadRepairer(made.name)) == RepairLease("", 0)
        assert made.do(s.Beat(made.name, "a", "", 0)) is APPLIED
        assert made.do(s.Beat(made.name, "b", "", 0)) is REFUSED
        assert made.do(s.Beat(made.name, "a", "a", 1)) is APPLIED
        assert made.do(s.ReadRepairer(made.name)) == RepairLease("a", 2)
        assert made.do(s.Beat(made.name, "b", "a", 2)) is APPLIED
        assert made.do(s.Beat(made.name, "a", "a", 2)) is REFUSED
