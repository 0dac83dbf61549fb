"""The dashboard: from a browser's request to a page.

Guards: nothing is read or told before the visitor is known and has the right; a form without its CSRF token changes
nothing; every page has the policy that forbids foreign and inline scripts.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote

from fairway import limits
from fairway.errors import (
    BadArgument,
    BadMedia,
    BadMethod,
    FairwayError,
    Forbidden,
    NotFound,
    OurError,
    QueueDeleted,
    Unauthorized,
)
from fairway.face import checks
from fairway.server import answering, bodies, changing, metrics
from fairway.server.asking import Ask
from fairway.server.bodies import Gone
from fairway.server.exchange import Exchange
from fairway.server.looking import DeadRows
from fairway.server.routes import Router
from fairway.server.streaming import SSE
from fairway.server.tokens import Token
from fairway.server.web import buckets, rendering, showing, steering, streams
from fairway.server.web.cards import Cards
from fairway.server.web.sessions import Session, Sessions
from fairway.server.web.steering import act
from fairway.server.web.visits import Page, Shown, Visit
from fairway.server.web.watching import Watches

if TYPE_CHECKING:
    from fairway.server.app import App

_log: Final = logging.getLogger("fairway.server")
_FORM: Final = "application/x-www-form-urlencoded"
_FIELDS_MAX: Final = 16
_NOBODY: Final = Token("", "", "", (), (), 0.0)
_Q: Final = "/ui/queues/{queue}"
_S: Final = _Q + "/submissions/{id}"
_OWN: Final = (b"cache-control", b"content-security-policy", b"referrer-policy")
_HEADERS: Final = (
    *(pair for pair in answering.SECURITY if pair[0] not in _OWN),
    (b"content-security-policy", rendering.POLICY),
    # With no-referrer a browser calls the origin of our own forms null.
    (b"referrer-policy", b"same-origin"),
)
_Headers = dict[bytes, bytes]


async def _logout(visit: Visit) -> Shown:
    return Shown(to="/ui/login")


PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/", "queues", showing.queues),
    Page("GET", "/ui/live", "queues_live", streams.queues),
    Page("GET", "/ui/login", "login_page", steering.login_page, anybody=True),
    Page("POST", "/ui/login", "login", steering.login, anybody=True),
    Page("POST", "/ui/logout", "logout", _logout, anybody=True),
    Page("GET", _Q, "queue", showing.queue, "read"),
    Page("GET", _Q + "/live", "queue_live", streams.queue, "read", streams.Wanted),
    Page("GET", _Q + "/tenants", "tenants", showing.tenants, "read", showing.Finding),
    Page("GET", _Q + "/submissions", "submissions", showing.submissions, "read", showing.Listing),
    Page("GET", _S, "submission", showing.submission, "read"),
    Page("GET", _Q + "/dead", "dead", showing.dead, "read", DeadRows),
    Page("GET", _Q + "/consumers", "consumers", showing.consumers, "read"),
    Page("GET", _Q + "/explain", "explain", showing.explain, "read", showing.Explaining),
    Page("POST", _Q + "/pause", "pause", act(changing.pause_queue, "{queue} is paused."), "operate"),
    Page("POST", _Q + "/resume", "resume", act(changing.resume_queue, "{queue} goes on."), "operate"),
    Page("POST", _Q + "/tenants", "tenant", steering.tenant, "operate"),
    Page("POST", _S + "/cancel", "cancel", act(changing.cancel, "Submission {id} is cancelled."), "operate"),
    Page("POST", _S + "/pause", "hold", act(changing.pause, "Submission {id} is paused."), "operate"),
    Page("POST", _S + "/resume", "go_on", act(changing.resume, "Submission {id} goes on."), "operate"),
    Page("POST", _S + "/redrive", "redrive", act(changing.redrive, "Submission {id} is tried again."), "operate"),
)  # fmt: skip


_B: Final = "/ui/buckets/{queue}"
BUCKET_PAGES: Final[tuple[Page, ...]] = (
    Page("GET", _B, "bucket", buckets.bucket, "read", DeadRows, bucket=True),
    Page("POST", _B + "/redrive", "redrive_letters", buckets.redrive, "operate", bucket=True),
    Page("POST", _B + "/purge", "purge_letters", buckets.purge, "operate", bucket=True),
)


class Dashboard:
    """The pages of one process, for one event loop."""

    def __init__(self, app: App, secret: bytes) -> None:
        self._app = app
        self._strict = bool(app.settings.tls_cert)
        self.sessions = Sessions(secret, app.callers, self._strict)
        self.watches = Watches(app.queues.get)
        self.cards = Cards(app.queues)
        self._router = Router((*PAGES, *BUCKET_PAGES))  # pyright: ignore[reportArgumentType]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers: _Headers = dict(scope["headers"])
        status = 200
        try:
            if scope["path"].startswith("/ui/files/"):
                await self._file(scope, send)
                return
            session, shown = await self._visited(scope, headers)
            status = shown.status
            if shown.stream is not None:
                await self._stream(send, receive, shown, session.token.id if session.token else "")
            else:
                await self._page(send, headers, session, shown)
        except Gone:
            status = 499
        except FairwayError as error:
            status = error.status
            await self._refused(send, headers, error)
        except Exception:
            _log.exception("a page failed")
            status = 500
            await self._refused(send, headers, OurError())
        finally:
            metrics.requests("dashboard", "gone" if status == 499 else str(status)).inc()

    async def close(self) -> None:
        await self.watches.close()

    # -- before a handler is called

    async def _visited(self, scope: Any, headers: _Headers) -> tuple[Session, Shown]:
        self._app.callers.check_site(headers)
        session = self.sessions.find(headers)
        page, params = self._find(scope)
        token = session.token or _NOBODY
        if session.token is None and not page.anybody:
            raise Unauthorized("log in to see this page")
        queue = params.get("queue")
        if not page.anybody and not token.allows(page.right, queue):
            # The same whether there is such a queue or not.
            raise Forbidden("your token does not have the right for this, or does not reach this queue")
        if queue is not None:
            checks.queue_name(queue)
        ask = Ask(self._app, token, params)
        visit = Visit(ask, session, headers)
        if page.method == "POST":
            visit.form = await self._form(scope["exchange"], headers)
            self.sessions.check(session, _text(headers, b"x-fairway-csrf") or visit.form.get("csrf", ""))
        else:
            ask.query = bodies.query(page, scope["query_string"])  # pyright: ignore[reportArgumentType]
        return session, await self._admitted(page, visit)

    async def _admitted(self, page: Page, visit: Visit) -> Shown:
        ask = visit.ask
        self._app.admission.enter(ask.token.id, False)
        try:
            if page.bucket:
                return await self._bucket(page, visit)
            if "queue" in ask.params:
                name = ask.params["queue"]
                try:
                    ask.queue = await self._app.queues.get(name)
                except NotFound:
                    if page.method == "GET" and name in await self._app.queues.bucket_names():
                        return Shown(to=f"/ui/buckets/{quote(name)}")
                    raise
                ask.port = ask.queue.port
                if (
                    ask.queue.elsewhere and page.method == "GET"
                ):  # its owner draws it, and has a login of its own
                    return Shown(to=f"{ask.queue.elsewhere}/ui/queues/{quote(ask.queue.name)}")
            return await page.handler(visit)
        finally:
            ask.held.now(0)  # what a page shows is drawn by now, and is short
            self._app.admission.leave(ask.token.id, False)

    async def _bucket(self, page: Page, visit: Visit) -> Shown:
        """Any node draws it, since nobody owns it."""
        name = visit.ask.params["queue"]
        found = visit.ask.queue = await self._app.queues.bucket(name, create=False)
        try:
            return await page.handler(visit)
        except QueueDeleted:
            self._app.queues.forget_bucket(found)
            raise

    def _find(self, scope: Any) -> tuple[Page, dict[str, str]]:
        found = self._router.find(scope["path"])
        if found is None:
            raise NotFound("there is no such page")
        methods, params = found
        page: Any = methods.get(scope["method"])
        if page is None:
            raise BadMethod(f"this address takes {', '.join(sorted(methods))}", allow=sorted(methods))
        return page, params

    async def _form(self, exchange: Exchange, headers: _Headers) -> dict[str, str]:
        body = await bodies.read(exchange, headers, self._app.admission, limits.FORM_BYTES_MAX)
        self._app.admission.hold(-len(body))
        if body and _text(headers, b"content-type").split(";")[0].strip().lower() != _FORM:
            raise BadMedia(f"a form is {_FORM}")
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict",
                max_num_fields=_FIELDS_MAX,
            )  # fmt: skip
        except ValueError:
            raise BadArgument("the form cannot be read") from None
        return dict(pairs)

    # -- answers

    async def _page(self, send: Any, headers: _Headers, session: Session, shown: Shown) -> None:
        more: list[tuple[bytes, bytes]] = []
        if shown.to == "/ui/login":
            more.append(self.sessions.header(None))
        elif shown.session is not None or session.fresh:
            more.append(self.sessions.header(shown.session or session))
        if shown.to:
            await self._send(send, 303, b"", "", [*more, (b"location", shown.to.encode())])
        elif shown.done:
            news = json.dumps({"fairway-done": {"text": shown.done}}).encode()
            await self._send(send, 204, b"", "", [*more, (b"hx-trigger", news)])
        else:
            part = f"_{shown.template}.html" if b"hx-request" in headers else ""
            name = part if part in rendering.parts() else f"{shown.template}.html"
            body = rendering.render(name, {**self._frame(session), **shown.values})
            await self._send(send, shown.status, body, rendering.HTML, more)

    def _frame(self, session: Session) -> dict[str, Any]:
        """What the frame of every page needs."""
        token = session.token
        return {
            "csrf": session.csrf,
            "me": token.name if token and token.id else "",
            "signed": token is not None,
        }

    async def _refused(self, send: Any, headers: _Headers, error: FairwayError) -> None:
        refused = answering.refused(error)  # which logs what is ours, and says how it goes on
        more = [pair for pair in refused.headers if pair[0] != b"www-authenticate"]
        told = str(type(error)() if error.status == 500 else error)  # what went wrong inside is for the log
        if isinstance(error, Unauthorized):
            if b"hx-request" in headers or _text(headers, b"accept") == SSE:
                await self._send(send, 401, b"", "", [(b"hx-redirect", b"/ui/login")])
            else:
                await self._send(send, 303, b"", "", [(b"location", b"/ui/login")])
        elif b"hx-request" in headers:
            await self._send(
                send, error.status, told.encode(errors="replace"), "text/plain; charset=utf-8", more
            )
        else:
            values = {"message": told, "status": error.status, "csrf": "", "me": "", "signed": False}
            body = rendering.render("error.html", values)
            await self._send(send, error.status, body, rendering.HTML, more)

    async def _stream(self, send: Any, receive: Any, shown: Shown, token: str) -> None:
        assert shown.stream is not None
        self._app.admission.begin_stream(token)
        try:
            head = [
                *self._secured(b"no-store"),
                (b"content-type", SSE.encode()),
                (b"x-accel-buffering", b"no"),
            ]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            async for part in answering.until_gone(shown.stream, receive):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._app.admission.end_stream(token)

    async def _file(self, scope: Any, send: Any) -> None:
        version, _, name = scope["path"].removeprefix("/ui/files/").partition("/")
        found = rendering.files().get(name)
        if found is None or version != rendering.version() or scope["method"] != "GET":
            raise NotFound("there is no such file")
        await self._send(send, 200, found[0], found[1], [], b"public, max-age=31536000, immutable")

    async def _send(
        self, send: Any, status: int, body: bytes, media: str, more: list[tuple[bytes, bytes]],
        cache: bytes = b"no-store",
    ) -> None:  # fmt: skip
        headers = [*self._secured(cache), *more]
        if status != 204:
            headers.append((b"content-length", str(len(body)).encode()))
        if media:
            headers.append((b"content-type", media.encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _secured(self, cache: bytes) -> list[tuple[bytes, bytes]]:
        headers = [*_HEADERS, (b"cache-control", cache)]
        return [*headers, answering.STRICT] if self._strict else headers


def _text(headers: _Headers, name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")
