"""Event logs written by hand, as the audit reads them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fairway.face.arrow import batch_of, table_of
from fairway.model.event import Event


class Log:
    """A log that is written line by line; every line is a group of its own, a second later unless told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.number = 0
        self.now = 0.0

    def at(self, time: float) -> Log:
        self.now = time
        return self

    def submit(self, id: int, tenant: str, chunks: int) -> Log:
        return self._add("submitted", (id, 0, chunks), tenant=tenant)

    def reserve(self, reservation: int, *spans: tuple[int, int, int], attempt: int = 1) -> Log:
        return self._add("reserved", *spans, epoch=9, reservation=reservation, attempt=attempt)

    def complete(self, reservation: int, *spans: tuple[int, int, int]) -> Log:
        return self._add("completed", *spans, epoch=9, reservation=reservation)

    def happen(self, what: str, *spans: tuple[int, int, int], reservation: int = 0, detail: str = "") -> Log:
        return self._add(what, *spans, epoch=9 if reservation else 0, reservation=reservation, detail=detail)

    def done(self, id: int, chunks: int) -> Log:
        return self._add("ended_completed", (id, 0, chunks), detail="last chunk done")

    def _add(self, what: str, *spans: tuple[int, int, int], **fields: Any) -> Log:
        self.number += 1
        self.events += [Event(self.number, what, self.now, *span, **fields) for span in spans]
        return self

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(table_of([batch_of(self.events)]))
