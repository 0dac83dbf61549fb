"""What a ring tells of itself: cursors, owners, ages, and who is stuck.

Guards: a report changes nothing but what the dead left; an owner is judged by who it is, never by its age.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairway.limits import RING_STUCK_SECONDS

_STATES = {1: "writing", 3: "reading"}
_PROCESS = {"T": "stopped", "t": "traced", "X": "dead", "Z": "dead", "D": "in the kernel"}


@dataclass(frozen=True)
class RingOwner:
    """A handle on the ring: one place of 256."""

    slot: int
    pid: int
    process: str  # alive, stopped, traced, dead
    attached_seconds: float
    idle_seconds: float  # since it last claimed or took a block
    puts: int
    gets: int


@dataclass(frozen=True)
class RingBlock:
    """A block that somebody is writing or holds a lease of."""

    position: int
    doing: str  # writing, reading
    bytes: int
    tries: int  # earlier deliveries, modulo 16
    slot: int
    pid: int
    process: str
    seconds: float
    stuck: bool  # its owner lives and does not move: it is waited for, never robbed


@dataclass(frozen=True)
class RingStats:
    """A ring at one moment."""

    size: int
    delivery: str
    crc: bool
    message_bytes_max: int
    written: int  # positions, in granules of 64 bytes since the ring was made
    read: int
    tail: int
    waiting: int  # messages that nobody has taken yet
    waiting_bytes: int
    skipped: int  # blocks of writers that died
    redelivered: int  # leases of readers that died, or gave them back
    dropped: int  # the same under at most once
    damaged: int
    owners: tuple[RingOwner, ...]
    blocks: tuple[RingBlock, ...]

    @property
    def stuck(self) -> tuple[RingBlock, ...]:
        """Blocks whose owners live and do not move."""
        return tuple(block for block in self.blocks if block.stuck)


def stats_of(report: Mapping[str, Any], delivery: str, crc: bool, message_bytes_max: int) -> RingStats:
    """The extension's report as values."""
    owners = {
        slot: RingOwner(
            slot, pid, _PROCESS.get(state, "alive"), attached, idle if moved else attached, puts, gets
        )
        for slot, pid, state, attached, idle, puts, gets in report["owners"]
        for moved in [puts + gets > 0 or idle > 0]
    }
    return RingStats(
        report["bytes"],
        delivery,
        crc,
        message_bytes_max,
        *(report[name] for name in ("written", "read", "tail", "waiting", "waiting_bytes")),
        *(report[name] for name in ("skipped", "redelivered", "dropped", "damaged")),
        owners=tuple(owners.values()),
        blocks=tuple(_block(entry, owners) for entry in report["unfinished"]),
    )


def _block(entry: tuple[int, int, int, int, int], owners: Mapping[int, RingOwner]) -> RingBlock:
    position, state, slot, tries, size = entry
    owner = owners.get(slot)
    pid, process, seconds = (owner.pid, owner.process, owner.idle_seconds) if owner else (0, "dead", 0.0)
    late = seconds >= RING_STUCK_SECONDS or process in ("stopped", "traced")
    stuck = process != "dead" and late and _STATES[state] == "writing"
    return RingBlock(position, _STATES[state], size, tries, slot, pid, process, seconds, stuck)
