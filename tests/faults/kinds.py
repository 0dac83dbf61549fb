"""Which kinds of faults a disk has at a call, one for each name.

Guards: a kind of which the call itself may be none (a write, a sync) hits the first such call that comes.
"""

from __future__ import annotations

import apsw

from fairway.testing.disk.faults import Plan, input_output_error, no_space, one_failed_sync, short_write

KINDS = ("eio", "no space", "short write", "eio for a while", "failed sync")


def plan_of(kind: str, n: int) -> Plan:
    match kind:
        case "eio":
            return input_output_error(n)
        case "no space":
            return no_space(n, 40)
        case "short write":
            return short_write(n, apsw.FullError if n % 2 else apsw.IOError)
        case "failed sync":
            return one_failed_sync(n)
        case _:
            return input_output_error(n, 25)
