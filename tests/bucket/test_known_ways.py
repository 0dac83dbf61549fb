"""Known ways in which leaderless queues lose or block messages; each is played step by step, and comes to nothing.

In memory and in a file here; tests/cassandra/test_bucket_known_ways.py plays them on a real node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairway import limits
from fairway.bucket import naming, redriving, repairing, settling, taking, writing
from fairway.bucket import statements as s
from fairway.bucket.burying import bury
from fairway.bucket.places import place_after
from fairway.bucket.statements import APPLIED, REFUSED
from fairway.bucket.writing import Slot, Told
from fairway.store.sqlite.buckets import SqliteBuckets
from tests.bucket import keeping
from tests.bucket.directing import Play, Stage, StageOf, ticket


@pytest.fixture(params=["memory", "file"])
def stage_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StageOf]:
    with ExitStack() as opened:

        def make(**settings: Any) -> Stage:
            if request.param == "memory":
                return Stage(**settings)
            name = f"work-{len(list(tmp_path.glob('*.db')))}.db"
            return Stage(opened.enter_context(closing(SqliteBuckets.open(tmp_path / name))), **settings)

        yield make


def test_a_write_later_than_the_repair_time_out(stage_of: StageOf) -> None:
    stage = stage_of()
    slot = Slot()
    stage.put(b"first", slot=slot)
    late = stage.play(writing.put(stage.writer(), slot, [stage.message(b"late")])).until(s.Put)
    first = slot.bucket
    stage.now += 3600
    stage.complete(stage.reserve())
    stage.repair(4)  # sealed, cleaned, removed, floor moved, while the write is under way
    assert late.finish() is Told.ACCEPTED
    assert slot.bucket != first, "redirected, never late"
    assert stage.drain() == {b"late"}


def test_a_write_between_the_repairers_last_read_and_its_delete(stage_of: StageOf) -> None:
    stage = stage_of(seal_seconds=0.0)
    slot = Slot()
    (uid,) = stage.put(b"first", slot=slot)
    stage.complete(stage.reserve())
    repairer = repairing.Repairer("q", stage.generation)
    stage.now += 1
    reading = stage.play(repairing.repair(repairer)).until(s.MoveBucket)  # it read: open, all finished
    writer = stage.writer()
    assert stage.run(writing.put(writer, slot, [stage.message(b"between")])) is Told.ACCEPTED
    assert stage.bucket_of(uid) == slot.bucket
    reading.finish()
    assert stage.drain() == {b"between"}


def test_a_write_before_the_remove_is_refused_not_lost(stage_of: StageOf) -> None:
    stage = stage_of(seal_seconds=0.0)
    slot = Slot()
    stage.put(b"first", slot=slot)
    stage.complete(stage.reserve())
    stage.now += 1
    stage.repair()  # sealed
    removing = stage.play(repairing.repair(repairing.Repairer("q", stage.generation))).until(s.RemoveBucket)
    writer = stage.writer()
    assert stage.run(writing.put(writer, slot, [stage.message(b"between")])) is Told.ACCEPTED
    removing.finish()
    assert stage.drain() == {b"between"}


def test_a_message_that_stays_holds_nobody_up(stage_of: StageOf) -> None:
    """The document's invisibility pointer stood still behind a row that was published again."""
    stage = stage_of(bucket_rows=1)
    stage.put(b"stays")
    stays = stage.reserve(lease=86_400.0)
    assert len(stays) == 1
    for n in range(20):
        stage.put(b"%d" % n)
        stage.now += 20
        (leased,) = stage.reserve()
        assert leased.row.body == b"%d" % n
        assert stage.complete([leased]) == ["done"]
        stage.repair(2)
    assert stage.complete(stays) == ["done"]
    assert stage.drain() == set()


def dying_stage(stage_of: StageOf) -> Stage:
    """A sealed bucket: one finished, one delivered too often, one half buried."""
    stage = stage_of(attempts_max=1, bucket_rows=3, seal_seconds=0.0)
    stage.put(b"done", b"over", b"dying")
    leased = {one.row.body: one for one in stage.reserve()}
    stage.complete([leased[b"done"]])
    one = leased[b"dying"]
    doom = settling.fail(stage.generation, one.bucket, [ticket(one)], stage.config, "why", False, None)
    stage.play(doom).until(s.AddDead).die()
    stage.now += 60
    return stage


