"""What is not a sound ring is refused with a word that helps, and no bytes whatever crash the process."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fairway.errors import (
    BadArgument,
    FairwayError,
    NotRing,
    ReadOnly,
    RingCorrupt,
    RingForeign,
    RingFull,
    StoreFull,
)
from fairway.ring.face import Ring
from tests.ring.spoiling import SIZE, TAKES, patch
from tests.ring.victims import child

HEADER_BYTES = 40
HOME_AT = 48
W_AT, R_AT, T_AT = 64, 128, 192
DATA_AT = 4096 + 256 * 64 + SIZE // 64 * 8
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(place: Path) -> Path:
    Ring.create(place / "ring", SIZE, crc=True).close()
    return place / "ring"


# -- before anything is mapped


@pytest.mark.parametrize("body", [b"", b"short", b"x" * 100_000, b"SQLite format 3\0" * 9000])
def test_a_foreign_file_is_refused_and_left_alone(place: Path, body: bytes) -> None:
    path = place / "foreign"
    path.write_bytes(body)
    with pytest.raises(NotRing, match="not a ring"):
        Ring.attach(path)
    assert path.read_bytes() == body


def test_what_is_no_plain_file_is_refused(place: Path) -> None:
    os.mkfifo(place / "fifo")
    (place / "folder").mkdir()
    for name in ("fifo", "folder"):
        with pytest.raises(NotRing):
            Ring.attach(place / name)
    with pytest.raises(NotRing):
        Ring.attach("/dev/null")


def test_no_link_is_followed(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(NotRing):
        Ring.attach(link)
    dangling = path.with_name("dangling")
    dangling.symlink_to(path.with_name("nowhere"))
    with pytest.raises(BadArgument, match="there already"):
        Ring.create(dangling, SIZE)


def test_every_bit_of_the_constant_part_is_checked(path: Path) -> None:
    sound = path.read_bytes()[:HEADER_BYTES]
    for bit in range(HEADER_BYTES * 8):
        wrong = bytearray(sound)
        wrong[bit // 8] ^= 1 << bit % 8
        patch(path, 0, bytes(wrong))
        with pytest.raises((NotRing, RingCorrupt)):
            Ring.attach(path)
    patch(path, 0, sound)
    Ring.attach(path).close()


@pytest.mark.parametrize("size", [200, DATA_AT, DATA_AT + SIZE - 1, DATA_AT + SIZE + 4096])
def test_a_file_of_another_length_is_refused_before_it_is_mapped(path: Path, size: int) -> None:
    os.truncate(path, size)
    with pytest.raises((NotRing, RingCorrupt)):
        Ring.attach(path)


@pytest.mark.parametrize(
    "positions", [(0, 1, 0), (3, 5, 0), (2000, 0, 0), (2**63, 2**63, 2**63), (2**51, 2**51, 2**51)]
)
def test_positions_that_contradict_one_another_are_refused(path: Path, positions: tuple[int, ...]) -> None:
    for at, value in zip((W_AT, R_AT, T_AT), positions, strict=True):
        patch(path, at, struct.pack("<Q", value))
    with pytest.raises(RingCorrupt, match="positions"):
        Ring.attach(path)


def test_positions_that_go_wrong_later_are_told_to_who_waits(path: Path) -> None:
    with Ring.attach(path) as ring:
        patch(path, T_AT, struct.pack("<Q", 77))
        with pytest.raises(RingCorrupt, match="positions"):
            ring.pop(5)
        with pytest.raises(RingCorrupt, match="positions"):
            ring.pop(0)


def test_a_ring_of_another_layout_says_which(path: Path) -> None:
    import google_crc32c

    head = bytearray(path.read_bytes()[:HEADER_BYTES])
    struct.pack_into("<I", head, 16, 2)
    patch(path, 0, bytes(head) + struct.pack("<I", google_crc32c.value(bytes(head))))
    with pytest.raises(NotRing, match=r"layout 2.*layout 1"):
        Ring.attach(path)


def test_a_ring_at_the_end_of_its_life_says_so(path: Path) -> None:
    end = 2**50 - 2 * (SIZE // 64)
    for at in (W_AT, R_AT, T_AT):
        patch(path, at, struct.pack("<Q", end))
    with Ring.attach(path) as ring, pytest.raises(RingFull, match="create another"):
        ring.put(b"x")


# -- who may not


def test_another_pid_namespace_is_refused(path: Path) -> None:
    (home,) = struct.unpack("<Q", path.read_bytes()[HOME_AT : HOME_AT + 8])
    patch(path, HOME_AT, struct.pack("<Q", home ^ 1))
    with pytest.raises(RingForeign, match="pid namespace"):
        Ring.attach(path)
    patch(path, HOME_AT, struct.pack("<Q", home ^ 1 << 40))  # another boot: all who used it are gone
    Ring.attach(path).close()
    assert struct.unpack("<Q", path.read_bytes()[HOME_AT : HOME_AT + 8]) == (home,)


ATTACH = """
import sys, fairway
try:
    fairway.Ring.attach(sys.argv[1])
