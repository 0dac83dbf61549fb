"""Recent figures: rates, shares, fairness and waits, from looks at a queue that are made up."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace

import pytest

from fairway import limits
from fairway.engine.commands import QueueStats, TenantView
from fairway.server.web import wording
from fairway.server.web.recent import Recent, jain
from fairway.server.web.tail import first_since
from fairway.server.web.waits import Waits, percentile, step_of
from fairway.server.web.watching import View, Watch


def stats(handed: int = 0, completed: int = 0, tenants: int = 0) -> QueueStats:
    return QueueStats("q", 0, 0, 0, 0, 0, tenants, 0, 0, False, 0, 0, 0, 0, handed, completed)


def tenant(name: str, handed: int, waiting: int = 100, weight: float = 1.0, **more) -> TenantView:  # type: ignore[no-untyped-def]
    return TenantView(name, weight, more.get("paused", False), 1, waiting, 0, handed, more.get("oldest", 0.0))


def watched(rates: dict[str, int], weights: dict[str, float] | None = None, seconds: int = 20) -> Recent:
    """What is known after so many seconds in which each tenant got so many chunks per second."""
    recent = Recent()
    for second in range(seconds + 1):
        tenants = [tenant(n, rate * second, weight=(weights or {}).get(n, 1.0)) for n, rate in rates.items()]
        handed = sum(rates.values()) * second
        recent.look(1000.0 + second, stats(handed, handed // 2), tenants)
    return recent


def test_jain_is_one_for_equal_shares_and_one_in_n_for_one_taker() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)


def test_throughput_is_what_moved_since_the_point_before() -> None:
    last = watched({"a": 30, "b": 10}).points[-1]
    assert (last.time, last.handed, last.completed) == (1020.0, 40.0, 20.0)


def test_the_share_is_of_what_everybody_was_handed_and_the_due_one_by_weight() -> None:
    lines, others = watched({"a": 30, "b": 10}, {"a": 3.0}).top()
    assert others is None
    assert {one.name: (one.share, one.due) for one in lines} == {"a": (0.75, 0.75), "b": (0.25, 0.25)}


def test_a_clock_that_is_set_back_stops_no_chart() -> None:
    recent = watched({"a": 30, "b": 10})
    for second in range(3):
        recent.look(500.0 + second, stats(10_000 + second * 7, 5_000), [tenant("a", 10_000 + second * 7)])
    times = [point.time for point in recent.points]
    assert times == [500.0, 501.0, 502.0]
    assert recent.points[-1].handed == 7.0


def test_who_wanted_nothing_for_a_while_has_a_share_and_no_due_one() -> None:
    recent = Recent()
    for second in range(21):
        two = [tenant("a", 20 * second), tenant("b", 10 * second)]
        recent.look(1000.0 + second, stats(40 * second), [*two, tenant("c", 10 * second, waiting=second % 2)])
    lines, _ = recent.top()
    shares = {one.name: (one.share, one.due) for one in lines}
    assert shares == {"a": (0.5, 0.375), "b": (0.25, 0.375), "c": (0.25, 0.0)}


def test_fairness_is_by_weight_and_among_those_that_wait() -> None:
    assert watched({"a": 30, "b": 10}, {"a": 3.0}).fairness == pytest.approx(1.0)
    assert watched({"a": 30, "b": 10}).fairness == pytest.approx(0.8)
    assert watched({"a": 30}).fairness is None  # nobody to be fair to
    assert watched({"a": 30, "b": 10}, seconds=5).fairness is None  # too early to tell


def test_who_came_late_or_is_paused_does_not_count_for_fairness() -> None:
    recent = watched({"a": 30, "b": 30})
    recent.look(1021.0, stats(1260, 630), [tenant("a", 630), tenant("b", 630), tenant("c", 0)])
    assert recent.fairness == pytest.approx(1.0)


def test_who_is_paused_is_due_nothing_and_does_not_count_for_fairness() -> None:
    recent = Recent()
    for second in range(21):
        two = [tenant("a", 30 * second), tenant("b", 30 * second)]
        recent.look(1000.0 + second, stats(60 * second), [*two, tenant("held", 0, paused=True)])
    assert recent.fairness == pytest.approx(1.0)
    lines, _ = recent.top()
    assert {one.name: one.due for one in lines} == {"a": 0.5, "b": 0.5, "held": 0.0}


def test_another_host_starts_the_counting_anew() -> None:
    recent = watched({"a": 30, "b": 10})
    recent.look(1021.0, stats(5, 0), [tenant("a", 5)])
    assert recent.points[-1].handed is None or recent.points[-1].handed >= 0
    recent.look(1022.0, stats(12, 7), [tenant("a", 12)])
    assert (recent.points[-1].handed, recent.points[-1].completed) == (7.0, 7.0)
    ((line,), _) = recent.top()
    assert line.share == 1.0


def test_a_look_between_two_points_adds_none() -> None:
    recent = watched({"a": 30})
    before = len(recent.points)
    recent.look(1020.3, stats(700, 300), [tenant("a", 700)])
    assert len(recent.points) == before
    recent.look(1021.3, stats(713, 310), [tenant("a", 713)])
    assert recent.points[-1].handed == pytest.approx((713 - 600) / 1.3)


def test_twenty_tenants_are_shown_and_the_others_together() -> None:
    recent = Recent()
    many = [tenant(f"t{i:03}", 0, waiting=1000 - i, oldest=50.0 + i) for i in range(100)]
    recent.look(1000.0, stats(), many)
    for i in range(100):
        recent.waits.add(1000.0, f"t{i:03}", float(i + 1))
    lines, others = recent.top()
    assert [one.name for one in lines] == [f"t{i:03}" for i in range(limits.METRIC_TENANTS_MAX)]
    assert others is not None
    assert (others.tenants, others.waiting, others.oldest) == (
        80,
        sum(1000 - i for i in range(20, 100)),
        70.0,
    )
    assert others.median is not None and 60 <= others.median <= 60 * 1.2


def test_what_is_kept_of_many_tenants_is_bounded() -> None:
    recent = Recent()
    most = limits.DASHBOARD_TRACKED_TENANTS_MAX
    for second in range(3):
        recent.look(
            1000.0 + second, stats(second), [tenant(f"t{i}", second, waiting=i) for i in range(most + 50)]
        )
    assert len(recent._samples[-1].by_tenant) == len(recent._wants) == most
    for i in range(most + 50):
        recent.waits.add(1002.0, f"t{i}", 1.0)
    (_, slice_), *_ = recent.waits._slices
    assert len(slice_) == most + 1  # and those that are counted together
    assert recent.waits.of_others([]).total() == most + 50


def test_a_seed_draws_the_seconds_before_the_first_look() -> None:
    recent = Recent()
    recent.seed(1000.5, {998: 4}, {999: 3}, 996.2)
    assert [(p.time, p.handed, p.completed) for p in recent.points] == [
        (997.0, 0.0, 0.0), (998.0, 4.0, 0.0), (999.0, 0.0, 3.0),
    ]  # fmt: skip
    recent.seed(1e6, {}, {}, 0.0)
    assert len(recent.points) == limits.DASHBOARD_HISTORY_SECONDS


def test_percentiles_are_true_within_a_step() -> None:
    dice = random.Random(7)
    waits = Waits()
    told = sorted(dice.expovariate(0.3) for _ in range(2000))
    for one in told:
        waits.add(100.0, "a", one)
    for part in (0.5, 0.95, 0.99):
        exact = told[int(len(told) * part) - 1]
        found = percentile(waits.of(["a"]), part)
        assert found is not None and exact <= found * 1.0001 and found <= exact * 1.21
    assert percentile(waits.of(["b"]), 0.5) is None
    assert step_of(0.0) == 0 and step_of(1e12) == step_of(limits.DELAY_SECONDS_MAX)


def test_old_waits_are_forgotten() -> None:
    waits = Waits(100.0)
    for second in range(0, 300, 5):
        waits.add(float(second), "a", 1.0 if second < 150 else 9.0)
    assert percentile(waits.of(["a"]), 0.01) == pytest.approx(9.0, rel=0.21)
    waits.forget(1000.0)
    assert waits.of(["a"]).total() == 0


@pytest.mark.parametrize("seed", range(20))
def test_the_tail_of_a_log_is_found_in_few_reads(seed: int) -> None:
    dice = random.Random(seed)
    number, at, rows = 0, 0.0, []
    for _ in range(dice.choice([0, 1, 2, 500])):
        number += dice.choice([1, 1, 1, 40, 1000])
        at += dice.choice([0.0, 0.1, 5.0])
        rows.append((number, at, b""))
    reads = 0

    async def read(after: int, limit: int) -> list[tuple[int, float, bytes]]:
        nonlocal reads
        reads += 1
        return [row for row in rows if row[0] > after][:limit]

    for since in (-1.0, 0.0, at / 2, at, at + 1, float("inf")):
        reads = 0
        found = asyncio.run(first_since(read, since))
        assert found == max((row[0] for row in rows if row[1] < since), default=0)
        assert reads < 60


def test_figures_are_worded_for_people() -> None:
    assert [wording.short(x) for x in (None, 0, 3.25, 999, 12_345, 2_500_000, 3e9)] == [
        "\N{EN DASH}", "0", "3.2", "999", "12.3k", "2.5M", "3G",
    ]  # fmt: skip
    assert [wording.duration(x) for x in (0.0004, 0.25, 3.14, 42, 75, 660, 3700, 90_000, 500_000)] == [
        "1 ms", "250 ms", "3.1 s", "42 s", "1 min 15 s", "11 min", "1 h 1 min", "25 h", "5 d",
    ]  # fmt: skip
    assert wording.blob(b"\xff\x00") == "ff 00" and wording.blob(b"text") == "text"
    assert wording.moment(1e300) == wording.NONE


def test_a_viewer_gets_the_next_look_after_a_machine_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is frozen for longer than a watch lingers goes on with its looks when it is woken."""

    async def story() -> None:
        watch = Watch("q", None)  # type: ignore[arg-type]
        now = [0.0]
        monkeypatch.setattr("fairway.server.web.watching.time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr("fairway.server.web.watching.limits.DASHBOARD_SECONDS", 0.01)

        async def get(_: str) -> None:
            return None

        async def look(_: object) -> View:
            number = watch._view.number + 1 if watch._view else 1
            return View(number, 0.0, stats(), [], None, [], None, None, None)

        watch._get, watch._look = get, look  # type: ignore[method-assign,assignment]
        first = await watch.view()
        waiting = asyncio.ensure_future(watch.view(first.number + 2))
        await asyncio.sleep(0)
        now[0] += 10 * limits.DASHBOARD_LINGER_SECONDS
        assert (await asyncio.wait_for(waiting, 30)).number > first.number + 2
        await watch.close()

    asyncio.run(story())
