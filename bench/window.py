"""A backlog through a window: messages of 200 bytes, many more than are kept in memory.

    python bench/window.py [--messages 200000] [--window 5000] [--peer N] [--batch 100] [--full] [--quick] [--json FILE]

`--full` is 10^7 messages through a window of 10^5, in batches of 1000; it needs 8 GB of disk. Tells microseconds per
message, CPU and by the clock, for putting and for reserve + complete with the window and with everything in memory
(the peer, of at most 10^6 messages: more would not fit), the longest reserve or complete, what memory grows by in both,
and for the window at each tenth of the way, how many reads of the window one dispatched message costs, and how many
rows are carried forward for one finished row in a store that deletes by range. CPU time too: cores may be shared.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from math import ceil
from multiprocessing import get_context
from pathlib import Path

import msgspec
from figures import Figures, memory_mib, parser, times

import fairway
from fairway.engine import commands as c
from fairway.engine.engine import Engine
from fairway.engine.state import Start
from fairway.limits import WINDOW_ROWS_MAX
from fairway.model.submission import Described, Offer
from fairway.store.memory import MemoryStore, Shelf
from fairway.store.sqlite import SqliteStore

TENANTS = 20
PEER_MAX = 1_000_000  # messages in memory at a time: about 1 GiB
PAYLOAD = b"x" * 200


class Reads:
    """Counts the reads that the window makes of the store."""

    def __init__(self) -> None:
        self.count = 0
        self._above = SqliteStore.above

    def __enter__(self) -> Reads:
        reads = self

        def above(store: SqliteStore, *args: object, **named: object) -> object:
            reads.count += 1
            return reads._above(store, *args, **named)  # pyright: ignore[reportArgumentType]

        SqliteStore.above = above  # pyright: ignore[reportAttributeAccessIssue]
        return self

    def __exit__(self, *_: object) -> None:
        SqliteStore.above = self._above


class Through(msgspec.Struct):
    """What a way through a window cost."""

    messages: int
    put_us: float = 0.0
    take_us: float = 0.0
    put_clock_us: float = 0.0
    take_clock_us: float = 0.0
    put_mib: float = 0.0  # what memory had grown by when all was put
    tenths_mib: list[float] = []  # and at each tenth of the way out
    reads: int = 0
    calls_ms: list[float] = []  # how long each reserve and complete took, by the clock
    seconds: float = 0.0


def through(folder: Path, messages: int, window: int, batch: int) -> Through:
    """Put everything, then hand everything out; memory is looked at all the way."""
    path = folder / f"w{window}.db"
    found = Through(messages, tenths_mib=[], calls_ms=[])
    empty, began = memory_mib(), time.perf_counter()
    with Reads() as reads:
        with fairway.open(path, window_rows=window) as q:
            started, clock = time.process_time(), time.perf_counter()
            for first in range(0, messages, 5000):
                q.put_many([PAYLOAD] * min(5000, messages - first), tenant=f"t{first // 5000 % TENANTS}")
            found.put_us = (time.process_time() - started) / messages * 1e6
            found.put_clock_us = (time.perf_counter() - clock) / messages * 1e6
            found.put_mib = memory_mib() - empty
            print(f"  all put after {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        with fairway.open(path, window_rows=window) as q:
            reads.count = 0
            done, started, clock = 0, time.process_time(), time.perf_counter()
            while some := take(q, batch, found):
                done += some
                if done * 10 >= messages * (len(found.tenths_mib) + 1):
                    found.tenths_mib.append(memory_mib() - empty)
                    took = time.perf_counter() - began
                    print(f"  {done} handed out after {took:.0f} s", file=sys.stderr, flush=True)
            found.take_us = (time.process_time() - started) / messages * 1e6
            found.take_clock_us = (time.perf_counter() - clock) / messages * 1e6
        assert done == messages, (done, messages)
    found.reads, found.seconds = reads.count, time.perf_counter() - began
    path.unlink()
    return found


def take(q: fairway.Queue, batch: int, found: Through) -> int:
    """Reserve and complete a batch; how long each call took is noted. Gives how many there were."""
    began = time.perf_counter()
    leases = q.reserve(max=batch)
    reserved = time.perf_counter()
    if leases:
        q.complete(leases)
        found.calls_ms.append((time.perf_counter() - reserved) * 1e3)
    found.calls_ms.append((reserved - began) * 1e3)
    return len(leases)


def apart(folder: Path, messages: int, window: int, batch: int) -> Through:
    """In a process of its own: what the one before has let go of would be taken for room."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(through, folder, messages, window, batch).result()


