"""The memory store's misbehaviour, as a simulator asks for it: failures, unknown outcomes, late groups, power loss."""

import pytest

from fairway.errors import BadArgument, Fenced, GroupUnknown, StoreFailed
from fairway.model.stored import Drop, Group, Kind, Put
from fairway.store.memory import Fault, MemoryStore, Shelf
from fairway.testing.conformance import Owner, everything


def _owner(shelf: Shelf, queue: str = "q") -> Owner:
    return Owner(MemoryStore.open(queue, shelf))


def _next(shelf: Shelf, *faults: Fault) -> None:
    """These faults come next, one per commit; then none."""
    coming = iter(faults)
    shelf.faults = lambda group: next(coming, Fault.OK)


def test_a_failed_group_is_not_stored_and_may_be_repeated() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, Fault.FAIL)
    group = owner.group(rows=[owner.row(1)])
    with pytest.raises(StoreFailed):
        owner.store.commit(group)
    assert owner.active() == []
    owner.store.commit(group)
    assert owner.active() == [1]


@pytest.mark.parametrize(("fault", "stored"), [(Fault.UNKNOWN_STORED, True), (Fault.UNKNOWN_LOST, False)])
def test_an_unknown_group_is_settled(fault: Fault, stored: bool) -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, fault)
    group = owner.group(rows=[owner.row(1)])
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    assert owner.store.settle(group) is stored
    assert owner.active() == ([1] if stored else [])
    owner.number = group.number
    owner.write(rows=[owner.row(2)])
    assert 2 in owner.active()


def test_a_late_group_that_nobody_settled_is_stored() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, Fault.LATE)
    group = owner.group(rows=[owner.row(1)])
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    assert owner.active() == []
    assert shelf.deliver_late() == [True]
    assert shelf.deliver_late() == []
    assert owner.active() == [1]
    assert owner.store.settle(group) is True


def test_a_late_group_whose_number_was_burnt_is_refused() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, Fault.LATE)
    group = owner.group(rows=[owner.row(1)])
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    assert owner.store.settle(group) is False
    assert shelf.deliver_late() == [False]
    assert owner.active() == []


def test_a_late_group_of_a_former_owner_is_refused() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, Fault.LATE, Fault.OK)
    with pytest.raises(GroupUnknown):
        owner.write(rows=[owner.row(1)])
    second = _owner(shelf)
    assert shelf.deliver_late() == [False]
    second.write(rows=[second.row(2)])
    assert second.active() == [2]


def test_a_late_group_is_the_one_that_was_sent() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, Fault.LATE)
    group = owner.group(rows=[owner.row(1)])
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    group.rows.clear()
    shelf.deliver_late()
    assert owner.active() == [1]


def test_the_hook_sees_the_group_and_may_deliver_late_ones() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    seen: list[int] = []

    def faults(group: Group) -> Fault:
        seen.append(group.number)
        shelf.deliver_late()
        return Fault.LATE if group.number == 1 else Fault.OK

    shelf.faults = faults
    with pytest.raises(GroupUnknown):
        owner.write(rows=[owner.row(1)])
    owner.number = 1
    owner.write(rows=[owner.row(2)])
    assert (seen, owner.active()) == ([1, 2], [1, 2])


def test_power_loss_forgets_what_was_not_synced_and_only_that() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    owner.write(rows=[owner.row(1), owner.row(2)], puts=[Put(Kind.HOLD, 1, 0, b"a")])
    owner.write(sync=True, ends=[owner.end(1)], journal=b"j", events=b"e", meta=b"synced")
    ids = [owner.id(n) for n in range(5)]
    synced = everything(owner.store, ids)
    owner.write(rows=[owner.row(3)], puts=[Put(Kind.HOLD, 1, 0, b"b")], journal_floor=9, meta=b"not synced")
    owner.write(ends=[owner.end(2)], purge=[owner.id(1)])
    assert everything(owner.store, ids) != synced
    shelf.power_loss()
    after = _owner(shelf)
    assert everything(after.store, ids) == synced
    assert (after.meta.number, after.meta.body, after.meta.range_id) == (2, b"synced", 2)
    after.write(rows=[after.row(3)])
    shelf.power_loss()
    assert everything(after.store, ids) == synced, "losing power again starts from the same state"


def test_a_synced_group_saves_the_earlier_ones_of_every_queue() -> None:
    shelf = Shelf()
    one, other = _owner(shelf, "one"), _owner(shelf, "other")
    one.write(rows=[one.row(1)])
    other.write(sync=True, rows=[other.row(1)])
    one.write(rows=[one.row(2)])
    shelf.power_loss()
    assert (one.active(), other.active()) == ([1], [1])


def test_range_ids_and_burnt_numbers_survive_power_loss() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    owner.write(rows=[owner.row(1)])
    assert owner.store.settle(owner.group()) is False
    shelf.power_loss()
    assert owner.store.last_number() == 2
    assert owner.active() == [1]
    second = _owner(shelf)
    second.write()
    shelf.power_loss()
    with pytest.raises(Fenced):
        owner.store.commit(Group(owner.meta.range_id, 3, False, b""))
    assert _owner(shelf).meta.range_id == 3


def test_power_loss_forgets_groups_on_their_way() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    _next(shelf, Fault.LATE)
    with pytest.raises(GroupUnknown):
        owner.write(rows=[owner.row(1)])
    shelf.power_loss()
    assert shelf.deliver_late() == []


def test_a_store_of_its_own_keeps_one_copy_only() -> None:
    with pytest.raises(BadArgument):
        Shelf(keeps_synced=False).power_loss()
    one, other = MemoryStore.open("q"), MemoryStore.open("q")
    Owner(one).write(sync=True, meta=b"m")
    assert (one.last_number(), other.last_number()) == (1, 0)


def test_a_shelf_has_as_many_queues_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.store.memory.shelf.QUEUES_PER_FILE_MAX", 2)
    shelf = Shelf()
    for queue in ("a", "b", "a"):
        MemoryStore.open(queue, shelf)
    with pytest.raises(BadArgument):
        MemoryStore.open("c", shelf)
    with pytest.raises(BadArgument):
        MemoryStore.open("", shelf)


def test_what_was_dropped_or_purged_leaves_nothing_behind() -> None:
    shelf = Shelf()
    owner = _owner(shelf)
    owner.write(rows=[owner.row(1)], puts=[Put(kind, owner.id(1), 0, b"o") for kind in Kind])
    owner.write(ends=[owner.end(1)], purge=[owner.id(1)], drops=[Drop(kind, owner.id(1), 0) for kind in Kind])
    state = shelf.queue("q")
    assert not any((state.rows, state.passes, state.ends, state.objects, state.results))
