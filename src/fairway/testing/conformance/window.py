"""What the window reads: runs above a level, of a tenant, with metadata, by their times, with their progress.

Guards: a read is complete up to its limit and in order, whatever ended, moved or was deleted before it.
"""

from __future__ import annotations

import pytest

from fairway.errors import StoreFailed
from fairway.model.ids import ID_MAX
from fairway.model.stored import Drop, Kind, Move, Put, Row, StoredRun
from fairway.store.port import Level, Store
from fairway.testing.conformance.owner import Make, Owner

_MANY = 10_000


def _timed(owner: Owner, n: int, due: float = 0.0, deadline: float = 0.0) -> Row:
    return Row(owner.id(n), n, "", due, {}, b"body", (), deadline)


class WindowRules:
    """Reads of a part of the active runs."""

    def _above(self, owner: Owner, level: Level, limit: int = _MANY, **more: object) -> list[int]:
        runs = owner.store.above(level, limit, **more)  # pyright: ignore[reportArgumentType]
        return [run.id >> 22 for run in runs if run.state == "active"]

    def test_runs_above_a_level_come_in_level_order(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(n, pass_) for n, pass_ in ((1, 9), (2, 7), (3, 7), (4, 2**62))])
        assert self._above(owner, (0, 0)) == [2, 3, 1, 4]
        assert self._above(owner, (7, owner.id(2))) == [3, 1, 4]
        assert self._above(owner, (7, owner.id(2)), 2) == [3, 1]
        assert self._above(owner, (0, 0), upto=(9, owner.id(1))) == [2, 3, 1]
        assert self._above(owner, (2**62, owner.id(4))) == []

    def test_runs_above_a_level_are_read_by_tenant(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(n, n, "ab"[n % 2]) for n in range(1, 8)])
        owner.write(ends=[owner.end(3, 3)])
        assert self._above(owner, (0, 0), 2, tenant="b") == [1, 5]
        assert self._above(owner, (5, owner.id(5)), tenant="b") == [7]
        assert self._above(owner, (0, 0), upto=(4, owner.id(4)), tenant="a") == [2, 4]
        assert self._above(owner, (0, 0), tenant="c") == []
        owner.write(moves=[Move(owner.id(5), 5, 9), Move(owner.id(3), 3, 8)])
        assert self._above(owner, (0, 0), tenant="b") == [1, 7, 3, 5], "also where they moved to"

    def test_a_read_ends_with_the_run_that_makes_its_bodies_long_enough(self, owner: Owner) -> None:
        """So a reader can tell that there may be more; and one at least comes, however long it is."""
        rows = [Row(owner.id(n), n, "ab"[n % 2], 0.0, {"k": 1}, bytes(100 * n), ()) for n in range(1, 7)]
        owner.write(rows=rows)

        def listed(bytes_max: int, limit: int = _MANY) -> list[int]:
            found = owner.store.listed(None, {"k": 1}, 0, limit, bytes_max=bytes_max)
            assert found == owner.store.listed(None, {}, 0, limit, bytes_max=bytes_max)
            return [run.id >> 22 for run in found]

        for bytes_max, wanted in ((1, [1]), (300, [1, 2]), (301, [1, 2, 3]), (2100, [1, 2, 3, 4, 5, 6])):
            assert self._above(owner, (0, 0), bytes_max=bytes_max) == listed(bytes_max) == wanted
        assert self._above(owner, (0, 0), 1, bytes_max=301) == listed(301, 1) == [1]
        assert self._above(owner, (4, owner.id(4)), bytes_max=1) == [5]
        assert self._above(owner, (0, 0), tenant="b", bytes_max=400) == [1, 3], "of those that are asked for"
        assert self._above(owner, (6, owner.id(6)), bytes_max=1) == []

    def test_active_runs_come_with_their_progress(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1, 5), owner.row(2, 6, metadata={"k": "v"})])
        owner.write(puts=[Put(Kind.PROGRESS, owner.id(2), 0, b"half"), Put(Kind.PAGE, owner.id(1), 0, b"no")])
        one, two = StoredRun(owner.id(1), 5, "", b"body 1"), StoredRun(owner.id(2), 6, "", b"body 2")
        with_progress = StoredRun(two.id, 6, "", b"body 2", progress=b"half")
        assert owner.store.above((0, 0), 9) == owner.store.listed(None, {}, 0, 9) == [one, with_progress]
        assert owner.store.listed(None, {"k": "v"}, 0, 9) == [with_progress]
        assert owner.store.run(two.id) == with_progress
        assert list(owner.store.active()) == [one, two], "which are read without it at a start"
        owner.write(drops=[Drop(Kind.PROGRESS, owner.id(2), 0)])
        assert owner.store.above((0, 0), 9) == [one, two]

    def test_active_runs_are_listed_by_tenant_and_metadata_in_id_order(self, owner: Owner) -> None:
        given: dict[int, dict[str, str | int]] = {
            1: {"k": 1},
            2: {"k": "1"},
            3: {"k": 1, "m": "x"},
            4: {},
            5: {"k": 1},
        }
        owner.write(rows=[owner.row(n, 9 - n, "ab"[n % 2], metadata=given[n]) for n in given])
        owner.write(ends=[owner.end(5, 4)])

        def listed(
            tenant: str | None = None, after: int = 0, limit: int = 9, **pairs: str | int
        ) -> list[int]:
            return [run.id >> 22 for run in owner.store.listed(tenant, pairs, after, limit)]

        assert (listed(), listed("b"), listed(limit=2), listed(after=owner.id(2))) == (
            [1, 2, 3, 4], [1, 3], [1, 2], [3, 4],
        )  # fmt: skip
        assert (listed(k=1), listed(k="1"), listed(m="x", k=1), listed(k=2)) == ([1, 3], [2], [3], [])
        assert (listed("a", k=1), listed("b", k=1, limit=1), listed(k=1, after=owner.id(1))) == ([], [1], [3])

    def test_times_are_those_of_active_runs_in_order(self, owner: Owner) -> None:
        owner.write(rows=[_timed(owner, 1, 30.5), _timed(owner, 2, 20.0, 50.0), _timed(owner, 3)])
        owner.write(rows=[_timed(owner, 4, 20.0), _timed(owner, 5, 0.0, 40.0), _timed(owner, 6, 10.0, 45.0)])
        owner.write(ends=[owner.end(6, 6)])
        due = [(20.0, owner.id(2)), (20.0, owner.id(4)), (30.5, owner.id(1))]
        assert owner.store.times("due", (0.0, 0), 9) == due
        assert owner.store.times("due", due[0], 1) == due[1:2]
        assert owner.store.times("due", due[2], 9) == []
        assert owner.store.times("due", (20.0, ID_MAX), 9) == due[2:]
        assert owner.store.times("deadline", (0.0, 0), 9) == [(40.0, owner.id(5)), (50.0, owner.id(2))]

    def test_objects_of_one_key(self, owner: Owner) -> None:
        owner.write(puts=[Put(Kind.PAGE, key, part, b"%d" % part) for key in (7, 8) for part in (1, 0)])
        assert list(owner.store.objects(Kind.PAGE, 7)) == [(7, 0, b"0"), (7, 1, b"1")]
        assert list(owner.store.objects(Kind.PAGE, 9)) == []

    def test_the_reads_of_a_window_see_their_own_queue_only(self, make: Make, owner: Owner) -> None:
        other = make("other")
        try:
            stranger = Owner(other)
            stranger.write(rows=[_timed(stranger, 1, 5.0, 6.0)], puts=[Put(Kind.PAGE, 7, 0, b"x")])
            assert owner.store.above((0, 0), 9) == owner.store.listed(None, {}, 0, 9) == []
            assert owner.store.times("due", (0.0, 0), 9) == owner.store.times("deadline", (0.0, 0), 9) == []
            assert list(owner.store.objects(Kind.PAGE, 7)) == []
        finally:
            other.close()

    def test_a_run_that_ended_or_moved_is_read_in_its_place_only(self, owner: Owner, store: Store) -> None:
        """By key its old place is gone at once; by range it says what became of its run until it is given up."""
        owner.write(rows=[owner.row(n, n) for n in (1, 2, 3)])
        owner.write(ends=[owner.end(1, 1)], moves=[Move(owner.id(2), 2, 7)])
        found = [(run.pass_, run.state) for run in store.above((0, 0), 9)]
        if store.deletes_by_range:
            assert found == [(1, "completed"), (2, "left"), (3, "active"), (7, "active")]
            assert [run.pass_ for run in store.above((0, 0), 2)] == [1, 2], "they count in the limit"
        else:
            assert found == [(3, "active"), (7, "active")]
        assert self._above(owner, (0, 0)) == [3, 2]
        owner.write(delete_upto=(2, owner.id(2)))
        assert [(run.pass_, run.state) for run in store.above((0, 0), 9)] == [(3, "active"), (7, "active")]
        assert store.run(owner.id(1)) is not None, "the run itself stays readable"

    def test_places_are_given_up_with_the_group_that_carries_their_runs(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(n, n) for n in (1, 2, 3)])
        owner.write(ends=[owner.end(1, 1)])
        owner.write(moves=[Move(owner.id(2), 2, 9)], delete_upto=(2, owner.id(2)))
        assert [(run.pass_, run.state) for run in owner.store.above((0, 0), 9)] == [
            (3, "active"), (9, "active"),
        ]  # fmt: skip

    def test_a_place_is_not_given_up_under_an_active_run(self, owner: Owner, store: Store) -> None:
        if not store.deletes_by_range:
            return  # such a store does not look at delete_upto
        owner.write(rows=[owner.row(1, 1), owner.row(2, 5)])
        with pytest.raises(StoreFailed):
            store.commit(owner.group(delete_upto=(2, 0)))
        with pytest.raises(StoreFailed):
            store.commit(owner.group(rows=[owner.row(3, 0)], ends=[owner.end(1, 1)], delete_upto=(2, 0)))
        assert self._above(owner, (0, 0)) == [1, 2]
