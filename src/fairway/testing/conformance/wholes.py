"""Purges, whole groups, several queues, reopening.

Guards: a group is stored whole or not at all, and touches its own queue only.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairway.errors import Closed, StoreFailed
from fairway.model.stored import Drop, KeyRow, Kind, Move, Put, ResultPage, Row
from fairway.testing.conformance.owner import Make, Owner, everything


class WholeRules:
    """What holds for everything together."""

    def test_a_purge_removes_all_of_a_run_and_nothing_else(self, owner: Owner) -> None:
        large = b"p" * 5000
        runs = [owner.row(n, metadata={"k": "v", "n": n}, pages=(b"s", large)) for n in (1, 2)]
        owner.write(rows=runs, results=[ResultPage(run.id, 0, b"r") for run in runs])
        kinds = (Kind.PROGRESS, Kind.PAGE, Kind.HOLD)
        puts = [
            Put(kind, key, part, b"o")
            for kind in kinds
            for key in (owner.id(1), owner.id(2))
            for part in (0, 1)
        ]
        owner.write(puts=puts, keys=[KeyRow("", "key", owner.id(1), b"")])
        owner.write(ends=[owner.end(1, failed=1), owner.end(2, failed=1)])
        owner.write(purge=[owner.id(1), owner.id(7)])
        assert owner.store.run(owner.id(1)) is None
        assert owner.ended() == owner.ended(k="v") == [2]
        assert owner.ended(n=1) == owner.store.results(owner.id(1), 0, 9) == []
        assert (
            [id for _, id in owner.store.ended_before(9.0, 9)]
            == [run.id for run in owner.store.ended_failed(0, 9)]
            == [owner.id(2)]
        )
        found = owner.store.pages([(run.id, page) for run in runs for page in (0, 1)])
        assert found == {(owner.id(2), 0): b"s", (owner.id(2), 1): large}
        assert owner.store.results(owner.id(2), 0, 9) == [ResultPage(owner.id(2), 0, b"r")]
        for kind, left in ((Kind.PROGRESS, [2, 2]), (Kind.PAGE, [2, 2]), (Kind.HOLD, [1, 1, 2, 2])):
            assert [key for key, _, _ in owner.store.objects(kind)] == [owner.id(n) for n in left]
        assert owner.store.key("", "key") is not None
        owner.write(rows=[owner.row(1, metadata={"k": "v", "n": 3})], ends=[owner.end(1)])
        assert (owner.ended(k="v"), owner.ended(n=1), owner.ended(n=3)) == ([1, 2], [], [1])

    def test_an_active_run_is_never_purged(self, owner: Owner) -> None:
        owner.write(
            rows=[owner.row(1, pages=(b"p",)), owner.row(2)], puts=[Put(Kind.PROGRESS, owner.id(1), 0, b"o")]
        )
        owner.write(ends=[owner.end(2)], purge=[owner.id(1), owner.id(2)])
        assert (owner.active(), owner.ended()) == ([1], [])
        assert owner.store.pages([(owner.id(1), 0)]) and owner.store.object(Kind.PROGRESS, owner.id(1), 0)

    @pytest.mark.parametrize("bad", ["run twice", "end twice", "wrong place", "end of none", "move of none"])
    def test_a_group_is_stored_whole_or_not_at_all(self, owner: Owner, bad: str) -> None:
        had = {"puts": [Put(Kind.HOLD, 2, 0, b"h")], "keys": [KeyRow("", "old", owner.id(4), b"", 1.0)]}
        logs = {"journal": b"j", "events": b"e", "event_time": 1.0}
        rows, ends = [owner.row(n, 5) for n in (1, 2, 3, 4)], [owner.end(n, 5) for n in (2, 4)]
        owner.write(rows=rows, ends=ends, meta=b"good", **had, **logs)
        parts: dict[str, list[Any]] = {
            "run twice": [owner.row(8), owner.row(1, 6)],
            "end twice": [owner.end(3, 5), owner.end(2, 5)],
            "wrong place": [owner.end(3, 5), owner.end(1, 6)],
            "end of none": [owner.end(3, 5), owner.end(9, 5)],
            "move of none": [Move(owner.id(1), 5, 7), Move(owner.id(9), 5, 7)],
        }
        field = {"run": "rows", "mov": "moves"}.get(bad[:3], "ends")
        ids = [owner.id(n) for n in range(10)]
        before = everything(owner.store, ids)
        rest = {"puts": [Put(Kind.HOLD, 1, 0, b"o")], "events": b"e", "journal": b"j", "meta": b"bad"}
        leaves = {"drops": [Drop(Kind.HOLD, 2, 0)], "purge": [owner.id(4)], "purge_keys": [("", "old")]}
        floors = {"journal_floor": 2, "purge_events_before": 9.0}
        with pytest.raises(StoreFailed):
            owner.write(**{field: parts[bad]}, **rest, **leaves, **floors, keys=[KeyRow("", "k", 1, b"")])
        assert everything(owner.store, ids) == before
        assert owner.store.key("", "k") is None and owner.store.key("", "old") is not None
        assert owner.store.take_over().body == b"good"

    def test_a_run_with_an_id_of_another_queue_is_refused(self, owner: Owner) -> None:
        stranger = Row(owner.stranger(), 0, "", 0.0, {}, b"")
        with pytest.raises(StoreFailed):
            owner.write(rows=[stranger])
        assert (owner.active(), owner.store.run(stranger.id)) == ([], None)

    def test_two_queues_do_not_see_each_other(self, make: Make, owner: Owner) -> None:
        other = Owner(make("other"))
        assert other.meta.queue_number != owner.meta.queue_number
        assert other.meta.range_id == 1, "taking over one queue leaves the other's owner alone"
        empty = everything(other.store, [owner.id(1), owner.id(2)])
        owner.write(
            rows=[owner.row(1, metadata={"k": 1}, pages=(b"p", b"q" * 5000)), owner.row(2)],
            ends=[owner.end(1, failed=1)], results=[ResultPage(owner.id(1), 0, b"r")],
            puts=[Put(kind, 1, 0, b"o") for kind in Kind], journal=b"j", events=b"e", event_time=1.0,
            keys=[KeyRow("", "k", owner.id(1), b"", 1.0)],
        )  # fmt: skip
        assert everything(other.store, [owner.id(1), owner.id(2)]) == empty
        assert other.store.key("", "k") is other.store.object(Kind.HOLD, 1, 0) is None
        before = everything(owner.store, [owner.id(1)])
        drops = [Drop(kind, 1, 0) for kind in Kind]
        other.write(
            purge=[owner.id(1)],
            drops=drops,
            journal_floor=99,
            purge_events_before=99.0,
            purge_keys=[("", "k")],
        )
        other.write(rows=[other.row(1)], ends=[other.end(1)], purge=[other.id(1)], journal=b"J", events=b"E")
        assert everything(owner.store, [owner.id(1)]) == before
        assert owner.store.key("", "k") is not None
        other.store.close()

    def test_reopening_gives_everything_back(self, make: Make, owner: Owner) -> None:
        owner.write(
            sync=True, meta=b"m", rows=[owner.row(n, n, metadata={"k": n}, pages=(b"p",)) for n in (1, 2)],
            ends=[owner.end(1, 1, failed=1)], results=[ResultPage(owner.id(1), 0, b"r")],
            puts=[Put(kind, 1, 0, b"o") for kind in Kind], journal=b"j", events=b"e", event_time=1.0,
            keys=[KeyRow("", "k", owner.id(1), b"", 1.0)],
        )  # fmt: skip
        before = everything(owner.store, [owner.id(1), owner.id(2)])
        owner.store.close()
        again = Owner(make("q"))
        assert everything(again.store, [owner.id(1), owner.id(2)]) == before
        assert (again.meta.queue_number, again.meta.body) == (owner.meta.queue_number, b"m")
        assert again.meta.range_id == 2
        again.store.close()

    def test_size_grows_with_what_is_stored(self, owner: Owner) -> None:
        before = owner.store.size_bytes()
        owner.write(rows=[owner.row(1, pages=(b"x" * 1_000_000,))])
        assert owner.store.size_bytes() - before >= 1_000_000

    def test_close_may_be_called_twice_and_ends_every_call(self, owner: Owner) -> None:
        owner.store.close()
        owner.store.close()
        with pytest.raises(Closed):
            owner.write()
        with pytest.raises(Closed):
            owner.store.run(1)
        with pytest.raises(Closed):
            list(owner.store.active())