def steps_of_repair(stage_of: StageOf) -> int:
    stage, count = dying_stage(stage_of), 0
    for _ in range(4):
        play = stage.play(repairing.repair(repairing.Repairer("q", stage.generation)))
        while not play.over:
            play.step()
            count += 1
    return count


@pytest.mark.parametrize("lost", [False, True], ids=["before", "after"])
def test_a_repairer_that_dies_between_any_two_steps(stage_of: StageOf, lost: bool) -> None:
    total = steps_of_repair(stage_of)
    assert total > 15
    for stop in range(total):
        stage, left = dying_stage(stage_of), stop
        for _ in range(4):
            play = stage.play(repairing.repair(repairing.Repairer("q", stage.generation)))
            while not play.over and left:
                play.step()
                left -= 1
            if not play.over:
                if lost and play.at is not None:
                    stage.execute(play.at)  # carried out, and nobody heard of it
                play.die()
                break
        stage.repair(6)
        assert sorted(letter.body for letter in stage.dead()) == [b"dying", b"over"], stop
        assert stage.drain() == set(), stop
        assert not stage.kept(), stop


def test_a_new_bucket_lies_above_the_floor_whatever_the_clock_says(stage_of: StageOf) -> None:
    """A delete by a clock that runs ahead hid what was written later; here no place is ever used again."""
    stage = stage_of(bucket_rows=1, seal_seconds=0.0)
    stage.put(b"first")
    stage.drain()
    floor = stage.floor()
    stage.now -= 10 * 86_400  # a node whose clock is ten days behind
    (uid,) = stage.put(b"behind")
    assert stage.bucket_of(uid) > floor
    assert [one.row.body for one in stage.reserve()] == [b"behind"]


def test_a_timed_out_take_is_not_retried_blindly(stage_of: StageOf) -> None:
    stage = stage_of()
    stage.put(b"m")
    play = stage.play(taking.reserve(stage.reader(), 1)).until(s.Take)
    late = play.lose()
    play.until(s.Take)  # it looked, the row was untouched, so the same statement goes out again
    assert play.at == late, "with the same nonce"
    stage.execute(late)  # the first copy comes late
    (leased,) = play.finish() or []
    assert leased.row.attempts == 1 and stage.complete([leased]) == ["done"]


def test_a_timed_out_put_is_not_retried_blindly(stage_of: StageOf) -> None:
    stage = stage_of()
    slot = Slot()
    play = stage.play(writing.put(stage.writer(), slot, [stage.message(b"m")])).until(s.Put)
    stage.execute(play.lose())
    assert play.finish() is Told.ACCEPTED
    assert stage.drain() == {b"m"}
    assert stage.rows_kept() == 0


def test_a_timed_out_completion_is_not_retried_blindly(stage_of: StageOf) -> None:
    stage = stage_of()
    stage.put(b"m")
    (leased,) = stage.reserve()
    play = stage.play(settling.complete(stage.generation, leased.bucket, [ticket(leased)]))
    stage.execute(play.lose())
    assert play.finish() == ["done"]
    again = stage.run(settling.complete(stage.generation, leased.bucket, [ticket(leased)]))
    assert again == ["already"], "the same receipt finds its own trace"


def test_a_late_put_does_not_take_a_completion_back(stage_of: StageOf) -> None:
    stage = stage_of()
    slot = Slot()
    play = stage.play(writing.put(stage.writer(), slot, [stage.message(b"m")])).until(s.Put)
    late = play.lose()
    assert play.finish() is Told.ACCEPTED
    stage.complete(stage.reserve())
    assert stage.execute(late) is APPLIED, "the bucket is open still"
    stage.now += 60
    assert stage.reserve() == []
    assert stage.drain() == set()


