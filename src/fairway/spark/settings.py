"""The options of format("fairway"): each has a name, a reader, and the places where it counts.

Guards: an option that is unknown, missing or out of its bounds is named before any work begins.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fairway import limits
from fairway.client.address import is_http
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.fair.weights import thousandths, weight_of
from fairway.runtime import urls
from fairway.runtime.urls import Place, on_cassandra
from fairway.strategy.text import canonical

READ, WRITE, SOURCE, SINK = "batch reads", "batch writes", "stream reads", "stream writes"
_EVERYWHERE = frozenset((READ, WRITE, SOURCE, SINK))
_KINDS = ("submissions", "chunks", "results", "events", "dead")
_FORMATS = ("arrow", "parquet")
_NUMBER = re.compile(r"0|-?[1-9][0-9]*")  # what comes back as it was: 007 is a text


def _whole(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        try:
            return checks.whole(name, int(text), low, high)
        except ValueError:
            checks.refuse(name, f"a whole number from {low} to {high}", text)

    return read


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        checks.refuse(name, "true or false", text)
    return text.lower() == "true"


def _one_of(*known: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text not in known:
            checks.refuse(name, " or ".join(known), text)
        return text

    return read


def _seconds(high: float) -> Callable[[str, str], float]:
    def read(name: str, text: str) -> float:
        try:
            return checks.number(name, float(text), 0.0, high)
        except ValueError:
            checks.refuse(name, f"a number from 0 to {high:g}", text)

    return read


def _weight(name: str, text: str) -> float:
    try:
        return weight_of(thousandths(float(text)))
    except ValueError:
        return weight_of(thousandths(text))  # which refuses it


@dataclass(frozen=True)
class Option:
    """One option: how its text is read, what it is by default, and where it counts."""

    name: str
    read: Callable[[str, str], Any]
    default: Any
    where: frozenset[str]


def _text(name: str, text: str) -> str:
    return text


def _pairs(name: str, text: str) -> dict[str, str | int]:
    """A JSON object, or in short key=value, separated by commas; a whole number as it is usually written is one."""
    if text.lstrip().startswith("{"):
        try:
            return checks.metadata(json.loads(text), name)
        except ValueError:
            checks.refuse(name, "a JSON object, or key=value pairs, separated by commas", text)
    found: dict[str, str | int] = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            checks.refuse(name, "key=value pairs, separated by commas, or a JSON object", text)
        found[key.strip()] = int(value) if _NUMBER.fullmatch(value.strip()) else value.strip()
    return checks.metadata(found, name)


OPTIONS = (
    Option("queue", lambda name, text: checks.queue_name(text), "default", _EVERYWHERE),
    Option("objects", lambda name, text: checks.prefix(name, text), "", _EVERYWHERE),
    # reading what the queue holds
    Option("kind", _one_of(*_KINDS), "", frozenset((READ,))),
    Option("submission", _whole(1, 2**63 - 1), 0, frozenset((READ,))),
    Option("tenant", lambda name, text: checks.tenant(text), None, frozenset((READ,))),
    Option("raw", _flag, False, frozenset((READ,))),
    Option("rowsPerTask", _whole(1, 10**9), limits.SPARK_LIST_ROWS, frozenset((READ,))),
    # producing
    Option("tenantColumn", _text, "", frozenset((WRITE, SINK))),
    Option("chunkRows", _whole(1, 2**31 - 1), limits.SPARK_CHUNK_ROWS, frozenset((WRITE, SINK))),
    Option("payloadFormat", _one_of(*_FORMATS), "arrow", frozenset((WRITE, SINK))),
    Option("submissionToken", _text, "", frozenset((WRITE, SINK))),
    Option("policy", _one_of("dead_letter", "fail_fast"), "dead_letter", frozenset((WRITE, SINK))),
    Option("metadata", _pairs, {}, frozenset((WRITE, SINK))),
    Option("priority", _whole(-limits.PRIORITY_MAX, limits.PRIORITY_MAX), 0, frozenset((WRITE, SINK))),
    Option("weight", _weight, None, frozenset((WRITE, SINK))),
    Option("attemptsMax", _whole(1, limits.ATTEMPTS_MAX_MAX), None, frozenset((WRITE, SINK))),
    # processing
    Option("consumer", lambda name, text: checks.consumer(text), "", frozenset((SOURCE, SINK))),
    Option("run", _text, "", frozenset((SOURCE, SINK))),
    Option("error", _text, "", frozenset((SOURCE,))),
    Option("strategy", lambda name, text: canonical(text), "", frozenset((SOURCE,))),
    Option("emit", _one_of("references", "rows"), "references", frozenset((SOURCE,))),
    Option("noted", _text, "", frozenset((SOURCE,))),
    Option("function", _text, "", frozenset((SOURCE,))),
    Option("maxChunksPerTrigger", _whole(1, limits.RESERVE_CHUNKS_MAX), 1000, frozenset((SOURCE,))),
    Option("chunksPerTask", _whole(1, limits.RESERVE_CHUNKS_MAX), 0, frozenset((SOURCE,))),
    Option("waitSeconds", _seconds(limits.WAIT_SECONDS_MAX), 0.5, frozenset((SOURCE,))),
    Option("completeOn", _one_of("sinkCommit", "sourceCommit"), "sinkCommit", frozenset((SOURCE,))),
    Option("perChunk", _flag, False, frozenset((SINK,))),
    Option("resultFormat", _one_of(*_FORMATS), "arrow", frozenset((SINK,))),
)
_BY_NAME = {option.name.lower(): option for option in OPTIONS}
_OF_STREAMS = {
    name for name, option in _BY_NAME.items() if SOURCE in option.where and READ not in option.where
}
_OF_SPARK = {"path", "checkpointlocation", "queryname", "outputmode"}  # Spark's own, handed on to sinks


NO_STREAM = "a stream needs a consumer"


def of_stream(given: Iterable[str]) -> bool:
    """Whether a stream is read, by the names of the options: Spark does not say it before it asks for the schema."""
    names = {name.lower() for name in given}
    return "kind" not in names and not names.isdisjoint(_OF_STREAMS)


class Settings:
    """The options of one source or sink, read and checked. It can be pickled."""

    def __init__(self, given: Mapping[str, str], where: str) -> None:
        self.where = where
        self.url = located(given.get("path", ""))
        self._values: dict[str, Any] = {option.name: option.default for option in OPTIONS}
        for key, text in given.items():
            option = _BY_NAME.get(key.lower())
            if option is None or where not in option.where:
                if key.lower() not in _OF_SPARK:
                    known = ", ".join(sorted(o.name for o in OPTIONS if where in o.where))
                    also = f"; {NO_STREAM}" if key.lower() in _OF_STREAMS and where == READ else ""
                    raise BadArgument(
                        f"option {key!r} is unknown to {where}; there are {known}{also}", argument=key
                    )
                continue
            self._values[option.name] = option.read(f"option {option.name}", text)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def need(self, name: str, why: str) -> Any:
        """An option that must be given."""
        value = self._values[name]
        if not value:
            raise BadArgument(f"option {name!r} is missing: {why}", argument=name)
        return value

    @property
    def queue(self) -> str:
        return self._values["queue"]

    @property
    def objects(self) -> str:
        """Where objects go: beside a file of a queue unless told."""
        return self._values["objects"] or beside(self.url)


def located(url: Place) -> str:
    """The URL of a queue that means the same in every process: a file's is its absolute path."""
    if not url:
        raise BadArgument(
            "the queue's URL is missing: give it to load(), save() or start(), or as option 'path'",
            argument="path",
        )
    if on_cassandra(url):
        raise BadArgument(
            "Spark does not work on cassandra:// itself: a queue there has one owner, and a job has many"
            " processes. Start `fairway serve` on the cluster and give the server's URL",
            argument="path",
        )
    if isinstance(url, str) and is_http(url):
        return url
    path = urls.path_of(url)
    if path is None:
        raise BadArgument(
            "a queue in memory lives in one process; Spark needs a file or a server", argument="path"
        )
    return os.path.abspath(path)


def path_of(url: Place) -> str | None:
    """The absolute path of a queue in a file; None for one on a server."""
    where = located(url)
    return None if is_http(where) else where


def beside(url: Place) -> str:
    """The folder for objects beside a queue's file, as a URL."""
    path = path_of(url)
    if path is None:
        raise BadArgument(
            f"option 'objects' is missing: {url} is no file, so say where payloads go, such as s3://bucket/prefix",
            argument="objects",
        )
    return "file://" + quote(path) + "-objects"
