"""Listings: merged from the engine and the store, page by page, each submission once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.engine.commands import ListActive
from fairway.errors import WaitTimeout
from fairway.face import watching
from fairway.face.reads import ListEnded
from fairway.model.submission import DeadChunk, Submission
from tests.face.script import Script, verbs


def submission(id: int, state: Any = "active") -> Submission:
    return Submission(id, state, "", 1, 0, 0, 0, 0.0)


def listing(active: set[int], ended: set[int]) -> Script:
    def page(ids: set[int], command: ListActive | ListEnded, state: str) -> list[Submission]:
        return [submission(id, state) for id in sorted(ids) if id > command.after][: command.limit]

    return Script(
        ListActive=lambda command: page(active, command, "active"),
        ListEnded=lambda command: page(ended, command, "completed"),
    )


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)), st.integers(1, 7))
def test_both_listings_are_merged_in_id_order(active: set[int], ended: set[int], rows: int) -> None:
    # An id in both ended between the two reads; then it is shown as ended.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "_ROWS", rows)
        found = listing(active, ended).all(verbs().submissions())
        assert [sub.id for sub in found] == sorted(active | ended)
        assert {sub.id for sub in found if sub.state == "completed"} == ended
        assert [s.id for s in listing(active, ended).all(verbs().submissions(state="active"))] == sorted(
            active
        )
        assert [s.id for s in listing(active, ended).all(verbs().submissions(state="failed"))] == sorted(
            ended
        )


def test_filters_reach_both_listings() -> None:
    script = listing(set(), set())
    script.all(verbs().submissions(tenant="a", metadata={"m": 1}))
    script.all(verbs().submissions(state="cancelled"))
    script.all(verbs().submissions(state="ended"))
    active, both, cancelled, ended = script.asked
    assert (active.tenant, active.metadata) == (both.tenant, both.metadata) == ("a", {"m": 1})
    assert (both.state, cancelled.state, ended.state) == ("", "cancelled", "")


def test_dead_chunks_go_on_after_a_full_page() -> None:
    def dead(ids: range, after: int, limit: int) -> list[DeadChunk]:
        return [DeadChunk(id, 0, "", 1, "why", 0.0) for id in ids if id > after][:limit]

    def ended(command: Any) -> tuple[int | None, list[DeadChunk]]:
        found = dead(range(100, 350), command.after, command.limit)
        return (found[-1].submission if len(found) == command.limit else None), found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "_ROWS", 4)
        script = Script(
            ListDead=lambda command: dead(range(1, 11), command.after, command.limit), ListEndedDead=ended
        )
        found = script.all(verbs().dead())
    assert [chunk.submission for chunk in found] == [*range(1, 11), *range(100, 350)]


def test_waiting_without_a_limit_waits_again() -> None:
    states = iter(("active", "active", "failed"))
    script = Script(Wait=lambda command: submission(7, next(states)))
    assert script.run(verbs().wait(7)).state == "failed"
    assert [command.seconds for command in script.asked] == [3600.0] * 3
    script = Script(Wait=lambda command: submission(7))
    with pytest.raises(WaitTimeout) as caught:
        script.run(verbs().wait(7, 2))
    assert caught.value.details["submission"] == submission(7)