def test_a_take_on_a_removed_bucket_makes_no_ghost(stage_of: StageOf) -> None:
    stage = stage_of(seal_seconds=0.0)
    stage.put(b"m")
    slow = stage.play(taking.reserve(stage.reader("slow"), 1)).until(s.Take)
    stage.complete(stage.reserve())
    stage.now += 60
    stage.repair(4)
    assert not stage.kept()
    assert slow.finish() == []
    assert not stage.kept(), "nothing came back"


def test_a_refused_put_is_not_believed_after_an_unknown_one(stage_of: StageOf) -> None:
    """Unknown, not there, comes late, sealed, refused: redirecting would make two."""
    stage = stage_of()
    slot = Slot()
    play = stage.play(writing.put(stage.writer(), slot, [stage.message(b"m")])).until(s.Put)
    bucket = slot.bucket
    assert bucket is not None
    late = play.lose()
    play.until(s.Put)
    stage.execute(late)
    stage.execute(s.MoveBucket(stage.generation, bucket, "open", "sealed"))
    assert play.finish() is Told.ACCEPTED
    assert stage.rows_kept() == 1


def test_a_put_whose_bucket_is_gone_after_an_unknown_outcome_says_unknown(stage_of: StageOf) -> None:
    stage = stage_of(seal_seconds=0.0)
    slot = Slot()
    play = stage.play(writing.put(stage.writer(), slot, [stage.message(b"m")])).until(s.Put)
    stage.execute(play.lose())
    stage.complete(stage.reserve())
    stage.now += 60
    stage.repair(4)
    assert play.finish() is Told.UNKNOWN
    assert stage.drain() == set(), "delivered once, and not again"


def test_a_refused_take_is_not_believed_after_an_unknown_one(stage_of: StageOf) -> None:
    stage = stage_of()
    stage.put(b"m")
    play = stage.play(taking.reserve(stage.reader(), 1)).until(s.Take)
    late = play.lose()
    play.until(s.Take)
    stage.execute(late)
    assert stage.execute(late) is REFUSED
    leased = play.finish() or []
    assert [one.row.body for one in leased] == [b"m"], "the lease is not burnt"


def test_a_paused_creator_whose_bucket_lies_below_the_floor(stage_of: StageOf) -> None:
    stage = stage_of(seal_seconds=0.0)
    slot = Slot()
    slow = stage.play(writing.put(stage.writer("slow"), slot, [stage.message(b"slow")])).until(s.AddIndex)
    below = slow.at
    assert isinstance(below, s.AddIndex)
    stage.now += 1
    stage.put(b"other")
    stage.now += 60
    assert stage.drain() == {b"other"}
    assert stage.floor() > below.bucket
    assert slow.finish() is Told.ACCEPTED
    assert slot.bucket is not None and slot.bucket > below.bucket, "it made another one"
    assert stage.drain() == {b"slow"}


def test_a_creator_paused_before_it_publishes_while_the_floor_moves(stage_of: StageOf) -> None:
    """The mover read the index before the entry was there: the version keeps it from passing over."""
    stage = stage_of(seal_seconds=0.0)
    slot = Slot()
    slow = stage.play(writing.put(stage.writer("slow"), slot, [stage.message(b"slow")])).until(s.AddIndex)
    stage.now += 1
    stage.put(b"other")
    stage.complete(stage.reserve())
    stage.now += 60
    stage.repair(1)
    mover = stage.play(repairing.repair(repairing.Repairer("q", stage.generation))).until(s.MoveFloor)
    assert slow.finish() is Told.ACCEPTED  # indexed, published, put: all before the floor moves
    assert mover.step() is REFUSED
    assert stage.drain() == {b"slow"}


def test_a_create_of_unknown_outcome_is_abandoned(stage_of: StageOf) -> None:
    stage = stage_of(seal_seconds=0.0)
    slot = Slot()
    play = stage.play(writing.put(stage.writer(), slot, [stage.message(b"m")])).until(s.CreateBucket)
    late = play.lose()
    assert isinstance(late, s.CreateBucket)
    assert play.finish() is Told.ACCEPTED
    assert slot.bucket != late.bucket
    assert stage.drain() == {b"m"}
    stage.execute(late)  # whenever it comes: nobody uses it
    assert stage.reserve() == []


