"""The failure table: a process killed at each point leaves a ring in which everything else is as it was."""

from __future__ import annotations

import os
import resource
import signal
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from fairway.errors import RingFull
from fairway.ring.face import Delivery, Ring
from tests.ring.victims import (
    ACKNOWLEDGED,
    ANNOUNCING,
    COMMITTED,
    FREEING,
    READERS,
    ROBBING,
    WRITERS,
    child,
    die,
    drain,
    handle,
    stop,
    wait_for,
)

pytestmark = pytest.mark.real

SIZE = 1 << 16
DELIVERIES: list[Delivery] = ["at_least_once", "at_most_once"]
# A payload full of what looks like headers, eight granules with its own: in every lap blocks begin at the same places,
# so that a whole old block with a valid checksum lies under each new one.
EVIL = (b"".join(struct.pack("<HHIII", 0xFA17, 0, 480, 0, n) for n in range(31)))[: 8 * 64 - 16]


@pytest.fixture(params=DELIVERIES)
def ring(request: pytest.FixtureRequest, place: Path) -> Any:
    made = Ring.create(place / "ring", SIZE, delivery=request.param, crc=True)
    for lap in range(400):
        made.put(EVIL)
        assert made.pop(0) == EVIL, lap
    yield made
    made.close()


BEFORE = b"before".ljust(
    len(EVIL)
)  # as long as it, so that what follows begins where blocks began in the lap before
DATA_AT = 4096 + 256 * 64 + SIZE // 64 * 8


def old_block_lies_under(ring: Ring) -> None:
    """Where the next block begins, a whole one of the lap before lies, with its checksum: what a search would find."""
    head = struct.Struct("<HHIII")
    at = ring.stats().written * 64 % SIZE
    data = Path(ring.path).read_bytes()[DATA_AT:]
    (_, _, size, check, _), body = head.unpack_from(data, at), data[at + head.size :][: len(EVIL)]
    assert (size, body) == (len(EVIL), EVIL)
    assert check == google_crc32c.value(EVIL)


def settled(ring: Ring) -> None:
    """Nothing is left of anybody who is gone: no block, no place."""
    ring.recover()
    stats = ring.stats()
    assert stats.written == stats.read == stats.tail
    assert not stats.blocks
    assert [one.pid for one in stats.owners] == [os.getpid()]


@pytest.mark.parametrize("point", WRITERS.values(), ids=WRITERS)
def test_what_a_dead_writer_had_not_committed_is_skipped(ring: Ring, faults: Any, point: int) -> None:
    ring.put(BEFORE)
    old_block_lies_under(ring)
    die(faults, Path(ring.path), point, lambda victim: victim.put(EVIL))
    ring.put(b"after")
    ring.put(EVIL)
    assert drain(ring) == [BEFORE, b"after", EVIL], (
        "a message of the lap before was delivered again, or one is lost"
    )
    assert ring.stats().skipped == (point > 1)
    settled(ring)


def test_what_a_dead_writer_had_committed_is_delivered(ring: Ring, faults: Any) -> None:
    die(faults, Path(ring.path), COMMITTED, lambda victim: victim.put(b"last words"))
    ring.put(b"after")
    assert drain(ring) == [b"last words", b"after"]
    settled(ring)


@pytest.mark.parametrize("point", READERS.values(), ids=READERS)
def test_what_a_dead_reader_held_is_delivered_again_or_dropped(ring: Ring, faults: Any, point: int) -> None:
    ring.put_many([b"held", EVIL])
    die(faults, Path(ring.path), point, lambda victim: victim.pop(5))
    ring.put(b"after")
    again = ring.stats().delivery == "at_least_once"
    found = drain(ring)
    assert sorted(found) == sorted([b"held", EVIL, b"after"] if again else [EVIL, b"after"])
    assert found.index(EVIL) < found.index(b"after")
    stats = ring.stats()
    assert (stats.redelivered, stats.dropped) == ((1, 0) if again else (0, 1))
    settled(ring)


def test_what_a_dead_reader_had_acknowledged_is_not_delivered_again(ring: Ring, faults: Any) -> None:
    ring.put_many([b"done", b"after"])
    die(faults, Path(ring.path), ACKNOWLEDGED, lambda victim: victim.pop(5))
    assert drain(ring) == [b"after"]
    settled(ring)


