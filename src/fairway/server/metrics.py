"""Metrics for Prometheus: what this process did, and what the queues hold.

Guards: label sets are bounded: routes by the table, tenants and queues by limits; a caller sees his own queues only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from fairway import limits
from fairway.engine.commands import QueueStats, TenantView
from fairway.errors import FairwayError
from fairway.server.queues import OpenQueue, OpenQueues
from fairway.server.sizes import Size, Sizes
from fairway.server.tokens import Token

_REGISTRY: Final = CollectorRegistry()
REQUESTS: Final = Counter(
    "fairway_http_requests",
    "Requests answered, by route and status.",
    ["route", "status"],
    registry=_REGISTRY,
)
SECONDS: Final = Histogram(
    "fairway_http_request_seconds",
    "Seconds from the head of a request to the end of its answer, long polls and streams left out.",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=_REGISTRY,
)
# A counter is looked up once for each of its labels: there are few, and it is counted at every request.
requests: Final = cache(REQUESTS.labels)
seconds: Final = cache(SECONDS.labels)
CALLS: Final = Gauge(
    "fairway_http_calls", "Calls under way.", ["kind"], registry=_REGISTRY, multiprocess_mode="livesum"
)
calls: Final = cache(CALLS.labels)

# name, what it is, and where it stands in QueueStats
QUEUE_GAUGES: Final = (
    ("fairway_queue_submissions_active", "Submissions that have not ended.", "submissions_active"),
    ("fairway_queue_chunks_waiting", "Chunks that can be or will be handed out.", "chunks_waiting"),
    ("fairway_queue_chunks_leased", "Chunks that workers hold.", "chunks_leased"),
    ("fairway_queue_chunks_done", "Chunks of active submissions that are done.", "chunks_done"),
    ("fairway_queue_chunks_dead", "Chunks of active submissions that were given up.", "chunks_dead"),
    ("fairway_queue_tenants", "Tenants with work, a weight or a pause.", "tenants"),
    ("fairway_queue_waiters", "Reserves that wait for work.", "waiters"),
    ("fairway_queue_paused", "1 if the queue is paused.", "paused"),
)
QUEUE_COUNTERS: Final = (
    ("fairway_queue_chunks_handed_total", "Chunks handed out since the queue was opened.", "handed"),
    ("fairway_queue_chunks_completed_total", "Chunks completed since the queue was opened.", "completed"),
    (
        "fairway_queue_chunks_died_total",
        "Chunks given up since the queue was opened, those of messages included.",
        "died",
    ),
)
BUCKET_GAUGES: Final = (
    ("fairway_bucket_messages_ready", "Messages of a bucket queue that can be delivered.", "ready"),
    ("fairway_bucket_messages_delayed", "Messages that wait for a delay or a back-off.", "delayed"),
    ("fairway_bucket_messages_leased", "Messages that workers hold.", "leased"),
    ("fairway_bucket_messages_dead", "Dead letters of a bucket queue.", "dead"),
    ("fairway_bucket_buckets", "Buckets that are not removed yet.", "buckets"),
)
TENANT_GAUGES: Final = (
    ("fairway_tenant_chunks_waiting", "Chunks of a tenant that wait; top tenants only.", "waiting"),
    ("fairway_tenant_chunks_leased", "Chunks of a tenant that workers hold; top tenants only.", "leased"),
    ("fairway_tenant_weight", "A tenant's share; top tenants only.", "weight"),
)


def buried(pid: int, folder: str) -> None:
    """A process of several is gone: what it did counts, what it had under way does not."""
    mark_process_dead(pid, folder)


class Metrics:
    """Makes the page for one caller."""

    def __init__(self, queues: OpenQueues, sizes: Sizes) -> None:
        self._queues, self._sizes = queues, sizes
        self._tops: dict[str, tuple[float, list[TenantView]]] = {}

    async def page(self, token: Token) -> bytes:
        names = [name for name in sorted(await self._queues.names()) if token.allows("read", name)]
        found: list[tuple[str, QueueStats, list[TenantView]]] = []
        for name in names[: limits.METRIC_QUEUES_MAX]:
            try:
                queue = await self._queues.get(name)
                if not queue.here:
                    continue  # the node that owns it has its figures
                found.append((name, await queue.queue.stats(), await self._top(queue)))
            except FairwayError:
                continue  # one that is gone or broken has no figures
        sizes, _ = await self._sizes.of(token)
        return _page([*_families(found), *_sizes(sizes)])

    async def _top(self, queue: OpenQueue) -> list[TenantView]:
        """The tenants with the most waiting; counted every few seconds, for there may be many."""
        until, kept = self._tops.get(queue.name, (0.0, []))
        if time.monotonic() >= until:
            every = [tenant async for tenant in queue.queue.tenants()]
            kept = sorted(every, key=lambda tenant: (-tenant.waiting - tenant.leased, tenant.name))
            kept = kept[: limits.METRIC_TENANTS_MAX]
            self._tops[queue.name] = (time.monotonic() + limits.METRIC_SECONDS, kept)
        return kept


def _families(found: list[tuple[str, QueueStats, list[TenantView]]]) -> Iterable[Metric]:
    for name, told, field in QUEUE_GAUGES:
        family = GaugeMetricFamily(name, told, labels=["queue"])
        for queue, stats, _ in found:
            family.add_metric([queue], float(getattr(stats, field)))
        yield family
    for name, told, field in QUEUE_COUNTERS:
        counter = CounterMetricFamily(name, told, labels=["queue"])
        for queue, stats, _ in found:
            counter.add_metric([queue], float(getattr(stats, field)))
        yield counter
    for name, told, field in TENANT_GAUGES:
        family = GaugeMetricFamily(name, told, labels=["queue", "tenant"])
        for queue, _, tenants in found:
            for tenant in tenants:
                family.add_metric([queue, tenant.name], float(getattr(tenant, field)))
        yield family


def _sizes(found: list[Size]) -> Iterable[Metric]:
    for name, told, field in BUCKET_GAUGES:
        family = GaugeMetricFamily(name, told, labels=["queue"])
        for size in found:
            if size.stats is not None:
                family.add_metric([size.name], float(getattr(size.stats, field)))
        yield family


def _page(families: Iterable[Metric]) -> bytes:
    own = _REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        own = CollectorRegistry()
        MultiProcessCollector(own)
    queues = CollectorRegistry()
    queues.register(_Given(families))  # pyright: ignore[reportArgumentType]
    return generate_latest(own) + generate_latest(queues)


class _Given:
    """A collector of what was gathered already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Any]:
        return self._families