def carried(rows: int, window: int) -> float:
    """Rows carried forward for each finished one: one in twenty is paused for ever, the rest flows."""
    store = MemoryStore.open("q", Shelf(keeps_synced=False, by_range=True))
    now = 1_800_000_000.0
    engine = Engine.load(store, store.take_over(), Start("q", 1, 2, now, window_rows=window))
    moves = finished = 0

    def settle() -> None:
        nonlocal moves
        for _ in range(8):
            while engine.wants_reads():
                for read in engine.begin_reads(now):
                    engine.delivered(read, read.read(store), now)
            closing = engine.close_group(now)
            if closing is None:
                return
            if closing.group is not None:
                store.commit(closing.group)
                moves += len(closing.group.moves)
            engine.stored(closing)

    engine.execute(c.Call(c.Pause(True, "paused")), now)
    offers = [Offer(Described("paused" if n % 20 == 0 else f"t{n % 7}", 1)) for n in range(500)]
    for _ in range(rows // 500):
        engine.execute(c.Call(c.Submit(offers)), now)
        settle()
        while finished < 1e12:
            draft = engine.execute(c.Call(c.Reserve(100)), now)
            settle()
            reply = draft.reply
            if not isinstance(reply, c.Reserved) or not reply.spans:
                break
            spans = [(id, start, count) for id, start, count, _ in reply.spans]
            part = c.Part(reply.epoch, reply.count, reply.seal, spans)
            engine.execute(c.Call(c.Complete([part])), now)
            finished += sum(span[2] for span in spans)
            settle()
    return moves / finished


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--messages", type=int, default=200_000)
    options.add_argument("--window", type=int, default=5_000)
    options.add_argument("--peer", type=int, help="messages of the peer")
    options.add_argument("--batch", type=int, default=100)
    options.add_argument("--full", action="store_true", help="10^7 messages through a window of 10^5")
    given = options.parse_args()
    messages, window, batch = given.messages, given.window, given.batch
    if given.full:
        messages, window, batch = 10_000_000, 100_000, 1000
    if given.quick:
        messages, window, batch = 2_000, 200, 100
    peer = given.peer or min(messages, PEER_MAX)
    figures = Figures("window", given)
    with tempfile.TemporaryDirectory() as folder:
        small = apart(Path(folder), messages, window, batch)
        whole = apart(Path(folder), peer, min(WINDOW_ROWS_MAX, peer + 1), batch)
    table = figures.table(
        f"{messages:,} messages of {len(PAYLOAD)} bytes, {TENANTS} tenants, in batches of {batch}, beside {peer:,} that"
        " are all in memory",
        *("what", f"window of {window:,}", "all in memory", "beside it"),
    )
    for what, name in (("put", "put"), ("reserve + complete", "take")):
        for kind, end in (("CPU us a message", "_us"), ("us a message by the clock", "_clock_us")):
            ours, theirs = getattr(small, name + end), getattr(whole, name + end)
            table.add(f"{what}, {kind}", ours, theirs, times(ours, theirs))
    for what, part in (("longest reserve or complete", 1.0), ("the longest of 99 in 100 of them", 0.99)):
        ours, theirs = (sorted(one.calls_ms)[ceil(part * len(one.calls_ms)) - 1] for one in (small, whole))
        table.add(f"{what}, ms by the clock", ours, theirs, times(ours, theirs))
    table.add("memory when all was put, MiB", small.put_mib, whole.put_mib, None)
    table.add("memory on the way out, at least, MiB", min(small.tenths_mib), min(whole.tenths_mib), None)
    table.add("memory on the way out, at most, MiB", max(small.tenths_mib), max(whole.tenths_mib), None)
    table.add("reads of the window a dispatched message", small.reads / messages, whole.reads / peer, None)
    table.add("seconds by the clock, opening included", small.seconds, whole.seconds, None)
    moved = carried(1_000 if given.quick else 60_000, 100 if given.quick else 1000)
    table.add("rows carried forward for each finished one, by range", moved, None, None)
    figures.end()


if __name__ == "__main__":
    main()
