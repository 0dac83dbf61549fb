"""The audit of real queues: read through Spark, beside whoever hosts them, by program and by command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fairway
import fairway.spark
from fairway.cli import app
from fairway.cli.demo import dataset
from fairway.errors import BadArgument, NotFound
from fairway.spark.auditing.audit import _READINGS as READINGS
from fairway.spark.auditing.audit import _read as read
from fairway.spark.auditing.judging import STEPS, Audit, judge
from tests.spark.pipeline import forget, patiently
from tests.spark.screens import screen_of

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module", autouse=True)
def short_plans(spark: SparkSession) -> None:
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled"):
        spark.conf.set(name, "false")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queue with a heavy tenant and a light one, a retry, a dead chunk, a cancelled and an active submission."""
    path = tmp_path_factory.mktemp("audited") / "work.db"
    with fairway.open(path) as q:
        q.submit(chunks=600, tenant="heavy", weight=2)
        q.submit(chunks=300, tenant="light")
        while leases := q.reserve(max=60):
            q.complete(leases, results=[b"x"] * len(leases))
        dying = q.submit(chunks=3, tenant="light", policy="dead_letter")
        first = q.reserve(max=3)
        q.fail(first[:1], error="no", retry=True, delay_seconds=0)
        q.fail(first[1:2], error="never", retry=False)
        q.complete(first[2:])
        q.complete(q.reserve(max=1))
        assert q.submission(dying.id).state == "failed"
        q.cancel(q.submit(chunks=10, tenant="heavy").id)
        q.submit(chunks=5, tenant="light")
    return path


@pytest.fixture(scope="module")
def audited(spark: SparkSession, path: Path) -> Audit:
    return patiently(
        lambda: fairway.spark.audit(spark, path, report=path.with_suffix(".html"), name="<work>")
    )


def test_a_sound_queue_has_no_fault_and_every_chunk_is_counted(audited: Audit) -> None:
    counts = audited.counts
    assert counts.faults == 0
    assert (counts.submissions, counts.unlogged, counts.chunks) == (5, 0, 918)
    assert (counts.completed, counts.dead, counts.skipped, counts.unfinished) == (902, 1, 10, 5)
    assert (counts.handed, counts.retries) == (904, 1)


def test_weights_are_those_of_the_queue_and_a_fair_queue_lags_by_little(audited: Audit) -> None:
    weight = {row["tenant"]: row["weight"] for row in audited.tenants.collect()}
    assert weight == {"heavy": 2.0, "light": 1.0}
    # A batch of 60 is 40 and 20: exactly the shares.
    assert max(row["lag"] for row in audited.windows.collect()) <= 2.0


def test_the_report_is_written(audited: Audit, path: Path) -> None:
    text = path.with_suffix(".html").read_text()
    assert "&lt;work&gt;" in text and "902 chunks, none lost, none twice, none stale" in text


def test_a_manifest_of_what_was_never_accepted_is_a_loss(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = screen_of(monkeypatch)
    manifest = spark.createDataFrame([(12345, "heavy", 7)], "submission long, tenant string, chunks long")
    audit = patiently(lambda: fairway.spark.audit(spark, path, manifest=manifest))
    assert (audit.counts.lost, audit.counts.faults) == (7, 7)
    assert all(f"audit: {step}" in screen.getvalue() for step in ("read events", *STEPS)), (
        "it showed how far it is"
    )


def test_what_is_forgotten_while_it_is_read_is_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    """Its results go with it, and its events stay."""
    url, steps = str(tmp_path / "q.db"), list[str]()
    with fairway.open(url) as q:
        q.submit(chunks=4, tenant="a")
        q.complete(q.reserve(max=4), results=[b"x"] * 4)

        def step(name: str) -> None:
            steps.append(name)
            if len(steps) == READINGS:
                forget(q)

        frames = patiently(lambda: (steps.clear(), read(spark, url, "default", step))[1])
        found = judge(frames["events"], listing=frames["submissions"], results=frames["chunks"])
    assert len(steps) == READINGS and (found.counts.completed, found.counts.faults) == (4, 0)


def test_an_audit_works_beside_the_host_and_its_frames_outlive_the_queue(
    spark: SparkSession, tmp_path: Path
) -> None:
    with fairway.open(tmp_path / "hosted.db", "other") as q:
        q.submit(chunks=4, tenant="a")
        audit = patiently(lambda: fairway.spark.audit(spark, str(tmp_path / "hosted.db"), queue="other"))
        q.complete(q.reserve(max=4))
        assert q.stats().chunks_waiting == 0
    assert [(row["tenant"], row["unfinished"]) for row in audit.tenants.collect()] == [("a", 4)]


def test_what_cannot_be_audited_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no queue at"):
        fairway.spark.audit(spark, tmp_path / "none.db")
    assert not list(tmp_path.iterdir())
    with pytest.raises(BadArgument, match="in memory"):
        fairway.spark.audit(spark, ":memory:")
    fairway.open(tmp_path / "empty.db").close()
    with pytest.raises(BadArgument, match="the event log is empty"):
        patiently(lambda: fairway.spark.audit(spark, tmp_path / "empty.db"))


def test_the_function_and_the_sql_of_the_demo_do_the_same_work(spark: SparkSession) -> None:
    rows = dataset.orders(spark, [("whale", 2), ("small 01", 1)], seed=7)
    expected = {tuple(row) for row in dataset.in_plain_spark(rows).collect()}
    done = dataset.pseudonymise(rows.toArrow())
    assert {tuple(row.values()) for row in done.to_pylist()} == expected
    assert len(expected) == 3 * dataset.CHUNK_ROWS
    assert dataset.orders(spark, [("whale", 2)], seed=8).exceptAll(rows).count() > 0


def test_the_command_prints_json_and_its_exit_code_is_the_verdict(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    command = ["audit", "--store", str(path), "--report", str(tmp_path / "r.html"), "--json"]
    assert patiently(lambda: app.run(command)) == app.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["completed"] == 902 and told["counts"]["lost"] == 0
    assert {row["tenant"] for row in told["tenants"]} == {"heavy", "light"}
    assert Path(told["report"]).read_text().startswith("<!doctype html>")
    assert spark.range(3).count() == 3  # a session that was there before stays


def test_a_fault_is_exit_code_1(
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    audited: Audit,
) -> None:
    bad = replace(audited, counts=replace(audited.counts, stale=2))
    monkeypatch.setattr("fairway.spark.auditing.audit.audit", lambda *given, **told: bad)
    assert app.run(["audit", str(path), "--report", str(tmp_path / "r.html")]) == app.FAILED
    said = " ".join(capsys.readouterr().out.split())
    assert "lost 0, duplicate 0, stale 2, out of order 0, of 918 chunks" in said


def test_bad_arguments_of_the_command_are_named(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["audit", str(tmp_path / "none.db")]) == app.FAILED
    assert "there is no queue at" in " ".join(capsys.readouterr().err.split())
    assert app.run(["audit", str(tmp_path / "none.db"), "--report", str(tmp_path)]) == app.FAILED
    assert "is a folder; name a file" in " ".join(capsys.readouterr().err.split())
    assert app.run(["audit"]) == app.USAGE
