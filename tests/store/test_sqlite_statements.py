"""The SQL files: every statement is named, described, used, right, and served by an index."""

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import fairway.store.sqlite
from fairway.store.sqlite.seals import teach
from fairway.store.sqlite.statements import load, parse, steps

FOLDER = Path(fairway.store.sqlite.__file__).parent
READ, WRITE = load("read.sql"), {**load("write.sql"), **load("buckets.sql")}


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    teach(connection)
    for step in steps():
        connection.execute(step)
    yield connection
    connection.close()


@pytest.mark.parametrize(("name", "sql"), [*READ.items(), *WRITE.items()])
def test_every_statement_fits_the_schema(connection: apsw.Connection, name: str, sql: str) -> None:
    connection.execute(f"EXPLAIN {sql}", _values(sql)).fetchall()


def _values(sql: str) -> list[int]:
    numbered = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    return [1] * (max(numbered) if numbered else sql.count("?"))


@pytest.mark.parametrize("name", [*READ, *WRITE])
def test_every_statement_is_used(name: str) -> None:
    code = "".join(file.read_text() for file in FOLDER.glob("*.py"))
    assert f'"{name}"' in code


@pytest.mark.parametrize(("name", "sql"), [*READ.items(), *WRITE.items()])
def test_no_statement_scans_a_table_or_sorts(connection: apsw.Connection, name: str, sql: str) -> None:
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", _values(sql)).fetchall()
    lines = [str(line) for _, _, _, line in plan]
    # What a subquery or a JSON list gives is scanned as it comes; the tables beneath it are not.
    given = ("SCAN f", "SCAN CONSTANT ROW", "SCAN json_each ", "SCAN w VIRTUAL TABLE ")
    scans = [line for line in lines if line.startswith("SCAN") and not line.startswith(given)]
    if name == "add_queue":
        scans = []  # the highest number of at most 1024 queues, once in a queue's life
    if name == "bucket_itself":
        scans = []  # the index does not show it; a queue has few buckets
    assert scans == []
    assert not [line for line in lines if "TEMP B-TREE" in line]


@pytest.mark.parametrize(
    ("name", "index"),
    [("ended", "COVERING INDEX ends_by_id"), ("ended_before", "COVERING INDEX ends_by_time"),
     ("ended_failed", "ends_failed"), ("keys_expired", "COVERING INDEX keys_by_expiry"),
     ("purge_events", "events_by_time"), ("run", "ends_by_id"), ("delete_end", "ends_by_id"),
     *((name, "SEARCH o USING PRIMARY KEY (queue=? AND kind=? AND key=? AND part=?)")
       for name in ("above", "listed", "listed_with", "run"))],
)  # fmt: skip
def test_the_index_made_for_a_statement_serves_it(connection: apsw.Connection, name: str, index: str) -> None:
    sql = (READ | WRITE)[name]
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", _values(sql)).fetchall()
    assert index in "\n".join(str(line) for _, _, _, line in plan)


def test_statements_without_name_or_description_are_refused() -> None:
    assert parse("-- name: one\n-- It is one.\nSELECT 1;\n\n-- name: two\n-- Two.\nSELECT\n2;\n") == {
        "one": "SELECT 1",
        "two": "SELECT\n2",
    }
    for bad in (
        "SELECT 1;",
        "-- name: one\nSELECT 1;",
        "-- name: one\n-- A.\nSELECT 1;\n-- name: one\n-- B.\nSELECT 2;",
    ):
        with pytest.raises(ValueError):
            parse(bad)


def test_rows_of_a_tenant_are_found_without_looking_at_the_runs_of_others(
    connection: apsw.Connection,
) -> None:
    """The tenant stands beside the place: a walk over places is many times shorter than one over payloads."""
    for id in range(1, 200):
        connection.execute("INSERT INTO levels VALUES (0, ?1, ?1, iif(?1 = 150, 'one', 'other'))", (id,))
    connection.execute("INSERT INTO runs (id, pass, tenant, due, body) VALUES (150, 150, 'one', 0.0, x'')")
    looked: list[int] = []
    connection.create_scalar_function("looked", lambda id: looked.append(id) or 1, 1)
    sql = READ["above"].replace("WHERE l.queue", "WHERE looked(r.id) AND l.queue")
    assert sql != READ["above"]
    last = 2**63 - 1
    found = connection.execute(sql, (0, 0, 0, last, last, "one", 9)).fetchall()
    assert [row[0] for row in found] == [150] and looked == [150]
