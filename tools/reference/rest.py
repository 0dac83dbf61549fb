"""The page of REST, from the OpenAPI document that a server gives.

Guards: a route that a server has is on the page, with its right, what it takes and what it gives.
"""

from __future__ import annotations

import inspect
from typing import Any

from fairway.client import wire
from fairway.engine.commands import ConsumerView, TenantView
from fairway.face.results import Result
from fairway.model.event import Event
from fairway.model.lease import Lease
from fairway.model.submission import DeadChunk, Submission
from fairway.server import queue_views, views
from fairway.server.openapi import document
from tools.reference import beside
from tools.reference.writing import code, opening, table

WORDS = """\
Every route, from the document that a server gives at `/openapi.json`. [The server](../server.md#rest) tells what holds
for all of them: media types, errors, numbered calls, long polls. A right is one of a
[token's](../security.md#tokens). Bytes are base64, ids are texts. Routes stand under `/v1/queues/{queue}`; those that
begin with a slash are whole. `/healthz`, `/readyz`, `/metrics` and `/openapi.json` stand beside them.
"""
# Whose words a view has where it has none of its own: those of the value that Python gives.
SAME: dict[str, tuple[type, ...]] = {
    "NewSubmission": (Submission,),
    "NewMessage": (Submission,),
    "QueueSettings": (queue_views.BucketConfig, queue_views.QueueConfig),
    "SubmissionView": (Submission,),
    "LeaseView": (Lease,),
    "ResultView": (Result,),
    "DeadView": (DeadChunk,),
    "EventView": (Event,),
    "TenantRow": (TenantView,),
    "ConsumerRow": (ConsumerView,),
}


def page() -> str:
    told = document()
    rows = [
        _row(method.upper(), path, one)
        for path, methods in told["paths"].items()
        for method, one in methods.items()
    ]
    parts = [
        opening("REST", "the OpenAPI document", WORDS),
        table(("route", "what it does", "right", "takes", "gives"), rows),
        "\n## What is sent and given\n",
        *(_schema(name, schema) for name, schema in sorted(told["components"]["schemas"].items())),
    ]
    return "\n".join(parts)


def _row(method: str, path: str, one: dict[str, Any]) -> tuple[str, ...]:
    query = [f"{code(p['name'])} ({kind(p['schema'])})" for p in one["parameters"] if p["in"] == "query"]
    takes = [f"query {', '.join(query)}"] if query else []
    if "requestBody" in one:
        takes.append(_contents(one["requestBody"]["content"]))
    gives = [
        f"{status} {_contents(answer['content']) if answer.get('content') else ''}".strip()
        for status, answer in one["responses"].items()
        if "$ref" not in answer
    ]
    route = f"`{method} {path.removeprefix('/v1/queues/{queue}/')}`"
    return route, one["summary"], one["x-fairway-right"], "; ".join(takes), ", ".join(gives)


def _contents(content: dict[str, Any]) -> str:
    kinds = [
        kind(one["schema"]) if one.get("schema") and media == "application/json" else code(media)
        for media, one in content.items()
    ]
    return " or ".join(dict.fromkeys(kinds))


def kind(schema: dict[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        known = dict.fromkeys(kind(one) for one in schema["anyOf"] if one != {"type": "null"})
        return " or ".join(known)
    if "enum" in schema:
        return " or ".join(code(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind(schema['items'])}" if schema.get("items") else "list"
    if schema.get("contentEncoding") == "base64":
        return "base64"
    bounds = [str(schema[bound]) for bound in ("minimum", "maximum") if bound in schema]
    plain = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    word = plain.get(str(schema.get("type")), str(schema.get("type", "anything")))
    return f"{word}, {' to '.join(bounds)}" if len(bounds) == 2 else word


def _schema(name: str, schema: dict[str, Any]) -> str:
    fields = schema.get("properties")
    words = inspect.cleandoc(schema.get("description", ""))
    head = f"\n### {name}\n\n{words}\n"
    if not fields:
        return f"{head}\n{kind(schema)}\n"
    needed = set(schema.get("required", ()))
    told = meanings(name)
    rows = [
        (code(field), kind(one), "needed" if field in needed else _default(one), told.get(field, ""))
        for field, one in fields.items()
    ]
    return head + "\n" + table(("field", "type", "if left out", "meaning"), rows)


def meanings(name: str) -> dict[str, str]:
    """What the fields of a body mean."""
    (own,) = {getattr(module, name) for module in (views, queue_views, wire) if hasattr(module, name)}
    found: dict[str, str] = {}
    for same in (*SAME.get(name, ()), own):
        found |= beside.meanings(same)
    return found


def _default(one: dict[str, Any]) -> str:
    found = one.get("default")
    if found is None:
        return ""
    return code('""' if found == "" else str(found).lower() if isinstance(found, bool) else found)
