"""Where a cluster is and how to speak to it: from an argument, a URL or the environment, in this order.

Guards: a secret is never part of what is printed; every setting that is not understood is refused by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from fairway.errors import BadArgument

PORT: Final = 9042
SCHEME: Final = "cassandra://"
SETTINGS: Final = ("user", "password", "dc", "consistency", "tls", "ca", "realm", "replication")
_ENVIRONMENT: Final = "FAIRWAY_CASSANDRA_"
_CONSISTENCIES: Final = ("quorum", "local_quorum")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
_KEYSPACE: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]/@?#]+)(?::(\d{1,5}))?")


@dataclass(frozen=True)
class Address:
    """A keyspace on a cluster. A realm is a set of queues in it that know nothing of those of another."""

    hosts: tuple[tuple[str, int], ...]
    keyspace: str = "fairway"
    user: str = ""
    password: str = field(default="", repr=False)
    dc: str = ""
    consistency: str = "quorum"
    tls: bool = False
    ca: str = ""
    realm: str = "default"
    replication: int = 3

    def __str__(self) -> str:
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{SCHEME}{hosts}/{self.keyspace}"

    @classmethod
    def parse(
        cls,
        url: str,
        options: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Address:
        """What a URL says, completed from the environment and overruled by options."""
        authority, keyspace, found = _parts(url)
        around = os.environ if environment is None else environment
        user, _, hosts = authority.rpartition("@")
        name, colon, password = user.partition(":")
        if name:
            found.setdefault("user", unquote(name))
        if colon:
            found.setdefault("password", unquote(password))
        settings = {key: value for key in SETTINGS if (value := around.get(_ENVIRONMENT + key.upper()))}
        settings.update(found)
        for key, value in (options or {}).items():
            if value is not None:
                settings[key] = str(value)
        unknown = sorted(settings.keys() - set(SETTINGS))
        if unknown:
            raise _refusal(f"there is no setting {unknown[0]!r}; there are {', '.join(SETTINGS)}")
        return cls(_hosts(hosts), _keyspace(keyspace), **_typed(settings))


def _parts(url: str) -> tuple[str, str, dict[str, str]]:
    rest, _, query = url.removeprefix(SCHEME).partition("?")
    authority, _, keyspace = rest.partition("/")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise _refusal(f"the part after ? is not name=value&name=value: {query!r}") from error
    return authority, keyspace, dict(pairs)


def _hosts(text: str) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for part in text.split(","):
        match = _HOST.fullmatch(part)
        if match is None or not 0 < int(match[2] or PORT) < 65536:
            raise _refusal(f"hosts are host or host:port, with commas between them; got {text!r}")
        found.append((match[1].strip("[]"), int(match[2] or PORT)))
    return tuple(found)


def _keyspace(text: str) -> str:
    keyspace = text.strip("/") or "fairway"
    if not _KEYSPACE.fullmatch(keyspace):
        raise _refusal(f"a keyspace is 1 to 48 of a-z, 0-9 and _, a letter first; got {keyspace!r}")
    return keyspace


def _typed(settings: dict[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = dict(settings)
    if "consistency" in settings:
        typed["consistency"] = settings["consistency"].lower()
        if typed["consistency"] not in _CONSISTENCIES:
            raise _refusal(
                f"consistency is {' or '.join(_CONSISTENCIES)}, nothing weaker keeps the promises; "
                f"got {settings['consistency']!r}"
            )
    if "tls" in settings:
        word = settings["tls"].lower()
        if word not in (*_TRUE, *_FALSE):
            raise _refusal(f"tls is 1 or 0; got {settings['tls']!r}")
        typed["tls"] = word in _TRUE
    if settings.get("ca"):
        typed["tls"] = True
        if not os.path.isfile(settings["ca"]):
            raise _refusal(f"ca: there is no file {settings['ca']}")
    if settings.get("realm") == "":
        raise _refusal("realm is a name of one letter or more")
    if "replication" in settings:
        if not settings["replication"].isdecimal() or not 0 < int(settings["replication"]) < 16:
            raise _refusal(
                f"replication is how many copies a new keyspace keeps; got {settings['replication']!r}"
            )
        typed["replication"] = int(settings["replication"])
    return typed


def _refusal(why: str) -> BadArgument:
    return BadArgument(f"url: {why}", argument="url")
