"""The server under consumers and producers, beside the peers that are installed, in one run.

    python bench/server.py [--workers 1] [--seconds 2] [--waiting-consumers 10000] [--waiting-producers 100000]
                           [--backlog 1000000] [--quick] [--json FILE]

Chunks/s of reserve + complete by batch size and consumers, messages/s of put, how long a waiting reserve takes to be
woken, and the memory of waiting consumers and producers. The consumers are connections of one event loop, so that the
client costs little; CPU time is that of the servers' processes. beanstalkd and Redis lists are spoken to in the same
way; RQ, procrastinate and opsqueue (OPSQUEUE names its program) by one caller through their own clients, as in
bench/queues.py. Every acknowledged write is synced, by the peers too, but for opsqueue. That one is also asked by eight
consumers for its fair strategy, as Fairway is, with the same backlog (--backlog).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import queues
from figures import Figures, parser, times
from peers.servers import free_port, located
from served.beside import CONSUMERS as BESIDE
from served.beside import TENANTS, measure_beside
from served.line import measure_line
from served.server import Line, Server, run, started
from served.waiting import measure_waiting

from fairway.engine.commands import Complete, Part, Reserve, Reserved, Submit
from fairway.face.offers import offer

PAYLOAD = b"x" * 200
BATCHES = (1, 8, 64)
CONSUMERS = (1, 8, 64)
USUAL = 8  # consumers where only one number of them is measured
# What an opsqueue (Rust, its fair strategy, a backlog of 10^6) did on two quiet cores with 8 consumers: chunks/s by how
# many at a time, and how many times that is aimed at.
ANCHORS = {1: (620, 10), 64: (954, 30)}
THROUGH_CLIENTS = ("RQ on Redis", "procrastinate on PostgreSQL", "opsqueue")
START_SECONDS = 30.0
ROUNDS = 3  # beside an opsqueue


async def timed(
    server: Server, seconds: float, steps: list[Callable[[], Awaitable[int]]]
) -> tuple[float, float]:
    """How many a second, until the time is up or nothing is left, and microseconds of the server's CPU for each."""
    until, done = time.perf_counter() + seconds, 0

    async def repeat(step: Callable[[], Awaitable[int]]) -> None:
        nonlocal done
        while time.perf_counter() < until:
            count = await step()  # not in one line with `+=`, which reads `done` before it waits
            done += count
            if not count:
                return

    cpu, began = server.cpu_seconds(), time.perf_counter()
    await asyncio.gather(*(repeat(step) for step in steps))
    spent = time.perf_counter() - began
    return done / spent, (server.cpu_seconds() - cpu) / max(done, 1) * 1e6


async def fairway_work(server: Server, lines: list[Line], batch: int, seconds: float) -> tuple[float, float]:
    await lines[0].ask(Submit([offer(chunks=10**7, tenant=f"t{i}") for i in range(100)]))

    def step(line: Line) -> Callable[[], Awaitable[int]]:
        async def one() -> int:
            reserved: Reserved = await line.ask(Reserve(batch))
            spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
            await line.ask(Complete([Part(reserved.epoch, reserved.count, reserved.seal, spans)]))
            return sum(count for _, _, count in spans)

        return one

    return await timed(server, seconds, [step(line) for line in lines])


async def fairway_put(server: Server, lines: list[Line], batch: int, seconds: float) -> tuple[float, float]:
    offers = [offer((PAYLOAD,), policy="dead_letter") for _ in range(batch)]

    def step(line: Line) -> Callable[[], Awaitable[int]]:
        async def one() -> int:
            return len((await line.ask(Submit(offers))).ids)

        return one

    return await timed(server, seconds, [step(line) for line in lines])


async def wake_up(lines: list[Line], rounds: int) -> list[float]:
    """Milliseconds from before a put is sent until the reserve that waited for it has its answer."""
    while (await lines[1].ask(Reserve(10_000))).spans:
        pass
    took = []
    for _ in range(rounds):
        waiting = asyncio.ensure_future(lines[1].ask(Reserve(1, wait_seconds=20.0)))
        await asyncio.sleep(0.02)
        began = time.perf_counter()
        await lines[0].ask(Submit([offer((PAYLOAD,))]))
        await waiting
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


async def measure_fairway(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    server = await started(folder / "work.db", args.workers)
    try:
        lines = [await Line(server.port).open() for _ in range(max(CONSUMERS))]
        found: dict[str, Any] = {}
        await fairway_work(server, lines[:USUAL], 1, 0.5)  # what is loaded at the first call is not measured
        for batch in BATCHES:
            for consumers in CONSUMERS:
                found[f"work {batch} {consumers}"] = await fairway_work(
                    server, lines[:consumers], batch, args.seconds
                )
            for callers in (1, USUAL):
                found[f"put {batch} {callers}"] = await fairway_put(
                    server, lines[:callers], batch, args.seconds
                )
        return found
    finally:
        server.end()


async def measure_wake(folder: Path, rounds: int) -> list[float]:
    server = await started(folder / "wake.db", 0)
    try:
        return await wake_up([await Line(server.port).open() for _ in range(2)], rounds)
    finally:
        server.end()


Ends = tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[int]]]  # put one, work on one


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a peer, which may be starting."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)


