"""The OpenAPI document is true: whatever is sent, no answer is a failure of ours or one that is not in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fairway.engine.commands import Complete, Fail
from fairway.server import openapi
from fairway.server.bucketing import HANDLERS
from fairway.server.rights import NEEDED, REFUSED
from fairway.server.routes import ROUTES, Route
from tests.proving import number
from tests.server.live import Live, live

CASES = 100
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
_MADE = ("other", "third", "missing")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("openapi"), queues=["default", "other"]) as found:
        yield found


@pytest.fixture(scope="module")
def there(server: Live) -> dict[str, str]:
    """A submission and a receipt that exist, so that cases get further than "not found"."""
    with server.http() as http:
        id = http.post("/v1/queues/default/submissions", json={"chunks": 10**6}).json()["id"]
        lease = http.post("/v1/queues/default/reserve", json={"lease_seconds": 3600}).json()["leases"][0]
        http.put("/v1/queues/events", json={"kind": "bucket"})
        http.post("/v1/queues/events/messages", json=[{"payload": ""}] * 3)
        held = http.post("/v1/queues/events/reserve", json={"lease_seconds": 3600}).json()["leases"][0]
    return {"id": id, "receipt": lease["receipt"], "events": held["receipt"]}


SCHEMA = schemathesis.openapi.from_dict(openapi.document())


def aimed(case: schemathesis.Case, there: dict[str, str]) -> None:
    """Bend a case, by its own bytes, towards what exists, and never let it wait long or make queues without end."""
    path = case.path_parameters
    dice = sum(map(ord, repr(path) + repr(case.body)[:200]))
    if "queue" in path and (case.method in ("PUT", "DELETE") or dice % 5):
        path["queue"] = _MADE[dice % 8 % 3] if case.method in ("PUT", "DELETE") else "default"
    mine = there["receipt"]
    if (
        path.get("queue") == "default"
        and case.operation.definition.raw["operationId"] in HANDLERS
        and dice % 2
    ):
        path["queue"], mine = "events", there["events"]  # a bucket queue has this too
    if "id" in path and dice % 3:
        path["id"] = there["id"]
    body = case.body
    if isinstance(body, dict):
        if "wait_seconds" in body:
            body["wait_seconds"] = 0.01
        if isinstance(body.get("receipts"), list) and dice % 2:
            body["receipts"] = [mine, *body["receipts"][:3]]
        if isinstance(body.get("chunks"), int):
            body["chunks"] = min(body["chunks"], 3)
    if isinstance(case.query, dict) and "wait_seconds" in case.query:
        case.query["wait_seconds"] = 0.01


def cases(route: Route) -> st.SearchStrategy[schemathesis.Case]:
    """What fits the document, and what does not."""
    operation = SCHEMA[route.path][route.method]
    good = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if route.name == "list_queues":
        return good  # there is nothing in it that could be wrong
    return st.one_of(good, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))


def send_cases(route: Route, server: Live, there: dict[str, str], many: int) -> int:
    """How many were sent."""
    made = 0

    @given(case=cases(route))
    @settings(
        max_examples=many,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: schemathesis.Case) -> None:
        nonlocal made
        aimed(case, there)
        # No HTTP parser reads so long a line; tests/server/test_attacks.py asks what comes then.
        assume(len(repr(case.query)) <= 8000)
        made += 1
        answer = case.call(base_url=server.url, session=session, timeout=30)
        case.validate_response(answer, checks=CHECKS)

    with requests.Session() as session:
        session.trust_env = False
        send()
    assert made >= many or route.name == "list_queues"
    return made


# What clients call has a test of its own below: its body is no JSON.
SENT = [route for route in ROUTES if route.name != "call"]


@pytest.mark.parametrize("route", SENT, ids=lambda route: route.name)
def test_no_case_fails_or_surprises(route: Route, server: Live, there: dict[str, str]) -> None:
    send_cases(route, server, there, CASES)


@pytest.mark.proof
def test_no_case_of_a_thousand_fails_or_surprises(
    server: Live, there: dict[str, str], record_proof: Callable[..., None]
) -> None:
    sent = sum(send_cases(route, server, there, number("CASES", 1000)) for route in SENT)
    record_proof(
        "requests made from the OpenAPI document", operations=sent, lost=0, note=f"{len(SENT)} routes"
    )


def test_every_route_is_in_the_document_with_its_right() -> None:
    document = openapi.document()
    listed = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert listed.keys() == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        assert listed[route.method, route.path]["x-fairway-right"] == (route.right or "any")
        assert listed[route.method, route.path]["summary"].endswith(".")
    names = [route.name for route in ROUTES]
    assert len(names) == len(set(names))


def test_a_route_lists_the_errors_that_it_can_answer_and_no_others() -> None:
    listed = {
        route.name: {
            int(status)
            for status in openapi.document()["paths"][route.path][route.method.lower()]["responses"]
        }
        for route in ROUTES
    }
    known = {int(status) for status in openapi.document()["components"]["responses"]}
    assert set().union(*listed.values()) - {200, 201, 204} == known
    assert all({400, 401, 403, 408, 429, 431, 503} <= statuses for statuses in listed.values())
    assert not listed["list_queues"] & {404, 405, 409, 410, 421, 502, 507}, (
        "it is about no queue, and changes nothing"
    )
    assert not listed["show_stats"] & {405, 409, 502, 507}
    assert 409 in listed["cancel"] and 507 in listed["submit"] and 502 in listed["show_payload"]
    assert 405 in listed["list_tenants"], "a bucket queue has no tenants"


def test_the_document_says_that_a_strategy_is_a_text_or_lists() -> None:
    schemas = openapi.document()["components"]["schemas"]
    for name in ("Reserving", "QueueSettings"):
        forms = schemas[name]["properties"]["strategy"]["anyOf"]
        assert {form["type"] for form in forms} == {"string", "array", "null"}
        (lists,) = [form for form in forms if form["type"] == "array"]
        assert lists["examples"] and "arguments" in lists["description"] and lists["minItems"] == 1


def test_the_document_is_served_as_it_is(server: Live) -> None:
    with server.http() as http:
        assert http.get("/openapi.json").content == openapi.body()


_NUMBERS = st.one_of(
    st.integers(-2, 3),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.sampled_from([1e300, -0.0, 2**31, 2**62]),
)
_LEAVES = st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(max_size=9), st.binary(max_size=9))
_ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
)


_SPAN = st.tuples(*[st.integers(0, 2**63 - 1)] * 2, st.integers(-1, 12_000))
_PARTS = st.lists(
    st.tuples(*[st.integers(0, 2**64 - 1)] * 3, st.lists(_SPAN, max_size=3)),
    max_size=3,
)


def fields(command: type) -> st.SearchStrategy[list[object]]:
    """The fields of a command as they are sent: mostly of the right type, with values of all kinds."""
    known = []
    for field in msgspec.structs.fields(command):
        kind = str(field.type)
        right: st.SearchStrategy[object] = _ANYTHING
        if "float" in kind:
            right = st.floats()
        elif "int" in kind and "tuple" not in kind and "dict" not in kind:
            right = st.integers(-3, 2**64 - 1)
        elif "str" in kind and "dict" not in kind:
            right = st.text(max_size=9)
        elif "bool" in kind:
            right = st.booleans()
        elif "Part" in kind:
            right = _PARTS
        elif "Complete" in kind or "Fail" in kind:
            inner = Complete if "Complete" in kind else Fail
            tag = inner.__struct_config__.tag
            right = st.lists(fields(inner).map(lambda told, tag=tag: [tag, *told]), max_size=2)
        elif "tuple" in kind:
            right = st.lists(st.tuples(st.integers(-1, 2**63), st.integers(-1, 2**63)), max_size=4)
        known.append(st.one_of(right, right, right, _ANYTHING))
    return st.tuples(*known).map(list)


@pytest.mark.parametrize("command", [*NEEDED, *REFUSED], ids=lambda command: command.__name__)
def test_no_call_of_a_client_harms_the_engine(command: type, server: Live) -> None:
    with server.http(headers={"Content-Type": "application/msgpack"}) as http:
        before = engine(server)

        @given(fields=fields(command), client=st.sampled_from(["", "1.0", "x"]), number=st.integers(-1, 3))
        @settings(
            max_examples=CASES, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        def send(fields: list[object], client: str, number: int) -> None:
            tag = command.__struct_config__.tag  # type: ignore[attr-defined]
            for wait in ("wait_seconds", "seconds"):
                names = command.__struct_fields__  # type: ignore[attr-defined]
                if wait in names and isinstance(fields[names.index(wait)], float | int):
                    fields[names.index(wait)] = min(float(fields[names.index(wait)]), 0.01)
            try:
                body = msgspec.msgpack.encode([[tag, *fields], client, number, 0])
            except OverflowError:
                return
            answer = http.post("/v1/queues/default/call", content=body)
            assert answer.status_code in (200, 400, 403, 404, 409, 413), answer.text

        send()
        assert engine(server) is before, "a call made the engine fail, and it was thrown away"


def engine(server: Live) -> object:
    from fairway.runtime.registry import registry

    return registry._entries[os.path.realpath(server.settings.store), "default"].member.way.engine  # type: ignore[union-attr]
