"""The application: from a request to its answer.

Guards: nothing is read, opened or told before the caller is known and has the right; every error is an answer with a
code; a caller that goes away leaves no wait and no lease.
"""

from __future__ import annotations

import dataclasses
import logging
import time
import zlib
from functools import lru_cache
from typing import Any, Final

from fairway.client import wire
from fairway.engine.commands import Reserve, Wait
from fairway.errors import (
    BadArgument,
    BadMethod,
    Busy,
    Closed,
    FairwayError,
    Forbidden,
    NoHost,
    NotFound,
    OurError,
    QueueDeleted,
    QueueHeld,
    Unauthorized,
)
from fairway.face import checks
from fairway.limits import KEPT_NAMES_MAX
from fairway.server import answering, bodies, bucketing, changing, metrics
from fairway.server.admission import Admission
from fairway.server.asking import Answer, Ask, Cut, NumberedPort, Sent, only_looks
from fairway.server.attending import Attending
from fairway.server.bodies import Gone
from fairway.server.callers import Callers
from fairway.server.carrying import Carrier
from fairway.server.edges import Edges
from fairway.server.exchange import Exchange
from fairway.server.guarding import Guard
from fairway.server.handing import Handing, leases_in
from fairway.server.held import Held
from fairway.server.looking import NDJSON
from fairway.server.passes import HEADER, Pass, Passes, digest
from fairway.server.queues import OpenQueue, OpenQueues
from fairway.server.rights import NEEDED, Right
from fairway.server.roots import Roots
from fairway.server.routes import Route, Router
from fairway.server.secret import Seals
from fairway.server.settings import Settings
from fairway.server.sizes import Sizes
from fairway.server.streaming import SSE
from fairway.server.tokens import Token, Tokens
from fairway.server.web.dashboard import Dashboard

_log: Final = logging.getLogger("fairway.server")
_SLOW_SECONDS: Final = 1.0
_queue_name: Final = lru_cache(KEPT_NAMES_MAX)(checks.queue_name)  # a path is short, so is a name in it
_ACCEPTED: Final = (wire.JSON, wire.MSGPACK, NDJSON, SSE)


