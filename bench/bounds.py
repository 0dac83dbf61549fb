"""What bounds the three hottest paths: syncs of the disk, SQLite, JSON and msgpack, or Python, and of that which part.

    python bench/bounds.py [--only TEXT] [--seconds 3] [--batch 100] [--quick] [--json FILE]

`put_many` of 200 bytes, reserve + complete under `Fair`, and all of one message through a server of one process, by one
caller. Each path is measured twice in a process of its own: as it is, for the clock, the syncs (counted and timed
inside of the calls) and the CPU; and under cProfile, by the CPU clock of the thread that works, for how that CPU
divides. For the server CPU is the server's. A profile makes Python look dearer than C. What C functions take counts for
whoever called them, except the named kinds.
"""

from __future__ import annotations

import cProfile
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from figures import Figures, parser
from peers import syncs
from peers.servers import free_port, until

import fairway

PAYLOAD = b"x" * 200
PATHS = ("put_many", "reserve + complete, Fair", "put + reserve + complete of 1, served")
PARTS = {  # the first whose text is in a file's path or in the name of a C function
    "SQLite": ("apsw", "/fairway/store/"),
    "JSON and msgpack": ("msgspec", "json", "/fairway/client/wire"),
    "seals and checksums": ("blake2", "crc32", "hmac"),
    "threads, locks, loop": (
        "_thread",
        "/threading.py",
        "/asyncio/",
        "uvloop",
        "/fairway/runtime/",
        "select",
    ),
    "HTTP": ("/uvicorn/", "/starlette/", "httptools", "/anyio/", "/fairway/server/"),
    "face": ("/fairway/face/", "/fairway/client/"),
    "engine": ("/fairway/engine/", "/fairway/fair/", "/fairway/strategy/", "/fairway/model/"),
}


def part_of(code: Any, otherwise: str) -> str:
    """Which part a function belongs to; a C function without a part of its own belongs to its caller's."""
    name = code if isinstance(code, str) else code.co_filename
    return next((part for part, texts in PARTS.items() if any(text in name for text in texts)), otherwise)


def divided(profile: cProfile.Profile) -> dict[str, float]:
    """The seconds of a profile by part."""
    found: Counter[str] = Counter()
    for entry in profile.getstats():
        if isinstance(entry.code, str):
            continue  # it is counted where it was called
        mine = part_of(entry.code, "other")
        found[mine] += entry.inlinetime
        for called in entry.calls or ():
            if isinstance(called.code, str):
                found[part_of(called.code, mine)] += called.inlinetime
    return dict(found)


def steps(q: Any, path: str, batch: int) -> Callable[[], int]:
    """What is repeated; it gives how many chunks it did."""
    if path == PATHS[1]:
        for tenant in range(100):
            q.submit(chunks=100_000_000, objects=f"file:///nowhere/{tenant}", tenant=f"t{tenant}")
    messages = [{"payload": PAYLOAD, "tenant": f"t{i % 20}"} for i in range(batch)]

    def put() -> int:
        q.put_many(messages)
        return batch

    def work() -> int:
        leases = q.reserve(max=batch)
        q.complete(leases)
        return len(leases)

    def one() -> int:
        q.put(PAYLOAD, tenant="t")
        q.complete(q.reserve(max=1))
        return 1

    return {PATHS[0]: put, PATHS[1]: work, PATHS[2]: one}[path]


def repeated(step: Callable[[], int], seconds: float) -> int:
    done, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        done += step()
    return done


def embedded(path: str, folder: Path, batch: int, seconds: float) -> dict[str, Any]:
    """A path in this process."""
    with fairway.open(folder / "bounds.db") as q:
        step = steps(q, path, batch)
        step()
        before, wall, cpu, mine = syncs.so_far(), time.perf_counter(), time.process_time(), time.thread_time()
        done = repeated(step, seconds)
        wall, cpu, mine = time.perf_counter() - wall, time.process_time() - cpu, time.thread_time() - mine
        after = syncs.so_far()
        profile = cProfile.Profile(time.thread_time)
        profile.enable()
        repeated(step, seconds)
        profile.disable()
    return figures_of(done, wall, cpu, mine, before, after, divided(profile))


