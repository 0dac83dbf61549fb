"""produce: the rows of a DataFrame into a queue, hosted meanwhile by this program.

Guards: what it answers with is in the queue, stored.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairway.face import checks
from fairway.limits import SPARK_CHUNK_ROWS
from fairway.model.submission import Submission
from fairway.runtime.urls import Place
from fairway.spark.places import folder_of, under
from fairway.spark.progress import Written
from fairway.spark.queues import hosting
from fairway.spark.settings import beside, located
from fairway.spark.sources import register
from fairway.spark.telling import unwrapped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def produce(
    df: DataFrame,
    url: Place,
    *,
    tenant_column: str,
    queue: str = "default",
    chunk_rows: int = SPARK_CHUNK_ROWS,
    objects: str | None = None,
    token: str | None = None,
    payload_format: str = "arrow",
    policy: str = "dead_letter",
    metadata: Mapping[str, str | int] | None = None,
    priority: int = 0,
    weight: float | None = None,
    attempts_max: int | None = None,
    progress: bool = True,
) -> list[Submission]:
    """Submit the rows of a DataFrame, one submission per tenant, in chunks of up to `chunk_rows` rows.

    With a `token` it is safe to run again: the same token submits once. Payloads go under `objects`, by default
    a folder beside the queue's file. Gives the submissions as they are now. On a terminal it shows how many payloads
    are written, unless `progress` is False.
    """
    token = token or secrets.token_hex(8)
    register(df.sparkSession)
    options = {
        "queue": queue,
        "tenantColumn": tenant_column,
        "chunkRows": chunk_rows,
        "objects": objects,
        "submissionToken": token,
        "payloadFormat": payload_format,
        "policy": policy,
        "metadata": json.dumps(checks.metadata(metadata)) if metadata else None,
        "priority": priority,
        "weight": weight,
        "attemptsMax": attempts_max,
    }
    given = {name: str(value) for name, value in options.items() if value is not None}
    place = under(objects or beside(located(url)), folder_of(token))
    with hosting(url, queue) as q, Written(place, progress), unwrapped():
        df.write.format("fairway").mode("append").options(**given).save(located(url))
        return list(q.submissions(metadata={"token": token}))
