"""The benches that start processes of Fairway's own, apart from the others so that the two files can run at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.running import SERVED, quick
from tests.ring.need import need_ring


@pytest.mark.real
@pytest.mark.parametrize("name", [name for name in SERVED if name != "growth"])
def test_every_bench_of_processes_runs_quickly_and_tells_rows(name: str, tmp_path: Path) -> None:
    quick(name, tmp_path)


@pytest.mark.real
def test_growth_is_told_of_every_way_to_a_queue_and_by_tens(tmp_path: Path) -> None:
    tables = quick("growth", tmp_path)["tables"]
    backlog = "A backlog of so many messages"
    assert [table["title"] for table in tables] == [
        f"{backlog}, embedded",
        f"{backlog}, attached to a host",
        f"{backlog}, through a server",
        "One submission of so many chunks, embedded",  # a full run has these of all three
        "So many tenants that take turns, payloads and results inline, embedded",
    ]
    for table in tables:
        assert table["columns"][-3:] == ["work grows by", "it grows by", "for each 10 times"]
        for row in table["rows"]:
            assert row[1] > 0, row
        costs = {row[0] for row in table["rows"]}
        assert any("reserve + complete, CPU us" in cost for cost in costs), costs


@pytest.mark.proof
@pytest.mark.real
def test_a_server_is_looked_into_while_it_works(tmp_path: Path) -> None:
    found = quick("bounds", tmp_path, "--only", "served")
    (table,) = found["tables"]
    shares = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert shares["HTTP"] != "0%" and shares["engine"] != "0%"


@pytest.mark.proof
@pytest.mark.real
def test_a_server_of_several_processes_is_measured_over_both_transports(tmp_path: Path) -> None:
    need_ring()
    found = quick("processes", tmp_path, "--workers", "1")
    attached, served = found["tables"][1:]
    assert "attached" in attached["title"] and "server" in served["title"]
    assert {row[0] for row in served["rows"]} >= {
        "reserve + complete, 1 at a time",
        "put of 200 bytes, 64 at a time",
    }
    for row in (*attached["rows"], *served["rows"]):
        assert row[1] == row[2] == row[3] and row[-1] in ("0 of 1", "1 of 1", "0 of 0")
