"""Steering: three pauses, weights and configuration, each durable and at once."""

from __future__ import annotations

from itertools import product

import pytest

from fairway.engine.commands import Explain
from fairway.errors import BadArgument, BadStrategy
from tests.engine.desk import Desk, chunks, some


def test_the_three_pauses_are_independent_and_durable() -> None:
    desk = Desk()
    x, y = desk.submit("a", 50), desk.submit("b", 50)
    for queue, tenant, submission in product([False, True], repeat=3):
        (desk.pause if queue else desk.resume)()
        (desk.pause if tenant else desk.resume)(tenant="a")
        (desk.pause if submission else desk.resume)(submission=x)
        for _ in range(2):
            got = {id for id, _ in chunks(desk.reserve(4))}
            free = set() if queue else {y} if tenant or submission else {x, y}
            assert got == free
            assert desk.stats().paused == queue and desk.show(x).paused == submission
            desk.restart()


def test_leases_out_go_on_while_paused() -> None:
    desk = Desk()
    x = desk.submit(n=4)
    held = desk.reserve(3)
    desk.pause(), desk.pause(tenant="a"), desk.pause(submission=x)
    assert desk.complete(some(held, (x, 0))) == ["done"]
    assert desk.renew(some(held, (x, 1)), 100) == ["renewed"]
    assert desk.release(some(held, (x, 2))) == ["released"]
    assert desk.reserve(9).spans == []
    desk.resume(), desk.resume(tenant="a"), desk.resume(submission=x)
    assert chunks(desk.reserve(9)) == [(x, 2), (x, 3)]


def test_a_tenant_may_be_paused_before_it_has_anything_and_after() -> None:
    desk = Desk()
    desk.pause(tenant="new")
    desk.restart()
    x = desk.submit("new")
    assert desk.reserve().spans == []
    desk.resume(tenant="new")
    desk.restart()
    assert desk.drain() == [(x, 0)]
    desk.resume(tenant="never seen")
    assert "never seen" not in desk.state.tenants


def test_a_bad_strategy_is_refused_even_while_paused() -> None:
    desk = Desk()
    desk.pause()
    with pytest.raises(BadStrategy):
        desk.reserve(strategy="Foul")


def test_a_weight_change_acts_at_once_on_the_backlog() -> None:
    desk = Desk()
    desk.submit("a", 400), desk.submit("b", 400)
    assert desk.tenants_of(desk.reserve(40)).count("a") == 20
    desk.weigh("a", 3000)
    desk.restart()
    assert desk.tenants_of(desk.reserve(40)).count("a") == 30
    desk.submit("b", 1, weight=3000)
    assert abs(desk.tenants_of(desk.reserve(40)).count("a") - 20) <= 1


def test_a_weight_belongs_to_the_tenant_and_the_latest_wins() -> None:
    desk = Desk()
    desk.submit("a", 5, weight=2500)
    desk.weigh("a", 7)
    desk.drain()
    desk.restart()
    assert desk.state.tables.weight == {"a": 7}
    desk.weigh("a", 1000)
    desk.restart()
    assert desk.state.tables.weight == {}


def test_a_weight_given_with_every_submit_gains_nothing() -> None:
    """Scaling rounds in the tenant's favour; a weight that does not change must not scale."""
    desk = Desk(audited=False)
    heavy = 99_020  # a stride of 100.99
    desk.weigh("plain", heavy)
    desk.submit("plain", 2000)
    counts = {"plain": 0, "again": 0}
    for _ in range(700):
        desk.submit("again", 3, weight=heavy)
        for tenant in desk.tenants_of(desk.reserve(2)).split("again"):
            counts["plain"] += len(tenant) // len("plain")
    counts["again"] = 1400 - counts["plain"]
    assert abs(counts["plain"] - counts["again"]) <= 2
    desk.audit()


def test_the_configuration_is_durable_and_checked_whole() -> None:
    desk = Desk()
    desk.configure(attempts_max=2, lease_seconds=5.0, strategy=" OldestFirst( ) ")
    with pytest.raises(BadArgument):
        desk.configure(attempts_max=3, lease_seconds=-1.0)
    with pytest.raises(BadStrategy):
        desk.configure(strategy="Unknown")
    desk.restart()
    config = desk.state.config
    assert (config.attempts_max, config.lease_seconds, config.strategy) == (2, 5.0, "OldestFirst")
    desk.submit("a", 2), desk.submit("b", 2)
    assert desk.tenants_of(desk.reserve(4)) == "aabb"


def test_a_locked_strategy_binds_everybody() -> None:
    desk = Desk()
    desk.submit("a", 2)
    desk.configure(strategy="NewestFirst", strategy_locked=True)
    with pytest.raises(BadStrategy):
        desk.reserve(strategy="Fair")
    assert desk.reserve(strategy="NewestFirst").spans and desk.reserve().spans


def test_explain_says_why_others_wait() -> None:
    desk = Desk()
    desk.submit("soon", delay=60), desk.submit("held"), desk.submit("next")
    desk.pause(tenant="held")
    told = desk.call(Explain())
    assert "tenant 'next'" in told and "not before 60 s from now" in told and "its tenant is paused" in told


@pytest.mark.parametrize("strategy", ["CustomPriority", "OldestFirst", "NewestFirst", "Fair"])
def test_explain_names_first_what_comes_first(strategy: str) -> None:
    desk = Desk()
    for i in range(6):
        desk.submit("abc"[i % 3], 1, priority=i % 2 + (i == 3))
    told = desk.call(Explain(strategy))
    ((id, _),) = chunks(desk.reserve(1, strategy))
    assert f"submission {id}" in told.splitlines()[1]


def test_explain_tells_of_every_block() -> None:
    desk = Desk()
    fast = desk.submit("acme", 3, metadata={"mode": "preview"})
    slow = desk.submit("zenith", 2)
    strategy = 'OrElse(SelectOnly("mode", "preview", OldestFirst), MaxSimultaneous("tenant", 1, Fair))'

    def told() -> str:
        return desk.call(Explain(strategy, 4))

    before = told()
    assert f"1. to 3. tenant 'acme', submission {fast}, by step 1 of 2" in before
    assert f"4. tenant 'zenith', submission {slow}, by step 2 of 2" in before
    assert [id for id, _ in chunks(desk.reserve(4, strategy))] == [fast] * 3 + [slow], "it says what comes"
    after = told()
    assert "nothing can be handed out by it now" in after
    assert "limit tenant=zenith: 1 of 1 in flight" in after
