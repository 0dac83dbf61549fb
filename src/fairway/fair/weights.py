"""Weights as integers: a tenant's share in thousandths, so that strides are exact fractions.

Guards: a weight has exactly one integer form W, and WEIGHT_MIN <= W / 1000 <= WEIGHT_MAX.
"""

from __future__ import annotations

from typing import Final

from fairway import limits
from fairway.errors import BadArgument

U: Final = 10_000_000  # a stride is exactly U / W: 10_000 units for weight 1
W_DEFAULT: Final = 1000  # weight 1
W_MIN: Final = round(limits.WEIGHT_MIN * 1000)
W_MAX: Final = round(limits.WEIGHT_MAX * 1000)

# Computed weights (0.1 + 0.2) miss their step by a few ulps; a real half step misses it by 0.5.
_STEP_SLACK: Final = 1e-6


def thousandths(weight: object) -> int:
    """The integer W of a weight; anything but 0.01..100 in steps of 0.001 is a BadArgument."""
    if isinstance(weight, int | float) and not isinstance(weight, bool):
        scaled = weight * 1000
        if W_MIN - 1 < scaled < W_MAX + 1:  # never true of nan
            w = round(scaled)
            if W_MIN <= w <= W_MAX and abs(scaled - w) <= _STEP_SLACK:
                return w
    huge = isinstance(weight, int) and weight.bit_length() > 64  # Python refuses to print it
    raise BadArgument(
        f"weight must be a number from {limits.WEIGHT_MIN:g} to {limits.WEIGHT_MAX:g} in steps of 0.001,"
        f" not {'such a long integer' if huge else repr(weight)[:100]}",
        argument="weight",
    )


def weight_of(w: int) -> float:
    """The weight whose integer form is `w`."""
    return w / 1000
