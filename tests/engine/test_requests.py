"""Request numbers: a numbered call has at most one effect, however often it comes."""

from __future__ import annotations

import pytest

from fairway.engine.commands import (
    Call,
    Cancel,
    Complete,
    Configure,
    Fail,
    Goodbye,
    Join,
    Pause,
    Redrive,
    Register,
    Release,
    Renew,
    Reserve,
    SetWeight,
    Show,
    Submit,
    Trim,
)
from fairway.errors import BadArgument, ClientUnknown, RequestDropped, TooLarge
from fairway.limits import CLIENT_SILENT_SECONDS, OUTCOMES_PER_CLIENT_MAX
from tests.engine.desk import Desk, answer, offer, parts, small_journal


@pytest.mark.parametrize("groups", [0, 2, 512])
@pytest.mark.parametrize("restart", [False, True])
def test_a_repeated_number_gives_the_stored_outcome_and_no_second_effect(
    monkeypatch, groups, restart
) -> None:
    small_journal(monkeypatch, groups, 256)
    desk = Desk()
    client = desk.register()
    x = desk.submit("a", 20, policy="dead_letter")
    held, failing, other, free = (desk.reserve(2) for _ in range(4))
    y = desk.submit("b", 2)
    commands = [
        Submit([offer("c", 3)]),
        Reserve(2),
        Complete(parts(held)),
        Fail(parts(failing), retry=False),
        Renew(parts(other), 50.0),
        Release(parts(free)),
        Cancel(y),
        Redrive(y),
        Pause(True, tenant="c"),
        SetWeight("c", 5000),
        Configure({"attempts_max": 3}),
        Join("me"),
        Trim("me", 1, 4),
        Reserve(3, consumer="me", consumer_epoch=1, seq=5),
    ]
    for number, command in enumerate(commands, 1):
        reply = desk.call(command, client, number)
        for _ in range(2):
            if restart:
                desk.restart()
            before = (desk.stats(), desk.show(x), desk.show(y))
            groups_before = len(desk.groups)
            again = desk.call(command, client, number)
            assert again == reply, command
            assert len(desk.groups) == groups_before, "nothing was written"
            after = (desk.stats(), desk.show(x), desk.show(y))
            assert before[1:] == after[1:] and before[0].chunks_leased == after[0].chunks_leased


def test_a_reservation_is_given_again_with_its_submissions_even_when_they_have_ended() -> None:
    desk = Desk()
    client = desk.register()
    desk.submit("a", 2, info=b"hello")
    reply = desk.call(Reserve(2), client, 1)
    desk.complete(reply)
    desk.submit("z"), desk.submit("z")
    for _ in range(2):
        again = desk.call(Reserve(2), client, 1)
        assert again == reply and [run.info for run in again.runs.values()] == [b"hello"]
        desk.restart()


def test_a_number_that_was_acknowledged_is_dropped() -> None:
    desk = Desk()
    client = desk.register()
    for number in (1, 2, 3):
        desk.call(Submit([offer()]), client, number, number - 1)
    with pytest.raises(RequestDropped):
        desk.call(Submit([offer()]), client, 2, 2)
    with pytest.raises(RequestDropped):
        desk.call(Submit([offer()]), client, 1)
    desk.restart()
    with pytest.raises(RequestDropped):
        desk.call(Submit([offer()]), client, 2)
    assert desk.stats().submissions_active == 3


def test_outcomes_that_were_received_are_forgotten() -> None:
    desk = Desk()
    client = desk.register()
    for number in range(1, 50):
        desk.call(Submit([offer()]), client, number, max(0, number - 3))
    assert sorted(desk.state.clients[client].outcomes) == [47, 48, 49]


def test_calls_of_an_unknown_client_are_refused_and_not_executed() -> None:
    desk = Desk()
    for client in (0, 7, -1):
        with pytest.raises(ClientUnknown):
            desk.call(Submit([offer()]), client, 1)
    assert desk.stats().submissions_active == 0


def test_a_client_is_registered_before_its_first_number_and_ids_are_never_given_again() -> None:
    desk = Desk()
    ids = []
    for _ in range(5):
        ids.append(desk.register())
        desk.power_loss()
        desk.call(Submit([offer()]), ids[-1], 1)
        desk.call(Goodbye(), ids[-1])
        desk.restart()
    assert len(set(ids)) == 5


def test_the_id_of_a_client_that_was_forgotten_before_its_group_was_closed_is_not_given_again() -> None:
    """The disk stands still for longer than a client may be silent."""
    desk = Desk()
    desk.configure(client_silent_seconds=1.0)
    draft = desk.engine.execute(Call(Register()), desk.now)
    desk.now += 2.0
    desk.engine.tick(desk.now)
    desk.settle()
    assert draft.reply not in desk.state.clients
    desk.restart()
    assert desk.register() > draft.reply


