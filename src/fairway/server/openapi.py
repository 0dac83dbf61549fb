"""The OpenAPI document, made from the table of routes and the types of their bodies.

Guards: what it says is what the server does, for both are read from the same table.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import msgspec

from fairway import __version__, limits
from fairway.client import wire
from fairway.errors import all_errors
from fairway.server import bucketing
from fairway.server.routes import ROUTES, Route
from fairway.server.streaming import SSE

_REF: Final = "#/components/schemas/{name}"
_RAW: Final = (wire.Asked, wire.Answered)
# What any route may answer: mistakes that are seen before anything is done, that there is too much to do, our failures.
_ANY: Final = (400, 401, 403, 408, 413, 415, 429, 431, 500, 503)
_OF_A_QUEUE: Final = (404, 410, 421)  # there is none, there is none any more, another node owns it
_OF_A_CHANGE: Final = (409, 507)  # the state does not allow it, there is no room for it
_KIND: Final = 405  # there is nothing of this sort in a queue of that kind
_PAYLOAD: Final = 502  # an object that holds a payload is not there
_KINDS: Final = ("make_queue", "redrive_letters", "purge_letters")  # which only queues of one kind take
_PAYLOADS: Final = ("reserve", "show_payload", "list_results", "call")
_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "queue": {
        "type": "string",
        "minLength": 1,
        "maxLength": limits.QUEUE_NAME_BYTES_MAX,
        "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
    },
    "id": {"type": "string", "pattern": "^[0-9]{1,19}$"},
    "index": {"type": "string", "pattern": "^[0-9]{1,10}$"},
}
_NUMBERED: Final = [
    {
        "name": name,
        "in": "header",
        "required": False,
        "description": told,
        "schema": schema,
    }
    for name, told, schema in (
        ("Fairway-Client", "a registered client; the call then has one effect however often it is sent",
         {"type": "string", "pattern": r"^[0-9a-f]{1,16}\.[0-9a-f]{32}$"}),
        ("Fairway-Number", "the number of the call; each is used once",
         {"type": "integer", "minimum": 1, "maximum": 2**62}),
        ("Fairway-Received", "every call up to this number was answered",
         {"type": "integer", "minimum": 0, "maximum": 2**62}),
    )
]  # fmt: skip


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    types = {
        type_
        for route in ROUTES
        for type_ in (route.takes, route.gives, bucketing.GIVES.get(route.name))
        if _listed(type_)
    }
    ordered = sorted(types | {wire.Refusal}, key=str)
    _, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairway",
            "version": __version__,
            "description": "A fair, durable work queue for multi-tenant data pipelines.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": _refusals(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


@cache
def body() -> bytes:
    return msgspec.json.format(msgspec.json.encode(document()), indent=2)


def _listed(type_: Any) -> bool:
    return type_ is not None and type_ is not bytes and type_ not in _RAW


def _schema(type_: Any) -> dict[str, Any]:
    if type_ in _RAW or type_ is bytes:
        return {}
    (found,), _ = msgspec.json.schema_components([type_], ref_template=_REF)
    return found


def _operation(route: Route) -> dict[str, Any]:
    handler = route.handler.__doc__ or route.name
    told: dict[str, Any] = {
        "operationId": route.name,
        "summary": handler.strip().split("\n")[0],
        "x-fairway-right": route.right or "any",
        "parameters": [*_path_parameters(route.path), *_query_parameters(route.query)],
        "responses": _responses(route),
    }
    if route.method != "GET" and route.name not in ("make_queue", "delete_queue", "register_client", "call"):
        told["parameters"] += _NUMBERED
    if route.name in ("submit", "put"):
        key = {"type": "string", "minLength": 1, "maxLength": limits.KEY_BYTES_MAX, "pattern": "^[!-~]+$"}
        told["parameters"].append(
            {"name": "Idempotency-Key", "in": "header", "required": False, "schema": key}
        )
    if route.stream == SSE:
        last = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
        about = "of a stream: the last id that came; it goes on after it"
        told["parameters"].append(
            {"name": "Last-Event-ID", "in": "header", "required": False, "description": about, "schema": last}
        )
    if route.takes is not None:
        told["requestBody"] = {"required": not route.optional, "content": _content(route)}
    return told


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(query: Any) -> list[dict[str, Any]]:
    if query is None:
        return []
    schema = msgspec.json.schema_components([query], ref_template=_REF)[1][query.__name__]
    found = []
    for name, one in schema["properties"].items():
        kinds = [kind for kind in one.get("anyOf", []) if kind != {"type": "null"}]
        plain = {**one, **kinds[0]} if len(kinds) == 1 else dict(one)
        for extra in ("anyOf", "default"):
            plain.pop(extra, None)
        found.append({"name": name, "in": "query", "required": False, "schema": plain})
    return found


def _content(route: Route) -> dict[str, Any]:
    if route.takes is wire.Asked:
        return {wire.MSGPACK: {"schema": {"type": "string", "format": "binary"}}}
    content = {wire.JSON: {"schema": _schema(route.takes)}}
    if route.bytes:
        content["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
    return content


def _responses(route: Route) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "done"}
    if route.gives is wire.Answered:
        good["content"] = {wire.MSGPACK: {}}
    elif route.gives is bytes:
        good["content"] = {"application/octet-stream": {}}
    elif route.gives is not None:
        schema = _schema(route.gives)
        if route.name in bucketing.GIVES:
            schema = {"anyOf": [schema, _schema(bucketing.GIVES.get(route.name))]}
        good["content"] = {wire.JSON: {"schema": schema}}
        if route.stream:
            good["content"][route.stream] = {}
    found = {str(status): good for status in (route.status, *route.also)}
    for status in errors_of(route):
        found.setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    return found


def errors_of(route: Route) -> list[int]:
    """The statuses of the errors that a route may answer."""
    found = {*_ANY}
    if "{queue}" in route.path:
        found |= {*_OF_A_QUEUE}
        if route.name not in bucketing.HANDLERS or route.name in _KINDS:
            found.add(_KIND)
    if route.method != "GET":
        found |= {*_OF_A_CHANGE}
    if route.name in _PAYLOADS:
        found.add(_PAYLOAD)
    return sorted(found)


def _refusals() -> dict[str, Any]:
    """The answers that refuse, with the codes of errors that have their status."""
    codes: dict[int, list[str]] = {}
    for code, kind in sorted(all_errors().items()):
        codes.setdefault(kind.status, []).append(code)
    content = {wire.JSON: {"schema": _schema(wire.Refusal)}, wire.MSGPACK: {}}
    return {
        str(status): {"description": ", ".join(codes.get(status, ["an error"])), "content": content}
        for status in sorted({status for route in ROUTES for status in errors_of(route)})
    }
