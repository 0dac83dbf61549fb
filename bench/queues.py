"""Fairway beside the queues that install here, embedded and behind a server: put, take + acknowledge of 200 bytes.

    python bench/queues.py [--only TEXT] [--seconds 1] [--rounds 3] [--quick] [--json FILE]

One caller, one message or 100 at a time where the peer has such calls. Every peer works in a process and a folder of
its own, one after the other; that is repeated in rounds, and medians are compared. CPU is that of the caller and of the
server together. Syncs are counted, not believed: a library that is loaded into every process counts its calls of fsync
and fdatasync; "kept through" says what an acknowledged message survives by that count. Peers come from build/peers,
where `make bench` puts them, and from Debian (beanstalkd, redis-server, postgresql); OPSQUEUE names the program of an
opsqueue. --quick measures only two that need none of that, unless --only names more.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import Figures, parser, times
from figures.versions import of_packages, of_program
from peers import syncs
from peers.embedded import EMBEDDED, Peer
from peers.servers import DEBIAN, SERVERS, located

sys.path.append(
    str(Path(__file__).parent.parent / "build" / "peers")
)  # they are imported where they are used
PEERS = {**EMBEDDED, **SERVERS}
BATCHES = (1, 100)
DRAIN_SECONDS = 60.0  # a peer that takes this much longer than it was given is not measured
MODULES = {"persist-queue": "persistqueue"}
ASKED = {  # for its version: how a program is known, and what it is told
    "beanstalkd": ("beanstalkd", "-v"),
    "redis-server": ("Redis", "--version"),
    "initdb": ("PostgreSQL", "--version"),
}


def missing(name: str) -> str:
    """What a peer lacks here and what brings it, or nothing."""
    kind = PEERS[name]
    if kind.program and not located(kind.program):
        return lacking_program(kind.program)
    module = MODULES.get(kind.package, kind.package)
    if not module or importlib.util.find_spec(module) is not None:
        return ""
    return f"no {kind.package}: `make bench` brings it"


def lacking_program(program: str) -> str:
    """What to say of a program that is not there."""
    brings = f"apt-get install {DEBIAN[program]}" if program in DEBIAN else "OPSQUEUE names it"
    return f"no {program}: {brings}"


def one(peer: Peer, verb: Callable[[int], int], batch: int, seconds: float, most: int) -> dict[str, float]:
    """What a message costs if a verb is repeated for a time, or until so many are done."""
    done = calls = 0
    before, cpu, start = syncs.so_far(), cpu_seconds(peer), time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds and done < most:
        made = verb(batch)
        if not made:
            break
        done, calls = done + made, calls + 1
    spent = time.perf_counter() - start
    after, done = syncs.so_far(), max(1, done)
    found = {
        "rate": done / spent,
        "cpu_us": (cpu_seconds(peer) - cpu) / done * 1e6,
        "calls": calls,
        "done": done,
    }
    if before is not None and after is not None:
        found["syncs"] = (after.calls - before.calls) / done
        found["syncs_a_call"] = (after.calls - before.calls) / max(1, calls)
        found["sync_share"] = (after.seconds - before.seconds) / spent
    return found


def cpu_seconds(peer: Peer) -> float:
    return time.process_time() + peer.server_cpu_seconds()


def measure(name: str, folder: Path, seconds: float) -> dict[str, Any]:
    """All of one peer, in this process."""
    peer = PEERS[name](folder)
    found: dict[str, Any] = {}
    try:
        peer.put(1), peer.take(1)  # what is made at the first call is not measured
        for batch in BATCHES if peer.batches else BATCHES[:1]:
            puts = one(peer, peer.put, batch, seconds, sys.maxsize)
            takes = one(peer, peer.take, batch, seconds, int(puts["done"]))
            found[str(batch)] = {"put": puts, "take": takes}
            end = time.monotonic() + DRAIN_SECONDS
            while peer.take(1000 if peer.batches else 1) and time.monotonic() < end:
                pass
    finally:
        peer.close()
    return found


def apart(name: str, seconds: float) -> dict[str, Any] | None:
    """All of one peer, in a process of its own whose syncs are counted; nothing if it failed."""
    with tempfile.TemporaryDirectory(prefix="fairway-queues-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # a database that runs as somebody else works below it
        (folder / "work").mkdir()
        counted = syncs.environment(folder)
        command = [sys.executable, __file__, "--peer", name, "--folder", str(folder / "work")]
        try:
            ended = subprocess.run(
                [*command, "--seconds", str(seconds)],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **counted},
                timeout=20 * seconds + 4 * DRAIN_SECONDS,
            )
        except subprocess.TimeoutExpired:
            print(f"{name}: did not end", file=sys.stderr, flush=True)
            return None
    if ended.returncode:
        print(f"{name}: FAILED", file=sys.stderr, flush=True)
        return None
    return json.loads(ended.stdout.splitlines()[-1])


def kept(takes: dict[str, float], puts: dict[str, float], name: str) -> str:
    """What an acknowledged put and an acknowledged end survive, by the syncs that were counted."""
    if name == "multiprocessing.Queue":
        return "nothing"
    if "syncs_a_call" not in puts:
        return "not counted"
    synced = puts["syncs_a_call"] >= 0.95, takes["syncs_a_call"] >= 0.95
    if all(synced):
        return "power loss"
    return "put: power loss; end: a killed process" if synced[0] else "a killed process"


def tell(figures: Figures, title: str, ours: str, found: dict[str, list[dict[str, Any]]]) -> None:
    """One table: each peer, each batch."""
    table = figures.table(
        title,
        *(
            "queue",
            "at a time",
            "put/s",
            "take + ack/s",
            f"{ours} does: put, take",
            "CPU us put",
            "CPU us take",
        ),
        *(f"{ours} needs: put, take", "syncs a put", "syncs a take", "of a put in syncs", "kept through"),
        "if its worker dies, a message",
    )

    def medians(name: str, batch: str, what: str) -> list[float]:
        """Of put and of take; empty if it was not measured."""
        sides = ([one[batch][verb].get(what) for one in found[name]] for verb in ("put", "take"))
        return [statistics.median(side) for side in sides if None not in side]

    def beside(name: str, batch: str, what: str) -> str:
        if name == ours or ours not in found or batch not in found[ours][0]:
            return ""
        return ", ".join(map(times, medians(ours, batch, what), medians(name, batch, what)))

    for name, rounds in found.items():
        for batch in rounds[0]:
            rates, cpu = medians(name, batch, "rate"), medians(name, batch, "cpu_us")
            counted = medians(name, batch, "syncs") or [None, None]
            share = medians(name, batch, "sync_share")
            last = rounds[-1][batch]
            table.add(
                *(name, int(batch), *rates, beside(name, batch, "rate"), *cpu, beside(name, batch, "cpu_us")),
                *(*counted, f"{share[0]:.0%}" if share else None),
                *(kept(last["take"], last["put"], name), PEERS[name].dies),
            )


def versions(names: list[str]) -> dict[str, str]:
    """The versions of the peers that were measured."""
    told: dict[str, str] = {}
    for kind in map(PEERS.__getitem__, names):
        told |= of_packages(kind.package) if kind.package else {}
        told |= of_server(kind.program)
    return told


def of_server(program: str) -> dict[str, str]:
    """The version of a program that serves a peer."""
    name, flag = ASKED.get(program, ("", ""))
    return of_program(name, located(program), flag) if name else {}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", default="", help="peers whose name has this text, beside Fairway")
    options.add_argument("--seconds", type=float, default=1.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peer", choices=list(PEERS), help="measure one in this process, and print JSON")
    options.add_argument("--folder", type=Path)
    options.add_argument(
        "--lacking", action="store_true", help="say which peers are missing, and run nothing"
    )
    given = options.parse_args()
    if given.peer:
        print(json.dumps(measure(given.peer, given.folder, given.seconds)))
        return
    if given.lacking:
        print("\n".join(f"{name} ({lack})" for name in PEERS if (lack := missing(name))))
        return
    if given.quick:
        given.seconds, given.rounds = 0.05, 1
    figures = Figures("queues", given)
    lacking = {name: lack for name in PEERS if (lack := missing(name))}
    names = [n for n in PEERS if n not in lacking and (n.startswith("Fairway") or given.only in n)]
    if given.quick and not given.only:
        names = ["Fairway", "a bare SQLite table"]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(given.rounds):
        for name in names:
            print(f"  {name}", file=sys.stderr, flush=True)
            if (round_ := apart(name, given.seconds)) is not None:
                found[name].append(round_)
    found = {name: rounds for name, rounds in found.items() if rounds}
    figures.versions |= versions(list(found))
    what = f"one caller, 200 bytes, medians of {given.rounds} rounds of {given.seconds:g} s"
    for title, ours, kinds in (
        (f"In a process and a file: {what}", "Fairway", EMBEDDED),
        (
            f"Behind a server on the same machine, each through a Python client: {what}",
            "Fairway server",
            SERVERS,
        ),
    ):
        if part := {name: rounds for name, rounds in found.items() if name in kinds}:
            tell(figures, title, ours, part)
    for name, lack in lacking.items():
        figures.leave_out(name, lack)
    figures.end()


if __name__ == "__main__":
    main()
