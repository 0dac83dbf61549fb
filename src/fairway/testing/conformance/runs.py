"""Runs: levels, moves, ends, listings.

Guards: every run is active in one place, or ended and listed, and nothing in between.
"""

from __future__ import annotations

import pytest

from fairway.model.stored import Kind, Move, Put, StoredRun
from fairway.testing.conformance.owner import Owner


class RunRules:
    """Where a run is found."""

    def test_active_runs_come_in_level_order(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(3, 7), owner.row(1, 9)])
        owner.write(rows=[owner.row(2, 7), owner.row(4, 2**62)])
        assert owner.active() == [2, 3, 1, 4]
        assert next(owner.store.active()) == StoredRun(owner.id(2), 7, "", b"body 2")

    def test_a_move_takes_a_new_place(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1, 5), owner.row(2, 6)])
        owner.write(moves=[Move(owner.id(1), 5, 8)])
        assert owner.active() == [2, 1]
        assert owner.store.run(owner.id(1)) == StoredRun(owner.id(1), 8, "", b"body 1")

    def test_an_ended_run_leaves_the_levels_and_stays_readable(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1, 5, "acme", pages=(b"payload",)), owner.row(2, 6)])
        owner.write(puts=[Put(Kind.PROGRESS, owner.id(1), 0, b"progress")], ends=[owner.end(1, 5)])
        assert owner.active() == [2]
        ended = StoredRun(owner.id(1), 5, "acme", b"body 1", "completed", b"end 1")
        assert owner.store.run(owner.id(1)) == ended
        assert owner.store.ended("", None, {}, 0, 10) == [ended]
        assert owner.store.pages([(owner.id(1), 0)]) == {(owner.id(1), 0): b"payload"}

    def test_an_ended_run_lives_again_after_a_move(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1, 5)])
        owner.write(ends=[owner.end(1, 5, "failed", failed=2)])
        owner.write(moves=[Move(owner.id(1), 5, 9)])
        assert owner.store.run(owner.id(1)) == StoredRun(owner.id(1), 9, "", b"body 1")
        assert owner.ended() == owner.store.ended_failed(0, 9) == owner.store.ended_before(9.0, 9) == []
        owner.write(ends=[owner.end(1, 9, "cancelled")])
        assert (owner.active(), owner.ended("cancelled")) == ([], [1])

    def test_a_run_may_be_stored_and_ended_in_one_group(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1, 5)], ends=[owner.end(1, 5)])
        assert (owner.active(), owner.ended()) == ([], [1])

    def test_several_lives_in_one_group_apply_in_the_order_they_followed(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(n, 5) for n in (1, 2, 3, 5)], ends=[owner.end(3, 5), owner.end(5, 5)])
        owner.write(
            rows=[owner.row(4, 5)],
            moves=[Move(owner.id(n), 5, 6) for n in (1, 2, 3, 4)]
            + [Move(owner.id(2), 6, 6), Move(owner.id(5), 5, 5)],
            ends=[owner.end(n, 5) for n in (1, 2, 4)]
            + [
                owner.end(2, 6),
                owner.end(3, 6, "cancelled"),
                owner.end(5, 5, "cancelled"),
                owner.end(4, 6, "failed", failed=1),
            ],
        )
        assert owner.active() == [1, 2]
        assert (owner.ended("cancelled"), owner.ended("failed"), owner.ended()) == ([3, 5], [4], [3, 4, 5])
        assert [run.pass_ for run in owner.store.active()] == [6, 6]

    def test_ended_runs_are_listed_by_state_and_tenant(self, owner: Owner) -> None:
        states = {1: "completed", 2: "failed", 3: "cancelled", 4: "completed"}
        owner.write(rows=[owner.row(n, n, "ab"[n % 2]) for n in range(1, 6)])
        owner.write(ends=[owner.end(n, n, state) for n, state in reversed(states.items())])
        assert owner.ended() == [1, 2, 3, 4]
        assert owner.ended("completed") == [1, 4]
        assert owner.ended("", "b") == [1, 3]
        assert owner.ended("completed", "a") == [4]
        assert owner.ended("", "") == owner.ended("active") == []

    def test_ended_runs_are_listed_by_typed_metadata(self, owner: Owner) -> None:
        given: dict[int, dict[str, str | int]] = {
            1: {"k": 1},
            2: {"k": "1"},
            3: {"k": 1, "m": "x"},
            4: {},
            5: {"k": 1},
        }
        owner.write(rows=[owner.row(n, tenant="ab"[n % 2], metadata=given[n]) for n in given])
        owner.write(ends=[owner.end(1), owner.end(2), owner.end(3, state="failed"), owner.end(4)])
        assert owner.ended(k=1) == [1, 3]
        assert owner.ended(k="1") == [2]
        assert owner.ended(k=1, m="x") == owner.ended(m="x", k=1) == owner.ended("failed", k=1) == [3]
        assert owner.ended("", "b", k=1) == [1, 3]
        assert (
            owner.ended(m="y") == owner.ended(k=2) == owner.ended("", "a", k=1) == owner.ended(none=1) == []
        )

    @pytest.mark.parametrize("metadata", [{}, {"k": "v"}])
    def test_listings_are_paged_by_id(self, owner: Owner, metadata: dict[str, str | int]) -> None:
        owner.write(rows=[owner.row(n, metadata={"k": "v"}) for n in range(1, 8)])
        owner.write(ends=[owner.end(n, failed=1) for n in range(1, 8)])
        seen: list[int] = []
        dead: list[int] = []
        while page := owner.store.ended("", None, metadata, seen[-1] if seen else 0, 3):
            seen += [run.id for run in page]
        while page := owner.store.ended_failed(dead[-1] if dead else 0, 2):
            dead += [run.id for run in page]
        assert seen == dead == [owner.id(n) for n in range(1, 8)]

    def test_ended_runs_are_swept_oldest_first(self, owner: Owner) -> None:
        at = {1: 30.0, 2: 10.5, 3: 20.0, 4: 10.5}
        owner.write(rows=[owner.row(n) for n in at])
        owner.write(ends=[owner.end(n, at=time) for n, time in at.items()])
        assert owner.store.ended_before(30.0, 10) == [(at[n], owner.id(n)) for n in (2, 4, 3)]
        assert owner.store.ended_before(99.0, 2) == [(10.5, owner.id(2)), (10.5, owner.id(4))]
        assert owner.store.ended_before(10.5, 10) == []
        after = (0.0, 0)
        for n in (2, 4, 3, 1):
            (after,) = owner.store.ended_before(99.0, 1, after)
            assert after == (at[n], owner.id(n))
        assert owner.store.ended_before(99.0, 1, after) == []

    def test_runs_with_dead_chunks_are_listed(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(n) for n in (1, 2, 3)])
        owner.write(ends=[owner.end(1), owner.end(2, failed=3), owner.end(3, state="failed")])
        assert [run.id for run in owner.store.ended_failed(0, 9)] == [owner.id(2)]
