"""The producing sinks: rows of a DataFrame become submissions, one per tenant, all at once at the commit.

Guards: a token gives one submission per tenant, however often and by whomever its job is run; objects of tasks that
the driver heard of are removed if they belong to no submission, and none that may belong to one ever is.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fairway import limits
from fairway.errors import BadArgument, FairwayError
from fairway.face import checks
from fairway.runtime.objects import ObstoreObjects
from fairway.spark.columns import writable
from fairway.spark.cutting import Cutter, check_tenants
from fairway.spark.places import marker
from fairway.spark.queues import attached
from fairway.spark.settings import Settings

_objects = ObstoreObjects()


@dataclass
class Cut(WriterCommitMessage):
    """What one task wrote: (tenant, prefix, count)."""

    segments: list[tuple[str, str, int]]


class _Producing:
    """What both producing sinks do: tasks write, and the driver submits and notes which run wrote the payloads."""

    settings: Settings
    token: str
    nonce: str  # of this run: a job that is run again with its token writes beside, never over
    schema: bytes

    def prepare(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        column = settings.need("tenantColumn", "name the column that says whose rows they are")
        if column not in schema.fieldNames():
            raise BadArgument(
                f"option tenantColumn: there is no column {column!r}; there are {', '.join(schema.fieldNames())}",
                argument="tenantColumn",
            )
        self.nonce = secrets.token_hex(6)
        self.token = settings["submissionToken"] or self.nonce
        checks.text("option submissionToken", self.token, limits.KEY_BYTES_MAX - 20, 1)
        _check_metadata(settings["metadata"])
        arrow = writable(schema)
        check_tenants(column, arrow.field(arrow.names.index(column)).type)
        self.schema = arrow.serialize().to_pybytes()
        if len(self.schema) > limits.INFO_BYTES_MAX - 64:
            self.schema = b""  # too wide to be noted; readers in rows mode must be given it
        _ = settings.objects  # an error about it is better told now

    def cut(self, batches: Iterator[pa.RecordBatch]) -> Cut:
        task = TaskContext.get()
        assert task is not None
        attempt = f"{task.attemptNumber()}-{task.taskAttemptId()}-{secrets.token_hex(4)}"
        options = self.settings
        cutter = Cutter(
            options.objects,
            self.token,
            task.partitionId(),
            attempt,
            options["tenantColumn"],
            options["chunkRows"],
            options["payloadFormat"],
        )
        return Cut(cutter.cut(batches))

    def submit(self, messages: list[Any], key: str) -> None:
        by_tenant = _by_tenant(messages)
        if not by_tenant:
            return
        queue = attached(self.settings.url, self.settings.queue)
        info = f"{self.nonce} ".encode() + self.schema
        note = marker(self.settings.objects, self.token, self.nonce)
        prefixes = [prefix for segments in by_tenant.values() for prefix, _ in segments]
        _objects.write({note: json.dumps(prefixes).encode()})
        made = queue.submit_many([self._item(tenant, segs, key, info) for tenant, segs in by_tenant.items()])
        ignored = [one.tenant for one in made if one.info != info]
        for tenant in ignored:  # the token was used before: what it submitted then counts
            _remove(by_tenant[tenant])
        if len(ignored) == len(by_tenant):
            _objects.remove([note])

    def _item(self, tenant: str, segments: list[tuple[str, int]], key: str, info: bytes) -> dict[str, Any]:
        options = self.settings
        item = {
            "objects": segments,
            "tenant": tenant,
            "metadata": {**options["metadata"], "token": key},
            "info": info,
            "priority": options["priority"],
            "policy": options["policy"],
            "key": key,
            "fingerprint": key,
        }
        if options["weight"] is not None:
            item["weight"] = options["weight"]
        if options["attemptsMax"] is not None:
            item["attempts_max"] = options["attemptsMax"]
        return item

    def remove(self, messages: list[Any], key: str) -> None:
        """The job failed: what its finished tasks wrote goes, unless a submission may have been made of it.

        Spark kills the other tasks, tells nothing of them, and does not wait until they have stopped writing: what
        they left, which cannot be known now, `fairway.spark.sweep` removes.
        """
        by_tenant = _by_tenant(messages)
        if not by_tenant:
            return
        try:
            queue = attached(self.settings.url, self.settings.queue)
            accepted = {one.tenant for one in queue.submissions(metadata={"token": key})}
        except FairwayError:
            return  # the sweeper knows better, later
        for tenant, segments in by_tenant.items():
            if tenant not in accepted:
                _remove(segments)


class Submit(_Producing, DataSourceArrowWriter):
    """df.write.format("fairway"). Made in a planner; `write` runs in tasks, `commit` and `abort` on the driver."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.prepare(settings, schema)
        attached(settings.url, settings.queue)  # a queue that is not there is told before anything is written

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Cut:
        return self.cut(iterator)

    def commit(self, messages: list[Any]) -> None:
        self.submit(messages, self.token)

    def abort(self, messages: list[Any]) -> None:
        self.remove(messages, self.token)


class SubmitStream(_Producing, DataSourceStreamArrowWriter):
    """df.writeStream.format("fairway") with a tenantColumn: every micro-batch is a submission per tenant."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        settings.need("submissionToken", "a stream that is started again must not submit a batch twice")
        self.prepare(settings, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Cut:
        return self.cut(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        self.submit(messages, f"{self.token}.{batchId}")

    def abort(self, messages: list[Any], batchId: int) -> None:
        self.remove(messages, f"{self.token}.{batchId}")


def _check_metadata(given: dict[str, str | int]) -> None:
    if "token" in given or len(given) == limits.METADATA_KEYS_MAX:
        raise BadArgument(
            f"option metadata: it has at most {limits.METADATA_KEYS_MAX - 1} keys and none called 'token', which is the"
            " submissionToken's",
            argument="metadata",
        )


def _by_tenant(messages: list[Any]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for message in messages:
        for tenant, prefix, count in message.segments if message is not None else ():
            found.setdefault(tenant, []).append((prefix, count))
    return found


def _remove(segments: list[tuple[str, int]]) -> None:
    for prefix, count in segments:
        _objects.remove(f"{prefix}/{index}" for index in range(count))


def payload_schema(info: bytes) -> pa.Schema | None:
    """The schema of the payloads that a producing job noted; None if it is another info."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(info[13:])) if info[12:13] == b" " else None
    except (pa.ArrowException, OSError):
        return None
