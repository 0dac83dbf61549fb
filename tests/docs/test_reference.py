"""The pages of docs/reference are what the code says now; `make docs` writes them anew."""

from __future__ import annotations

import re

import pytest

import fairway
from fairway.errors import all_errors
from fairway.server.metrics import QUEUE_GAUGES, TENANT_GAUGES
from fairway.server.routes import ROUTES
from fairway.spark.settings import OPTIONS
from tests.docs.pages import ROOT
from tools.reference import configuration, limits, python
from tools.reference.pages import FOLDER, PAGES
from tools.reference.writing import cell, table


def text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "write it anew with `make docs`"


def test_no_page_of_the_reference_is_written_by_hand() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(PAGES)


def test_every_public_name_is_told() -> None:
    assert python.listed() == set(fairway.__all__)
    page = text("reference/python.md")
    for name in (*python.VALUES, *python.CLASSES, *python.AWAITED):
        assert re.search(rf"\b{name}\b", page), name
    for verb, _ in python.verbs(fairway.Queue):
        assert f"### Queue.{verb}\n" in page


def test_every_error_route_limit_and_metric_is_told() -> None:
    errors, routes, bounds = (
        text("reference/errors.md"),
        text("reference/rest.md"),
        text("reference/limits.md"),
    )
    for code in all_errors():
        assert code == "fairway" or f"`{code}`" in errors, code
    for route in ROUTES:
        assert f"| `{route.method} {route.path.removeprefix('/v1/queues/{queue}/')}` |" in routes
    told = [row for _, rows in limits.sections() for row in rows]
    assert len(told) == len(re.findall(r"^[A-Z_]+: Final", limits.SOURCE.read_text(), re.MULTILINE)) > 100
    assert all(reason and f"| {name} |" in bounds for name, _, reason in told)
    for name, _, _ in (*QUEUE_GAUGES, *TENANT_GAUGES):
        assert f"`{name}`" in text("reference/metrics.md")


def test_a_reason_of_two_lines_is_told_whole() -> None:
    reasons = {name: reason for _, rows in limits.sections() for name, _, reason in rows}
    told = reasons["`CASSANDRA_DRIVER_THREADS`"]
    assert told.startswith("Threads of the driver") and told.endswith("would wait for it.")


@pytest.mark.parametrize("name", PAGES)
def test_no_paragraph_is_indented_as_it_is_in_the_source(name: str) -> None:
    outside = re.sub(r"^```.*?^```", "", text(f"reference/{name}"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^(?: {4}|\t).*", outside, re.MULTILINE) == []


@pytest.mark.parametrize(("name", "tables"), [("python.md", 13), ("rest.md", 40), ("configuration.md", 4)])
def test_every_field_has_a_meaning(name: str, tables: int) -> None:
    found = re.findall(r"^\|.* meaning \|\n\|[-|]+\n((?:\|.*\n)+)", text(f"reference/{name}"), re.MULTILINE)
    assert len(found) >= tables
    for row in "".join(found).splitlines():
        assert re.search(r"\w.* \|$", row.rpartition(" | ")[2]), row


def test_a_field_says_the_same_in_python_and_over_http() -> None:
    for name in ("python", "rest"):
        page = text(f"reference/{name}.md")
        for words in (
            "when it was accepted",
            "which delivery this is; those that were released do not count",
        ):
            assert f"| {words} |" in page, name


def test_a_verb_of_the_ring_is_told_once_with_what_it_does() -> None:
    page = text("reference/python.md")
    ring = page.partition("\n## Ring\n")[2].partition("\n## ")[0]
    told = re.findall(r"^### Ring\.(\w+)\n\n```text\n[^`]*^```\n\n\S", ring, re.MULTILINE)
    names = re.findall(r"^### Ring\.(\w+)$", ring, re.MULTILINE)
    assert len(names) == len(set(names)) == len(told)
    assert {"put", "put_some", "get", "get_many", "pop", "pop_many", "get_into", "arm", "disarm"} <= set(
        names
    )
    assert {"recover", "report", "close", "stats"} <= set(names)


def test_every_variable_that_the_code_reads_is_told() -> None:
    unknown = configuration.read_by_the_code() - set(configuration.ENVIRONMENT)
    assert {name for name in unknown if not name.startswith("FAIRWAY_CASSANDRA_")} == set()
    assert "| `FAIRWAY_CONFIG` |" in text("reference/configuration.md")


def test_a_setting_is_told_of_the_kind_of_queue_that_has_it_with_its_default() -> None:
    page = text("reference/configuration.md")
    bucket, _, rest = page.partition("## A bucket queue")[2].partition("## A server")
    (attempts,) = re.findall(r"^\| `attempts_max` .*", bucket, re.MULTILINE)
    assert "message" in attempts and "chunk" not in attempts and "submission" not in attempts
    assert "| `workers` | `FAIRWAY_WORKERS` | `0` |" in rest
    assert "| `plain_http` | `FAIRWAY_PLAIN_HTTP` | `False` |" in rest


def test_every_option_of_spark_is_told() -> None:
    rows = re.findall(r"^\| (`.*?) \| .* \|$", text("spark.md"), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {option.name for option in OPTIONS} <= told
    assert told <= {option.name for option in OPTIONS} | {"path"}


def test_every_strategy_is_told() -> None:
    rows = re.findall(r"^\| (`.*?) \| ", text("strategies.md"), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert told == {"Fair", "Random", "OldestFirst", "NewestFirst", "CustomPriority"} | {
        "SelectOnly", "PreferDistinct", "MaxSimultaneous", "OrElse"
    }  # fmt: skip


def test_a_cell_never_breaks_its_table() -> None:
    assert cell("a | b\n  c") == "a \\| b c"
    assert table(("x",), [("1",)]) == "| x |\n|---|\n| 1 |\n"