def test_a_dead_letter_has_no_target_that_could_be_gone(stage_of: StageOf) -> None:
    stage = stage_of(attempts_max=1)
    (uid,) = stage.put(b"m")
    stage.reserve()
    stage.now += 60
    bucket = stage.bucket_of(uid)
    first = stage.play(repairing.repair(repairing.Repairer("q", stage.generation))).until(s.Bury)
    assert len(stage.dead()) == 1, "written"
    stage.execute(s.DropDead(stage.generation, [uid]))  # read and removed by an operator
    first.die()
    stage.repair(1)  # another finds the row dying and cannot tell; it writes again, without effect
    assert stage.dead() == []
    assert stage.row(bucket, uid).status == 3


def test_dead_letters_need_no_queue_that_could_be_missing_failing_or_itself(stage_of: StageOf) -> None:
    stage = stage_of(attempts_max=1)
    (uid,) = stage.put(b"m")
    stage.reserve()
    stage.now += 60
    play = stage.play(repairing.repair(repairing.Repairer("q", stage.generation))).until(s.AddDead)
    for _ in range(5):
        play.lose()  # it fails and fails; until it is written the row keeps the body
        assert stage.row(stage.bucket_of(uid), uid).body == b"m"
        play.until(s.AddDead)
    play.finish()
    assert [letter.body for letter in stage.dead()] == [b"m"]
    stage.run(naming.delete_queue("q"))
    assert stage.run(naming.create_queue("q", stage.config)).generation != stage.generation
    assert [letter.body for letter in stage.dead()] == [b"m"], (
        "they belong to their generation until it is removed"
    )


def dead_stage(stage_of: StageOf) -> Stage:
    """One dead letter, and nothing else."""
    stage = stage_of(attempts_max=1, seal_seconds=0.0)
    stage.put(b"m")
    stage.reserve()
    assert stage.drain() == set() and len(stage.dead()) == 1
    return stage


def redriving_of(stage: Stage) -> Play[Told]:
    letters = stage.dead()
    messages = redriving.renewed(letters, [stage.message().uid for _ in letters], stage.now)
    return stage.play(redriving.redrive(stage.writer(), Slot(), letters, messages))


def test_a_redrive_that_stops_before_its_removal_leaves_both(stage_of: StageOf) -> None:
    stage = dead_stage(stage_of)
    redriving_of(stage).until(s.DropDead).die()
    assert stage.drain() == {b"m"} and len(stage.dead()) == 1
    late = redriving_of(stage).until(s.DropDead)
    assert redriving_of(stage).finish() is Told.ACCEPTED
    assert late.finish() is Told.ACCEPTED, "two of them: at least once"
    assert len(stage.reserve()) == 2 and stage.dead() == []


def test_a_redrive_that_does_not_know_whether_it_put_keeps_the_letter(stage_of: StageOf) -> None:
    stage = dead_stage(stage_of)
    play = redriving_of(stage).until(s.Put)
    stage.execute(play.lose())
    assert stage.drain() == {b"m"}, "delivered, and its bucket removed, before anybody could look"
    assert play.finish() is Told.UNKNOWN
    assert len(stage.dead()) == 1


def test_two_readers_that_move_one_message_to_the_dead_letters(stage_of: StageOf) -> None:
    stage = stage_of(attempts_max=1)
    (uid,) = stage.put(b"m")
    (leased,) = stage.reserve()
    stage.now += 60
    bucket = stage.bucket_of(uid)
    one = stage.play(repairing.repair(repairing.Repairer("q", stage.generation))).until(s.Doom)
    two = stage.play(repairing.repair(repairing.Repairer("q", stage.generation))).until(s.Doom)
    gives_up = settling.fail(stage.generation, bucket, [ticket(leased)], stage.config, "no", False, None)
    three = stage.play(gives_up).until(s.Doom)
    three.finish()
    one.finish()
    two.finish()
    buries = [stage.play(bury(stage.generation, bucket, [uid])) for _ in range(2)]
    for play in buries:
        play.finish()
    assert [letter.uid for letter in stage.dead()] == [uid]
    assert stage.drain() == set()