async def of_peer(
    server: Server, args: argparse.Namespace, connect: Callable[[], Awaitable[Ends]]
) -> tuple[Any, Any]:
    """Put and work through a peer with every consumer's connection, then end it."""
    try:
        ends = [await connect() for _ in range(USUAL)]
        puts = await timed(server, args.seconds, [put for put, _ in ends])
        works = await timed(server, min(args.seconds, 1.0), [work for _, work in ends])
        return puts, works
    finally:
        server.end()


async def measure_beanstalkd(args: argparse.Namespace, folder: Path) -> tuple[Any, Any]:
    port = free_port()
    server = Server(["beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", str(folder), "-f", "0"])

    async def connect() -> Ends:
        reader, writer = await connected(port)

        async def put() -> int:
            writer.write(b"put 0 0 60 %d\r\n%s\r\n" % (len(PAYLOAD), PAYLOAD))
            await reader.readline()
            return 1

        async def work() -> int:
            writer.write(b"reserve-with-timeout 0\r\n")
            words = (await reader.readline()).split()
            if words[0] != b"RESERVED":
                return 0
            _, id, size = words
            await reader.readexactly(int(size) + 2)
            writer.write(b"delete %s\r\n" % id)
            await reader.readline()
            return 1

        return put, work

    return await of_peer(server, args, connect)


async def measure_redis(args: argparse.Namespace, folder: Path) -> tuple[Any, Any]:
    port = free_port()
    flags = [
        "--port",
        str(port),
        "--dir",
        str(folder),
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--save",
        "",
    ]
    server = Server(["redis-server", *flags])

    async def connect() -> Ends:
        reader, writer = await connected(port)

        async def command(*words: bytes) -> bytes:
            writer.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            line = await reader.readline()
            return (
                await reader.readexactly(int(line[1:]) + 2)
                if line.startswith(b"$") and line[1:2] != b"-"
                else line
            )

        async def put() -> int:
            await command(b"LPUSH", b"q", PAYLOAD)
            return 1

        async def work() -> int:
            body = await command(b"RPOPLPUSH", b"q", b"taken")
            if body.startswith(b"$-1"):
                return 0
            await command(b"LREM", b"taken", b"1", body[:-2])
            return 1

        return put, work

    return await of_peer(server, args, connect)


def tell_work(figures: Figures, args: argparse.Namespace, found: dict[str, Any]) -> None:
    """Chunks a second by batch and consumers, beside the anchors."""
    table = figures.table(
        f"reserve + complete over HTTP, {args.workers} HTTP processes; every acknowledged write is synced",
        *("consumers", "at a time", "chunks/s", "server CPU us each", "beside the anchor", "aim"),
    )
    for consumers in CONSUMERS:
        for batch in BATCHES:
            rate, cpu = found[f"work {batch} {consumers}"]
            anchor, aim = ANCHORS.get(batch, (0, 0)) if consumers == USUAL else (0, 0)
            table.add(
                *(consumers, batch, rate, cpu),
                *((times(rate, anchor), f"{aim} x of {anchor}/s") if anchor else (None, None)),
            )


def tell_peers(figures: Figures, found: dict[str, Any]) -> None:
    """Fairway's figures with the usual consumers, each beside what the peers did of it."""
    table = figures.table(
        f"{USUAL} connections from one event loop, or one caller through a client of its own, whose CPU counts too",
        *("what", "a second", "CPU us each", "Fairway beside it", "Fairway by 64 beside it"),
    )
    for batch in (1, 64):
        for verb, name in (
            (f"work {batch} {USUAL}", "reserve + complete"),
            (f"put {batch} {USUAL}", "put of 200 bytes"),
        ):
            table.add(f"Fairway, {name}, {batch} at a time", *found[verb], None, None)
    for verb, name in (("work 1 1", "reserve + complete"), ("put 1 1", "put of 200 bytes")):
        table.add(f"Fairway, {name}, one at a time, one connection", *found[verb], None, None)
    for peer in (*PEERS, *THROUGH_CLIENTS):
        for verb, name in (("work", "take and acknowledge"), ("put", "put of 200 bytes")):
            if (theirs := found.get(f"{peer} {verb}")) is not None:
                # Who is asked by one caller is compared with one caller of ours.
                many = USUAL if peer in PEERS else 1
                ours = (times(found[f"{verb} {batch} {many}"][0], theirs[0]) for batch in (1, 64))
                table.add(f"{peer}, {name}, one at a time", *theirs, *ours)


