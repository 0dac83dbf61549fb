"""Random sequences of groups: the store on Cassandra and the memory store give the same answers, errors included."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fairway.model.stored import Group
from fairway.store.cassandra import CassandraStore, Connection
from fairway.store.memory import MemoryStore
from fairway.testing.conformance import everything
from tests.store.test_stores_agree import ALL, STEPS, _lived, _of_its_tenant, _outcome, _reads

pytestmark = pytest.mark.real


# Shrinking would take minutes here; the memory and SQLite stores find the smallest example of what is common.
@settings(
    max_examples=24,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(STEPS)
def test_the_stores_agree_in_every_answer(
    connection: Connection, steps: list[tuple[str, dict[str, Any], list[Any], int]]
) -> None:
    memory, store = MemoryStore.open("q"), CassandraStore.open(connection, "q", realm=uuid.uuid4().hex)
    other: CassandraStore | None = None
    try:
        range_id = memory.take_over().range_id
        assert store.take_over().range_id == range_id
        places: dict[int, tuple[int, bool, str]] = {}
        for step, parts, lives, gap in steps:
            number = memory.last_number() + 1 + gap
            parts = _lived(lives, places) | parts
            if step == "mistake":
                parts["ends"] = [_of_its_tenant(end, parts["rows"], places) for end in parts["ends"]]
            group = Group(range_id, number, False, b"meta %d" % number, **parts)
            outcome = _outcome(memory, step, group)
            assert _outcome(store, step, group) == outcome
            range_id += step == "take over"
            places = {
                run.id: (run.pass_, run.state == "active", run.tenant)
                for id in ALL
                if (run := memory.run(id))
            }
        assert everything(store, ALL) == everything(memory, ALL)
        other = CassandraStore(connection.share(), store._queue, store._number)
        other.take_over()
        assert _reads(other) == _reads(memory), "another owner finds the same"
    finally:
        store.close()
        if other is not None:
            other.close()
