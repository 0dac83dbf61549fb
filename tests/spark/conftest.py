"""A Spark session that modules share, and the gate for machines without Java.

Guards: the session ends with the last test that may use it, whatever order the files come in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def spark_is_here() -> bool:
    from importlib.util import find_spec

    if find_spec("pyspark") is None:
        return False
    from fairway.spark.java import find

    return find() is not None


@pytest.fixture(scope="session", autouse=True)
def needs_spark() -> None:
    if os.environ.get("FAIRWAY_REQUIRE_SPARK") != "1" and not spark_is_here():
        pytest.skip("needs Spark and a Java")


# Files whose tests use one session, one after the other: a JVM that has run a query runs the next one sooner.
SHARING = {
    f"test_{name}.py"
    for name in (
        "process",
        "rows",
        "foreign_sinks",
        "server",
        "produce",
        "tpch",
        "audit",
        "audit_queue",
        "session",
        "archive",
    )
}
_shared: list[SparkSession] = []


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sources that beat no heart, and queues that this test opens for itself."""
    from fairway.spark import queues, source

    monkeypatch.setattr(source.Heart, "watch", lambda self, seq, silence: None)
    monkeypatch.setattr(queues, "_open", {})
    yield
    for one in queues._open.values():
        one.close()


@pytest.fixture(scope="module")
def spark(needs_spark: None, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session that the next module goes on with. Tasks are tried twice. What a module sets goes with it."""
    import fairway.spark

    assert request.path.name in SHARING, (
        "name the file above: who does not share would be left with a session"
    )
    if not _shared:
        _shared.append(fairway.spark.session("local[2,2]", conf={"spark.ui.enabled": "false"}))
    conf = _shared[0].conf
    before = conf.getAll
    yield _shared[0]
    for name, value in conf.getAll.items():
        if name.startswith("spark.sql.") and before.get(name) != value:
            conf.set(name, before[name]) if name in before else conf.unset(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the session with the last test of those who share it."""
    try:
        return (yield)
    finally:
        if _shared and (
            nextitem is None or nextitem.path.parent != HERE or nextitem.path.name not in SHARING
        ):
            end_session(_shared.pop())


def end_session(made: SparkSession) -> None:
    """Stop a session and its JVM: the next one may want another master or more memory."""
    from fairway.spark.sessions import end

    end(made, 30)
