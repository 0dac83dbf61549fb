"""The process that Spark keeps for the commits of a Python sink: it forks a new one for every commit.

    python spark_sink.py      reads paths, one a line; each is a file with schema, data source, messages and batch

Answers each path with two times in milliseconds: until the writer is there, which imports what it needs, and
from there until its commit is over, which opens the queue. Spark waits for both. It also waits until its own modules
are imported, whatever the sink is; they are loaded here before the fork, so that they are not counted.
Guards: nothing of Fairway is loaded before the fork.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
import traceback

import pyspark.sql.worker.python_streaming_sink_runner as _runner


def commit(path: str, began: float) -> tuple[float, float]:
    """What Spark's runner does, from a file and not from a socket; milliseconds of its two parts."""
    with open(path, "rb") as file:
        schema = pickle.load(file)
        data_source = pickle.load(file)
        assert isinstance(data_source, _runner.DataSource)
        writer = data_source.streamWriter(schema=schema, overwrite=False)
        messages, batch = pickle.load(file), pickle.load(file)
        loaded = time.perf_counter()
        writer.commit(messages, batch)
    return 1000 * (loaded - began), 1000 * (time.perf_counter() - loaded)


def main() -> None:
    for line in sys.stdin:
        assert not any(name.partition(".")[0] == "fairway" for name in sys.modules)
        began = time.perf_counter()
        child = os.fork()
        if not child:
            try:
                told = commit(line.strip(), began)
                sys.stdout.write(json.dumps(told) + "\n")
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(1)


if __name__ == "__main__":
    main()