def test_nothing_of_a_deleted_queue_shows_up_in_its_successor(stage_of: StageOf) -> None:
    stage = stage_of()
    slot = Slot()
    stage.put(b"old", slot=slot)
    writer = stage.writer()
    late = stage.play(writing.put(writer, slot, [stage.message(b"late")])).until(s.Put)
    old = stage.generation
    assert stage.run(naming.delete_queue("q")) == old
    stage.queue = stage.run(naming.create_queue("q", stage.config))
    assert stage.generation != old
    assert late.finish() is Told.GONE
    assert stage.reserve() == []
    stage.run(naming.remove_queue("q", old))
    assert stage.reserve() == [] and not keeping.kept(stage.storage, old)


def test_a_one_hour_lease_does_not_delay_its_neighbours_five_second_lease(stage_of: StageOf) -> None:
    stage = stage_of()
    stage.put(b"hour", b"short")
    reader = stage.reader()
    (hour,) = stage.run(taking.reserve(reader, 1, 3600.0)) or []
    (short,) = stage.run(taking.reserve(reader, 1, 5.0)) or []
    assert stage.run(taking.reserve(reader, 5)) == []
    stage.now += 6
    (again,) = stage.run(taking.reserve(reader, 5)) or []
    assert again.row.uid == short.row.uid and again.row.uid != hour.row.uid


def test_a_look_that_is_older_than_a_take_of_its_node_tries_for_another_message(stage_of: StageOf) -> None:
    stage = stage_of()
    stage.put(b"1", b"2", b"3")
    reader = stage.reader()
    one, two = (stage.play(taking.reserve(reader, 1)).until(s.FindDue) for _ in range(2))
    assert isinstance(two.at, s.FindDue)
    old = stage.execute(msgspec.structs.replace(two.at, limit=3))  # read before the take, told after it
    one.finish()
    two.tell(old)
    assert isinstance(two.at, s.Take) and stage.execute(two.at) is APPLIED, "one conditional write each"
    two.tell(APPLIED)
    assert {leased.row.body for play in (one, two) for leased in play.finish() or []} == {b"1", b"2"}


def test_a_look_begins_behind_what_was_taken_and_soon_again_at_the_first(stage_of: StageOf) -> None:
    stage = stage_of(lease_seconds=0.1)
    stage.put(b"1", b"2", b"3", b"4")
    reader = stage.reader()
    (first,) = stage.run(taking.reserve(reader, 1)) or []
    play = stage.play(taking.reserve(reader, 1))
    assert not isinstance(play.at, s.ReadIndex), "nothing was published: the index is what it was"
    play.until(s.FindDue)
    assert isinstance(play.at, s.FindDue) and play.at.above == first.row.uid
    play.finish()
    stage.now += 0.5  # both leases are over
    third = stage.run(taking.reserve(reader, 1)) or []
    stage.now += limits.SIGHTING_SECONDS_MAX
    again = stage.run(taking.reserve(reader, 1)) or []
    assert [one.row.body for one in (*third, *again)] == [b"3", b"1"]


def test_a_look_that_finds_nothing_more_looks_from_the_first(stage_of: StageOf) -> None:
    stage = stage_of(lease_seconds=0.1)
    stage.put(b"1", b"2")
    reader = stage.reader()
    assert len(stage.run(taking.reserve(reader, 2)) or []) == 2
    stage.now += 0.2
    assert len(stage.run(taking.reserve(reader, 2)) or []) == 2, (
        "due again: at once, where there is nothing else"
    )


def test_create_while_deleting_finishes_the_delete_first(stage_of: StageOf) -> None:
    stage = stage_of()
    slot = Slot()
    stage.put(b"old", slot=slot)
    deleting = stage.play(naming.delete_queue("q")).until(s.MoveBucket)  # marked, nothing sealed yet
    second = stage.run(naming.create_queue("q", stage.config))
    assert second.generation != stage.generation
    assert stage.run(writing.put(stage.writer(), slot, [stage.message()])) is Told.GONE
    deleting.finish()
    row = stage.execute(s.ReadName("q"))
    assert row.current == second.generation, "the late half of the delete left the new queue alone"


