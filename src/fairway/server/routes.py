"""The routes under /v1: one table, from which requests are dispatched and the OpenAPI document is made.

Guards: a route says which right it needs; there is none without.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from fairway.client import wire
from fairway.engine.commands import QueueStats
from fairway.limits import KEPT_NAMES_MAX, PATH_CHARS_MAX
from fairway.server import bringing, bucketing, calling, changing, doing, looking, streaming
from fairway.server import queue_views as qv
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.rights import Right

Handler = Callable[[Ask], Awaitable[Answer]]


class BytesQuery(v.Body, frozen=True, kw_only=True):
    """What may be told of a message whose body is its payload."""

    tenant: v.Name = ""
    priority: v.Priority = 0
    key: str | None = None
    delay_seconds: v.Seconds | None = None


@dataclass(frozen=True)
class Route:
    """One operation."""

    method: str
    path: str
    name: str
    right: Right | None  # None: any
    handler: Handler
    takes: Any = None  # the type of the body; None: there is none
    gives: Any = None  # the type of the answer; None: there is none
    query: Any = None
    status: int = 200
    also: tuple[int, ...] = ()  # other good answers
    bytes: bool = False  # the body may be plain bytes
    stream: str = ""  # the answer may be a stream of this kind
    optional: bool = False  # the body may be left out
    waits: bool = False  # it may take long, and ends when its caller is gone
    opens: bool = True  # its queue must exist
    summary: str = field(default="", compare=False)


_Q = "/v1/queues/{queue}"
_S = _Q + "/submissions/{id}"
_ANY: Final = object()  # of a variable step: no word of a path

ROUTES: tuple[Route, ...] = (
    Route("GET", "/v1/queues", "list_queues", None, looking.queues, gives=qv.Queues),
    Route(
        "PUT", _Q, "make_queue", "operate", changing.make, qv.QueueSettings, qv.QueueView,
        also=(201,), optional=True, opens=False,
    ),
    Route("GET", _Q, "show_queue", "read", looking.queue, gives=qv.QueueView),
    Route("DELETE", _Q, "delete_queue", "operate", changing.delete, status=204, opens=False),
    Route("POST", _Q + "/pause", "pause_queue", "operate", changing.pause_queue, gives=qv.QueueView),
    Route("POST", _Q + "/resume", "resume_queue", "operate", changing.resume_queue, gives=qv.QueueView),
    Route(
        "POST", _Q + "/submissions", "submit", "submit", bringing.submit,
        v.NewSubmission | v.NewSubmissions, v.SubmissionView | list[v.SubmissionView], status=201,
    ),
    Route(
        "GET", _Q + "/submissions", "list_submissions", "read", looking.submissions, gives=v.Submissions,
        query=looking.Listing,
    ),
    Route(
        "GET", _S, "show_submission", "read", looking.submission, gives=v.SubmissionView,
        query=looking.Waiting, waits=True,
    ),
    Route("DELETE", _S, "cancel", "operate", changing.cancel, gives=v.SubmissionView),
    Route("POST", _S + "/pause", "pause_submission", "operate", changing.pause, gives=v.SubmissionView),
    Route("POST", _S + "/resume", "resume_submission", "operate", changing.resume, gives=v.SubmissionView),
    Route("POST", _S + "/redrive", "redrive", "operate", changing.redrive, gives=v.SubmissionView),
    Route(
        "GET", _S + "/results", "list_results", "read", looking.results, gives=v.Results, query=looking.Rows,
        stream=looking.NDJSON,
    ),
    Route("GET", _S + "/chunks/{index}", "show_payload", "work", doing.payload, gives=bytes),
    Route(
        "POST", _Q + "/messages", "put", "submit", bringing.put, v.NewMessage | v.NewMessages, v.Ids,
        query=BytesQuery, status=201, bytes=True,
    ),
    Route("POST", _Q + "/reserve", "reserve", "work", doing.reserve, v.Reserving, v.Leases, waits=True),
    Route("POST", _Q + "/complete", "complete", "work", doing.complete, v.Completing, v.Outcomes),
    Route("POST", _Q + "/fail", "fail", "work", doing.fail, v.Failing, v.Outcomes),
    Route("POST", _Q + "/renew", "renew", "work", doing.renew, v.Renewing, v.Outcomes),
    Route("POST", _Q + "/release", "release", "work", doing.release, v.Releasing, v.Outcomes),
    Route("POST", _Q + "/join", "join", "work", doing.join, v.Joining, v.Joined),
    Route("POST", _Q + "/trim", "trim", "work", doing.trim, v.Trimming, status=204),
    Route(
        "GET", _Q + "/tenants", "list_tenants", "read", looking.tenants, gives=v.TenantsPage,
        query=looking.TenantRows,
    ),
    Route("PATCH", _Q + "/tenants", "change_tenant", "operate", changing.tenant, v.TenantChange, status=204),
    Route("GET", _Q + "/stats", "show_stats", "read", looking.stats, gives=QueueStats),
    Route(
        "GET", _Q + "/events", "list_events", "read", streaming.events, gives=v.Events,
        query=streaming.EventRows, stream=streaming.SSE,
    ),
    Route("GET", _Q + "/dead", "list_dead", "read", looking.dead, gives=v.DeadChunks, query=looking.DeadRows),
    Route("POST", _Q + "/redrive", "redrive_letters", "operate", bucketing.redriven, qv.Letters, qv.Count),
    Route("POST", _Q + "/purge", "purge_letters", "operate", bucketing.purged, qv.Letters, qv.Count),
    Route("GET", _Q + "/explain", "explain", "read", looking.explain, gives=v.Explained, query=looking.Explaining),
    Route("GET", _Q + "/consumers", "list_consumers", "read", looking.consumers, gives=v.ConsumersPage),
    Route("POST", _Q + "/clients", "register_client", None, changing.register, gives=v.ClientView, status=201),
    Route("POST", _Q + "/call", "call", None, calling.call, wire.Asked, wire.Answered, waits=True),
)  # fmt: skip


class Router:
    """Finds the route of a method and a path."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._tree: dict[Any, Any] = {}
        for route in routes:
            node = self._tree
            for step in route.path.strip("/").split("/"):
                name = step[1:-1] if step.startswith("{") else None
                node = node.setdefault((_ANY, name) if name else step, {})
            node.setdefault("methods", {})[route.method] = route
        _freeze(self._tree)
        self._known = lru_cache(KEPT_NAMES_MAX)(self._find)

    def find(self, path: str) -> tuple[dict[str, Route], dict[str, str]] | None:
        """The routes of a path by method, and what its variable parts are; None: there is no such path."""
        return self._known(path) if len(path) <= PATH_CHARS_MAX else None

    def _find(self, path: str) -> tuple[dict[str, Route], dict[str, str]] | None:
        node = self._tree
        params: dict[str, str] = {}
        for step in path[1:].split("/"):
            following = node.get(step) if step != "methods" else None
            if following is None:
                name, following = node.get(_ANY, (None, None))
                if following is None or not step:
                    return None
                params[name] = step
            node = following
        methods = node.get("methods")
        return (methods, params) if methods else None


def _freeze(node: dict[Any, Any]) -> None:
    """A node has one variable step at most; it stands with its name under a key that no path can hold."""
    for key in list(node):
        if isinstance(key, tuple):
            node[_ANY] = (key[1], node.pop(key))
            _freeze(node[_ANY][1])
        elif key != "methods":
            _freeze(node[key])
