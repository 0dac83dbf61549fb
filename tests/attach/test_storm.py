"""Eight processes on one file, one of them killed every half second, hosts included: what callers were told stays true.

Guards: no kill counts without a call in flight, and no call of a living process may hang.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from fairway.testing.history import Begin, End, History
from tests.attach.storm.judging import UNKNOWN, durations, judge, read_history
from tests.attach.storm.storm import Storm
from tests.attach.storm.worker import SharedLines
from tests.kill.counting import acknowledged
from tests.kill.draining import drain
from tests.kill.worker import CALLS_PER_LIFE
from tests.proving import Kept, number
from tests.ring.need import need_ring

pytestmark = pytest.mark.real

SHORT_SECONDS = 8.0
LONG_SECONDS = 60.0
STORMS = round(number("STORM_SECONDS", 300) / LONG_SECONDS) or 1  # in `make proof`, each with its seed
SLICE_SECONDS = 4.0  # of a storm besides, whose history is short enough to be published
LONG_ENOUGH_SECONDS = 30.0  # for several stops
STALL_SECONDS = 30.0  # 3 s of silence and a load; the rest is for a machine that is busy with eight processes
SEED = 4


def weather(folder: Path, seconds: float, transport: str, seed: int, seen: Counter[str], kept: Kept) -> None:
    """A storm, a drain, and the verdict; what was seen is added up, and kept."""
    if transport == "ring":
        need_ring()
    storm = Storm(folder, seed, transport)
    began = time.monotonic()
    try:
        storm.rage(seconds)
        storm.calm(STALL_SECONDS)
        stormed = time.monotonic()
        changes = (record.generation if (record := storm.host()) else 0) - 1
        lines = SharedLines(storm.history, storm.offset, (storm.lives + 1) * CALLS_PER_LIFE)
        dead = drain(storm.queue, lines, storm.lives + 1, storm.watch.unknown())
    finally:
        storm.end()
    drained = time.monotonic()
    storm.watch.catch_up()
    history = read_history(storm.history)
    violations, witnesses = judge(history, storm)
    took = durations(storm.history, storm)
    calm = next((one for one in took if not one.beside_a_stop), took[-1])
    print(
        f"{storm.watch.calls} operations, {storm.in_flight} kills with a call in flight of {storm.kills}, "
        f"{storm.host_kills} of hosts, {len(storm.stops)} hosts stopped, {changes} changes of the host"
    )
    print(
        f"longest stall: {took[0].seconds:.2f} s ({took[0].what}), "
        f"where no host was stopped {calm.seconds:.2f} s ({calm.what}); in flight when killed {storm.ops}"
    )
    print(
        f"storm {stormed - began:.0f} s, drain {drained - stormed:.0f} s, checking {time.monotonic() - drained:.0f} s, "
        f"{witnesses} witnesses"
    )
    print(dict(sorted(storm.watch.told.items())))
    lost = len(violations)
    seen.update(operations=acknowledged(history), faults=storm.in_flight, kills=storm.kills, lost=lost)
    kept.add(history)
    assert not violations, "\n".join(
        [f"{len(violations)} violations", *(violation.story(history) for violation in violations[:10])]
    )
    assert took[0].seconds < STALL_SECONDS, took[:10]
    if seconds != SLICE_SECONDS:
        assert_it_was_a_storm(storm, history, seconds, changes)
    shown = {r.args["sub"]: r.ok for r in history.of("show") if r.who == "drain"}
    assert shown.keys() >= {id for r in history.of("submit") if r.answered for id in r.ok["ids"]}
    letters = {(one.submission, one.index) for one in dead}
    assert len(letters) == len(dead) == sum(one["failed"] for one in shown.values())
    assert apsw.Connection(str(storm.queue)).pragma("integrity_check") == "ok"


def assert_it_was_a_storm(storm: Storm, history: History, seconds: float, changes: int) -> None:
    """The history holds what it was made for; otherwise the checker had nothing to find."""
    told = storm.watch.told
    errors = {name.removeprefix("error ") for name in told if name.startswith("error")}
    assert errors <= {*UNKNOWN, "store_failed"}, "no other error may reach a caller"
    assert storm.has_raged(seconds), (
        "few kills had a call in flight, or few hosts were killed, or none was stopped"
    )
    assert changes >= storm.host_kills
    if (
        seconds >= LONG_ENOUGH_SECONDS
    ):  # of one stop alone, every process that listens may be killed in its 3 s
        assert any(stop.replaced for stop in storm.stops), "no stopped host was replaced"
    ends = sum(isinstance(line, End) for line in history.lines)
    begins = sum(isinstance(line, Begin) for line in history.lines)
    assert begins - ends >= storm.in_flight


@pytest.mark.parametrize("transport", ["socket", "ring"])
def test_nothing_acknowledged_is_lost_when_processes_and_hosts_are_killed(
    tmp_path: Path, transport: str
) -> None:
    weather(tmp_path, SHORT_SECONDS, transport, SEED, Counter(), Kept("storms"))


@pytest.mark.proof
@pytest.mark.timeout(0)
@pytest.mark.parametrize("transport", ["socket", "ring"])
def test_nothing_acknowledged_is_lost_in_minutes_of_kills(
    tmp_path: Path, transport: str, record_proof: Callable[..., None]
) -> None:
    seen, kept = Counter[str](), Kept(f"storms, of {SLICE_SECONDS:.0f} s")
    try:
        for seed in range(SEED, SEED + STORMS + 1):
            (tmp_path / str(seed)).mkdir()
            seconds = LONG_SECONDS if seed < SEED + STORMS else SLICE_SECONDS
            weather(tmp_path / str(seed), seconds, transport, seed, seen, kept)
    finally:
        name = f"processes on one file killed, over the {transport}"
        figures = {what: seen[what] for what in ("operations", "faults", "lost")}
        note = f"{seen['kills']:,} kills; those with a call in flight on the killed process are counted"
        record_proof(name, **figures, seed=f"{SEED} to {SEED + STORMS}", note=note, **kept.told())
