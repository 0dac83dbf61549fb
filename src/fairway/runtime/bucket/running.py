"""Running: a machine's steps, carried out one after the other on a storage.

Guards: a call that cannot learn its outcome ends, and says that it is unknown, never that nothing happened.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

from fairway.bucket.port import BucketStorage
from fairway.bucket.statements import UNKNOWN, Fresh, Machine, Moment, Rest, Write
from fairway.errors import Closed, FairwayError, OutcomeUnknown, StoreFailed
from fairway.limits import BUCKET_CALL_SECONDS_MAX

R = TypeVar("R")


def _always() -> bool:
    return True


def run(
    machine: Machine[R],
    storage: BucketStorage,
    sleep: Callable[[float], object] = time.sleep,
    patience_seconds: float = BUCKET_CALL_SECONDS_MAX,
    *,
    going: Callable[[], bool] = _always,
) -> R:
    """Run a machine to its end, or raise Closed between two of its steps once `going` says no."""
    until = time.monotonic() + patience_seconds
    doubt = False
    value: object = None
    try:
        while True:
            if not going():
                raise Closed()
            step = machine.send(value)
            if isinstance(step, Fresh):
                value = Moment(time.time(), secrets.randbits(128))
            elif isinstance(step, Rest):
                if time.monotonic() > until:
                    raise _given_up(doubt)
                value = sleep(step.seconds)
            else:
                value = storage.execute(step)
                doubt = doubt or (value is UNKNOWN and isinstance(step, Write))
    except StopIteration as end:
        return end.value
    except (StoreFailed, Closed) as error:
        # This statement was surely not carried out; an earlier one may have been.
        if doubt:
            raise OutcomeUnknown() from error
        raise
    finally:
        machine.close()


def _given_up(doubt: bool) -> FairwayError:
    return OutcomeUnknown() if doubt else StoreFailed("The storage does not answer; repeat the call later.")
