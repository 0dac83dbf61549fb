"""Every argument of every verb, out of its bounds: refused before anything is sent, by a message that names it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from fairway import limits
from fairway.errors import BadArgument, BadStrategy, CallerError, TooLarge
from fairway.face import checks
from fairway.face.batches import Completion, Failure
from fairway.face.results import Result
from fairway.face.verbs import Verbs
from fairway.model.lease import Lease
from fairway.model.submission import Described
from tests.derived import Blob, Mode, Text, Whole

LEASE = Lease(1 << 30, 0, 1, 0.0, 7, 1, 99, Described("", 1))
LONG = "x" * 5000
KB = 1024


def verbs() -> Verbs:
    return Verbs(None, lambda: 1, None)  # type: ignore[arg-type]


def refused(verb: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallerError:
    """The error that a call raises before its first step."""
    with pytest.raises(CallerError) as caught:
        next(getattr(verbs(), verb)(*args, **kwargs))
    return caught.value


class Several:
    """Many numbers, as an array has them."""

    def __index__(self) -> int:
        raise TypeError("only one number can be an index")


TEXTS = (7, None, b"bytes", "\ud800")
NUMBERS = (-1, float("nan"), float("inf"), "1", True, 1e12)
SHARED: list[tuple[str, tuple[Any, ...]]] = [
    ("tenant", (*TEXTS, "x" * (limits.TENANT_BYTES_MAX + 1), "é" * limits.TENANT_BYTES_MAX)),
    ("info", ("text", 7, b"x" * (limits.INFO_BYTES_MAX + 1), [1])),
    ("priority", (limits.PRIORITY_MAX + 1, -limits.PRIORITY_MAX - 1, 1.5, "1", True)),
    ("weight", (0, 0.0099, 100.001, 1.0005, "1", True, float("nan"))),
    ("policy", ("fail_slow", None, 7)),
    ("not_before", (-1, "soon", 1e12, float("nan"), True, datetime(2030, 1, 1))),
    ("delay_seconds", (-1, limits.DELAY_SECONDS_MAX + 1, "1", True)),
    ("deadline", (-1, "soon", 1e12, datetime(2030, 1, 1))),
    ("deadline_seconds", (0, -1, limits.DELAY_SECONDS_MAX + 1, "1")),
    ("attempts_max", (0, limits.ATTEMPTS_MAX_MAX + 1, 1.0, "1", True)),
]
KEYED: list[tuple[str, tuple[Any, ...]]] = [("key", ("", 7, b"k", "x" * (limits.KEY_BYTES_MAX + 1)))]
METADATA = (
    7,
    "text",
    {"": "empty key"},
    {7: "key"},
    {"k" * (limits.METADATA_KEY_BYTES_MAX + 1): 1},
    {"k": "v" * (limits.METADATA_VALUE_BYTES_MAX + 1)},
    {"k": 2**63},
    {"k": -(2**63) - 1},
    {"k": True},
    {"k": 1.5},
    {"k": None},
    {"tenant": "acme"},
    {str(i): i for i in range(limits.METADATA_KEYS_MAX + 1)},
)


def cases() -> Any:
    for name, values in SHARED:
        for value in values:
            yield "submit", ([b"x"],), {name: value}, name
            yield "put", (b"x",), {name: value}, name
            yield "put_many", ([b"x"],), {name: value}, name
    for name, values in KEYED:
        for value in values:
            yield "submit", ([b"x"],), {name: value}, name
            yield "put", (b"x",), {name: value}, name
    for value in METADATA:
        yield "submit", ([b"x"],), {"metadata": value}, "metadata"
        yield "put", (b"x",), {"metadata": value}, "metadata"
        yield "put_many", ([b"x"],), {"metadata": value}, "metadata"
        yield "submissions", (), {"metadata": value}, "metadata"
    yield "submit", ([b"x"],), {"fingerprint": b"f"}, "fingerprint"
    yield "submit", ([b"x"],), {"key": "k", "fingerprint": b"f" * 300}, "fingerprint"
    yield "submit", ([b"x"],), {"key": "k", "fingerprint": 7}, "fingerprint"
    yield "submit", ([b"x"],), {"delete_objects": 1}, "delete_objects"
    yield "submit", ([b"x"],), {"deadline": 2e9, "deadline_seconds": 5}, "deadline_seconds"
    for value in (b"bytes", "text", 7, [b"ok", "text"], [7], [b"x" * (limits.PAYLOAD_BYTES_MAX + 1)]):
        yield "submit", (value,), {}, "payloads"
    yield "submit", (), {}, "payloads"
    yield "submit", ([b"x"],), {"chunks": 1}, "chunks"
    for value in (-1, limits.CHUNKS_MAX + 1, 1.0, "1", True):
        yield "submit", (), {"chunks": value}, "chunks"
    yield "submit", (), {"objects": "s3://bucket/x"}, "payloads"
    for value in (
        "",
        "no-url",
        "/data/x",
        7,
        b"s3://b/x",
        "s3://" + LONG,
        {"a": 1},
        "s3://b/#1",
        "s3://b/x?",
    ):
        yield "submit", (), {"objects": value, "chunks": 1}, "objects"
        yield "submit", ([b"x"],), {"objects": value}, "objects"
    yield "submit", ([b"x"],), {"objects": "memory://x", "chunks": 1}, "chunks"
    for value in ([("s3://b/x", -1)], [("s3://b/x",)], ["s3://b/x"], [("x", 1)], [("s3://b/x", 1)] * 10_001):
        yield "submit", (), {"objects": value}, "objects"
    yield "submit", (), {"objects": [("s3://b/x", 2)], "chunks": 3}, "chunks"
    yield "submit", (), {"objects": [("s3://b/x", limits.CHUNKS_MAX)] * 2}, "objects"
    for value in ("text", 7, None, b"x" * (limits.PAYLOAD_BYTES_MAX + 1)):
        yield "put", (value,), {}, "payload"
    for value in (b"bytes", "text", 7, {"payload": b"x"}):
        yield "put_many", (value,), {}, "items"
        yield "submit_many", (value,), {}, "submissions"
    yield from working_cases()
    yield from other_cases()


def working_cases() -> Any:
    for value in (0, -1, limits.RESERVE_CHUNKS_MAX + 1, 1.5, "1", True, None, Several()):
        yield "reserve", (value,), {}, "max"
    for value in ("Fairest", "Fair(", 7, object(), "Fair" + " " * 5000):
        yield "reserve", (), {"strategy": value}, "strategy"
        yield "explain", (value,), {}, "strategy"
        yield "configure", (), {"strategy": value}, "strategy"
    for value in (0, -1, 0.0001, limits.LEASE_SECONDS_MAX + 1, "1", True):
        yield "reserve", (), {"lease_seconds": value}, "lease_seconds"
        yield "renew", (LEASE, value), {}, "seconds"
    for value in (-1, limits.WAIT_SECONDS_MAX + 1, "1", float("nan"), True):
        yield "reserve", (), {"wait_seconds": value}, "wait_seconds"
    yield "reserve", (), {"consumer": "c"}, "seq"
    yield "reserve", (), {"seq": 1}, "consumer"
    for value in ("", 7, "c" * (limits.CONSUMER_NAME_BYTES_MAX + 1)):
        yield "reserve", (), {"consumer": value, "seq": 1}, "consumer"
        yield "trim", (value, 1), {}, "consumer"
        yield "join", (value,), {}, "consumer"
        yield "finish", (value,), {"epoch": 1}, "consumer"
    for value in (-1, 2**63, 1.5, "1", True):
        yield "reserve", (), {"consumer": "c", "seq": value}, "seq"
        yield "trim", ("c", value), {}, "seq"
    yield "trim", ("c", 1), {"complete": 1}, "complete"
    yield "reserve", (), {"halve": 1}, "halve"
    yield "join", ("c", 7), {}, "run"
    for value in (-1, 2**63, "1"):
        yield "finish", ("c",), {"epoch": value}, "epoch"
    yield "finish", ("c",), {"first": "text"}, "first"
    yield "finish", ("c",), {"whole": 1}, "whole"
    yield "finish", ("c",), {"others": b"x" * (limits.PAYLOAD_BYTES_MAX + 1)}, "others"
    yield "finish", ("c",), {"completed": [Completion([LEASE], writer=-1)]}, "writer"
    yield "finish", ("c",), {"completed": [Completion(["no receipt"])]}, "receipt"
    yield "finish", ("c",), {"failed": [Failure([LEASE], error=7)]}, "error"  # type: ignore[arg-type]
    yield "finish", ("c",), {"failed": [Failure([LEASE], retry=1)]}, "retry"  # type: ignore[arg-type]
    yield "finish", ("c",), {"completed": [Completion([LEASE], by_reference=1)]}, "by_reference"  # type: ignore[arg-type]
    for value in ("text", 7, b"x" * (limits.PAYLOAD_BYTES_MAX + 1)):
        yield "finish", ("c",), {"completed": [Completion([LEASE], results=[value])]}, "results"
    both = Completion([LEASE], results=[b"x"], by_reference=True)
    yield "finish", ("c",), {"completed": [both]}, "results"
    for verb in ("complete", "fail", "release", "renew"):
        for value in (7, None, "no receipt", "1.2.3.4", "1.2.3.4.z", [LEASE, 7], [None], [b"x"]):
            yield verb, (value,), {}, "receipt" if isinstance(value, str) else "lease"
    for value in ("text", 7, b"x" * (limits.PAYLOAD_BYTES_MAX + 1)):
        yield "complete", (LEASE, value), {}, "result"
        yield "complete", ([LEASE],), {"results": [value]}, "results"
    yield "complete", ([LEASE], b"x"), {}, "result"
    yield "complete", (LEASE, b"x"), {"results": [b"x"]}, "result"
    for value in ([], [b"x", b"y"], b"x", "x", 7):
        yield "complete", ([LEASE],), {"results": value}, "results"
    yield "complete", (LEASE,), {"by_reference": 1}, "by_reference"
    yield "complete", (LEASE, b"x"), {"by_reference": True}, "results"
    for value in (-1, 2**62, 1.5, True):
        yield "complete", (LEASE,), {"writer": value}, "writer"
    yield "fail", (LEASE, 7), {}, "error"
    yield "fail", (LEASE,), {"retry": 1}, "retry"
    for value in (-1, limits.DELAY_SECONDS_MAX + 1, "1", True):
        yield "fail", (LEASE,), {"delay_seconds": value}, "delay_seconds"
    yield "payload", ("receipt",), {}, "lease"


def other_cases() -> Any:
    for value in (-1, "1", limits.CHUNKS_MAX + 1):
        yield "winners", (1, value), {}, "start"
        yield "winners", (1, 0, value), {}, "count"
    for verb in ("submission", "wait", "results", "winners", "cancel", "redrive"):
        for value in (0, -1, 2**63, "1", 1.5, None, True):
            yield verb, (value,), {}, "submission"
    for value in (-1, limits.WAIT_SECONDS_MAX + 1, "1", True):
        yield "wait", (1, value), {}, "seconds"
    yield "read", (b"x",), {}, "result"
    for value in ("done", 7, ""):
        yield "submissions", (), {"state": value}, "state"
    yield "submissions", (), {"tenant": 7}, "tenant"
    for value in (-1, 2**63, "1", 1.5):
        yield "events", (value,), {}, "after"
        yield "events_arrow", (value,), {}, "after"
    for value in (0, limits.LIST_ROWS_MAX + 1, "1"):
        yield "explain", (), {"limit": value}, "limit"
    for verb in ("pause", "resume"):
        yield verb, (), {"tenant": "a", "submission": 1}, "submission"
        yield verb, (), {"tenant": 7}, "tenant"
        yield verb, (), {"submission": 0}, "submission"
    yield "set_weight", (7, 1), {}, "tenant"
    for value in (0, 101, "1", True, None):
        yield "set_weight", ("a", value), {}, "weight"
    seconds = "retention_seconds", "event_seconds", "retry_delay_seconds", "retry_delay_seconds_max"
    for name in (*seconds, "lease_seconds", "consumer_silent_seconds", "client_silent_seconds"):
        for value in NUMBERS:
            yield "configure", (), {name: value}, name
    for value in (0, limits.ATTEMPTS_MAX_MAX + 1, 1.5, "1", True):
        yield "configure", (), {"attempts_max": value}, "attempts_max"
    yield "configure", (), {"strategy_locked": 1}, "strategy_locked"


CASES = [pytest.param(*case, id=f"{case[0]}-{case[3]}-{i}") for i, case in enumerate(cases())]


@pytest.mark.parametrize(("verb", "args", "kwargs", "named"), CASES)
def test_out_of_bounds_is_refused_and_named(verb: str, args: Any, kwargs: Any, named: str) -> None:
    error = refused(verb, args, kwargs)
    assert isinstance(error, BadArgument | BadStrategy | TooLarge)
    assert named in str(error), str(error)
    assert len(str(error)) < 500


def test_every_verb_has_a_case() -> None:
    without_arguments = {"dead", "stats", "tenants", "consumers"}
    public = {name for name in dir(Verbs) if not name.startswith("_")}
    assert {case[0] for case in cases()} == public - without_arguments


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"chunks": 1}, {"chunk": 1}], r"submissions\[1\]: there is no argument 'chunk'"),
        ([{"chunks": 1}, {"chunks": -1}], r"submissions\[1\]: chunks must be"),
        ([[b"x"]], r"submissions\[0\]: an item must be a dict"),
        ([{"payloads": [b"x"], "objects": "memory://x"}], r"submissions\[0\]: payloads with objects"),
    ],
)
def test_submit_many_names_the_item(items: Any, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        next(verbs().submit_many(items))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([b"x", "text"], r"items\[1\]: a message must be bytes; encode the text first"),
        ([b"x", {"tenant": "a"}], r"items\[1\]: a message needs a payload"),
        ([{"payload": b"x", "chunks": 3}], r"items\[0\]: there is no argument 'chunks'"),
        ([{"payload": b"x", "tenant": 3}], r"items\[0\]: tenant must be"),
        ([b"x", b"y" * (limits.PAYLOAD_BYTES_MAX + 1)], r"items\[1\]: a message must be at most"),
    ],
)
def test_put_many_names_the_item(items: Any, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        next(verbs().put_many(items))


def test_an_endless_iterable_is_left_at_the_bound() -> None:
    def endless() -> Any:
        while True:
            yield b"x" * KB * KB

    with pytest.raises(TooLarge, match="objects="):
        next(verbs().submit(endless()))


def test_the_bounds_themselves_pass() -> None:
    assert checks.text("t", "x" * 256, 256) == "x" * 256
    assert checks.text("t", "é" * 128, 256) == "é" * 128
    assert checks.whole("n", 5, 5, 5) == 5
    assert checks.number("n", 5, 5, 5) == 5.0
    assert checks.blob("b", bytearray(b"xy"), 2) == b"xy"
    assert checks.metadata({"a": 2**63 - 1, "b": -(2**63), "c": ""}) == {
        "a": 2**63 - 1,
        "b": -(2**63),
        "c": "",
    }
    for verb, args, kwargs in [
        ("submit", (), {"chunks": limits.CHUNKS_MAX}),
        ("submit", ([],), {}),
        ("submit", ([b""],), {"weight": 0.01, "priority": -limits.PRIORITY_MAX, "attempts_max": 1}),
        ("reserve", (limits.RESERVE_CHUNKS_MAX,), {"lease_seconds": 0.001, "wait_seconds": 3600}),
        ("wait", (1, 3600), {}),
    ]:
        next(getattr(verbs(), verb)(*args, **kwargs))  # the first step, and no error


def test_an_error_text_keeps_its_end() -> None:
    assert checks.error_text(ValueError("why")) == "ValueError: why"
    long = checks.error_text("é" * limits.ERROR_BYTES_MAX + "the end")
    assert long.endswith("the end")
    assert len(long.encode()) <= limits.ERROR_BYTES_MAX
    assert checks.error_text("\ud800") == "?"


def test_a_result_without_a_fetch_says_how_to_read_it() -> None:
    with pytest.raises(BadArgument, match=r"await queue\.read"):
        Result(0, None, "memory://x/0.out").read()


@pytest.mark.parametrize("name", ["", "a/b", "a b", ".hidden", "-x", "x" * 129, 7, "é"])
def test_queue_names(name: Any) -> None:
    with pytest.raises(BadArgument, match="queue"):
        checks.queue_name(name)


def test_what_passes_is_of_a_plain_type() -> None:
    passed = [
        (checks.text("t", Text("a"), 9), "a"),
        (checks.tenant(Mode.PREVIEW), "preview"),
        (checks.blob("b", Blob(b"x"), 9), b"x"),
        (checks.blob("b", bytearray(b"x"), 9), b"x"),
        (checks.blob("b", memoryview(b"xyz")[::2], 9), b"xz"),
        (checks.whole("n", Whole(3), 0, 9), 3),
    ]
    told = checks.metadata({Text("t"): Text("v"), "n": Whole(4), "m": Mode.PREVIEW})
    passed += list(zip([*told, *told.values()], ["t", "n", "m", "v", 4, "preview"], strict=True))
    for found, plain in passed:
        assert (type(found), found) == (type(plain), plain)
