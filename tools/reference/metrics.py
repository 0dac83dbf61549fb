"""The page of metrics, from the server's own definitions.

Guards: a metric that a server gives is on the page, with its labels.
"""

from __future__ import annotations

from fairway import limits
from fairway.server import metrics
from tools.reference.writing import code, opening, table


def page() -> str:
    own = [
        (code("fairway_http_requests_total"), "route, status", told(metrics.REQUESTS)),
        (code("fairway_http_request_seconds"), "route", told(metrics.SECONDS)),
        (code("fairway_http_calls"), "kind", told(metrics.CALLS)),
    ]
    queues = [(code(name), "queue", words) for name, words, _ in metrics.QUEUE_GAUGES]
    counters = [(code(name), "queue", words) for name, words, _ in metrics.QUEUE_COUNTERS]
    buckets = [(code(name), "queue", words) for name, words, _ in metrics.BUCKET_GAUGES]
    tenants = [(code(name), "queue, tenant", words) for name, words, _ in metrics.TENANT_GAUGES]
    words = (
        "`GET /metrics` is for Prometheus and needs the right `read`. It tells of the queues that the token reaches,"
        f" {limits.METRIC_QUEUES_MAX} at most, and of the {limits.METRIC_TENANTS_MAX} tenants of each that have the"
        " most work. [Monitoring](../howto/monitoring.md) says what to watch and when to be alarmed."
    )
    return opening("Metrics", "src/fairway/server/metrics.py", words) + "\n" + table(
        ("metric", "labels", "meaning"), [*own, *queues, *counters, *tenants, *buckets]
    )  # fmt: skip


def told(metric: object) -> str:
    """What a metric of this process says of itself."""
    return str(getattr(metric, "_documentation"))  # noqa: B009 - prometheus_client has no other way to it