except fairway.RingForeign as error:
    print("refused:", error)
"""
CREATE = """
import sys, fairway
try:
    fairway.Ring.create(sys.argv[1] + "/ring", 1 << 18)
except fairway.StoreFull as error:
    print("refused:", error)
fairway.Ring.create(sys.argv[1] + "/small", 1 << 16).put(b"x")
print("small one made")
"""


def unshared(flags: list[str], script: str) -> str:
    """Run something in namespaces of its own, where that is allowed."""
    tool = shutil.which("unshare")
    alone = [tool or "", *flags]
    if not tool or subprocess.run([*alone, "true"], capture_output=True).returncode:
        alone = [tool or "", "--user", "--map-root-user", *flags]
        if not tool or subprocess.run([*alone, "true"], capture_output=True).returncode:
            pytest.skip("needs unshare: this machine lets nobody make namespaces")
    run = subprocess.run([*alone, "sh", "-ec", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.real
def test_a_process_in_another_pid_namespace_is_refused(path: Path) -> None:
    told = unshared(["--pid", "--fork", "--mount-proc"], f"'{sys.executable}' -c '{ATTACH}' '{path}'")
    assert "refused: The ring is used from another pid namespace" in told


HIDDEN = """
import os, sys, fairway
path, nobody = sys.argv[1] + "/ring", 65534
os.chmod(sys.argv[1], 0o711)
ring = fairway.Ring.create(path, 1 << 16)
os.chown(path, nobody, nobody)
ring.put(b"work")
lease = ring.get(5)
child = os.fork()
if not child:
    try:
        os.setgroups([]), os.setgid(nobody), os.setuid(nobody)
    except OSError:
        print("no second user", flush=True)
        os._exit(0)
    print("hidden" if not os.path.exists("/proc/%d/stat" % os.getppid()) else "shown")
    other = fairway.Ring.attach(path)
    print("resolved", other.recover(), "got", other.pop(1.5), [one.process for one in other.stats().owners])
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print("done", lease.ack())
"""


@pytest.mark.real
def test_an_owner_whom_proc_hides_is_not_taken_for_dead(place: Path) -> None:
    """hidepid=2, or ProtectProc=invisible: processes of other users are there and cannot be seen."""
    mount = f"mount -t proc -o hidepid=2 proc /proc; '{sys.executable}' -c '{HIDDEN}' '{place}'"
    told = unshared(["--mount", "--pid", "--fork"], mount)
    if "no second user" in told:
        pytest.skip("needs unshare: this machine lets nobody make namespaces")
    assert told.split("\n")[:3] == ["hidden", "resolved 0 got None ['alive', 'alive']", "done True"]


@pytest.mark.real
def test_a_full_shared_memory_file_system_is_an_error_and_no_signal(place: Path) -> None:
    mount = f"mount -t tmpfs -o size=300k tmpfs '{place}'; '{sys.executable}' -c '{CREATE}' '{place}'"
    told = unshared(["--mount"], mount)
    assert "refused: there is no room for the ring" in told
    assert "small one made" in told


def test_a_ring_larger_than_the_file_system_leaves_nothing_behind(place: Path) -> None:
    room = os.statvfs(place)
    size = 1 << (room.f_frsize * room.f_blocks).bit_length()
    with pytest.raises((StoreFull, BadArgument)):  # a machine may have more memory than a ring can have
        Ring.create(place / "ring", size)
    assert not list(place.iterdir())


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises((ReadOnly, BadArgument)):
        Ring.create("/proc/self/ring", SIZE)


# -- after it is mapped


@pytest.mark.parametrize("what", ["mark", "size", "checksum", "message"])
def test_a_damaged_message_is_told_once_and_never_handed_out(path: Path, what: str) -> None:
    with Ring.attach(path) as ring:
        ring.put_many([b"damaged" * 10, b"sound"])
        at = DATA_AT + {"mark": 0, "size": 4, "checksum": 8, "message": 20}[what]
        patch(path, at, b"\xff\x00")
        with pytest.raises(RingCorrupt, match="dropped"):
            ring.get(0)
        assert ring.pop(0) == b"sound"
        assert ring.stats().damaged == 1


@pytest.mark.parametrize("then", TAKES)
@pytest.mark.parametrize("many", ["get_many", "pop_many"])
def test_damage_inside_a_batch_is_told_by_the_next_call(path: Path, many: str, then: str) -> None:
    """What came before it in the batch is handed out first."""
    with Ring.attach(path) as ring:
        ring.put_many([b"sound", b"damaged", b"later"])
        patch(path, DATA_AT + 64 + 20, b"\xff")
        if many == "pop_many":
            assert ring.pop_many(9, 0) == [b"sound"]
        else:
            with ring.get_many(9, 0) as lease:
                assert lease.payloads == [b"sound"]
        ring.put(b"last")  # who only puts is not told
        with pytest.raises(RingCorrupt, match="dropped"):
            TAKES[then](ring)
        assert ring.pop_many(9, 0) == [b"later", b"last"], "it is told once, and costs nothing else"
        assert ring.stats().damaged == 1


@pytest.mark.real
@pytest.mark.parametrize("where", ["control", "slots", "index", "all"])
def test_random_bytes_in_the_map_never_crash_or_hang_a_process(path: Path, where: str) -> None:
    """In processes of their own, since a crash is what is looked for."""
    low, high = {
        "control": (40, 4096),
        "slots": (4096, 4096 + 256 * 64),
        "index": (4096 + 256 * 64, DATA_AT),
        "all": (40, DATA_AT + SIZE),
    }[where]
    sound = path.read_bytes()
    for seed in range(12):
        pid = child(lambda seed=seed: fuzz(path, sound, low, high, seed))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, f"{where}, seed {seed}"


def fuzz(path: Path, sound: bytes, low: int, high: int, seed: int) -> None:
    dice = random.Random(seed)
    for turn in range(25):
        path.write_bytes(sound)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as body:
            if turn % 5 == 0:
                body[low:high] = dice.randbytes(high - low)
            with suppress(FairwayError):
                ring = Ring.attach(path)
                for _ in range(60):
                    with suppress(FairwayError):
                        one_step(ring, dice)
                    if dice.random() < 0.2:
                        spoil(body, low, high, dice)
                ring.close()


def spoil(body: mmap.mmap, low: int, high: int, dice: random.Random) -> None:
    for _ in range(dice.choice((1, 20, 400))):
        at, size = dice.randrange(low, high - 8), dice.choice((1, 4, 8))
        body[at : at + size] = dice.randbytes(size)


def one_step(ring: Ring, dice: random.Random) -> None:
    match dice.randrange(7):
        case 0:
            ring.put(b"x" * dice.choice((0, 50, 9000)), 0.001)
        case 1:
            ring.pop(0.001)
        case 2:
            ring.get_many(5, 0)
        case 3:
            ring.get_into(bytearray(100), 0)
        case 4:
            ring.recover()
        case 5:
            ring.stats()
        case _:
            ring.arm()
