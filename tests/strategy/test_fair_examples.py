"""The fairness of the design, one promise a test, on the real tables and plans."""

from __future__ import annotations

import random

import pytest

from tests.strategy.desk import Desk

MANY = 1_000_000


def test_a_a_a_a_b_gives_a_b_a_a_a() -> None:
    desk = Desk()
    for tenant in "aaaab":
        desk.submit(tenant)
    assert desk.order(10) == "abaaa"


def test_five_of_a_three_dispatched_then_b_b_a_gives_b_a_b_a_a() -> None:
    desk = Desk()
    for _ in range(5):
        desk.submit("a")
    assert desk.order(3) == "aaa"
    for tenant in "bba":
        desk.submit(tenant)
    assert desk.order(10) == "babaa"


def test_weights_5_3_2_interleave() -> None:
    desk = Desk()
    for tenant, weight, messages in (("a", 5, 10), ("b", 3, 6), ("c", 2, 4)):
        desk.set_weight(tenant, weight)
        for _ in range(messages):
            desk.submit(tenant)
    order = desk.order(20)
    assert order[:15] == "abacababacabaca"
    assert sorted(order[:10]) == sorted(order[10:]) == sorted("aaaaabbbcc")


def test_inside_a_tenant_the_oldest_submission_goes_first_and_a_returned_chunk_before_it() -> None:
    desk = Desk()
    first, second = desk.submit("a", 3), desk.submit("a", 2)
    assert desk.take(3) == [(first, 0), (first, 1), (first, 2)]
    desk.give_back(first, 1)
    desk.give_back(first, 0)
    assert desk.take(4) == [(first, 0), (first, 1), (second, 0), (second, 1)]


def test_ping_pong_gives_half_and_half() -> None:
    desk = Desk()
    desk.submit("a", MANY)
    served = {"a": 0, "b": 0}
    for _ in range(1000):
        if not desk.waiting["b"]:
            desk.submit("b")
        served[desk.order(1)] += 1
        desk.tables.forget_due()
    assert served == {"a": 500, "b": 500}


@pytest.mark.parametrize(("weight", "at_least", "wait_at_most"), [(1.0, 61, 61), (100.0, 4, 505)])
def test_a_stream_of_fresh_names_does_not_starve(weight: float, at_least: int, wait_at_most: int) -> None:
    desk = Desk()
    desk.submit("a", MANY)
    waits, last = [], 0
    for step in range(2000):
        name = f"fresh {step}"
        if weight != 1.0:
            desk.set_weight(name, weight)
        desk.submit(name)
        if desk.served(1) == ["a"]:
            waits.append(step - last)
            last = step
        desk.tables.forget_due()
    assert len(waits) >= at_least
    assert max([*waits, 2000 - last]) <= wait_at_most + 1


def test_names_that_appear_after_v_has_moved_are_never_before_one_who_waits() -> None:
    desk = Desk()
    for tenant in ("a", "b", "c"):
        desk.submit(tenant, MANY)
    desk.served(30)
    desk.submit("waits", MANY)
    v = desk.turns.v
    order: list[str] = []
    for step in range(50):
        if desk.turns.v != v:
            desk.submit(f"late {step}")
        order += desk.served(1)
        if order[-1] == "waits":
            break
    assert order[-1] == "waits" and not any(name.startswith("late") for name in order)


def test_one_full_and_five_sporadic_tenants_wait_at_most_a_round() -> None:
    desk = Desk()
    desk.submit("full", MANY)
    came: dict[str, int] = {}
    waits = []
    for step in range(5000):
        for i in range(5):
            name = f"sporadic {i}"
            if (step * 7 + i * 13) % (17 + 5 * i) == 0 and not desk.unfinished[name]:
                desk.submit(name)
                came[name] = step
        (name,) = desk.served(1)
        if name in came:
            waits.append(step - came.pop(name))
        desk.tables.forget_due()
    assert len(waits) > 500
    assert max(waits) <= 6  # each of the five others, and its own turn
    assert desk.turns.turn.keys() <= {"full"} | came.keys() | {f"sporadic {i}" for i in range(5)}


def test_a_newcomer_after_newest_first_consumers_gets_its_share_and_no_more() -> None:
    desk = Desk()
    for tenant in "ab":
        desk.submit(tenant, MANY)
    desk.served(20_000, "NewestFirst")
    desk.submit("n", MANY)
    served = desk.served(999)
    assert {t: served.count(t) for t in "abn"} == {"a": 333, "b": 333, "n": 333}


@pytest.mark.parametrize("other", ["OldestFirst", "NewestFirst", "Random"])
def test_a_dispatch_charges_only_the_table_whose_order_chose_it(other: str) -> None:
    desk = Desk()
    for tenant in "ab":
        desk.submit(tenant, MANY)
    desk.served(10)
    before = desk.turns.v, dict(desk.turns.turn), dict(desk.turns.rest)
    desk.served(5000, other)
    assert (desk.turns.v, desk.turns.turn, desk.turns.rest) == before
    served = desk.served(1000)
    assert served.count("a") == served.count("b") == 500


