"""The page of settings: of queues, of bucket queues, of a server, and of the environment.

Guards: a setting that exists is on the page; one that is not told of here stops the page from being made.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

import fairway
from fairway.bucket import config as bucket
from fairway.model import config as fair
from fairway.server.settings import Settings
from tools.reference import beside
from tools.reference.writing import code, opening, table

SOURCES = Path(fairway.__file__).parent
# What is read from the environment beside the settings of a server, which are FAIRWAY_ and their name.
ENVIRONMENT = {
    "FAIRWAY_STORE": "the queue's file or URL, for every command on a queue; for `serve` its file or cluster",
    "FAIRWAY_QUEUE": "the queue's name, for every command on a queue",
    "FAIRWAY_CONFIG": "the TOML file with the settings of `serve`",
    "FAIRWAY_HOST": "1: a short command may open the file itself",
    "FAIRWAY_TOKEN": "a client's token",
    "FAIRWAY_TOKENS": "the file of tokens, for `serve` and `token`",
    "FAIRWAY_PLAIN_HTTP": "1: a token may be sent over plain HTTP; for `serve`, other machines may come without TLS",
    "FAIRWAY_TRANSPORT": "how an attached process talks to its host: `socket` or `ring`",
    "FAIRWAY_CASSANDRA_": "and a name of [the cluster's settings](../cassandra.md#settings), such as `PASSWORD`",
}
# Given to the programs that `fairway work` runs, or read by tests alone.
NOT_SETTINGS = re.compile(r"FAIRWAY_(ATTEMPT|INDEX|INFO|META|OBJECT|SUBMISSION|TENANT|REQUIRE_\w+|TEST_\w+)")


def page() -> str:
    words = (
        "What can be set, and where. A queue's settings are stored with it and hold for every process:"
        " `q.configure(...)`, `fairway queue configure`, `PUT /v1/queues/{queue}`."
        " Their bounds are [limits](limits.md)."
    )
    parts = [
        opening("Configuration", "the code that reads it", words),
        "\n## A queue\n",
        table(("setting", "default", "from, to", "meaning"), _settings(fair.QueueConfig, fair)),
        "\n## A bucket queue\n",
        table(("setting", "default", "from, to", "meaning"), _settings(bucket.BucketConfig, bucket)),
        "\n## A server\n",
        "Flags go before the environment, that before the TOML file."
        " [The server](../server.md#settings) says what they do.\n",
        table(("TOML", "environment", "default", "meaning"), _server()),
        "\n## The environment\n",
        table(("variable", "meaning"), [(code(name), words) for name, words in ENVIRONMENT.items()]),
    ]
    return "\n".join(parts)


def _settings(kind: type, module: Any) -> list[tuple[str, ...]]:
    bounds, told = module._BOUNDS, beside.meanings(kind)
    rows: list[tuple[str, ...]] = []
    for field in msgspec.structs.fields(kind):
        low, high = bounds.get(field.name, ("", ""))
        between = f"{_shown(low)} to {_shown(high)}" if field.name in bounds else ""
        rows.append((code(field.name), code(_shown(field.default)), between, told.get(field.name, "")))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _server() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    told = beside.meanings(Settings)
    for field in msgspec.structs.fields(Settings):
        default = "" if field.default is msgspec.NODEFAULT else field.default
        names = code(field.name), code(f"FAIRWAY_{field.name.upper()}")
        found.append((*names, code(_shown(default)), told.get(field.name, "")))
    return found


def read_by_the_code() -> set[str]:
    """Every variable that the source names and that is a setting."""
    served = {f"FAIRWAY_{field.name.upper()}" for field in msgspec.structs.fields(Settings)}
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        found |= set(re.findall(r"\bFAIRWAY_[A-Z_]+", path.read_text(encoding="utf-8")))
    return {name for name in found if not NOT_SETTINGS.fullmatch(name)} - served
