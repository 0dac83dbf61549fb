"""An owner in a process of its own: puts messages until it is killed, and prints what was acknowledged.

python owner_script.py URL [standby]
"""

from __future__ import annotations

import sys

import fairway


def main(url: str, *how: str) -> None:
    with fairway.open(url, standby="standby" in how) as q:
        n = 0
        while True:
            n += 1
            print(q.put(b"%d" % n, tenant="acme").id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
