"""`fairway token`: make, list and revoke the tokens of a server."""

from __future__ import annotations

import os
import time
from json import dumps

from cyclopts import App

from fairway.cli import saying
from fairway.cli.commands import examples
from fairway.cli.words import Seconds

app = App(name="token", help="Make, list and revoke the tokens of a server.")


def _tokens(store: str | None, tokens: str | None):
    from fairway.server.settings import Settings
    from fairway.server.tokens import Tokens

    store = store or os.environ.get("FAIRWAY_STORE") or "work.db"
    return Tokens(Settings(store=store, tokens=tokens or os.environ.get("FAIRWAY_TOKENS", "")).tokens_path)


@app.command(
    **examples(
        "token create shop --queue 'orders-*' --right submit,read --expires 30d",
        "token create acme --store work.db --right submit --tenant acme",
    )
)
def create(
    name: str,
    /,
    *,
    queue: list[str] | None = None,
    right: list[str] | None = None,
    expires: Seconds | None = None,
    tenant: str | None = None,
    store: str | None = None,
    tokens: str | None = None,
    json: bool = False,
) -> None:
    """Make a token and show it, once.

    Parameters
    ----------
    name
        What it is for.
    queue
        A queue it reaches, or a pattern such as 'orders-*'; may be given several times; all queues by default.
    right
        submit, work, read or operate; may be given several times; read by default.
    expires
        How long it is valid, such as 12h or 30d; for ever by default.
    tenant
        Whoever submits with it is this tenant.
    store
        The server's file; work.db by default.
    tokens
        The file of tokens; beside the store by default.
    json
        Print one JSON object.
    """
    rights = [one for text in right or ["read"] for one in text.split(",")]
    kept = _tokens(store, tokens)
    made, secret = kept.create(
        name,
        queues=[one for text in queue or ["*"] for one in text.split(",")],
        rights=rights,
        seconds=expires,
        tenant=tenant,
    )
    if json:
        print(dumps({"id": made.id, "token": secret, "rights": made.rights, "queues": made.queues}))
        return
    print(secret)
    # A token of another file opens nothing, so the file is named.
    saying.console(stderr=True).print(
        f"Token {made.id} is shown once; keep it where secrets are kept. It is in {kept.path}.",
        markup=False,
        soft_wrap=True,
    )


@app.command(name="list", **examples("token list --store work.db"))
def list_(*, store: str | None = None, tokens: str | None = None, json: bool = False) -> None:
    """Show what tokens there are; their secrets cannot be shown.

    Parameters
    ----------
    store
        The server's file; work.db by default.
    tokens
        The file of tokens; beside the store by default.
    json
        Print a JSON array.
    """
    kept = _tokens(store, tokens)
    found = kept.list()
    if json:
        rows = [
            {"id": t.id, "name": t.name, "queues": t.queues, "rights": t.rights, "expires": t.expires,
             "tenant": t.tenant, "created": t.created}
            for t in found
        ]  # fmt: skip
        print(dumps(rows))
        return
    if not found:  # perhaps it is another server's that was meant
        saying.console(stderr=True).print(f"There is no token in {kept.path}.", markup=False, soft_wrap=True)
        return
    rows = []
    for t in found:
        ends = time.strftime("%Y-%m-%d %H:%M", time.gmtime(t.expires)) + " UTC" if t.expires else "never"
        over = " (over)" if t.expires and t.expires <= time.time() else ""
        rows.append((t.id, t.name, " ".join(t.queues), " ".join(t.rights), ends + over, t.tenant or ""))
    saying.table(("id", "name", "queues", "rights", "expires", "tenant"), rows)


@app.command(**examples("token revoke 3f9c0a12b4d5 --store work.db"))
def revoke(id: str, /, *, store: str | None = None, tokens: str | None = None, json: bool = False) -> None:
    """Make a token worthless, at once.

    Parameters
    ----------
    id
        As `fairway token list` shows it.
    store
        The server's file; work.db by default.
    tokens
        The file of tokens; beside the store by default.
    json
        Print one JSON object.
    """
    gone = _tokens(store, tokens).revoke(id)
    if json:
        print(dumps({"id": gone.id, "name": gone.name, "revoked": True}))
        return
    print(f"Token {gone.id} ({gone.name}) is revoked.")