def tell_beside(figures: Figures, found: dict[tuple[str, str, int], Any], backlog: int) -> None:
    """Both under the same consumers; Fairway's fair strategy beside each of an opsqueue's."""
    table = figures.table(
        f"{BESIDE} consumers, threads of one program, each with a client of its own; {backlog:,} chunks of {TENANTS}"
        " tenants wait, with payloads and results inline",
        *("queue, strategy", "at a time", "chunks/s", "server CPU us each", "client CPU us each"),
        *("Fairway with Fair does", "its server needs"),
    )
    for (queue, strategy, batch), (rate, served, mine) in found.items():
        ours = found["Fairway", "Fair", batch]
        beside = (times(ours[0], rate), times(ours[1], served)) if queue != "Fairway" else (None, None)
        table.add(f"{queue}, {strategy}", batch, rate, served, mine, *beside)


def tell_waiting(figures: Figures, found: dict[str, Any], wakes: list[float]) -> None:
    table = figures.table("Waiting", "what", "figure", "unit")
    table.add("a put until the reserve that waited has its answer, p50", statistics.median(wakes), "ms")
    table.add("the same, p99", wakes[min(len(wakes) - 1, len(wakes) * 99 // 100)], "ms")
    for who in ("consumers", "producers"):
        one = found[who]
        crowd = f"{one['many']:,} {who} that wait at once, {one['workers']} HTTP processes"
        table.add(f"{crowd}: known to the engine", one["known"], who)
        table.add(f"{crowd}: refused at first, and repeated", one["refused"], "connections")
        table.add(f"{crowd}: until all of them waited", one["seconds"], "s")
        table.add(f"{crowd}: server memory of each", one["KiB"], "KiB")
        table.add(f"{crowd}: one is woken, p50", one["wake ms"], "ms")
        if one["CPU us a poll"] is not None:
            table.add(f"{crowd}: server CPU of a poll that ends empty", one["CPU us a poll"], "us")
        table.add(f"{crowd}: until each of them was woken, once", one["all seconds"], "s")
    one = found["bucket consumers"]
    crowd = f"{one['many']:,} consumers of a bucket queue that wait in one process"
    table.add(f"{crowd}: server CPU while nothing comes", one["core %"], "% of a core")
    table.add(f"{crowd}: one is woken, p50", one["wake ms"], "ms")


PEERS: dict[str, Callable[[argparse.Namespace, Path], Coroutine[Any, Any, tuple[Any, Any]]]] = {
    "beanstalkd": measure_beanstalkd,
    "redis-server": measure_redis,
}


def measure_peers(args: argparse.Namespace, folder: Path, found: dict[str, Any], figures: Figures) -> None:
    for peer, measure in PEERS.items():
        if located(peer):
            found[f"{peer} put"], found[f"{peer} work"] = run(measure(args, folder))
            figures.versions |= queues.of_server(peer)
        else:
            figures.leave_out(peer, queues.lacking_program(peer))
    for peer in () if args.quick else THROUGH_CLIENTS:
        lack = queues.missing(peer)
        if lack:
            figures.leave_out(peer, lack)
        elif (told := queues.apart(peer, args.seconds)) is not None:
            figures.versions |= queues.versions([peer])
            for verb, name in (("put", "put"), ("work", "take")):
                found[f"{peer} {verb}"] = (told["1"][name]["rate"], told["1"][name]["cpu_us"])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--waiting-consumers", type=int, default=10_000)
    options.add_argument("--waiting-producers", type=int, default=100_000)
    options.add_argument("--backlog", type=int, default=1_000_000, help="chunks that wait beside an opsqueue")
    options.add_argument("--only-beside", action="store_true", help="nothing but an opsqueue and Fairway")
    options.add_argument("--only-waiting", action="store_true", help="nothing but the crowds that wait")
    args = options.parse_args()
    if args.quick:
        args.workers, args.seconds, args.waiting_consumers, args.waiting_producers = 0, 0.05, 20, 20
    figures = Figures("server", args)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not args.only_waiting and not args.only_beside:
            found = run(measure_fairway(args, folder))
            measure_peers(args, folder, found, figures)
            tell_work(figures, args, found)
            tell_peers(figures, found)
        if not args.only_waiting and not args.quick and not queues.missing("opsqueue"):
            tell_beside(figures, measure_beside(folder, args.backlog, args.seconds, ROUNDS), args.backlog)
        if not args.only_beside:
            measure_crowds(figures, args, folder)
    figures.end()


def measure_crowds(figures: Figures, args: argparse.Namespace, folder: Path) -> None:
    found: dict[str, Any] = {}
    wakes = run(measure_wake(folder, 3 if args.quick else 100))
    for who in ("consumers", "producers"):
        print(f"  {who} that wait", file=sys.stderr, flush=True)
        many = getattr(args, f"waiting_{who}")
        found[who] = run(measure_waiting(folder, who, many, args.quick))
    found["bucket consumers"] = run(measure_line(folder, args.waiting_consumers, args.quick))
    tell_waiting(figures, found, wakes)


if __name__ == "__main__":
    main()
