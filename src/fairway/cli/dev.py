"""`fairway dev cassandra`: a real cluster on this machine, until it is interrupted.

Guards: when the command ends, however it ends, its nodes end too.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from fairway.cli import saying
from fairway.testing.cassandra import Cluster


def cassandra(
    *,
    nodes: Annotated[Literal[1, 3], Parameter(name="--nodes")] = 1,
    dir: Path | None = None,
    port: int = 9042,
    json: bool = False,
) -> int:
    """Run a real Cassandra until it is interrupted.

    The first time its jars are fetched with Maven; Java 17 is needed. `make system` installs both.

    Parameters
    ----------
    nodes
        One node, or three with three copies of everything, on 127.0.0.1, .2 and .3.
    dir
        Where data and logs are kept, for the next time too. Without it they are thrown away at the end.
    port
        The port of every node.
    json
        Say where it answers as JSON, on one line.
    """
    console = Console(stderr=json)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="fairway-cassandra-") as passing:
        cluster = Cluster(dir or Path(passing), nodes, port=port)
        console.print("starting ...", highlight=False)
        try:
            cluster.start()
            console.print(f"Cassandra answers on {', '.join(cluster.hosts)} port {port}.", highlight=False)
            address = (
                ",".join(cluster.hosts) if port == 9042 else ",".join(f"{h}:{port}" for h in cluster.hosts)
            )
            url = f"cassandra://{address}/fairway"
            console.print(f'  fairway.open("{url}")', highlight=False)
            if json:
                saying.say_json({"hosts": cluster.hosts, "port": port, "url": url})
            console.print("Ctrl-C stops it.")
            signal.pause()
        except KeyboardInterrupt:
            console.print("stopping ...")
        finally:
            if dir is None:
                cluster.kill()
            else:
                cluster.stop()
    return 0
