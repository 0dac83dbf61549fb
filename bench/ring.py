"""CPU time of a message between processes: the ring beside the ways that Python has for it, in one run.

    python bench/ring.py [--rounds 3] [--kills 500] [--only cpu|storm] [--quick] [--json FILE]

CPU microseconds per message, of producers and consumers together, the least of the rounds; messages of 64 B, 1 KiB and
64 KiB, one producer and one consumer, and four of each, one message per call and 64 where the way has such calls.
Then the ways that many writers and readers can share go through the same storm, which kills them at random: which of
them go on, and what they lost. Peers that are not part of Python are taken from build/peers, where `make bench` puts
them; without, they are left out, and so is the ring where it is not built.
"""

from __future__ import annotations

import random
import resource
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from figures import Figures, parser
from peers.pipes import CONTEXT, WAYS, Ring, Way
from peers.storm import CONSUMERS, HANG_SECONDS, PRODUCERS, SIZES, Outcome, Storm

from fairway.ring.native import BUILT

BUILT_PEERS = Path(__file__).parent.parent / "build" / "peers"
sys.path.append(str(BUILT_PEERS))  # they are imported where they are used
BATCH = 64
MESSAGES = {64: 40_960, 1024: 40_960, 65_536: 2_048}
UNTIL = "kills until nothing came any more"  # not all: a way that hangs is killed on until that is seen
STORMED = {
    "fairway.Ring, put, get_many and ack": "fairway.Ring, put and pop",
    "multiprocessing.Queue": "multiprocessing.Queue",
    "faster-fifo, bytes": "faster-fifo, bytes",
}  # and the ways they are among those that are measured
CALM_SECONDS = 5.0  # nothing comes any more; the ring notices its dead within about one


def available(figures: Figures) -> dict[str, type[Way]]:
    """The ways that this machine has; what is left out is said."""
    found = dict(WAYS)
    if not BUILT:
        found = {name: kind for name, kind in found.items() if not issubclass(kind, Ring)}
        figures.leave_out("fairway.Ring", "not built: install a C compiler, then Fairway again")
    peers = (
        ("faster-fifo, bytes", "faster_fifo", "faster-fifo"),
        ("pyzmq ipc, PUSH and PULL", "zmq", "pyzmq"),
    )
    for name, module, package in peers:
        try:
            __import__(module)
            figures.versions[package] = version(package)
        except ImportError:
            del found[name]
            figures.leave_out(name, "not installed: `make bench` brings it")
    return found


def measure(kind: type[Way], pairs: int, size: int, batch: int, messages: int) -> tuple[float, float]:
    """CPU microseconds per message, and messages per second."""
    times = messages // pairs // BATCH * BATCH
    message = random.randbytes(size)
    folder = Path(tempfile.mkdtemp(prefix="fairway-bench-", dir="/dev/shm"))
    way = kind(folder, pairs, pairs, size)
    go, counted = CONTEXT.Event(), CONTEXT.Array("q", pairs)

    def produce(who: int) -> None:
        go.wait()
        way.produce(who, times, message, batch)

    def consume(who: int) -> None:
        counted[who] = way.consume(who, batch)

    consumers = [CONTEXT.Process(target=consume, args=(n,)) for n in range(pairs)]
    producers = [CONTEXT.Process(target=produce, args=(n,)) for n in range(pairs)]
    try:
        for process in (*consumers, *producers):
            process.start()
        time.sleep(0.2)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        go.set()
        for process in producers:
            process.join(60)
        spent = time.perf_counter() - began
        way.finish()
        for process in consumers:
            process.join(60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        for process in (*consumers, *producers):
            process.kill()
        way.close()
        shutil.rmtree(folder)
    if sum(counted) != times * pairs:
        raise SystemExit(f"{kind.__name__} lost messages: {sum(counted)} of {times * pairs}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e6 * cpu / sum(counted), sum(counted) / spent


def storm(kind: type[Way], kills: int, calm_seconds: float) -> Outcome:
    """Kill producers and consumers at random; what became of the way."""
    folder = Path(tempfile.mkdtemp(prefix="fairway-bench-", dir="/dev/shm"))
    try:
        return Storm(folder, kind, seed=3).rage(kills, calm_seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tell_storms(figures: Figures, ways: dict[str, type[Way]], kills: int, calm_seconds: float) -> None:
    """The same storm on every way that several writers and readers can share."""
    told = figures.table(
        f"A storm: {PRODUCERS} producers and {CONSUMERS} consumers, {min(SIZES)} B to {max(SIZES):,} B, one of them"
        f" killed every 2 to 30 ms, {kills} times or until nobody receives anything for {HANG_SECONDS:g} s",
        *("way", UNTIL, "put", "never received", "received again", "altered", "failed by itself", "then"),
    )
    for name, way in STORMED.items():
        if way in ways:
            found = storm(ways[way], kills, calm_seconds)
            if found.robbed:
                raise SystemExit(
                    f"{name}: {found.robbed} messages came twice, and nobody who held them was killed"
                )
            then = "HANGS" if found.hangs else "goes on"
            told.add(
                name, found.kills, found.put, found.missing, found.again, found.altered, found.failed, then
            )


def tell_costs(figures: Figures, ways: dict[str, type[Way]], quick: bool, rounds: int) -> None:
    """CPU time of every way, size and shape."""
    sizes = [64] if quick else list(MESSAGES)
    shapes = [(pairs, batch) for pairs in (1, 4) for batch in (1, BATCH)][: 2 if quick else 4]
    table = figures.table(
        f"CPU microseconds a message, producers and consumers together, the least of {rounds} rounds",
        "way",
        *(f"{size:,} B, {p} to {p}" + (f", by {b}" if b > 1 else "") for size in sizes for p, b in shapes),
    )
    for name, kind in ways.items():
        cells: list[float | None] = []
        for size in sizes:
            for pairs, batch in shapes:
                if batch > 1 and not kind.batches:
                    cells.append(None)
                    continue
                messages = 256 if quick else MESSAGES[size]
                cells.append(min(measure(kind, pairs, size, batch, messages)[0] for _ in range(rounds)))
        table.add(name, *cells)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--kills", type=int, default=500)
    options.add_argument("--only", choices=["cpu", "storm"])
    given = options.parse_args()
    figures = Figures("ring", given)
    ways = available(figures)
    if given.quick:
        given.rounds, given.kills = 1, 12
        ways = {name: ways[name] for name in list(ways)[:1]}
    if given.only != "storm":
        tell_costs(figures, ways, given.quick, given.rounds)
    if given.only != "cpu":
        tell_storms(figures, ways, given.kills, CALM_SECONDS / 5 if given.quick else CALM_SECONDS)
    figures.end()


if __name__ == "__main__":
    main()
