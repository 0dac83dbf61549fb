"""What kind of a bucket history a seed tells: how many nodes, how large buckets, what goes wrong how often.

Guards: one seed, one profile. Some seeds are calm and some are harsh, so that rare meetings happen within some hundred.
"""

from __future__ import annotations

from random import Random

import msgspec

from fairway.bucket.config import BucketConfig

FLAVOURS = ("plain", "plain", "plain", "tuned", "tuned", "harsh", "harsh", "paused", "calm")


class BucketProfile(msgspec.Struct):
    """The shape of one simulated history."""

    seed: int
    flavour: str
    config: BucketConfig
    writers: int
    consumers: int
    repairers: int
    rate: float  # statements whose outcome stays unknown
    late_seconds: float  # how late such a statement may be carried out
    pause: float  # statements before which their node is held up
    pause_seconds: float
    kill: float  # steps at which a node dies
    forget: float  # deliveries that nobody answers
    skew_seconds: float  # how far a node's clock may be off
    deletes: bool
    seconds: float = 90.0  # as long as things go wrong


def profile_of(seed: int) -> BucketProfile:
    """The profile of a seed."""
    dice = Random(f"bucket profile {seed}")
    flavour = dice.choice(FLAVOURS)
    rate, pause, kill = (
        dice.choice((0.02, 0.08, 0.2)),
        dice.choice((0, 0.01, 0.04)),
        dice.choice((0, 0.002, 0.01)),
    )
    rows, seal, late = dice.choice((2, 4, 8)), dice.choice((0.5, 3.0, 10.0)), 60.0
    forget = dice.choice((0.05, 0.3, 0.6))
    if flavour == "calm":
        rate = pause = kill = 0.0
    elif flavour == "tuned":
        rate, pause, seal, rows, kill = 0.3, 0.08, 0.3, 2, 0.0
        late, forget = dice.choice((4.0, 15.0, 60.0)), 0.05
    elif flavour == "harsh":
        rate, seal, pause = dice.choice((0.1, 0.3)), dice.choice((0.3, 1.0)), dice.choice((0.01, 0.05, 0.1))
    elif flavour == "paused":
        rate, pause, seal, kill = 0.02, 0.25, 0.3, 0.0
    config = BucketConfig(
        attempts_max=dice.choice((1, 3, 3, 5)),
        lease_seconds=5.0,
        retry_delay_seconds=dice.choice((0.0, 2.0)),
        bucket_rows=rows,
        open_buckets=dice.choice((1, 2)),
        seal_seconds=seal,
    )
    return BucketProfile(
        seed=seed,
        flavour=flavour,
        config=config,
        writers=dice.choice((2, 3)),
        consumers=2,
        repairers=2,
        rate=rate,
        late_seconds=late,
        pause=pause,
        pause_seconds=30.0,
        kill=kill,
        forget=forget,
        skew_seconds=4.5 if flavour != "calm" else 0.0,
        deletes=dice.random() < 0.3,
    )
