"""A queue that works for a long time costs no more at the end: memory, open files and the file stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from pathlib import Path

import msgspec
import pytest

import fairway
from tests.proving import number
from tests.soak.gauges import LONG, MIB, SHORT, Bounds, Gauges, Sample, assert_flat
from tests.soak.steady import DONE_MIN, OUTCOMES, Steady

pytestmark = pytest.mark.real

SHORT_SECONDS = 10.0
LONG_SECONDS = number("SOAK_SECONDS", 7200)
LONG_BOUNDS = LONG if LONG_SECONDS >= 3600 else SHORT  # a soak of minutes: caches still fill
LONG_REST_MILLISECONDS = number("SOAK_REST_MILLISECONDS", 2)  # of a producer after each call
SEED = 12
# The run of two hours in docs/reliability.md, at its middle: memory went from 267.9 to 271.6 MiB in 40 minutes.
SEEN = Sample(3600.0, int(267.9 * MIB), 20, int(141.5 * MIB))


def soak(path: Path, seconds: float, rest_seconds: float, bounds: Bounds) -> tuple[Steady, str]:
    """What was told to the callers, and what it cost."""
    with fairway.open(path) as q:
        q.configure(retention_seconds=1.0, event_seconds=1.0, attempts_max=3)
        steady = Steady(q, SEED, rest_seconds)
        with Gauges(path, min(1.0, seconds / 60)) as gauges:
            steady.run(seconds)
        steady.drain()
    return steady, assert_flat(gauges, bounds)


def test_memory_files_and_size_are_flat_under_a_steady_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.runtime.sweeper.SWEEP_SECONDS", 0.3)
    steady, told = soak(tmp_path / "work.db", SHORT_SECONDS, 0.02, SHORT)
    print(f"{steady.operations:,} operations; {told}; {dict(steady.told)}")
    assert steady.lost == 0, steady.told
    assert steady.told["done"] > DONE_MIN and all(steady.told[what] for what in OUTCOMES), steady.told


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_memory_files_and_size_are_flat_for_hours(tmp_path: Path, record_proof: Callable[..., None]) -> None:
    steady, told = soak(tmp_path / "work.db", LONG_SECONDS, LONG_REST_MILLISECONDS / 1000, LONG_BOUNDS)
    print(f"{steady.operations:,} operations; {told}; {dict(steady.told)}")
    record_proof(
        "soak",
        operations=steady.operations,
        lost=steady.lost,
        seed=SEED,
        note=f"{LONG_SECONDS:.0f} s; {told}",
    )
    assert steady.lost == 0, steady.told


def test_a_chunk_that_is_lost_and_one_that_is_done_twice_do_not_cancel() -> None:
    steady = Steady(None, SEED, 0.0)  # type: ignore[arg-type]
    steady.end(1, 0, "done")  # its answer may come before that of its put
    steady.accept(1, 3)
    for index, outcome in ((1, "retrying"), (1, "dead"), (2, "released"), (2, "done"), (2, "already")):
        steady.end(1, index, outcome)
    assert steady.lost == 0
    steady.accept(2, 2)
    for _ in range(2):
        steady.end(2, 0, "done")
    assert steady.told["accepted"] == steady.told["done"] + steady.told["dead"]
    assert steady.lost == 2


@pytest.mark.parametrize("grows", ["memory_bytes", "files", "stored_bytes"])
@pytest.mark.parametrize("bounds", [SHORT, LONG])
def test_what_grows_is_not_called_flat(grows: str, bounds: Bounds, tmp_path: Path) -> None:
    """The same gauges see what grows without an end; otherwise they would prove nothing."""
    flat = Sample(0.0, 100 * MIB, 30, 50 * MIB)
    gauges = Gauges(tmp_path / "none.db", 1.0)
    gauges.samples = [flat] * 60
    assert_flat(gauges, bounds)
    step = 1 if grows == "files" else (10 if bounds is SHORT else 2) * MIB
    gauges.samples = [
        msgspec.structs.replace(flat, **{grows: getattr(flat, grows) + n * step}) for n in range(60)
    ]
    with pytest.raises(AssertionError):
        assert_flat(gauges, bounds)


@pytest.mark.parametrize(
    ("grows", "found", "missed"),
    [
        ("memory_bytes", 15 * MIB, 13 * MIB),
        ("memory_bytes", 25 * MIB, 5.6 * MIB),
        ("files", 2, 1.5),
        ("files", 11, 1),
        ("stored_bytes", 36 * MIB, 33 * MIB),
    ],
)
def test_what_an_hour_of_two_may_add_is_what_docs_proof_says(
    grows: str, found: float, missed: float, tmp_path: Path
) -> None:
    gauges = Gauges(tmp_path / "none.db", 1.0)
    for an_hour in (missed, found):
        gauges.samples = [
            msgspec.structs.replace(SEEN, **{grows: getattr(SEEN, grows) + floor(an_hour * (n / 3600 - 1))})
            for n in range(7200)
        ]
        if an_hour == missed:
            assert_flat(gauges, LONG)
    with pytest.raises(AssertionError):
        assert_flat(gauges, LONG)
