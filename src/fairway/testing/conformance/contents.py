"""Pages, results, small objects, journal, events, keys.

Guards: what is read back is what was written last, byte for byte.
"""

from __future__ import annotations

import pytest

from fairway.errors import StoreFailed
from fairway.model.stored import Drop, KeyRow, Kind, Put, ResultPage
from fairway.testing.conformance.owner import Owner


class ContentRules:
    """What is kept beside the runs."""

    def test_pages_are_byte_exact(self, owner: Owner) -> None:
        large = bytes(range(256)) * 300
        pages = {1: (b"small",), 2: (large,), 3: (b"", b"\x00\xff", large), 4: (), 5: (large, b"x")}
        owner.write(rows=[owner.row(n, pages=of) for n, of in pages.items()])
        wanted = [(owner.id(n), page) for n in (5, 4, 3, 2, 1, 9) for page in range(4)]
        found = owner.store.pages(wanted)
        assert found == {(owner.id(n), page): body for n, of in pages.items() for page, body in enumerate(of)}
        assert owner.store.pages([]) == {}

    def test_results_are_byte_exact_and_in_order(self, owner: Owner) -> None:
        bodies = {7: b"", 0: b"\x00" * 70_000, 2**31 - 2: bytes(range(256))}
        owner.write(rows=[owner.row(1), owner.row(2)])
        owner.write(results=[ResultPage(owner.id(1), first, body) for first, body in bodies.items()])
        owner.write(results=[ResultPage(owner.id(1), 3, b"three"), ResultPage(owner.id(2), 3, b"other")])
        found = owner.store.results(owner.id(1), 0, 10)
        assert [(page.first, page.body) for page in found] == sorted({**bodies, 3: b"three"}.items())
        assert [page.first for page in owner.store.results(owner.id(1), 1, 2)] == [3, 7]
        assert owner.store.results(owner.id(2), 0, 9) == [ResultPage(owner.id(2), 3, b"other")]
        assert owner.store.results(owner.id(2), 4, 9) == []

    def test_results_end_with_the_page_that_reaches_so_many_bytes(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1)])
        owner.write(
            results=[ResultPage(owner.id(1), n, bytes(size)) for n, size in enumerate((10, 90_000, 10, 10))]
        )

        def found(first: int, limit: int, bytes_max: int) -> list[int]:
            return [page.first for page in owner.store.results(owner.id(1), first, limit, bytes_max)]

        assert found(0, 9, 1) == found(0, 9, 10) == [0]
        assert found(0, 9, 11) == found(0, 9, 90_010) == [0, 1]
        assert found(0, 1, 90_000) == [0]
        assert found(1, 9, 100) == [1], "one that is larger than the bound comes alone"
        assert found(0, 9, 1_000_000) == [0, 1, 2, 3]
        assert found(4, 9, 1) == []

    def test_objects_are_put_replaced_dropped_and_listed(self, owner: Owner) -> None:
        keys: list[str | int] = ["b", "1", 2, 1, "", "é", 2**62]
        owner.write(puts=[Put(Kind.TENANT, key, 0, str(key).encode()) for key in keys])
        owner.write(puts=[Put(Kind.HOLD, 1, part, b"%d" % part) for part in (2, 0, 1)])
        assert [key for key, _, _ in owner.store.objects(Kind.TENANT)] == [1, 2, 2**62, "", "1", "b", "é"]
        assert [part for _, part, _ in owner.store.objects(Kind.HOLD)] == [0, 1, 2]
        owner.write(puts=[Put(Kind.TENANT, 1, 0, b"new"), Put(Kind.TENANT, 1, 0, b"newer")])
        owner.write(drops=[Drop(Kind.TENANT, "b", 0), Drop(Kind.HOLD, 1, 1), Drop(Kind.HOLD, 9, 9)])
        assert owner.store.object(Kind.TENANT, 1, 0) == b"newer"
        assert owner.store.object(Kind.TENANT, "1", 0) == b"1"
        assert owner.store.object(Kind.TENANT, "b", 0) is owner.store.object(Kind.HOLD, 1, 1) is None
        assert list(owner.store.objects(Kind.HOLD)) == [(1, 0, b"0"), (1, 2, b"2")]
        assert list(owner.store.objects(Kind.CLIENT)) == []

    def test_what_a_group_puts_is_there_even_if_it_drops_it_too(self, owner: Owner) -> None:
        owner.write(puts=[Put(Kind.HOLD, 1, 0, b"old")])
        owner.write(puts=[Put(Kind.HOLD, 1, 0, b"new")], drops=[Drop(Kind.HOLD, 1, 0)])
        assert owner.store.object(Kind.HOLD, 1, 0) == b"new"

    def test_request_outcomes_are_stored_with_their_effect_or_not_at_all(self, owner: Owner) -> None:
        owner.write(rows=[owner.row(1)], puts=[Put(Kind.CLIENT, 5, 0, b"outcome 1")])
        with pytest.raises(StoreFailed):
            owner.write(rows=[owner.row(2), owner.row(1)], puts=[Put(Kind.CLIENT, 5, 0, b"outcome 2")])
        assert (owner.active(), owner.store.object(Kind.CLIENT, 5, 0)) == ([1], b"outcome 1")

    def test_the_journal_is_kept_until_the_floor_passes(self, owner: Owner) -> None:
        for n in range(1, 5):
            owner.write(journal=b"j%d" % n if n != 3 else b"")
        assert list(owner.store.journal()) == [(1, b"j1"), (2, b"j2"), (4, b"j4")]
        owner.write(journal=b"j5", journal_floor=4)
        assert list(owner.store.journal()) == [(4, b"j4"), (5, b"j5")]
        owner.write(journal_floor=6)
        assert list(owner.store.journal()) == []

    def test_events_are_read_in_order_and_purged_by_time(self, owner: Owner) -> None:
        for n in range(1, 5):
            owner.write(events=b"e%d" % n if n != 2 else b"", event_time=float(10 * n))
        assert owner.store.events(0, 10) == [(1, 10.0, b"e1"), (3, 30.0, b"e3"), (4, 40.0, b"e4")]
        assert owner.store.events(1, 1) == [(3, 30.0, b"e3")]
        assert owner.store.events(4, 10) == owner.store.events(2**63 - 1, 10) == []
        owner.write(purge_events_before=30.0, events=b"e5", event_time=5.0)
        assert [number for number, _, _ in owner.store.events(0, 10)] == [3, 4, 5]

    def test_keys_are_inserted_replaced_expired_and_purged(self, owner: Owner) -> None:
        active, other = KeyRow("a", "k", owner.id(1), b"f"), KeyRow("b", "k", owner.id(2), b"g", 20.0)
        owner.write(keys=[active, other, KeyRow("a", "z", owner.id(3), b"", 10.0)])
        assert owner.store.key("a", "k") == active
        assert owner.store.keys_expired(20.0, 9) == [("a", "z")]
        assert owner.store.keys_expired(20.5, 9) == [("a", "z"), ("b", "k")]
        assert owner.store.keys_expired(20.5, 1) == [("a", "z")]
        ended = KeyRow("a", "k", owner.id(4), b"h", 15.0)
        owner.write(keys=[ended], purge_keys=[("a", "z"), ("x", "none")])
        assert (owner.store.key("a", "k"), owner.store.key("a", "z")) == (ended, None)
        assert owner.store.keys_expired(99.0, 9) == [("a", "k"), ("b", "k")]

    def test_a_key_that_is_in_use_is_never_purged(self, owner: Owner) -> None:
        owner.write(keys=[KeyRow("a", "k", owner.id(1), b"old", 5.0), KeyRow("a", "m", owner.id(2), b"")])
        fresh = KeyRow("a", "k", owner.id(3), b"new")
        owner.write(keys=[fresh], purge_keys=[("a", "k"), ("a", "m")])
        assert owner.store.key("a", "k") == fresh
        assert owner.store.key("a", "m") == KeyRow("a", "m", owner.id(2), b"")
