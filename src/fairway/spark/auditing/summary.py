"""An audit as plain values, small enough to print: what a report and the command line show.

Guards: only frames that are as small as their limit here are brought to the driver.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pyspark.sql import functions as F

from fairway.limits import REPORT_FAULTS_MAX, REPORT_TENANTS_MAX, REPORT_WINDOWS_MAX
from fairway.spark.auditing.judging import Audit, Counts

Row = dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """What one audit showed, under a name such as its strategy."""

    name: str
    counts: Counts
    tenants: list[Row]  # the largest first
    tenants_all: int
    windows: list[Row]  # `at` is seconds since the beginning
    faults: list[Row]
    seconds: float
    window_seconds: float

    @property
    def jain(self) -> float | None:
        """Jain's index over the windows in which tenants contended, each by what was handed out in it."""
        fair = [(w["jain"], w["handed"]) for w in self.windows if w["jain"] is not None and w["handed"]]
        return sum(jain * handed for jain, handed in fair) / sum(h for _, h in fair) if fair else None

    @property
    def lag(self) -> float:
        """The worst lag of anybody, in chunks."""
        return max((w["lag"] for w in self.windows), default=0.0)

    @property
    def per_second(self) -> float:
        return self.counts.completed / self.seconds if self.seconds else 0.0

    def wait(self, tenant: str) -> float | None:
        """What a chunk of this tenant waited on average."""
        return next((row["wait_mean"] for row in self.tenants if row["tenant"] == tenant), None)

    @property
    def largest(self) -> str:
        """The tenant with the most chunks; nobody, if there was no chunk."""
        return self.tenants[0]["tenant"] if self.tenants else ""

    @property
    def small_wait(self) -> float | None:
        """The median of the average waits of all tenants but the largest."""
        waits = [row["wait_mean"] for row in self.tenants[1:] if row["wait_mean"] is not None]
        return median(waits) if waits else None

    def plain(self) -> Row:
        """All of it as JSON takes it."""
        return asdict(self) | {"jain": self.jain, "lag": self.lag, "per_second": self.per_second}


def summary(name: str, audit: Audit) -> Summary:
    """Bring the small frames of an audit here."""
    windows = [row.asDict() for row in audit.windows.limit(REPORT_WINDOWS_MAX).collect()]
    for row in windows:
        row["at"] = row["begin"] - audit.begin
    worst = audit.faults.orderBy(F.desc("count"), "kind", "submission", "first").limit(REPORT_FAULTS_MAX)
    return Summary(
        name,
        audit.counts,
        [row.asDict() for row in audit.tenants.limit(REPORT_TENANTS_MAX).collect()],
        audit.tenants.count(),
        windows,
        [row.asDict() for row in worst.collect()],
        audit.end - audit.begin,
        audit.window_seconds,
    )
