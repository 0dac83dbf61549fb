"""Settings of a server: flags, then the environment, then a TOML file, then defaults.

Guards: a setting that exists is checked; a server that others can reach uses TLS and tokens, unless it is told not to.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from fairway import limits
from fairway.client.address import is_http, is_loopback
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.runtime.transport.choosing import transport_of
from fairway.runtime.urls import on_cassandra

PORT = 7420  # where a server listens if it is not told otherwise
_PREFIX = "FAIRWAY_"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is run. The environment has them as FAIRWAY_STORE, FAIRWAY_PORT and so on, lists with commas."""

    store: str = "work.db"  # the file of the queues, or cassandra://host/keyspace
    listen: str = "127.0.0.1"  # the address to listen on; who may come is decided by it
    port: int = PORT  # the port to listen on
    workers: int = 0  # HTTP processes beside the engine's; 0: one process does all
    queues: list[str] = []  # made at the start if they are missing
    tokens: str = ""  # the file of tokens; "": beside the store
    objects: list[str] = []  # roots that payload objects may lie under
    hosts: list[str] = []  # names under which the server is reached, beside the address it listens on
    tls_cert: str = ""  # the file of a certificate; its key goes with it
    tls_key: str = ""  # the file of its key
    plain_http: bool = False  # allow other machines in without TLS
    log_level: str = "info"  # debug, info, warning or error
    # how HTTP processes talk to the engine's: socket, or ring through shared memory
    transport: str = "socket"
    window_rows: int = limits.WINDOW_ROWS  # submissions that can be handed out, kept in memory for each queue
    # Several nodes on one cluster:
    secret_file: str = ""  # a file with the secret that the nodes share
    advertise: str = ""  # the address under which other nodes reach this one; "": the one it listens on
    nodes_ca: str = ""  # the authority that signed the nodes' certificates, if it is your own

    @property
    def tokens_path(self) -> str:
        return self.tokens or ("fairway-tokens" if self.cluster else f"{self.store}-tokens")

    @property
    def secret_path(self) -> str:
        return f"{self.store}-server.key"

    @property
    def cluster(self) -> bool:
        """Whether the store is shared with other nodes."""
        return on_cassandra(self.store)

    @property
    def shown_store(self) -> str:
        """The store without what is secret in it."""
        return (
            f"cassandra://{self.store[12:].rpartition('@')[2].partition('?')[0]}"
            if self.cluster
            else self.store
        )

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server by itself."""
        return is_loopback(self.listen)

    @property
    def private(self) -> bool:
        """Whether only this machine is to reach it: one with a name of the network has a proxy that lets others in."""
        names = [*self.hosts, urlsplit(self.advertise).hostname or ""] if self.advertise else self.hosts
        return self.local and all(is_loopback(name.lower()) for name in names)


def settings(
    given: Mapping[str, Any], environ: Mapping[str, str] | None = None, file: str | None = None
) -> Settings:
    """The settings of a start; `given` are flags, None where there is none. BadArgument says what is wrong."""
    environ = os.environ if environ is None else environ
    path = file or environ.get("FAIRWAY_CONFIG")
    found: dict[str, Any] = dict(_toml(path)) if path else {}
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name, kind in kinds.items():
        text = environ.get(_PREFIX + name.upper())
        if text is not None:
            found[name] = [part for part in text.split(",") if part] if kind == list[str] else text
    found |= {name: value for name, value in given.items() if value is not None}
    try:
        made = msgspec.convert(found, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise BadArgument(f"settings: {error}") from None
    return _checked(made)


def _toml(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise BadArgument(f"config: {path} cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise BadArgument(f"config: {path} is not TOML: {error}") from error


def _checked(made: Settings) -> Settings:
    checks.whole("port", made.port, 0, 65535)
    checks.whole("workers", made.workers, 0, limits.WORKERS_MAX)
    checks.whole("window_rows", made.window_rows, 1, limits.WINDOW_ROWS_MAX)
    transport_of(made.transport)
    for name in made.queues:
        checks.queue_name(name)
    if made.log_level not in ("debug", "info", "warning", "error"):
        checks.refuse("log_level", "debug, info, warning or error", made.log_level)
    if made.cluster:
        _check_cluster(made)
    elif "://" in made.store or made.store in ("", ":memory:"):
        checks.refuse("store", "the path of a file, or cassandra://host/keyspace", made.store)
    if bool(made.tls_cert) != bool(made.tls_key):
        raise BadArgument("tls_cert and tls_key go together; give both")
    if not made.local and not made.tls_cert and not made.plain_http:
        raise BadArgument(
            f"listen {made.listen} can be reached from other machines and there is no TLS: give --tls-cert and"
            " --tls-key, or --plain-http if a proxy in front of it or the network itself is safe",
            argument="listen",
        )
    return made


def _check_cluster(made: Settings) -> None:
    if made.workers:
        raise BadArgument(
            "workers: on Cassandra a node is one process; start more nodes, on this machine or others",
            argument="workers",
        )
    if not made.secret_file:
        raise BadArgument(
            "secret_file: nodes on one cluster share a secret; make a file of 32 random bytes, such as with"
            " `openssl rand -hex 32 > cluster.key`, and give it to each of them",
            argument="secret_file",
        )
    if made.advertise and not is_http(made.advertise):
        checks.refuse("advertise", "the address of this node, such as https://node1:7420", made.advertise)
    if not made.advertise and made.listen in ("", "0.0.0.0", "::"):
        raise BadArgument(
            f"advertise: {made.listen} is no address that other nodes can call; give --advertise https://this-node:7420",
            argument="advertise",
        )
