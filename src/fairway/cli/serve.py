"""`fairway serve`: the queues of a file or a cluster over HTTP."""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from fairway.cli import saying
from fairway.errors import BadArgument, OurError


def _parts() -> tuple[Any, Any, Any]:
    """What serves; it stands on an extra."""
    try:
        from fairway.server import logs
        from fairway.server.processes import serve as run
        from fairway.server.settings import settings
    except ImportError as error:
        raise BadArgument(
            f"serve needs {error.name}; install it with `pip install 'fairway[server]'`"
        ) from None
    return logs, run, settings


@dataclass(frozen=True)
class TlsFlags:
    """Who may listen in.

    Parameters
    ----------
    tls_cert
        The file of a certificate; with it goes --tls-key.
    tls_key
        The file of its key.
    plain_http
        Listen for other machines without TLS.
    """

    tls_cert: str | None = None
    tls_key: str | None = None
    plain_http: bool | None = None


@dataclass(frozen=True)
class ClusterFlags:
    """What nodes on one cluster need.

    Parameters
    ----------
    secret_file
        On Cassandra: a file with the secret that all nodes share.
    advertise
        On Cassandra: the address under which other nodes reach this one; the one it listens on by default.
    nodes_ca
        On Cassandra: the authority that signed the nodes' certificates, if it is your own.
    """

    secret_file: str | None = None
    advertise: str | None = None
    nodes_ca: str | None = None


@dataclass(frozen=True)
class SayFlags:
    """What it says of itself.

    Parameters
    ----------
    log_level
        debug, info, warning or error.
    json
        Say where it serves as JSON, on one line.
    """

    log_level: str | None = None
    json: bool = False

    def tell(self, store: str, url: str, new: bool) -> None:
        if self.json:
            saying.say_json({"store": store, "url": url})
        else:
            print(f"Fairway serves {store} at {url}", flush=True)
        if new:  # perhaps a path was mistyped
            logging.getLogger("fairway").info("there was no file %s; it is made with its first queue", store)


def serve(
    store: str | None = None,
    *,
    listen: Annotated[str | None, Parameter(name=["--listen", "--host"])] = None,
    port: int | None = None,
    workers: int | None = None,
    transport: str | None = None,
    window_rows: int | None = None,
    queue: list[str] | None = None,
    tokens: str | None = None,
    objects: list[str] | None = None,
    served_as: list[str] | None = None,
    tls: Annotated[TlsFlags | None, Parameter(name="*")] = None,
    say: Annotated[SayFlags | None, Parameter(name="*")] = None,
    cluster: Annotated[ClusterFlags | None, Parameter(name="*")] = None,
    config: str | None = None,
) -> None:
    """Serve the queues of a file or a cluster over HTTP, until SIGTERM or Ctrl-C.

    What is not given here is taken from the environment (FAIRWAY_STORE, FAIRWAY_PORT, ...), then from the TOML file.

    Parameters
    ----------
    store
        The file, or cassandra://host/keyspace; work.db by default.
    listen
        The address to listen on; this machine alone by default.
    port
        The port; 7420 by default, 0 takes any.
    workers
        HTTP processes beside the engine's; 0, the default, does all in one process.
    transport
        How they talk to it: socket, the default, or ring.
    window_rows
        How many submissions that can be handed out each queue keeps in memory; 200,000 by default.
    queue
        A queue that is made if it is missing; may be given several times.
    tokens
        The file of tokens; beside the store by default.
    objects
        A root that payload objects may lie under, such as s3://bucket/in; may be given several times.
    served_as
        A name under which the server is reached; may be given several times.
    config
        A TOML file with these settings.
    """
    logs, run, settings = _parts()
    say = say or SayFlags()
    given = {
        "store": store, "listen": listen, "port": port, "workers": workers, "queues": queue, "tokens": tokens,
        "transport": transport, "window_rows": window_rows, "objects": objects, "hosts": served_as,
        "log_level": say.log_level, **(asdict(tls) if tls else {}), **(asdict(cluster) if cluster else {}),
    }  # fmt: skip
    made = settings(given, file=config)
    logs.configure(made.log_level)
    new = not made.cluster and not os.path.exists(made.store)
    try:
        run(made, lambda url: say.tell(made.shown_store, url, new))
    except OSError as error:
        raise OurError(f"the server cannot go on: {error}") from error