def test_a_lease_of_a_killed_process_goes_to_another(place: Path) -> None:
    ring = Ring.create(place / "ring", SIZE)
    ring.put_many([b"one", b"two", b"three"])

    def hold() -> None:
        other = Ring.attach(ring.path)
        held = other.get_many(2)
        assert held.payloads == [b"one", b"two"]
        signal.pause()

    pid = child(hold)
    wait_for(lambda: len(ring.stats().blocks) == 2)
    assert ring.pop(0) == b"three"
    assert ring.pop(0.3) is None, "its holder lives"
    os.kill(pid, signal.SIGKILL)
    assert ring.pop(30) == b"one", "also while nobody has waited for it: a zombie writes no more"
    assert ring.pop(30) == b"two"
    os.waitpid(pid, 0)
    settled(ring)
    ring.close()


@pytest.mark.parametrize(
    ("ring", "point"),
    [
        ("at_least_once", ROBBING),
        ("at_least_once", ANNOUNCING),  # under at most once nothing is announced
        ("at_least_once", FREEING),
        ("at_most_once", ROBBING),
        ("at_most_once", FREEING),
    ],
    indirect=["ring"],
)
def test_who_dies_while_he_clears_up_leaves_the_rest_to_others(ring: Ring, faults: Any, point: int) -> None:
    ring.put_many([b"held", b"next"])
    die(faults, Path(ring.path), READERS["9 copied, not acknowledged"], lambda victim: victim.pop(5))
    die(faults, Path(ring.path), point, lambda victim: victim.recover())
    again = ring.stats().delivery == "at_least_once"
    assert sorted(drain(ring)) == ([b"held", b"next"] if again else [b"next"])
    stats = ring.stats()
    assert (stats.redelivered, stats.dropped) == ((1, 0) if again else (0, 1))
    settled(ring)


def test_a_place_of_one_who_died_when_he_had_just_come_is_free_again(ring: Ring, faults: Any) -> None:
    pid = child(lambda: (handle(faults, Path(ring.path)), os.kill(os.getpid(), signal.SIGKILL)))
    os.waitpid(pid, 0)
    assert len(ring.stats().owners) == 2
    settled(ring)


def test_a_full_ring_of_the_dead_is_free_again(ring: Ring, faults: Any) -> None:
    """All space is claimed by writers that died, one after the other; whoever comes next puts at once."""
    for _ in range(3):
        while True:
            try:
                ring.put(EVIL, 0)
            except RingFull:
                break
        ring.pop(0)
        die(faults, Path(ring.path), 6, lambda victim: victim.put(EVIL))
        drain(ring)
    ring.put(b"after", 30)
    assert drain(ring) == [b"after"]
    settled(ring)


def test_many_lives_in_a_row_never_use_up_the_places(place: Path, faults: Any) -> None:
    ring = Ring.create(place / "ring", SIZE)
    made = []
    for _ in range(255):
        made.append(Ring.attach(ring.path))
    for one in made:
        one.close()
    for n in range(40):
        die(faults, Path(ring.path), 1 + n % 6, lambda victim: [victim.put(b"x") for _ in range(3)])
    settled(ring)
    ring.close()


# -- one who clears up and stands still in the middle of it


def test_who_was_late_to_rob_the_dead_does_not_rob_the_living(place: Path, faults: Any) -> None:
    """Place and block went to somebody alive meanwhile, and the word says so."""
    ring = Ring.create(place / "ring", SIZE)
    ring.put(b"work")
    die(faults, place / "ring", READERS["9 copied, not acknowledged"], lambda victim: victim.pop(5))
    late = stop(faults, place / "ring", ROBBING, lambda victim: victim.recover())
    ring.recover()
    heir = Ring.attach(ring.path)
    assert ring.stats().owners[1].pid == os.getpid(), "it has the place of the dead"
    lease = heir.get(5)
    assert lease is not None and lease.payload == b"work"
    os.kill(late, signal.SIGCONT)
    assert os.waitpid(late, 0)[1] == 0
    assert lease.ack(), "it was robbed"
    assert drain(ring) == []
    heir.close()
    settled(ring)
    ring.close()


def test_a_place_is_freed_only_after_a_walk_that_began_when_its_owner_was_dead(
    place: Path, faults: Any
) -> None:
    """One who claims behind the walk and dies then would leave a word that names another's place."""
    ring = Ring.create(place / "ring", SIZE)

    def claim_and_die() -> None:
        victim = handle(faults, place / "ring", 3)
        wait_for((place / "go").exists)
        victim.put(b"half")

    writer = child(claim_and_die)
    wait_for(lambda: len(ring.stats().owners) == 2)
    late = stop(faults, place / "ring", FREEING, lambda victim: victim.recover())
    (place / "go").touch()
    assert os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) == -signal.SIGKILL
    os.kill(late, signal.SIGCONT)
    assert os.waitpid(late, 0)[1] == 0
    heir = Ring.attach(ring.path)
    (block,) = ring.stats().blocks
    assert block.pid == writer, "its place was freed while a word named it"
    ring.put(b"after")
    assert drain(ring) == [b"after"]
    heir.close()
    settled(ring)
    ring.close()


