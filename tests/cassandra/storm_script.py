"""A load in a process of its own, to be stopped and killed: says "answered" for every call that was.

python -m tests.cassandra.storm_script URL HISTORY OFFSET LIFE SEED
"""

from __future__ import annotations

import sys
from pathlib import Path

import fairway
from tests.cassandra.storm import Load


def main(url: str, history: str, offset: str, life: str, seed: str) -> None:
    load = Load(fairway.open(url), Path(history), float(offset), int(life), int(seed))
    while True:
        load.works(1, float("inf"))
        print("answered", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
