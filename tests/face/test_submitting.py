"""What submit and put send: offers, cut into calls, with what they share described once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fairway import limits
from fairway.engine.commands import Accepted, Submit
from fairway.errors import NotFound, StoreFailed, TooLarge
from fairway.model.ids import next_id, seconds_of
from fairway.model.page import payloads_of
from fairway.model.submission import Offer, Submission
from tests.face.script import Script, verbs


def accepting() -> Script:
    ids = [0]

    def submit(command: Submit) -> Accepted:
        made = []
        for _ in command.offers:
            ids[0] = next_id(1.8e9, ids[0], 3)
            made.append(ids[0])
        return Accepted(made, [False] * len(made))

    return Script(Submit=submit)


def offers_of(script: Script) -> list[Offer]:
    return [offer for command in script.asked for offer in command.offers]


def test_payloads_become_pages_that_hold_them() -> None:
    script = accepting()
    payloads = [bytes([i]) * 20_000 for i in range(10)]
    made = script.run(
        verbs().submit(payloads, tenant="acme", metadata={"mode": "preview", "n": 7}, info=b"i")
    )
    (offer,) = offers_of(script)
    assert [p for page in offer.pages for p in payloads_of(page)] == payloads
    assert offer.described.page_starts[0] == 0
    assert len(offer.described.page_starts) == len(offer.pages) > 1
    assert offer.described.total == 10
    assert (made.state, made.total, made.tenant, made.metadata) == (
        "active",
        10,
        "acme",
        {"mode": "preview", "n": 7},
    )


def test_no_chunks_are_completed_at_once() -> None:
    script = accepting()
    ended = Submission(77, "completed", "", 0, 0, 0, 0, 5.0, 6.0)
    script.answers["Show"] = lambda command: ended
    assert script.run(verbs().submit([])) is ended

    def purged(command: object) -> None:
        raise NotFound

    script.answers["Show"] = purged  # a retention of no time
    made = script.run(verbs().submit([]))
    assert (made.state, made.total, made.ended) == ("completed", 0, made.created)


def test_times_become_seconds() -> None:
    script = accepting()
    when = datetime(2030, 1, 1, tzinfo=UTC)
    made = script.run(verbs().submit(chunks=1, not_before=when, deadline_seconds=60))
    (offer,) = offers_of(script)
    assert offer.described.not_before == when.timestamp()
    assert offer.deadline_seconds == 60.0
    assert made.deadline == seconds_of(made.id) + 60


def test_segments_count_the_chunks() -> None:
    script = accepting()
    script.run(verbs().submit(objects=[("s3://b/x/", 2), ("s3://b/y", 3)]))
    (offer,) = offers_of(script)
    assert offer.described.segments == (("s3://b/x", 2), ("s3://b/y", 3))
    assert offer.described.total == 5


@pytest.mark.parametrize(
    "change", [{"payloads": [b"y"]}, {"metadata": {"a": 2}}, {"info": b"i"}, {"priority": 1}]
)
def test_a_fingerprint_tells_contents_apart(change: dict[str, Any]) -> None:
    script = accepting()
    same = {"payloads": [b"x"], "metadata": {"a": 1, "b": 2}, "key": "k"}
    again = {**same, "metadata": {"b": 2, "a": 1}, "delay_seconds": 5, "weight": 2}
    script.run(verbs().submit_many([same, again, {**same, **change}]))
    first, second, third = (offer.described.fingerprint for offer in offers_of(script))
    assert first == second
    assert len(first) == 16
    assert first != third


def test_a_given_fingerprint_counts() -> None:
    script = accepting()
    script.run(verbs().put(b"x", key="k", fingerprint="v1"))
    assert offers_of(script)[0].described.fingerprint == b"v1"


def test_without_a_key_nothing_is_hashed() -> None:
    script = accepting()
    script.run(verbs().put(b"x"))
    assert offers_of(script)[0].described.fingerprint == b""


def test_many_are_cut_by_number() -> None:
    script = accepting()
    made = script.run(verbs().submit_many([{"chunks": 1}] * (2 * limits.CALL_OFFERS_MAX + 1)))
    assert [len(command.offers) for command in script.asked] == [limits.CALL_OFFERS_MAX] * 2 + [1]
    assert len({submission.id for submission in made}) == len(made) == 2 * limits.CALL_OFFERS_MAX + 1


def test_many_are_cut_by_bytes() -> None:
    script = accepting()
    payload = b"x" * limits.PAYLOAD_BYTES_MAX
    script.run(verbs().put_many([payload] * 130))
    sizes = [sum(len(page) for offer in command.offers for page in offer.pages) for command in script.asked]
    assert len(sizes) == 3
    assert all(size <= limits.GROUP_BYTES_MAX for size in sizes)
    assert sum(len(command.offers) for command in script.asked) == 130


@pytest.mark.parametrize(
    "words",
    [
        {"chunks": 1, "info": b"i" * limits.INFO_BYTES_MAX},
        {"chunks": 1, "metadata": {f"{i:0128}": "v" * limits.METADATA_VALUE_BYTES_MAX for i in range(32)}},
        {"objects": [("s3://b/" + "p" * 2000, 1)] * 20},
    ],
    ids=["info", "metadata", "objects"],
)
def test_many_are_cut_by_what_describes_them(words: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROUP_BYTES_MAX", 1_000_000)
    script = accepting()
    made = script.run(verbs().submit_many([words] * 150))
    assert len(made) == 150 == len(offers_of(script))
    for command in script.asked:
        assert len(msgspec.msgpack.encode(command)) <= 1_010_000


def test_what_messages_share_goes_with_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROUP_BYTES_MAX", 1_000_000)
    script = accepting()
    script.run(verbs().put_many([b"x"] * 20, info=b"i" * limits.INFO_BYTES_MAX))
    assert [len(command.offers) for command in script.asked] == [15, 5]


def test_nothing_at_all_sends_nothing() -> None:
    script = accepting()
    assert script.run(verbs().submit_many([])) == []
    assert script.run(verbs().put_many([])) == []
    assert script.asked == []


def test_a_bad_item_sends_nothing() -> None:
    script = accepting()
    items: list[Any] = [b"x"] * limits.CALL_OFFERS_MAX + ["text"]
    with pytest.raises(Exception, match=r"items\[10000\]"):
        script.run(verbs().put_many(items))
    assert script.asked == []


def test_a_later_call_that_fails_tells_what_was_accepted() -> None:
    script = accepting()
    answer = script.answers["Submit"]

    def submit(command: Submit) -> Accepted:
        if len(script.asked) == 2:
            raise StoreFailed
        return answer(command)

    script.answers["Submit"] = submit
    with pytest.raises(StoreFailed) as caught:
        script.run(verbs().put_many([b"x"] * (limits.CALL_OFFERS_MAX + 1)))
    accepted = caught.value.details["accepted"]
    assert isinstance(accepted, list)
    assert len(accepted) == limits.CALL_OFFERS_MAX


def test_messages_share_what_they_share() -> None:
    script = accepting()
    items: list[Any] = [b"a", bytearray(b"b"), memoryview(b"c"), {"payload": b"d", "tenant": "other"},
                        {"payload": b"e", "tenant": "other"}, {"payload": b"f", "priority": 5, "key": "k"}]  # fmt: skip
    script.run(verbs().put_many(items, tenant="acme", metadata={"m": 1}, delay_seconds=3, weight=2))
    offers = offers_of(script)
    assert [payloads_of(offer.pages[0]) for offer in offers] == [[c.encode()] for c in "abcdef"]
    assert offers[0].described is offers[1].described is offers[2].described
    assert offers[3].described is offers[4].described
    assert [offer.described.tenant for offer in offers] == ["acme"] * 3 + ["other"] * 2 + ["acme"]
    assert all(
        offer.described.metadata == {"m": 1} and offer.described.policy == "dead_letter" for offer in offers
    )
    assert all(offer.delay_seconds == 3 and offer.weight == 2000 for offer in offers)
    assert (offers[5].described.priority, offers[5].described.key) == (5, "k")


def test_a_known_key_gives_the_submission_as_it_is() -> None:
    known = Submission(77, "completed", "", 1, 1, 0, 0, 5.0, 6.0)
    script = Script(Submit=lambda command: Accepted([77], [True]), Show=lambda command: known)
    assert script.run(verbs().put(b"x", key="k")) is known


def test_inline_bytes_have_a_bound() -> None:
    with pytest.raises(TooLarge):
        accepting().run(verbs().submit([b"x" * limits.PAYLOAD_BYTES_MAX] * 33))
    accepting().run(verbs().submit([b"x" * limits.PAYLOAD_BYTES_MAX] * 32))