# -- one who only stands still


@pytest.mark.parametrize("ends", [True, False], ids=["killed", "continued"])
@pytest.mark.parametrize("point", list(WRITERS.values())[1:], ids=list(WRITERS)[1:])
def test_a_stopped_writer_is_waited_for_reported_and_never_robbed(
    place: Path, faults: Any, point: int, ends: bool
) -> None:
    ring = Ring.create(place / "ring", SIZE, crc=True)
    pid = stop(faults, place / "ring", point, lambda victim: victim.put(b"slow" * 500))
    sent = 0
    while True:  # the ring is full behind it
        try:
            ring.put(b"fast" * 500, 0)
        except RingFull:
            break
        sent += 1
    assert sent > 20
    assert ring.pop(0.3) is None
    assert ring.recover() == 0
    (block,) = ring.stats().stuck
    assert (block.pid, block.doing, block.process) == (pid, "writing", "stopped")
    os.kill(pid, signal.SIGKILL if ends else signal.SIGCONT)
    os.waitpid(pid, 0)
    slow = [] if ends else [b"slow" * 500]
    assert drain(ring) == slow + [b"fast" * 500] * sent
    assert ring.stats().damaged == 0
    settled(ring)
    ring.close()


@pytest.mark.parametrize("ends", [True, False], ids=["killed", "continued"])
def test_a_stopped_writer_without_space_is_in_nobodys_way(place: Path, faults: Any, ends: bool) -> None:
    """The first point, where nothing is claimed yet: the others go round twice meanwhile."""
    ring = Ring.create(place / "ring", SIZE, crc=True)
    pid = stop(
        faults, place / "ring", WRITERS["1 a: has a cursor, no space"], lambda victim: victim.put(b"slow")
    )
    while ring.stats().written < 2 * SIZE // 64:
        ring.put(b"fast" * 500, 0)
        assert ring.pop(0) == b"fast" * 500
    assert ring.recover() == 0
    stats = ring.stats()
    assert not stats.blocks and [one.pid for one in stats.owners] == [os.getpid(), pid]
    os.kill(pid, signal.SIGKILL if ends else signal.SIGCONT)
    os.waitpid(pid, 0)
    assert drain(ring) == ([] if ends else [b"slow"])
    settled(ring)
    ring.close()


@pytest.mark.parametrize("ends", [True, False], ids=["killed", "continued"])
def test_what_a_stopped_writer_had_committed_is_delivered_meanwhile(
    place: Path, faults: Any, ends: bool
) -> None:
    ring = Ring.create(place / "ring", SIZE, crc=True)
    pid = stop(faults, place / "ring", COMMITTED, lambda victim: victim.put(b"slow"))
    ring.put(b"after")
    assert drain(ring, 0) == [b"slow", b"after"]
    assert not ring.stats().blocks
    os.kill(pid, signal.SIGKILL if ends else signal.SIGCONT)
    os.waitpid(pid, 0)
    assert drain(ring) == []
    settled(ring)
    ring.close()


def test_one_who_has_no_descriptor_left_calls_nobody_dead(place: Path, faults: Any) -> None:
    """Then /proc cannot be read, and that is no death."""
    ring = Ring.create(place / "ring", SIZE)
    writer = stop(faults, place / "ring", 5, lambda victim: victim.put(b"slow"))

    def look() -> None:
        poor = Ring.attach(place / "ring")
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        with pytest.raises(OSError):
            os.open("/proc/self/stat", os.O_RDONLY)
        assert poor.recover() == 0

    assert os.waitpid(child(look), 0)[1] == 0
    os.kill(writer, signal.SIGCONT)
    assert os.waitpid(writer, 0)[1] == 0
    assert drain(ring) == [b"slow"]
    ring.close()


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_stopped_reader_keeps_what_it_holds(place: Path, faults: Any, delivery: Delivery) -> None:
    ring = Ring.create(place / "ring", SIZE, delivery=delivery, crc=True)
    ring.put_many([EVIL, b"next"])
    got = place / "got"
    pid = stop(faults, place / "ring", 8, lambda victim: got.write_bytes(victim.pop(5)))
    assert ring.pop(0.3) == b"next"
    sent = 0
    while True:  # its block is not written over, however full the ring gets
        try:
            ring.put(b"x" * 2000, 0)
        except RingFull:
            break
        sent += 1
    assert ring.recover() == 0
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    assert got.read_bytes() == EVIL
    assert drain(ring) == [b"x" * 2000] * sent
    settled(ring)
    ring.close()
