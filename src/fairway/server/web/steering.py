"""The buttons: pause, weigh, cancel, redrive; each is the REST call of the same name.

Guards: nothing here decides anything: rights and the CSRF token were checked before, arguments are checked by the face.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fairway.errors import BadArgument, Unauthorized
from fairway.server import changing
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.web.visits import Handler, Shown, Visit


def act(call: Callable[[Ask], Awaitable[Answer]], told: str) -> Handler:
    """A button that makes a REST call of a queue or submission."""

    async def pressed(visit: Visit) -> Shown:
        await call(visit.ask)
        return _done(visit, told.format(**visit.ask.params))

    return pressed


async def tenant(visit: Visit) -> Shown:
    """Set a tenant's weight, or pause or resume it."""
    form = visit.form
    if "tenant" not in form or ("weight" in form) == ("paused" in form):
        raise BadArgument("give a tenant and its weight or its pause")
    name = form["tenant"]
    shown = f"“{name}”" if name else "the unnamed tenant"
    if "weight" in form:
        weight = _number(form["weight"])
        visit.ask.body = v.TenantChange(tenant=name, weight=weight)
        told = f"The weight of {shown} is {weight:g} now."
    else:
        paused = form["paused"] == "yes"
        visit.ask.body = v.TenantChange(tenant=name, paused=paused)
        told = f"{shown[0].upper()}{shown[1:]} {'is paused' if paused else 'goes on'}."
    await changing.tenant(visit.ask)
    return _done(visit, told)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadArgument(f"weight must be a number, not {text[:40]!r}", argument="weight") from None


def _done(visit: Visit, told: str) -> Shown:
    visit.ask.app.dashboard.watches.poke(visit.ask.params["queue"])
    return Shown(done=told)


async def login_page(visit: Visit) -> Shown:
    """Where a token is asked for."""
    if visit.session.token is not None:
        return Shown(to="/")
    return Shown("login", {"error": ""})


async def login(visit: Visit) -> Shown:
    """Log in with a token."""
    sessions = visit.ask.app.dashboard.sessions
    try:
        return Shown(to="/", session=sessions.begin(visit.form.get("token", "")))
    except Unauthorized:
        return Shown("login", {"error": "This token is not valid, has expired or was revoked."}, status=401)
