"""Random sequences of groups: the SQLite store and the memory store give the same answers, errors included."""

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.errors import FairwayError
from fairway.model.stored import Drop, End, Group, KeyRow, Kind, Move, Put, ResultPage, Row
from fairway.store.memory import MemoryStore
from fairway.store.port import Store
from fairway.store.sqlite import SqliteStore
from fairway.testing.conformance import everything

NS = st.integers(0, 3)
IDS = NS.map(lambda n: n << 22)
PASSES = st.integers(0, 2)
TENANTS = st.sampled_from(["", "a", "é"])
TIMES = st.sampled_from([0.0, 1.0, 1.5, 2.0])
BODIES = st.sampled_from([b"", b"x", b"y" * 1024, b"z" * 1025, b"\x00" * 9000])
OBJECT_KEYS = st.one_of(IDS, st.sampled_from(["", "1", "k"]))
METADATA = st.dictionaries(st.sampled_from("km"), st.sampled_from([1, "1", -(2**63), "é"]), max_size=2)
KINDS = st.sampled_from(Kind)

ROWS = st.builds(
    Row, IDS, PASSES, TENANTS, TIMES, METADATA, BODIES, st.lists(BODIES, max_size=3).map(tuple), TIMES
)
ENDS = st.builds(
    End, IDS, PASSES, st.just(""), st.sampled_from(["completed", "failed"]), TIMES, BODIES, st.integers(0, 1)
)
MOVES = st.builds(Move, IDS, PASSES, PASSES)
ALL = [n << 22 for n in range(6)]
RESULTS = st.builds(ResultPage, IDS, st.integers(0, 2), BODIES)
Place = tuple[int, bool, str]  # the pass of a run, whether it is active, and its tenant


def _few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, max_size=3)


MISTAKES = st.fixed_dictionaries({"rows": _few(ROWS), "moves": _few(MOVES), "ends": _few(ENDS)})
LIVES = st.lists(st.one_of(ROWS, ROWS, ENDS, MOVES), max_size=8)
GROUPS = st.fixed_dictionaries(
    {},
    optional={
        "keys": _few(st.builds(KeyRow, TENANTS, st.sampled_from("kl"), IDS, BODIES, TIMES)),
        "results": st.lists(RESULTS, max_size=3, unique_by=lambda page: (page.id, page.first)),
        "puts": _few(st.builds(Put, KINDS, OBJECT_KEYS, st.integers(0, 1), BODIES)),
        "drops": _few(st.builds(Drop, KINDS, OBJECT_KEYS, st.integers(0, 1))),
        "journal": BODIES,
        "journal_floor": st.integers(0, 12),
        "events": BODIES,
        "event_time": TIMES,
        "purge": _few(IDS),
        "purge_keys": _few(st.tuples(TENANTS, st.sampled_from("kl"))),
        "purge_events_before": TIMES,
    },
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), GROUPS, LIVES, st.just(0)),
        st.tuples(st.just("write"), GROUPS, LIVES, st.just(0)),
        st.tuples(st.just("mistake"), MISTAKES, st.just([]), st.sampled_from([-1, 0, 1])),
        st.tuples(st.just("settle"), st.just({}), st.just([]), st.sampled_from([-1, 0])),
        st.tuples(st.just("take over"), st.just({}), st.just([]), st.just(0)),
    ),
    max_size=12,
)


def _lived(lives: list[Row | End | Move], places: dict[int, Place]) -> dict[str, list[Any]]:
    """What of these can happen one after the other, as the lists of a group; `places` follows it."""
    parts: dict[str, list[Any]] = {"rows": [], "moves": [], "ends": []}
    for life in lives:
        pass_, active, tenant = places.get(life.id, (-1, False, ""))
        if isinstance(life, Row) and life.id not in places:
            parts["rows"].append(life)
            places[life.id] = (life.pass_, True, life.tenant)
        elif isinstance(life, End) and active:
            parts["ends"].append(msgspec.structs.replace(life, pass_=pass_, tenant=tenant))
            places[life.id] = (pass_, False, tenant)
        elif isinstance(life, Move) and life.id in places and not active:
            parts["moves"].append(msgspec.structs.replace(life, old_pass=pass_))
            places[life.id] = (life.pass_, True, tenant)
    return parts


def _of_its_tenant(end: End, rows: list[Row], places: dict[int, Place]) -> End:
    """Whatever else is wrong with an end, its tenant is that of its row."""
    known = {row.id: row.tenant for row in reversed(rows)} | {id: place[2] for id, place in places.items()}
    return msgspec.structs.replace(end, tenant=known.get(end.id, ""))


def _outcome(store: Store, step: str, group: Group) -> object:
    """What a call gives: its answer, or the code of its error."""
    try:
        if step == "take over":
            return store.take_over()
        return store.settle(group) if step == "settle" else store.commit(group)
    except FairwayError as error:
        return error.code


def _reads(store: Store) -> dict[str, Any]:
    found = everything(store, ALL)
    found["keys"] = [store.key(tenant, key) for tenant in ("", "a", "é") for key in "kl"]
    pairs: list[dict[str, str | int]] = [
        {},
        {"k": 1},
        {"k": "1"},
        {"m": -(2**63), "k": "é"},
        {"k": 1, "m": 1},
    ]
    states, tenants = ("", "completed", "failed"), (None, "", "a")
    found["listed"] = [
        store.ended(state, tenant, pair, after, limit)
        for state in states for tenant in tenants for pair in pairs for after, limit in ((-1, 9), (1 << 22, 2))
    ]  # fmt: skip
    found["swept"] = [store.ended_before(at, limit) for at in (1.0, 1.5, 9.0) for limit in (1, 9)]
    found["expired"] = [store.keys_expired(at, limit) for at in (1.0, 1.5, 9.0) for limit in (1, 9)]
    found["some"] = (store.events(3, 2), store.ended_failed(1 << 22, 1), store.results(1 << 22, 1, 1))
    return found


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_the_stores_agree_in_every_answer(steps: list[tuple[str, dict[str, Any], list[Any], int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        memory, sqlite = MemoryStore.open("q"), SqliteStore.open(Path(folder) / "work.db", "q")
        range_id = memory.take_over().range_id
        assert sqlite.take_over().range_id == range_id
        places: dict[int, Place] = {}
        for step, parts, lives, gap in steps:
            number = memory.last_number() + 1 + gap
            parts = _lived(lives, places) | parts
            if step == "mistake":
                parts["ends"] = [_of_its_tenant(end, parts["rows"], places) for end in parts["ends"]]
            group = Group(range_id, number, False, b"meta %d" % number, **parts)
            outcome = _outcome(memory, step, group)
            assert _outcome(sqlite, step, group) == outcome
            assert step != "write" or outcome is None, "what can happen is stored"
            if step == "take over":
                range_id += 1
            if step != "write" or group.purge:
                places = {
                    run.id: (run.pass_, run.state == "active", run.tenant)
                    for id in ALL
                    if (run := memory.run(id))
                }
            assert everything(sqlite, ALL) == everything(memory, ALL)
            active = sorted((pass_, id) for id, (pass_, active, _) in places.items() if active)
            assert [(run.pass_, run.id) for run in memory.active()] == active
        assert _reads(sqlite) == _reads(memory)
        sqlite.close()
        sqlite = SqliteStore.open(Path(folder) / "work.db", "q")
        assert _reads(sqlite) == _reads(memory), "reopened"
        sqlite.close()
