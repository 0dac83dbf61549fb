"""The audit finds what is there and nothing else: a log computed by hand, planted faults, a naive audit beside it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

import fairway
from fairway.errors import BadArgument
from fairway.face.arrow import batch_of, table_of
from fairway.model.event import Event
from fairway.spark.auditing.judging import Audit, Counts, judge
from tests.spark.logs import Log
from tests.spark.naive_audit import naive_counts

pytestmark = pytest.mark.timeout(900)

LISTING = "id long, tenant string, state string, total long, done long"


@pytest.fixture(scope="module", autouse=True)
def short_plans(spark: SparkSession) -> None:
    """These frames are small: compiling their plans would take longer than running them."""
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled"):
        spark.conf.set(name, "false")


def rows(frame: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in frame.collect()]


# -- a log computed by hand
#
# big (weight 2) has 8 chunks, small (weight 1) has 4. Two windows of 10 s each, and the last instant.
#
# time  what                              waiting big, small    pace (what weight 1 is due)
#   0   big submits 8                       8
#   1   small submits 4                     8, 4
#   2   1: big 0-2 (3 chunks)               5, 4                3 / 3 = 1
#   4   2: small 0 (1)                      5, 3                1 + 1/3
#   6   1 completes 3, 2 fails its one      5, 4
#   8   3: small 0 again (1)                5, 3                1 + 2/3
#  10   3 completes
#  12   4: big 3-7 (5)                      0, 3                3 + 1/3
#  14   5: small 1-3 (3)                    0, 0                (alone: 3/1 more) 6 + 1/3
#  20   4 and 5 complete


@pytest.fixture(scope="module")
def by_hand(spark: SparkSession) -> Audit:
    log = Log().submit(1, "big", 8).at(1).submit(2, "small", 4)
    log.at(2).reserve(1, (1, 0, 3)).at(4).reserve(2, (2, 0, 1))
    log.at(6).complete(1, (1, 0, 3)).happen("failed", (2, 0, 1), reservation=2, detail="no")
    log.at(8).reserve(3, (2, 0, 1), attempt=2).at(10).complete(3, (2, 0, 1))
    log.at(12).reserve(4, (1, 3, 5)).at(14).reserve(5, (2, 1, 3))
    log.at(20).complete(4, (1, 3, 5)).done(1, 8).complete(5, (2, 1, 3)).done(2, 4)
    return judge(log.frame(spark), weights={"big": 2.0}, window_seconds=10)


def test_the_counts_of_a_log_computed_by_hand(by_hand: Audit) -> None:
    assert by_hand.counts == Counts(
        submissions=2, unlogged=0, chunks=12, completed=12, dead=0, skipped=0, unfinished=0,
        handed=13, retries=1, lost=0, duplicate=0, stale=0, disorder=0,
    )  # fmt: skip
    assert (by_hand.begin, by_hand.end, by_hand.window_seconds) == (0.0, 20.0, 10.0)
    assert by_hand.faults.count() == 0


def test_the_windows_of_a_log_computed_by_hand(by_hand: Audit) -> None:
    first, second, last = by_hand.windows.collect()
    assert [w["begin"] for w in (first, second, last)] == [0.0, 10.0, 20.0]
    assert [w["handed"] for w in (first, second, last)] == [5, 8, 0]
    assert [w["completed"] for w in (first, second, last)] == [3, 1, 8]
    assert first["per_second"] == pytest.approx(0.3)
    assert [w["retries"] for w in (first, second, last)] == [1, 0, 0]
    # Nobody waits all through a window: both come in the first and are served in the second.
    assert [w["contending"] for w in (first, second, last)] == [0, 0, 0]
    # small is one chunk behind at 2 s: due 1, got none; then due 1 1/3, got 1, failed and got 1 more.
    assert (first["lag"], first["lag_tenant"]) == (pytest.approx(1.0), "small")
    # Before its 5 chunks big is due 2 * 5/3 and got 3; before its 3 small is due 3 1/3 and got 2.
    assert (second["lag"], second["lag_tenant"]) == (pytest.approx(4 / 3), "small")


def test_the_tenants_of_a_log_computed_by_hand(by_hand: Audit) -> None:
    big, small = by_hand.tenants.collect()
    assert (big["tenant"], big["weight"], big["chunks"], big["handed"], big["retries"]) == (
        "big",
        2.0,
        8,
        8,
        0,
    )
    assert (small["tenant"], small["weight"], small["chunks"], small["handed"], small["retries"]) == (
        "small", 1.0, 4, 5, 1,
    )  # fmt: skip
    # big waited 2 s for 3 chunks and 12 s for 5; small 3 s for the first, 13 s for three. A retry does not wait again.
    assert (big["wait_p50"], big["wait_max"], big["wait_mean"]) == (12.0, 12.0, (3 * 2 + 5 * 12) / 8)
    assert (small["wait_p50"], small["wait_max"], small["wait_mean"]) == (13.0, 13.0, (3 + 3 * 13) / 4)
    # big ran 4 s for 3 and 8 s for 5; small 2 s for the second try of its first, 6 s for three.
    assert (big["run_p50"], big["run_max"]) == (8.0, 8.0)
    assert (small["run_p50"], small["run_max"]) == (6.0, 6.0)
    assert small["wait_p95"] == pytest.approx(13.0) and small["run_p99"] <= 6.0


# -- an unfair stretch


@pytest.fixture(scope="module")
def unfair(spark: SparkSession) -> Audit:
    """Four tenants with 60 chunks; in every second each gets one, but from 10 to 20 the first gets all four."""
    log = Log()
    for id in range(1, 5):
        log.submit(id, f"t{id}", 60)
    given = dict.fromkeys(range(1, 5), 0)
    for second in range(30):
        log.at(0.5 + second)
        takers = [1] if 10 <= second < 20 else [1, 2, 3, 4]
        spans = [(id, given[id], 4 // len(takers)) for id in takers]
        for id, _, count in spans:
            given[id] += count
        log.reserve(second + 1, *spans).complete(second + 1, *spans)
    return judge(log.frame(spark), window_seconds=5)


def test_an_unfair_stretch_is_found_where_it_is(unfair: Audit) -> None:
    jain = [w["jain"] for w in unfair.windows.collect()]
    # In the first window all four come, and from 20 on the first tenant has nothing left that waits.
    assert jain[1] == pytest.approx(1.0)
    assert jain[2] == jain[3] == pytest.approx(0.25)
    assert jain[4] == pytest.approx(1.0)


def test_an_unfair_stretch_leaves_the_others_behind_by_what_they_were_due(unfair: Audit) -> None:
    windows = unfair.windows.collect()
    # Ten chunks of each of the other three went to the first one.
    assert windows[1]["lag"] <= 1.0 + 1e-6
    assert windows[3]["lag"] == pytest.approx(10.0)
    assert windows[3]["lag_tenant"] in ("t2", "t3", "t4")
    lags = dict(rows(unfair.tenants, "tenant", "lag"))
    assert lags["t1"] <= 1.0 and lags["t2"] == lags["t3"] == lags["t4"]


# -- planted faults


def test_a_log_without_faults_has_none(unfair: Audit) -> None:
    assert unfair.counts.faults == 0
    assert (unfair.counts.completed, unfair.counts.unfinished) == (120, 120)


@pytest.fixture(scope="module")
def planted(spark: SparkSession) -> Audit:
    """Each submission of ten chunks has one fault; 7 has a fate that only looks like one."""
    log = Log()
    for id in range(1, 10):
        log.submit(id, f"t{id}", 10)
    for id in range(1, 10):
        log.reserve(id, (id, 0, 10))
    log.complete(1, (1, 0, 4), (1, 5, 5)).done(1, 10)  # 4 is lost
    log.complete(2, (2, 0, 10)).complete(2, (2, 7, 1)).done(2, 10)  # 7 twice
    log.happen("expired", (3, 0, 10), reservation=3).reserve(33, (3, 2, 3))
    log.complete(3, (3, 0, 4)).complete(33, (3, 4, 1)).complete(3, (3, 5, 5)).done(3, 10)  # 2 and 3 stale
    log.reserve(44, (4, 8, 2)).complete(44, (4, 8, 2)).complete(4, (4, 0, 8)).done(4, 10)  # 8, 9 out to two
    log.happen("failed", (5, 0, 1), reservation=5).complete(5, (5, 0, 10)).done(5, 10)  # 0 after a fail
    log.happen("ended_cancelled", (6, 0, 10), detail="cancel").complete(6, (6, 0, 3))  # 3 after the end
    log.happen("expired", (7, 0, 10), reservation=7).complete(7, (7, 0, 10)).done(
        7, 10
    )  # late but nobody took it
    log.happen("dead", (8, 0, 2), reservation=8).complete(8, (8, 2, 8))
    log.happen("ended_failed", (8, 0, 10), detail="last chunk done, some dead")
    log.happen("redriven", (8, 0, 10)).reserve(88, (8, 0, 2)).complete(88, (8, 0, 2)).done(8, 10)
    log.reserve(99, (9, 0, 1))  # 0 of 9 out to two
    return judge(log.frame(spark))


FAULTS = {
    ("lost", 1, 4, 1),
    ("duplicate", 2, 7, 1),
    ("stale", 3, 2, 2),
    ("disorder", 4, 8, 2),
    ("stale", 5, 0, 1),
    ("stale", 6, 0, 3),
    ("disorder", 9, 0, 1),
}


def test_every_planted_fault_is_found_and_nothing_else(planted: Audit) -> None:
    found = rows(planted.faults, "kind", "submission", "first", "count")
    assert set(found) == FAULTS and len(found) == len(FAULTS)


def test_faults_are_counted_in_chunks(planted: Audit) -> None:
    counts = planted.counts
    assert (counts.lost, counts.duplicate, counts.stale, counts.disorder) == (1, 1, 6, 3)
    assert counts.skipped == 7  # the rest of the cancelled one is no loss


def test_a_fault_names_its_tenant_and_says_why(planted: Audit) -> None:
    told = {(kind, tenant): why for kind, tenant, why in rows(planted.faults, "kind", "tenant", "why")}
    assert told["lost", "t1"] == "its submission ended as done without it"
    assert told["duplicate", "t2"] == "a second result was registered"
    assert "latest reservation" in told["stale", "t3"]


@pytest.fixture(scope="module")
def compared(spark: SparkSession) -> Audit:
    """A log without a fault, against a manifest, a listing and results that know better."""
    log = Log()
    for id in range(1, 6):
        log.submit(id, f"t{id}", 10).reserve(id, (id, 0, 10))
        if id < 5:
            log.complete(id, (id, 0, 10)).done(id, 10)
    manifest = [(id, f"t{id}", 10) for id in range(1, 6)] + [(6, "t6", 3)]
    manifest[1] = (2, "t2", 12)
    listing = [(id, f"t{id}", "completed", 10, 9 if id == 3 else 10) for id in range(1, 5)]  # 5 vanished
    results = [(id, i) for id in range(1, 5) for i in range(10) if (id, i) != (4, 6)] + [(1, 9), (1, 9)]
    return judge(
        log.frame(spark),
        manifest=spark.createDataFrame(manifest, "submission long, tenant string, chunks long"),
        listing=spark.createDataFrame(listing, LISTING),
        results=spark.createDataFrame(results, "submission long, index int"),
    )


def test_lost_is_the_manifest_minus_the_registered_results(compared: Audit) -> None:
    found = rows(compared.faults, "kind", "submission", "first", "count", "tenant")
    assert sorted(found, key=str) == sorted(
        [
            ("lost", 2, 10, 2, "t2"),  # the producer was told of 12
            ("lost", 3, None, 1, "t3"),  # the listing counts 9
            ("lost", 4, 6, 1, "t4"),  # its result cannot be read
            ("lost", 5, 0, 10, "t5"),  # neither listed nor ended
            ("lost", 6, 0, 3, "t6"),  # the queue never heard of it
            ("duplicate", 1, 9, 2, "t1"),  # three results of one chunk
        ],
        key=str,
    )
    assert (compared.counts.lost, compared.counts.duplicate) == (17, 2)


# -- beside a naive audit, on logs of real queues and on broken ones


KINDS = ("duplicate", "stale", "disorder", "dead", "skipped", "retries")


def real_log(seed: int) -> Iterator[Event]:
    """A queue in memory that everything happens to: retries, deaths, releases, lost leases, cancels, redrives."""
    dice = random.Random(seed)
    with fairway.open(":memory:") as q:
        q.configure(attempts_max=2, retry_delay_seconds=0.0)
        made = []
        for i in range(5):
            policy = dice.choice(["dead_letter", "fail_fast"])
            made.append(q.submit(chunks=dice.choice([1, 7, 300, 700]), tenant=f"t{i % 3}", policy=policy))
        old: list[fairway.Lease] = []
        for _ in range(60):
            leases = q.reserve(max=dice.choice([1, 20, 150]), lease_seconds=dice.choice([0.001, 60]))
            dice.shuffle(leases)
            cut = dice.randrange(len(leases) + 1)
            some, rest = leases[:cut], leases[cut:]
            getattr(q, dice.choice(["complete", "complete", "complete", "release"]))(some)
            if dice.random() < 0.2:
                q.fail(rest[:2], error="no")
            else:
                old += rest
            if dice.random() < 0.2:
                q.complete(old[:30])
        for ended in (made[0], made[1]):
            for verb in (q.cancel, q.redrive):
                try:
                    verb(ended.id)
                except fairway.FairwayError:
                    continue
        yield from q.events()


def broken(log: list[Event], dice: random.Random) -> list[Event]:
    """The log with something dropped, told twice, or told of another reservation or chunk."""
    log = list(log)
    for _ in range(4):
        at = dice.randrange(len(log))
        event = log[at]
        match dice.randrange(4):
            case 0 if event.what != "submitted":
                del log[at]
            case 1:
                log.append(msgspec.structs.replace(event, number=log[-1].number + 1))
            case 2 if event.reservation:
                log[at] = msgspec.structs.replace(event, reservation=event.reservation + 1)
            case _ if event.reservation and event.count > 1:
                log[at] = msgspec.structs.replace(event, count=event.count - 1)
    return log


def real_and_broken_logs() -> list[list[Event]]:
    """Four logs and three broken forms of each; more until every kind was seen, for leases run out when they do."""
    logs: list[list[Event]] = []
    seen: Counter[str] = Counter()
    for seed in range(40):
        sound = list(real_log(seed))
        counts = naive_counts(sound)
        assert not any(counts[kind] for kind in ("lost", "duplicate", "stale", "disorder")), counts
        some = [sound, *(broken(sound, random.Random(seed + 40 * form)) for form in range(3))]
        logs += some
        for log in some:
            seen.update(naive_counts(log))
        if seed >= 3 and all(seen[kind] for kind in KINDS):
            return logs
    raise AssertionError(f"40 logs and their broken forms show only {seen}")


def test_the_audit_counts_what_a_naive_one_counts_in_real_and_in_broken_logs(spark: SparkSession) -> None:
    whole: list[Event] = []
    for shift, log in enumerate(real_and_broken_logs()):  # one audit for all: each has submissions of its own
        ids = {id: shift * 1000 + i for i, id in enumerate(sorted({e.submission for e in log}))}
        whole += [msgspec.structs.replace(e, submission=ids[e.submission]) for e in log]
    naive = naive_counts(whole)
    audit = judge(spark.createDataFrame(table_of([batch_of(whole)])))
    for name in ("chunks", "completed", "dead", "skipped", "unfinished", "handed", "retries"):
        assert getattr(audit.counts, name) == naive[name], name
    for name in ("lost", "duplicate", "stale", "disorder"):
        assert getattr(audit.counts, name) == naive[name], name


# -- half a log, and bad arguments


def test_nothing_is_concluded_from_a_history_whose_beginning_is_gone(spark: SparkSession) -> None:
    log = Log().complete(1, (1, 0, 4)).reserve(2, (1, 4, 2)).done(1, 10)
    log.submit(2, "new", 1).reserve(3, (2, 0, 1)).complete(3, (2, 0, 1)).done(2, 1)
    listing = spark.createDataFrame([(1, "old", "completed", 10, 10), (2, "new", "completed", 1, 1)], LISTING)
    audit = judge(log.frame(spark), listing=listing)
    assert audit.counts.faults == 0
    assert (audit.counts.submissions, audit.counts.unlogged) == (2, 1)
    assert set(rows(audit.tenants, "tenant")) == {("old",), ("new",)}


def test_an_empty_log_says_so(spark: SparkSession) -> None:
    with pytest.raises(BadArgument, match="the event log is empty"):
        judge(Log().submit(1, "a", 1).frame(spark).where("false"))


@pytest.mark.parametrize("seconds", [0, -1, 1e-9])
def test_a_window_that_is_no_width_is_refused(spark: SparkSession, seconds: float) -> None:
    log = Log().submit(1, "a", 1).at(5).reserve(1, (1, 0, 1))
    with pytest.raises(BadArgument, match="window_seconds"):
        judge(log.frame(spark), window_seconds=seconds)