def test_a_crash_in_the_middle_of_create(stage_of: StageOf) -> None:
    stage = stage_of()
    for stop in range(1, 4):
        name = f"other{stop}"
        play = stage.play(naming.create_queue(name, stage.config))
        for _ in range(stop - 1):
            if not play.over:
                play.step()
        play.die()
        queue = stage.run(naming.create_queue(name, stage.config))
        assert stage.run(naming.find_queue(name)) == queue and queue.state == "live"


def test_a_crash_in_the_middle_of_delete(stage_of: StageOf) -> None:
    def prepared() -> Stage:
        stage = stage_of(bucket_rows=1)
        for n in range(3):
            stage.put(b"%d" % n)
        return stage

    def deleting(stage: Stage):
        generation = yield from naming.delete_queue("q")
        yield from naming.remove_queue("q", generation)

    stage, total = prepared(), 0
    play = stage.play(deleting(stage))
    while not play.over:
        play.step()
        total += 1
    assert total > 15
    for stop in range(1, total):
        stage = prepared()
        play = stage.play(deleting(stage))
        for _ in range(stop):
            play.step()
        play.die()
        stage.run(naming.finish_deletes())
        row = stage.execute(s.ReadName("q"))
        if row.current is not None:
            assert stop == 1 and row.current == stage.generation, "it had not begun"
            continue
        assert not stage.kept() and not stage.index(), stop
        assert row.queue(stage.generation).state == "deleted"


def test_a_late_create_of_a_queue_does_not_bring_it_back(stage_of: StageOf) -> None:
    stage = stage_of()
    play = stage.play(naming.create_queue("other", stage.config)).until(s.CreateQueue)
    late = play.lose()
    queue = play.finish()
    stage.run(naming.delete_queue("other"))
    assert stage.execute(late) is REFUSED
    assert stage.run(naming.find_queue("other")) is None and queue.state == "live"


def test_a_released_delivery_does_not_count(stage_of: StageOf) -> None:
    stage = stage_of(attempts_max=2)
    stage.put(b"m")
    for _ in range(6):
        (leased,) = stage.reserve()
        assert leased.row.attempts == 1
        assert stage.run(settling.release(stage.generation, leased.bucket, [ticket(leased)])) == ["released"]
    assert [one.row.body for one in stage.reserve()] == [b"m"]


def test_a_delayed_message_waits_for_its_time(stage_of: StageOf) -> None:
    stage = stage_of()
    stage.put(b"later", delay=30.0)
    assert stage.reserve() == []
    stage.now += 29
    assert stage.reserve() == []
    stage.now += 2
    assert [one.row.body for one in stage.reserve()] == [b"later"]


def test_messages_for_another_hour_share_buckets() -> None:
    now = 1_800_000_000.0
    assert writing.hour_of(now, now + 3600) == 0
    far = writing.hour_of(now, now + 3601)
    assert far and far == writing.hour_of(now - 600, now + 3601) and far != writing.hour_of(now, now + 9000)


def asked(play: Play[Any], kind: type[s.Statement]) -> int:
    """Play to the end; how many statements of a kind were carried out."""
    count = 0
    while not play.over:
        count += isinstance(play.at, kind)
        play.step()
    return count


def test_messages_for_another_hour_share_a_bucket_though_they_come_one_a_minute(stage_of: StageOf) -> None:
    stage = stage_of(bucket_rows=1000, seal_seconds=30.0)
    due = stage.now + 86_400.0
    slot, writer, reader = Slot(due), stage.writer(), stage.reader()
    repairer = repairing.Repairer("q", stage.generation)
    bodies = {b"%d" % n for n in range(20)}
    for body in sorted(bodies):
        message = stage.message(body, due - stage.now)
        assert stage.run(writing.put(writer, slot, [message])) is Told.ACCEPTED
        stage.now += 60
        assert asked(stage.play(repairing.repair(repairer)), s.Glance) == 0
        assert asked(stage.play(taking.reserve(reader, 5)), s.FindDue) == 0, "nobody looks before its time"
    assert len(stage.index()) == 1 and reader.next_due == due
    stage.now = due + 1.0
    assert stage.drain() == bodies