def test_a_client_is_forgotten_after_a_day_of_silence() -> None:
    desk = Desk()
    silent, busy = desk.register(), desk.register()
    for number in range(1, 40):
        desk.pass_time(3600)
        desk.register()
        desk.call(Submit([offer()]), busy, number, number - 1)
        known = silent in desk.state.clients
        assert known or number * 3600 >= CLIENT_SILENT_SECONDS
    assert not known, "others that come do not put it off"
    with pytest.raises(ClientUnknown):
        desk.call(Submit([offer()]), silent, 1)


def test_a_client_that_waits_is_not_silent() -> None:
    desk = Desk()
    desk.configure(client_silent_seconds=1.0)
    client = desk.register()
    first = desk.send(Reserve(1, wait_seconds=100), client, 1)
    again = desk.send(Reserve(1, wait_seconds=100), client, 1)
    desk.pass_time(50)
    desk.submit()
    assert answer(first) == answer(again) and answer(first).spans
    assert desk.call(Reserve(1), client, 1) == answer(first)


def test_goodbye_ends_the_clients_waits_and_forgets_it() -> None:
    desk = Desk()
    client, other = desk.register(), desk.register()
    waits = [desk.send(Reserve(1, wait_seconds=100), who, 1) for who in (client, other, client)]
    desk.call(Goodbye(), client)
    assert [draft.answered for draft in waits] == [True, False, True]
    assert waits[0].reply.spans == waits[2].reply.spans == []
    with pytest.raises(ClientUnknown):
        desk.call(Submit([offer()]), client, 2)
    desk.restart()
    assert list(desk.state.clients) == [other]


def test_a_refused_call_may_be_repeated_under_its_number() -> None:
    desk = Desk()
    client = desk.register()
    with pytest.raises(BadArgument):
        desk.call(Reserve(0), client, 1)
    desk.submit()
    assert desk.call(Reserve(1), client, 1).spans


def test_a_reserve_that_is_repeated_describes_what_left_memory_while_it_was_looked_up() -> None:
    """One of its submissions has left before, and is looked up; the other leaves meanwhile."""
    desk = Desk(window=2, fetched=1)
    ids = [desk.submit(tenant) for tenant in "abcdef"]
    client = desk.register()
    call = Call(Reserve(10, lease_seconds=1.0), client, 1)
    told = desk.call(call.command, client, 1)
    desk.pass_time(5.0)
    desk.call(Pause(True, "a", 0))
    lookups = desk.engine.lookups(call)
    assert lookups.runs == ids[:1] and ids[1] in desk.state.runs
    desk.call(Pause(True, "b", 0))
    assert ids[1] not in desk.state.runs
    again = answer(desk.engine.execute(call, desk.now, lookups.read(desk.store)))
    assert again.runs == told.runs and set(again.runs) == set(ids[:2])


def test_a_reserve_that_found_nothing_may_be_repeated_under_its_number() -> None:
    desk = Desk()
    client = desk.register()
    assert desk.call(Reserve(1), client, 1).spans == []
    desk.submit()
    reply = desk.call(Reserve(1), client, 1)
    assert reply.spans and desk.call(Reserve(1), client, 1) == reply


def test_a_client_that_never_acknowledges_is_told_so() -> None:
    desk = Desk(audited=False)
    client = desk.register()
    with desk.one_group():
        for number in range(1, OUTCOMES_PER_CLIENT_MAX + 1):
            desk.call(SetWeight("a", 1 + number % 2 * 10), client, number)
        with pytest.raises(TooLarge):
            desk.call(SetWeight("a", 9), client, OUTCOMES_PER_CLIENT_MAX + 1)
        assert desk.call(SetWeight("a", 9), client, OUTCOMES_PER_CLIENT_MAX + 1, 5) is None
    desk.audit()


def test_a_number_that_waits_already_is_joined_not_executed() -> None:
    desk = Desk()
    client = desk.register()
    first = desk.send(Reserve(1, wait_seconds=100), client, 1)
    second = desk.send(Reserve(1, wait_seconds=100), client, 1)
    assert {first, second} <= set(desk.engine.drafts_open())
    desk.submit(n=5)
    assert answer(first) == answer(second) and desk.stats().chunks_leased == 1


def test_when_the_first_of_two_equal_calls_is_gone_the_second_goes_on_waiting() -> None:
    desk = Desk()
    client = desk.register()
    first, second, third = (desk.send(Reserve(1, wait_seconds=100), client, 1) for _ in range(3))
    desk.engine.abandon(first)
    desk.engine.abandon(third)
    desk.settle()
    assert desk.stats().waiters == 1
    desk.submit()
    assert answer(second).spans
    assert desk.call(Reserve(1, wait_seconds=100), client, 1) == answer(second)


def test_reads_are_not_counted_as_requests() -> None:
    desk = Desk()
    client = desk.register()
    x = desk.submit()
    for _ in range(3):
        desk.call(Show(x), client, 1)
    assert desk.call(Cancel(x), client, 1).state == "cancelled"
    assert desk.call(Show(x), client, 1).state == "cancelled"