def served(path: str, folder: Path, batch: int, seconds: float) -> dict[str, Any]:
    """A path through a server, whose loop is the thread that is looked into."""
    port, wrote = free_port(), folder / "profile.json"
    serve = ["serve", "--store", str(folder / "bounds.db"), "--queue", "default", "--port", str(port)]
    with ExitStack() as stack:
        command = [sys.executable, __file__, "--serve", str(wrote), "--", *serve]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(server.kill)
        until(lambda: socket.create_connection(("127.0.0.1", port)).close())
        with fairway.open(f"http://127.0.0.1:{port}") as q:
            step = steps(q, path, batch)
            step()
            before, wall, cpu = syncs.so_far(), time.perf_counter(), cpu_seconds(server.pid)
            done = repeated(step, seconds)
            wall, cpu, after = time.perf_counter() - wall, cpu_seconds(server.pid) - cpu, syncs.so_far()
            server.send_signal(signal.SIGUSR1)
            repeated(step, seconds)
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    found = json.loads(wrote.read_text())
    return figures_of(done, wall, cpu, cpu * found["loop"], before, after, found["parts"])


def serving(wrote: Path, arguments: list[str]) -> None:
    """The server's process: its loop comes under a profile at SIGUSR1, which is written down when it ends."""
    from fairway.cli.app import run

    profile, began = cProfile.Profile(time.thread_time), [0.0, 0.0]

    def begin(*_: object) -> None:
        began[:] = time.thread_time(), time.process_time()
        profile.enable()

    signal.signal(signal.SIGUSR1, begin)
    run(arguments)
    profile.disable()
    loop, whole = time.thread_time() - began[0], time.process_time() - began[1]
    wrote.write_text(json.dumps({"parts": divided(profile), "loop": min(1.0, loop / whole)}))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures_of(
    done: int, wall: float, cpu: float, mine: float, before: Any, after: Any, parts: dict[str, float]
) -> dict[str, Any]:
    """What a chunk costs, in microseconds, and the shares of the CPU of the thread that works."""
    whole = sum(parts.values()) or 1.0
    return {
        "wall": wall / done * 1e6,
        "cpu": cpu / done * 1e6,
        "working": mine / done * 1e6,
        "sync": None if before is None else (after.seconds - before.seconds) / done * 1e6,
        "parts": {part: seconds / whole for part, seconds in parts.items()},
    }


def apart(path: str, batch: int, seconds: float) -> dict[str, Any]:
    """A path in a process of its own, whose syncs are counted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        command = [sys.executable, __file__, "--path", path, "--folder", str(folder / "work")]
        command += ["--seconds", str(seconds), "--batch", str(batch)]
        counted = {**os.environ, **syncs.environment(folder)}
        said = subprocess.run(command, stdout=subprocess.PIPE, env=counted, check=True, timeout=600).stdout
    return json.loads(said)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--batch", type=int, default=100)
    options.add_argument("--only", default="", help="paths whose name has this text")
    options.add_argument("--path", choices=PATHS, help="measure one in this process, and print JSON")
    options.add_argument("--folder", type=Path)
    options.add_argument("--serve", type=Path, help="serve under a profile that is written here")
    options.add_argument("words", nargs="*")
    given = options.parse_args()
    if given.serve:
        serving(given.serve, given.words)
        return
    if given.path:
        measure = served if given.path == PATHS[2] else embedded
        print(json.dumps(measure(given.path, given.folder, given.batch, given.seconds)))
        return
    if given.quick:
        given.seconds = 0.1
    figures = Figures("bounds", given)
    names = (*PARTS, "other")
    table = figures.table(
        f"Microseconds a chunk, batches of {given.batch} (served: 1), and how the CPU of the thread that works divides",
        *("path", "by the clock", "of it in syncs", "CPU", "CPU of the thread that works", *names),
    )
    chosen = PATHS[:1] if given.quick and not given.only else [path for path in PATHS if given.only in path]
    for path in chosen:
        found = apart(path, given.batch, given.seconds)
        shares = [f"{found['parts'].get(name, 0):.0%}" for name in names]
        table.add(path, found["wall"], found["sync"], found["cpu"], found["working"], *shares)
    figures.end()


if __name__ == "__main__":
    main()