class App:
    """One HTTP process's application, for one event loop."""

    def __init__(self, settings: Settings, queues: OpenQueues, secret: bytes) -> None:
        self.settings = settings
        self.queues = queues
        self.seals = Seals(secret)
        self.roots = Roots(settings.objects)
        self.guard = Guard(self.roots)
        self.admission = Admission()
        self.callers = Callers(settings, Tokens(settings.tokens_path))
        self.stopping = False
        self.sizes = Sizes(queues)
        self.dashboard = Dashboard(self, secret)
        self._passes: Passes | None = None  # of a node
        self._carrier: Carrier | None = None
        self._edges = Edges(self)
        self._router = Router()
        self._attending = Attending(self)
        self._extra = (answering.STRICT,) if settings.tls_cert else ()

    def join_nodes(self, key: bytes) -> None:
        """Answer for other nodes, and let them answer for this one. Called in the event loop."""
        self._passes = Passes(key)
        self._carrier = Carrier(self, Handing(self._passes, self.settings.nodes_ca))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if not path.startswith("/v1/"):
            pages = path == "/" or path.startswith("/ui/")
            await (self.dashboard if pages else self._edges)(scope, receive, send)
            return
        held = Held(self.admission)
        try:
            await self._api(scope, held)
        finally:
            held.now(0)

    async def _api(self, scope: Any, held: Held) -> None:
        started = time.perf_counter()
        route, token, answer, ask = None, "", None, None
        headers: dict[bytes, bytes] = dict(scope["headers"])
        accepts = _accepts(headers)
        extra = self._extra
        exchange: Exchange = scope["exchange"]
        try:
            route, params = self._route(scope)
            ask = self._ask(route, params, scope, headers, accepts)
            token = ask.token.id
            held.of(token)
            ask.held = held
            answer = await self._admitted(route, ask, exchange, headers)
            if answer.stream is None and only_looks(route.method, ask) and not held.size:
                held.check()  # it has done nothing and can be refused also now
        except Gone:
            metrics.requests(route.name if route else "none", "gone").inc()
            return
        except FairwayError as error:
            answer = answering.refused(self._told(error), accepts)
            if _has_body(headers) and not await bodies.discarded(exchange):
                extra = (*extra, answering.CLOSE)  # what is left of the body is not read
        except Exception as error:
            _log.exception("a request failed")
            answer = answering.refused(OurError(), accepts)
            del error
        if answer.stream is not None:
            await self._stream(exchange, answer, held, token)
        else:
            sent = await answering.send(exchange, answer, accepts, extra, held)
            if not sent and route is not None and ask is not None:
                self._give_back(route, ask, answer)
        self._note(route, answer, time.perf_counter() - started, token)
        if unread := exchange.unread:
            del ask, answer
            held.now(unread)
            await exchange.read()

    def _told(self, error: FairwayError) -> FairwayError:
        """What this process did to a queue, or could not do, and its caller knows nothing of."""
        if isinstance(error, QueueHeld):  # by another process of this server, which has too much to do
            return NoHost("the engine's process does not answer; try again")
        if not isinstance(error, Closed):
            return error
        return Busy("the server is ending") if self.stopping else QueueDeleted()

    # -- before anything is done

    def _route(self, scope: Any) -> tuple[Route, dict[str, str]]:
        found = self._router.find(scope["path"])
        if found is None:
            raise NotFound("there is no such address; /openapi.json lists them all")
        methods, params = found
        route = methods.get(scope["method"])
        if route is None:
            raise BadMethod(f"this address takes {', '.join(sorted(methods))}", allow=sorted(methods))
        return route, params

    def _ask(
        self, route: Route, params: dict[str, str], scope: Any, headers: dict[bytes, bytes], accepts: str
    ) -> Ask:
        self.callers.check_site(headers)
        handed = self._pass(scope, headers)
        token = handed.token if handed is not None else self.callers.find(headers.get(b"authorization"))
        queue = params.get("queue")
        _check_right(token, route.right, queue)
        if queue is not None:
            _queue_name(queue)
        client = scope.get("client") or ("", 0)
        worker = zlib.crc32(f"{token.id}|{client[0]}|{client[1]}".encode())
        ask = Ask(
            self, token, params, accepts, worker=worker, authorization=headers.get(b"authorization"), right=route.right
        )  # fmt: skip
        if route.stream == SSE:
            given = _digits(headers, b"last-event-id")
            ask.last_event = checks.whole("Last-Event-ID", given, 0, 2**63 - 1)
        if handed is not None:
            ask.handed, ask.worker, ask.digest = True, handed.worker, handed.body
        return ask

    def _pass(self, scope: Any, headers: dict[bytes, bytes]) -> Pass | None:
        """What another node says of the caller; None: the caller speaks for himself."""
        given = headers.get(HEADER)
        if given is None:
            return None
        if self._passes is None:
            raise Unauthorized("this server has no other nodes")
        return self._passes.read(given, scope["method"], scope["path"], scope["query_string"], headers)

    def check_caller(self, ask: Ask) -> None:
        """Unauthorized or Forbidden if the token of a call that lasted is over; the node that has its caller looks."""
        if not ask.handed:
            _check_right(self.callers.find(ask.authorization), ask.right, ask.params.get("queue"))

    def still_allowed(self, ask: Ask) -> bool:
        """Whether the token of a long answer is still good."""
        try:
            self.check_caller(ask)
        except FairwayError:
            return False
        return True

    # -- doing it

    async def _admitted(
        self, route: Route, ask: Ask, exchange: Exchange, headers: dict[bytes, bytes]
    ) -> Answer:
        scope = exchange.scope
        caller, waits = ask.token.id, route.waits
        self.admission.enter(caller, waits)
        size = 0
        try:
            ask.query = bodies.query(route, scope["query_string"])
            body = await bodies.read(exchange, headers, self.admission)
            size = len(body)
            ask.media = bodies.media_of(route, headers, not body)
            ask.body = bodies.decode(route, ask.media, body)
            if isinstance(ask.body, wire.Asked):
                ask.right = NEEDED.get(type(ask.body.command))
            if ask.handed and digest(body) != ask.digest:
                raise Unauthorized("this body is not the one that was handed on")
            if self._carrier is not None:
                ask.sent = Sent(scope["method"], scope["path"], scope["query_string"], headers, body)
            del body
            if waits and not _lasts(ask.body):
                self.admission.no_wait(caller)
                waits = False
            if ask.query is None and route.query is not None:
                ask.query = route.query()
            if route.opens and "queue" in ask.params:
                ask.queue = await self.queues.find(ask.params["queue"])
                self._number(ask, headers)
            if not waits:
                return await self.carried(route, ask)
            answer = await self._attending.attended(route, ask, exchange)
            self._check_receiver(route, ask, exchange, answer)
            return answer
        finally:
            self.admission.hold(-size)
            self.admission.leave(caller, waits)

    async def carried(self, route: Route, ask: Ask) -> Answer:
        """Carry it out, on a cluster by the node that owns the queue."""
        if not route.opens and await changing.about_bucket(ask):
            return await bucketing.HANDLERS[route.name](ask)
        if bucketing.is_bucket(ask):
            return await bucketing.carried(route.name, ask)
        if self._carrier is None:
            return await route.handler(ask)
        made = False
        if route.handler is changing.make:
            made = await self.queues.make(ask.params["queue"])
            ask.queue = await self.queues.get(ask.params["queue"])
        answer = await (route.handler(ask) if ask.queue is None else self._carrier.carry(route, ask))
        return dataclasses.replace(answer, status=201) if made and answer.status == 200 else answer

    def _number(self, ask: Ask, headers: dict[bytes, bytes]) -> None:
        """The number that the caller gave the call, if he did."""
        assert ask.queue is not None
        ask.port = ask.queue.port
        key = headers.get(b"idempotency-key")
        if key is not None:
            ask.key = key.decode("latin-1")
        name = headers.get(b"fairway-client")
        if name is None:
            return
        client = self.seals.id(ask.queue.name, ask.token.id, name.decode("latin-1"))
        number = checks.whole("Fairway-Number", _digits(headers, b"fairway-number"), 1, 2**62)
        received = checks.whole("Fairway-Received", _digits(headers, b"fairway-received"), 0, number - 1)
        ask.number = (client, number, received)
        ask.port = NumberedPort(ask.port, client, number, received)

    def _check_receiver(self, route: Route, ask: Ask, exchange: Exchange, answer: Answer) -> None:
        """Whoever is gone, or may not have it any more, leaves no lease."""
        try:
            if exchange.gone:
                raise Gone
            self.check_caller(ask)
        except (Gone, FairwayError):
            self._give_back(route, ask, answer)
            raise

    def _give_back(self, route: Route, ask: Ask, answer: Answer) -> None:
        if answer.unsent is not None:
            answer.unsent()
        if answer.handed and self._carrier is not None:
            self._carrier.give_back(ask, leases_in(route, ask, answer))
        if isinstance(ask.queue, OpenQueue) and answer.reserved is not None and answer.reserved.spans:
            ask.queue.port.unreceived(answer.reserved)

    async def _stream(self, exchange: Exchange, answer: Answer, held: Held, token: str) -> None:
        try:
            self.admission.begin_stream(token)
        except FairwayError as error:
            await answering.send(exchange, answering.refused(error), wire.JSON, self._extra, held)
            return
        try:
            await answering.stream(exchange, answer, self._extra)
        except Cut:
            exchange.cut()
        finally:
            self.admission.end_stream(token)

    # -- the end

    def stop(self) -> None:
        """Let everything that waits end now."""
        self.stopping = True
        self._attending.stop()

    async def close(self) -> None:
        await self.dashboard.close()
        if self._carrier is not None:
            await self._carrier.close()
        await self.queues.close()

    def _note(self, route: Route | None, answer: Answer, seconds: float, token: str) -> None:
        name, status = route.name if route is not None else "none", answer.status
        lasts = route is None or route.waits or answer.stream is not None
        metrics.requests(name, str(status)).inc()
        if not lasts:
            metrics.seconds(name).observe(seconds)
        level = logging.INFO if status >= 500 else logging.DEBUG
        if seconds > _SLOW_SECONDS and (route is None or not lasts):
            level = logging.INFO
        if _log.isEnabledFor(level):
            told = {"route": name, "status": status, "ms": round(seconds * 1000, 1), "token": token}
            _log.log(level, "request", extra={"told": told})


def _check_right(token: Token, right: Right | None, queue: str | None) -> None:
    if not token.allows(right, queue):
        # The same whether there is such a queue or not.
        raise Forbidden("this token does not have the right for this, or does not reach this queue")


def _accepts(headers: dict[bytes, bytes]) -> str:
    given = bodies.media_type(headers.get(b"accept", b"").partition(b",")[0])
    return given if given in _ACCEPTED else wire.JSON


def _has_body(headers: dict[bytes, bytes]) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _digits(headers: dict[bytes, bytes], name: bytes) -> int:
    text = headers.get(name, b"0")
    if not text.isdigit() or len(text) > 19:
        raise BadArgument(f"{name.decode()} must be a whole number")
    return int(text)


def _lasts(body: Any) -> bool:
    """Whether a request may wait, or brings leases that go back if its caller is gone; no other needs to be watched."""
    return not isinstance(body, wire.Asked) or isinstance(body.command, Reserve | Wait)
