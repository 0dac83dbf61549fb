"""`fairway ring stat`: what is in a ring, who uses it, and who is stuck."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

import fairway
from fairway.ring.reports import RingStats


def stat(path: Path, /, *, json: bool = False) -> None:
    """Show a ring: positions, owners, ages, stuck writers. What dead processes left is cleared up first.

    Parameters
    ----------
    path
        The ring's path, or its name in shared memory.
    json
        Print one JSON object and nothing else.
    """
    with fairway.Ring.look(path) as ring:
        ring.recover()
        stats = ring.stats()
    if json:
        print(msgspec.json.encode({**asdict(stats), "stuck": len(stats.stuck)}).decode())
        return
    _tell(Console(), stats)


def _tell(console: Console, stats: RingStats) -> None:
    crc = "with" if stats.crc else "without"
    used = (stats.written - stats.tail) * 64
    lines = [
        f"{stats.size:,} bytes, {used / stats.size:.0%} in use; {stats.delivery.replace('_', ' ')}, {crc} checksums",
        f"{stats.waiting:,} messages wait ({stats.waiting_bytes:,} bytes); one may have {stats.message_bytes_max:,}",
        f"positions: written {stats.written:,}, read {stats.read:,}, tail {stats.tail:,}",
        f"skipped {stats.skipped:,}, delivered again {stats.redelivered:,}, "
        f"dropped {stats.dropped:,}, damaged {stats.damaged:,}",
    ]
    for line in lines:
        console.print(line, highlight=False)
    owners = Table("place", "process", "it is", "attached", "last step", "puts", "gets")
    for one in stats.owners:
        ages = f"{one.attached_seconds:,.1f} s", f"{one.idle_seconds:,.1f} s ago"
        owners.add_row(str(one.slot), str(one.pid), one.process, *ages, f"{one.puts:,}", f"{one.gets:,}")
    console.print(owners)
    for block in stats.blocks:
        told = "  STUCK: continue or end that process" if block.stuck else ""
        console.print(
            f"{block.doing} {block.bytes:,} bytes at {block.position:,} for {block.seconds:,.1f} s: "
            f"process {block.pid}, {block.process}{told}",
            highlight=False,
        )