def test_a_newcomer_after_a_restart_waits_as_it_would_have_without_one() -> None:
    orders = []
    for restart in (False, True):
        desk = Desk()
        for tenant in "abc":
            desk.submit(tenant, MANY)
        desk.served(1000)
        if restart:
            desk.restart()
        desk.submit("n", MANY)
        orders.append(desk.order(24))
    assert orders[0] == orders[1]
    assert orders[0].index("n") <= 3


def test_the_order_of_what_is_not_yet_leased_is_unchanged_by_a_restart_at_any_point() -> None:
    def history(restart_at: int) -> list[tuple[int, int]]:
        rng, desk, out = random.Random(3), Desk(), list[tuple[int, int]]()
        order: list[tuple[int, int]] = []
        for step in range(200):
            x, tenant = rng.random(), rng.choice("abcd")
            if x < 0.35:
                desk.submit(tenant, rng.randint(1, 4))
            elif x < 0.65:
                got = list(desk.take(rng.randint(1, 3)))
                order += got
                out += got
            elif x < 0.85 and out:
                id, index = out.pop(rng.randrange(len(out)))
                (desk.complete if rng.random() < 0.7 else desk.give_back)(id, index)
            elif x < 0.9:
                desk.set_weight(tenant, rng.choice([0.5, 1, 3, 7.777]))
            elif x < 0.95:
                desk.pause_tenant(tenant, rng.random() < 0.4)
            desk.tables.forget_due()
            desk.store()  # a group
            if step == restart_at:
                desk.restart()
        return order + desk.take(1000)

    expected = history(-1)
    assert len(expected) > 60
    for step in range(200):
        assert history(step) == expected, step


def test_a_tenant_that_returns_from_idleness_gets_at_most_one_turn() -> None:
    for forget in (False, True):
        desk = Desk()
        for tenant, n in (("a", MANY), ("b", MANY), ("c", 1)):
            desk.submit(tenant, n)
        desk.served(1003)
        if forget:
            assert desk.tables.forget_due() == ["c"]
        desk.submit("c", MANY)
        assert desk.order(8) == "cabcabca"


def test_a_tenant_that_returns_while_a_long_lease_holds_back_the_ack_level_gets_at_most_one_turn() -> None:
    desk = Desk()
    desk.submit("long", 1)
    (held,) = desk.take(1)  # never completed: A stands still
    for tenant in "ab":
        for _ in range(2000):
            desk.submit(tenant)
    desk.submit("c")
    desk.served(3001)
    assert desk.acked.ack == (0, 0)
    for _ in range(9):
        desk.submit("c")
    assert desk.order(9) == "cabcabcab"
    desk.complete(*held)
    assert desk.acked.ack > (0, 0)


def test_paused_time_earns_at_most_one_turn_and_pause_acts_at_once() -> None:
    desk = Desk()
    for tenant in "abc":
        desk.submit(tenant, MANY)
    assert set(desk.served(300)) == set("abc")
    desk.pause_tenant("a", True)
    assert set(desk.served(3000)) == set("bc")
    desk.pause_tenant("a", False)
    order = desk.order(300)
    assert order.startswith("aabcabcabc")
    assert order.count("a") == 101


def test_a_paused_submission_lets_the_next_one_of_its_tenant_pass() -> None:
    desk = Desk()
    first, second = desk.submit("a", 3), desk.submit("a", 3)
    desk.submit("b", 3)
    desk.pause(first, True)
    assert [id for id, _ in desk.take(2)] == [second, 3]
    desk.pause(first, False)
    assert [id for id, _ in desk.take(7)][:2] == [first, 3]


def test_a_new_weight_acts_at_once_on_an_existing_backlog() -> None:
    desk = Desk()
    for tenant in "ab":
        desk.submit(tenant, MANY)
    desk.served(1000)
    desk.set_weight("a", 4)
    assert desk.order(1000) == "aaaab" * 200
    desk.set_weight("a", 0.01)
    desk.served(1000)
    desk.set_weight("a", 1)
    served = desk.served(100)
    assert served.index("a") <= 1 and abs(served.count("a") - 50) <= 1


def test_light_newcomers_do_not_push_a_heavy_tenant_aside() -> None:
    desk = Desk()
    desk.set_weight("heavy", 100)
    desk.submit("heavy", MANY)
    desk.served(500)
    for i in range(1000):
        desk.set_weight(f"light {i}", 0.01)
        desk.submit(f"light {i}", 10)
    assert desk.served(1001).count("heavy") == 1001


def test_many_names_get_what_many_tenants_would_get() -> None:
    desk = Desk()
    desk.submit("one", MANY)
    for i in range(50):
        desk.submit(f"name {i}", MANY)
    assert 39 <= desk.served(2000).count("one") <= 40
