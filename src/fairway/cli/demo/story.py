"""The story of the demo: one whale, twenty small tenants, and when each of them comes.

Guards: the sizes add up to the chunks asked for; one seed gives one story.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from fairway import BadArgument

SMALL_TENANTS: Final = 20
CHUNKS_MIN: Final = 10_000  # with fewer the smallest tenant has nothing to wait for
CHUNKS_MAX: Final = 100_000_000  # a long evening
WHALE: Final = "whale"


@dataclass(frozen=True)
class Arrival:
    """A tenant that submits `chunks` once `after` chunks were handed out to anybody."""

    tenant: str
    chunks: int
    after: int


def story(chunks: int, seed: int) -> list[Arrival]:
    """The whale first, with nine tenths of the work; then, when a hundredth is handed out, the small ones."""
    if not CHUNKS_MIN <= chunks <= CHUNKS_MAX:
        raise BadArgument(f"--chunks must be from {CHUNKS_MIN} to {CHUNKS_MAX}, not {chunks}")
    dice = Random(seed)
    # The n-th largest has about 1/n of the largest: most tenants are small, as they are in life.
    parts = [dice.uniform(0.8, 1.2) / rank for rank in range(1, SMALL_TENANTS + 1)]
    sizes = [round(chunks / 10 * part / sum(parts)) for part in parts]
    dice.shuffle(sizes)
    arrivals = [Arrival(WHALE, chunks - sum(sizes), 0)]
    return arrivals + [Arrival(f"small {i:02}", size, chunks // 100) for i, size in enumerate(sizes, 1)]