def test_nothing_goes_into_a_bucket_that_is_due_before_it(stage_of: StageOf) -> None:
    stage = stage_of()
    early = stage.message(b"m", 10.0)
    with pytest.raises(AssertionError):
        stage.run(writing.put(stage.writer(), Slot(stage.now + 20.0), [early]))


def test_a_round_of_repair_is_bounded_and_no_bucket_is_left_out(stage_of: StageOf) -> None:
    stage = stage_of(bucket_rows=1, seal_seconds=0.0)
    for n in range(3 * limits.GLANCE_BUCKETS_MAX):
        stage.put(b"%d" % n)
    stage.now += 60
    repairer = repairing.Repairer("q", stage.generation)
    for _ in range(3):
        assert asked(stage.play(repairing.repair(repairer)), s.Glance) == limits.GLANCE_BUCKETS_MAX
    assert {bucket.state for bucket in stage.kept().values()} == {"sealed"}


def test_the_index_is_swept_now_and_then_and_not_with_every_move_of_the_floor(stage_of: StageOf) -> None:
    stage = stage_of(bucket_rows=1, seal_seconds=0.0)
    repairer, drops = repairing.Repairer("q", stage.generation), 0
    for n in range(60):
        stage.put(b"%d" % n)
        stage.now += 5
        stage.complete(stage.reserve())
        stage.put(b"the next")
        for _ in range(2):
            drops += asked(stage.play(repairing.repair(repairer)), s.DropIndex)
    assert stage.floor() >= stage.index()[-3], "the floor moves on"
    assert 1 <= drops <= 1 + 60 * 5 / limits.SWEEP_SECONDS
    stage.complete(stage.reserve())
    for _ in range(3):
        stage.now += limits.SWEEP_AT_REST_SECONDS
        stage.run(repairing.repair(repairer))
    assert stage.index() == [], "a queue at rest is clean"


def test_a_queue_in_which_nothing_happens_is_hardly_looked_at(stage_of: StageOf) -> None:
    stage = stage_of(bucket_rows=1, seal_seconds=0.0)
    for n in range(10):
        stage.put(b"%d" % n)
    repairer = repairing.Repairer("q", stage.generation)

    def minute() -> tuple[int, int]:
        glances = reads = 0
        for _ in range(60):
            stage.now += 1
            play = stage.play(repairing.repair(repairer))
            while not play.over:
                glances += isinstance(play.at, s.Glance)
                reads += isinstance(play.at, s.ReadBucket)
                play.step()
        return glances, reads

    minute()
    glances, reads = minute()
    assert glances <= 10 * 60 / limits.GLANCE_SECONDS_MAX + 10 and reads == 0
    leased = stage.reserve()
    assert len(leased) == 10
    stage.complete(leased)
    assert limits.SWEEP_SECONDS < 120
    for _ in range(3):
        minute()
    assert stage.index() == [], "and what is finished goes all the same"


def test_who_has_its_last_delivery_is_buried_when_its_lease_ends_and_not_read_before(
    stage_of: StageOf,
) -> None:
    stage = stage_of(attempts_max=1, seal_seconds=0.0)
    stage.put(b"long", b"short", b"waits")
    reader = stage.reader()
    assert stage.run(taking.reserve(reader, 1, 500.0)) and stage.run(taking.reserve(reader, 1, 50.0))
    repairer, reads = repairing.Repairer("q", stage.generation), 0
    for _ in range(45):
        stage.now += 1
        reads += asked(stage.play(repairing.repair(repairer)), s.ReadBucket)
    assert reads <= 3 and stage.dead() == []
    for _ in range(8):
        stage.now += 1
        stage.run(repairing.repair(repairer))
    assert [letter.body for letter in stage.dead()] == [b"short"]


