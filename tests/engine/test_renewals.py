"""Renewals: new deadlines for some leases of a reservation, in every mixture of objects and journal."""

from __future__ import annotations

import pytest

from tests.engine.desk import Desk, attempts, chunks, small_journal, some


def test_a_renewal_moves_only_its_own_deadline() -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve(3, lease=40)
    assert desk.renew(some(held, (x, 1)), 100) == ["renewed"]
    desk.restart()
    desk.pass_time(39)
    assert desk.stats().chunks_leased == 3
    desk.pass_time(2)
    assert chunks(desk.reserve(3)) == [(x, 0), (x, 2)]
    assert desk.complete(held) == ["lost", "done", "lost"]


@pytest.mark.parametrize("groups", [0, 1, 512])
@pytest.mark.parametrize("renewed", [[0], [0, 1], [0, 1, 0], [2, 2, 0]])
def test_renewed_leases_survive_restarts_in_every_mixture_of_objects_and_journal(
    monkeypatch, groups, renewed
) -> None:
    small_journal(monkeypatch, groups, 256)

    def others() -> None:
        for _ in range(4):
            desk.submit("z")

    desk = Desk()
    x = desk.submit(n=4)
    held = desk.reserve(3, lease=500)
    others()
    for index in renewed:
        desk.renew(some(held, (x, index)), 600)
        desk.restart()
        others()
    desk.complete(some(held, (x, 0)))
    others()
    desk.restart()
    assert desk.complete(held) == ["already", "done", "done"]


def test_a_lease_given_back_and_taken_again_in_one_group_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record is rewritten while the journal still tells of the earlier one."""
    small_journal(monkeypatch, 1, 1)
    desk = Desk()
    x = desk.submit("a")
    with desk.one_group():
        desk.submit("b", delay=50)
        desk.release(desk.reserve())
        held = desk.reserve(lease=600)
    for _ in range(8):
        desk.submit("z")
    desk.restart()
    assert chunks(held) == [(x, 0)] and desk.complete(held) == ["done"]


def test_a_chunk_named_twice_in_a_call_is_renewed_once() -> None:
    desk = Desk()
    x = desk.submit(n=2)
    held = desk.reserve(2)
    assert desk.renew(some(held, (x, 0), (x, 0), (x, 0)), 100) == ["renewed"] * 3
    desk.restart()
    desk.pass_time(200)
    assert sorted(attempts(desk.reserve(2))) == [2, 2]


def test_a_chunk_named_twice_in_a_call_is_answered_once() -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve(3)
    assert desk.complete(some(held, (x, 0), (x, 0)), [b"1", b"2"]) == ["done", "already"]
    assert desk.fail(some(held, (x, 1), (x, 1))) == ["retrying", "lost"]
    assert desk.release(some(held, (x, 2), (x, 2))) == ["released", "lost"]
    assert desk.show(x).done == 1


@pytest.mark.parametrize("later", range(6))
@pytest.mark.parametrize("objects", [1, 2])
def test_a_start_finds_the_new_part_of_a_hold_stored_and_the_old_one_not(
    monkeypatch, objects: int, later: int
) -> None:
    """Both differ from what is stored; a crash comes between the two groups that write them."""
    small_journal(monkeypatch, 8, objects)
    desk = Desk()
    x = desk.submit(n=4)
    held = desk.reserve(3, lease=500)
    for n in range(12):
        desk.submit(f"z{n % 3}")
    desk.renew(some(held, (x, 0)), 600)
    desk.restart()
    for n in range(later):
        desk.submit(f"v{n}")
    desk.restart()
    assert desk.complete(held) == ["done"] * 3
