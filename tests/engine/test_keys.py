"""Idempotency keys: one key, one submission, until 30 days after its end."""

from __future__ import annotations

import pytest

from fairway.engine.commands import Call, Submit
from fairway.errors import KeyConflict
from fairway.limits import KEY_SECONDS
from tests.engine.desk import Desk, answer, chunks, offer

DAY = 86400.0


def keyed(n: int = 1, content: bytes = b"1", tenant: str = "a", key: str = "k"):
    return offer(tenant, n, key=key, fingerprint=content)


def submit(desk: Desk, *offers) -> list[tuple[int, bool]]:
    accepted = desk.call(Submit(list(offers)))
    return list(zip(accepted.ids, accepted.known, strict=True))


def test_the_same_key_and_content_give_the_same_submission() -> None:
    desk = Desk()
    ((x, known),) = submit(desk, keyed())
    assert not known
    for _ in range(2):
        assert submit(desk, keyed()) == [(x, True)]
        desk.submit("z"), desk.restart()
    desk.complete(desk.reserve(9))
    for _ in range(2):
        assert submit(desk, keyed()) == [(x, True)], "also after its end"
        desk.submit("z"), desk.restart()
    assert desk.show(x).done == 1


def test_a_key_belongs_to_a_tenant() -> None:
    desk = Desk()
    a, b = submit(desk, keyed(tenant="a"), keyed(tenant="b"))
    assert a[0] != b[0]


def test_another_content_is_a_conflict_and_nothing_of_the_call_happens() -> None:
    desk = Desk()
    submit(desk, keyed())
    for offers in (
        [offer("new"), keyed(content=b"2")],
        [offer("new", weight=5), keyed(key="k2"), keyed(key="k2", content=b"2")],
    ):
        for _ in range(2):
            before = desk.stats().submissions_active
            with pytest.raises(KeyConflict):
                submit(desk, *offers)
            assert desk.stats().submissions_active == before and "new" not in desk.state.tenants
            desk.submit("z")


def test_the_same_key_twice_in_a_call_is_one_submission() -> None:
    desk = Desk()
    (x, first), (other, _), (again, second) = submit(desk, keyed(), offer(), keyed())
    assert (x, first, second) == (again, False, True) and other != x


def test_the_same_key_twice_in_a_group_is_one_submission() -> None:
    desk = Desk()
    with desk.one_group():
        ((x, _),) = submit(desk, keyed())
        assert submit(desk, keyed()) == [(x, True)]
    assert submit(desk, keyed()) == [(x, True)]


def test_a_key_is_kept_30_days_after_the_end() -> None:
    desk = Desk()
    ((x, _),) = submit(desk, keyed())
    desk.pass_time(400 * DAY)
    assert submit(desk, keyed()) == [(x, True)], "as long as it is active"
    desk.complete(desk.reserve())
    desk.pass_time(KEY_SECONDS - 1)
    desk.restart()
    assert submit(desk, keyed()) == [(x, True)]
    desk.pass_time(1)
    ((y, known),) = submit(desk, keyed(content=b"2"))
    assert (y != x, known) == (True, False)


def test_a_key_outlives_its_submission() -> None:
    desk = Desk()
    ((x, _),) = submit(desk, keyed())
    desk.complete(desk.reserve())
    desk.pass_time(2 * DAY)
    assert desk.purge(x, keys=[("a", "k")]) == 1, "the submission goes, the key stays"
    assert submit(desk, keyed()) == [(x, True)]
    desk.pass_time(30 * DAY)
    assert desk.purge(keys=[("a", "k")]) == 1
    assert submit(desk, keyed())[0][1] is False


def test_a_key_of_no_chunks_is_kept_too() -> None:
    desk = Desk()
    ((x, _),) = submit(desk, keyed(0))
    assert submit(desk, keyed(0)) == [(x, True)]
    desk.restart()
    assert submit(desk, keyed(0)) == [(x, True)]
    desk.pass_time(KEY_SECONDS)
    assert submit(desk, keyed(0))[0][1] is False


def test_a_redriven_submission_has_its_key_again() -> None:
    desk = Desk()
    ((x, _),) = submit(desk, keyed())
    desk.cancel(x)
    desk.pass_time(20 * DAY)
    desk.redrive(x)
    desk.pass_time(20 * DAY)
    assert submit(desk, keyed()) == [(x, True)]
    desk.complete(desk.reserve())
    desk.pass_time(29 * DAY)
    assert submit(desk, keyed()) == [(x, True)], "30 days after its last end"


def test_a_key_that_another_submission_has_got_since_is_not_taken_back_by_a_redrive() -> None:
    desk = Desk()
    desk.configure(retention_seconds=100 * DAY)
    ((x, _),) = submit(desk, keyed())
    desk.cancel(x)
    desk.pass_time(31 * DAY)
    ((y, _),) = submit(desk, keyed())
    for _ in range(2):
        with pytest.raises(KeyConflict):
            desk.redrive(x)
        assert submit(desk, keyed()) == [(y, True)]
        desk.submit("z")
        desk.restart()


@pytest.mark.parametrize("stored", [False, True])
def test_lookups_that_began_together_find_one_submission(stored: bool) -> None:
    """Two callers read the store before either submits; the second still finds the first one's key."""
    desk = Desk()
    calls = [Call(Submit([keyed()])) for _ in range(3)]
    found = [desk.engine.lookups(call).read(desk.store) for call in calls]
    ids = []
    for call, seen in zip(calls, found, strict=True):
        draft = desk.engine.execute(call, desk.now, seen)
        if stored:
            desk.settle()
            desk.complete(desk.reserve(9))
            desk.submit("z"), desk.submit("z")
        ids.append(answer(draft).ids[0])
    desk.settle()
    assert len(set(ids)) == 1
    assert not desk.state.recent_keys._values or not stored, "what no read can be older than is let go"


def test_a_lookup_does_not_count_on_what_is_kept_for_an_earlier_one() -> None:
    """The key is stored, and kept for an earlier lookup alone; a call that looks for another key finds it too."""
    desk = Desk()
    earlier = desk.engine.lookups(Call(Submit([keyed(key="other")])))
    ((x, _),) = submit(desk, keyed())
    call = Call(Submit([keyed(), keyed(key="new")]))
    later = desk.engine.lookups(call)
    desk.engine.looked(earlier)
    desk.submit("z")
    assert ("a", "k") not in desk.state.recent_keys, "it was let go"
    told = answer(desk.engine.execute(call, desk.now, later.read(desk.store)))
    assert told.ids[0] == x and told.known == [True, False]


def test_a_lookup_that_was_given_up_lets_go_of_what_was_kept_for_it() -> None:
    desk = Desk()
    lookups = desk.engine.lookups(Call(Submit([keyed(key="other")])))
    submit(desk, keyed())
    desk.submit("z")
    assert ("a", "k") in desk.state.recent_keys
    desk.engine.looked(lookups)
    desk.submit("z")
    assert ("a", "k") not in desk.state.recent_keys
    assert len(chunks(desk.reserve(9))) == 3