def test_the_index_span_tells_of_a_message_that_stays(stage_of: StageOf) -> None:
    from fairway.bucket.counting import count

    stage = stage_of(bucket_rows=1)
    stage.put(b"stays", delay=3000.0)
    for _ in range(10):
        stage.put(b"goes")
    for _ in range(4):
        stage.now += 20
        stage.complete(stage.reserve())
        stage.repair()
    stats = stage.run(count("q", stage.generation))
    assert stats is not None
    assert (stats.delayed, stats.buckets, stats.index_span) == (1, 1, 11)
    stage.now += 3000
    assert stage.drain() == {b"stays"}


def test_places_sort_as_time_uuids_do() -> None:
    from uuid import UUID

    from fairway.bucket.places import place_of, uuid_bytes

    places = sorted(place_after(1.8e9 + n % 3, [], n * 0x123456789ABCDEF) for n in range(50))
    uuids = [UUID(bytes=uuid_bytes(place)) for place in places]
    assert all(uuid.version == 1 and uuid.variant == "specified in RFC 4122" for uuid in uuids)
    signed = [(uuid.time, [b - 256 if b > 127 else b for b in uuid.bytes[8:]]) for uuid in uuids]
    assert signed == sorted(signed)
    assert [place_of(uuid.bytes) for uuid in uuids] == places


def test_one_node_repairs_and_another_takes_over_when_it_is_silent(stage_of: StageOf) -> None:
    from fairway.bucket.electing import Candidate, elect

    stage = stage_of()
    one, two = Candidate("q", "one"), Candidate("q", "two")
    assert stage.run(elect(one, 0.0)) is True
    for second in range(10):
        assert stage.run(elect(two, 100.0 + second)) is False, "it sees the beats"
        assert stage.run(elect(one, 1.0 + second)) is True
    silent = limits.REPAIRER_SILENT_SECONDS
    assert stage.run(elect(two, 110.0)) is False
    assert stage.run(elect(two, 110.0 + silent - 0.1)) is False
    assert stage.run(elect(two, 110.0 + silent)) is True
    assert stage.run(elect(one, 30.0)) is False, "the first one watches now"
    late = stage.play(elect(one, 30.0 + silent)).until(s.Beat)
    assert stage.run(elect(two, 200.0)) is True
    assert late.step() is REFUSED and late.value is False


def test_a_repairer_beats_in_the_middle_of_a_long_round(stage_of: StageOf) -> None:
    from fairway.bucket.electing import Candidate, beating, elect

    stage = stage_of(bucket_rows=1)
    for n in range(20):
        stage.put(b"%d" % n)
    one, two, clock = Candidate("q", "one"), Candidate("q", "two"), [0.0]
    assert stage.run(elect(one, clock[0])) is True
    assert stage.run(elect(two, clock[0])) is False
    repairer = repairing.Repairer("q", stage.generation)
    play = stage.play(beating(one, repairing.repair(repairer), lambda: clock[0]))
    while not play.over:
        play.step()
        clock[0] += 0.9  # a slow cluster: the whole of it takes longer than a silent repairer is waited for
        assert stage.run(elect(two, clock[0])) is False, "it sees the beats"
    assert clock[0] > 2 * limits.REPAIRER_SILENT_SECONDS and play.value.buckets == 20


def test_a_repairer_stops_where_another_one_repairs(stage_of: StageOf) -> None:
    from fairway.bucket.electing import Candidate, beating, elect

    stage = stage_of(bucket_rows=1)
    for n in range(20):
        stage.put(b"%d" % n)
    one, two, clock = Candidate("q", "one"), Candidate("q", "two"), [0.0]
    assert stage.run(elect(one, 0.0)) is True and stage.run(elect(two, 0.0)) is False
    repairer = repairing.Repairer("q", stage.generation)
    play = stage.play(beating(one, repairing.repair(repairer), lambda: clock[0])).until(s.Glance)
    clock[0] = limits.REPAIRER_SILENT_SECONDS  # held up for so long
    assert stage.run(elect(two, clock[0])) is True
    assert asked(play, s.Glance) <= 1 and play.value is None
