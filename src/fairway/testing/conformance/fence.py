"""Owners, group numbers, unknown outcomes, handles.

Guards: neither a former owner nor a late group of the owner can write.
"""

from __future__ import annotations

import pytest

from fairway.errors import Fenced
from fairway.model.ids import SEQUENCE_BITS
from fairway.model.stored import Group, Kind
from fairway.store.port import Store
from fairway.testing.conformance.owner import Make, Owner, everything


class FenceRules:
    """Who may write, and in which order."""

    def test_a_fresh_queue_is_empty(self, store: Store) -> None:
        meta = store.take_over()
        assert (meta.range_id, meta.number, meta.body) == (1, 0, b"")
        assert 0 <= meta.queue_number < 1024
        found = everything(store, [meta.queue_number << SEQUENCE_BITS])
        assert found.pop("number") == 0
        assert found.pop("runs") == [None]
        assert found.pop("results") == [[]]
        assert not any(found.pop("objects").values())
        assert not any(found.values())
        assert store.key("", "k") is None
        assert store.object(Kind.CONFIG, 0, 0) is None

    def test_taking_over_raises_the_range_id_and_fences_the_former_owner(
        self, make: Make, owner: Owner
    ) -> None:
        owner.write(meta=b"first", rows=[owner.row(1), owner.row(3)], ends=[owner.end(3)], journal=b"j")
        second = Owner(make("q"))
        assert second.meta.range_id == owner.meta.range_id + 1
        assert (second.meta.number, second.meta.body) == (1, b"first")
        ids = [owner.id(n) for n in (1, 2, 3)]
        before = everything(owner.store, ids)
        with pytest.raises(Fenced):
            owner.write(meta=b"late", rows=[owner.row(2)], events=b"e", journal_floor=2, purge=[owner.id(3)])
        assert everything(owner.store, ids) == before
        second.write(rows=[second.row(2)])
        assert second.active() == [1, 2]
        second.store.close()

    def test_an_owner_owns_until_another_takes_over(self, make: Make, owner: Owner) -> None:
        mine = owner.meta.range_id
        assert owner.store.owns(mine)
        owner.write(rows=[owner.row(1)])
        assert owner.store.owns(mine)
        second = Owner(make("q"))
        assert not owner.store.owns(mine)
        assert owner.store.owns(second.meta.range_id)
        assert second.store.owns(second.meta.range_id)
        second.store.close()

    def test_a_handle_that_never_took_over_cannot_write(self, store: Store) -> None:
        with pytest.raises(Fenced):
            store.commit(Group(1, 1, False, b""))
        assert store.last_number() == 0

    def test_a_group_must_have_the_next_number(self, owner: Owner) -> None:
        late = owner.write(meta=b"one")
        for number in (0, 1, 3):
            with pytest.raises(Fenced):
                owner.store.commit(Group(owner.meta.range_id, number, False, b"x", rows=[owner.row(1)]))
        assert late.number == owner.store.last_number() == 1
        assert owner.active() == []
        owner.write(meta=b"two")
        assert owner.store.take_over().body == b"two"

    def test_settle_says_true_of_a_stored_group(self, owner: Owner) -> None:
        group = owner.write(rows=[owner.row(1)], meta=b"m")
        assert owner.store.settle(group) is True
        assert owner.store.settle(group) is True
        owner.write(rows=[owner.row(2)])
        assert owner.active() == [1, 2]

    def test_settle_burns_the_number_of_a_group_that_is_not_stored(self, owner: Owner) -> None:
        owner.write(meta=b"kept")
        group = owner.group(rows=[owner.row(1)], meta=b"lost")
        assert owner.store.settle(group) is False
        assert owner.store.settle(group) is False, "a burnt number is not a stored group"
        with pytest.raises(Fenced):
            owner.store.commit(group)
        assert owner.active() == []
        owner.number = group.number
        assert owner.store.last_number() == group.number
        owner.write(rows=[owner.row(1)])
        assert owner.active() == [1]

    def test_a_burnt_number_leaves_the_meta_body_alone(self, make: Make, owner: Owner) -> None:
        owner.write(meta=b"kept")
        assert owner.store.settle(owner.group(meta=b"lost")) is False
        meta = make("q").take_over()
        assert (meta.number, meta.body) == (2, b"kept")

    def test_settle_is_fenced_too(self, make: Make, owner: Owner) -> None:
        group = owner.group(rows=[owner.row(1)])
        make("q").take_over()
        with pytest.raises(Fenced):
            owner.store.settle(group)
        assert owner.store.last_number() == 0
