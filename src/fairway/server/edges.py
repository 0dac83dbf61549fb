"""The edges: health, readiness, metrics and the OpenAPI document.

Guards: what can be had without a token tells nothing of the queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairway.client import wire
from fairway.errors import BadMethod, Busy, FairwayError, Forbidden, NotFound, OurError
from fairway.server import answering, openapi
from fairway.server.metrics import Metrics
from fairway.server.views import Health

if TYPE_CHECKING:
    from fairway.server.app import App

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Edges:
    """A Starlette application for what is not the API."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._metrics = Metrics(app.queues, app.sizes)
        routes = [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.openapi),
        ]
        handlers: Any = {FairwayError: _refused, HTTPException: _unknown, Exception: _failed}
        self._starlette = Starlette(routes=routes, exception_handlers=handlers)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._starlette(scope, receive, send)

    async def health(self, request: Request) -> Response:
        """This process runs."""
        return _json(Health("ok"))

    async def ready(self, request: Request) -> Response:
        """It takes calls: it is not ending, the store can be read, and the engine answers."""
        if self._app.stopping:
            raise Busy("the server is ending")
        await self._app.queues.ready()
        return _json(Health("ready"))

    async def metrics(self, request: Request) -> Response:
        """The metrics of the queues that the caller may read."""
        headers = dict(request.scope["headers"])
        self._app.callers.check_site(headers)
        token = self._app.callers.find(headers.get(b"authorization"))
        if not token.allows("read", None):
            raise Forbidden
        return _response(await self._metrics.page(token), _TEXT)

    async def openapi(self, request: Request) -> Response:
        return _response(openapi.body(), wire.JSON)


def _response(body: bytes, media: str, status: int = 200) -> Response:
    response = Response(body, status, media_type=media)
    for name, value in answering.SECURITY:
        response.headers[name.decode()] = value.decode()
    return response


def _json(value: Any) -> Response:
    return _response(msgspec.json.encode(value), wire.JSON)


def _refused(request: Request, error: FairwayError) -> Response:
    answer = answering.refused(error)
    response = _response(answer.value, answer.media, answer.status)
    for name, value in answer.headers:
        response.headers[name.decode()] = value.decode()
    return response


def _unknown(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        return _refused(request, BadMethod("this address takes GET"))
    return _refused(request, NotFound("there is no such address; /openapi.json lists those of the API"))


def _failed(request: Request, error: Exception) -> Response:
    return _refused(request, OurError(f"{error!r}"))
