"""From a reservation to leases: payloads are found in their pages, and damage stays with the damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.engine.commands import Fail, Reserve, Reserved, Settled
from fairway.errors import BadArgument, ConsumerFenced, PayloadCorrupt
from fairway.face.reads import ReadPages
from fairway.model.page import payload_pages
from fairway.model.submission import Described
from tests.face.script import Script, verbs

PAYLOADS = [bytes([i]) * 1200 for i in range(30)]
PAGES, STARTS = payload_pages(PAYLOADS)
RUN = Described("acme", 30, {"m": 1}, b"info", page_starts=STARTS)
PLAIN = Described("other", 10**9)


def reserving(reserved: Reserved, pages: dict, fail: str = "retrying") -> Script:
    return Script(
        Reserve=lambda command: reserved,
        ReadPages=lambda command: {where: pages[where] for where in command.wanted if where in pages},
        Fail=lambda command: Settled([(fail, len(command.parts[0].spans))]),
    )


ALL = {(5, n): page for n, page in enumerate(PAGES)}
span = st.tuples(st.integers(0, 29), st.integers(1, 30)).map(lambda s: (5, s[0], min(s[1], 30 - s[0]), 1))


@given(st.lists(span, min_size=1, max_size=5))
def test_each_lease_has_its_own_payload(spans: list[tuple[int, int, int, int]]) -> None:
    reserved = Reserved(3, 4, 6, 99.0, [*spans, (8, 7, 2, 3)], {5: RUN, 8: PLAIN})
    script = reserving(reserved, ALL)
    leases = script.run(verbs().reserve(100))
    chunks = [(5, i) for _, start, count, _ in spans for i in range(start, start + count)] + [(8, 7), (8, 8)]
    assert [(lease.submission, lease.index) for lease in leases] == chunks
    assert all(lease.payload == PAYLOADS[lease.index] for lease in leases[:-2])
    assert leases[-1].payload is None
    assert (leases[-1].attempt, leases[-1].deadline, leases[-1].tenant) == (3, 99.0, "other")
    assert (leases[0].tenant, leases[0].metadata, leases[0].info) == ("acme", {"m": 1}, b"info")
    assert script.given_back == []
    # No page is read twice, and none that holds no reserved chunk.
    (read,) = [command for command in script.asked if isinstance(command, ReadPages)]
    needed = {(5, max(n for n, first in enumerate(STARTS) if first <= i)) for s, i in chunks if s == 5}
    assert sorted(read.wanted) == sorted(needed)


def test_nothing_reserved_reads_nothing() -> None:
    script = reserving(Reserved(0, 0, 0, 0.0, []), {})
    assert script.run(verbs().reserve(5, strategy="OldestFirst", lease_seconds=2, wait_seconds=1)) == []
    assert script.asked == [Reserve(5, "OldestFirst", 2.0, 1.0)]


@pytest.mark.parametrize("damage", ["missing", "altered", "short", "fewer"])
def test_a_damaged_page_fails_its_chunks_and_no_others(damage: str) -> None:
    reserved = Reserved(3, 4, 6, 99.0, [(5, 0, 30, 1)], {5: RUN})
    pages = dict(ALL)
    if damage == "missing":
        del pages[5, 1]
    elif damage == "altered":
        pages[5, 1] = pages[5, 1][:-1] + b"!"
    elif damage == "short":
        pages[5, 1] = b"x"
    else:
        pages[5, 1] = payload_pages([PAYLOADS[STARTS[1]]])[0][0]  # whole, but of another submission
    script = reserving(reserved, pages)
    leases = script.run(verbs().reserve(100))
    bad = list(range(STARTS[1] + (damage == "fewer"), STARTS[2]))
    assert [lease.index for lease in leases] == [i for i in range(30) if i not in bad]
    (failed,) = [command for command in script.asked if isinstance(command, Fail)]
    assert [index for _, index, _ in failed.parts[0].spans] == bad
    assert failed.retry
    assert f"chunk {bad[0]} of submission 5" in failed.error


def test_if_all_are_damaged_the_caller_is_told_and_nothing_stays_leased() -> None:
    reserved = Reserved(3, 4, 6, 99.0, [(5, 0, 1, 1)], {5: RUN})
    script = reserving(reserved, {})
    with pytest.raises(PayloadCorrupt, match="chunk 0 of submission 5"):
        script.run(verbs().reserve())
    assert script.given_back == [reserved]


def test_a_submission_that_was_purged_meanwhile_is_no_damage() -> None:
    reserved = Reserved(3, 4, 6, 99.0, [(5, 0, 1, 1)], {5: RUN})
    assert reserving(reserved, {}, fail="ended").run(verbs().reserve()) == []


def test_a_reserve_that_fails_after_its_reply_gives_the_leases_back() -> None:
    reserved = Reserved(3, 4, 6, 99.0, [(5, 0, 1, 1)], {5: RUN})
    script = reserving(reserved, ALL)

    def interrupted(command: object) -> None:
        raise KeyboardInterrupt

    script.answers["ReadPages"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        script.run(verbs().reserve())
    assert script.given_back == [reserved]


def test_a_named_reservation_is_never_given_back() -> None:
    reserved = Reserved(3, 4, 6, 99.0, [(5, 0, 1, 1)], {5: RUN})
    script = reserving(reserved, ALL)
    script.answers["Join"] = lambda command: 3

    def interrupted(command: object) -> None:
        raise KeyboardInterrupt

    script.answers["ReadPages"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        script.run(verbs().reserve(consumer="c", seq=1))
    assert script.given_back == []


def test_a_consumer_joins_once_and_stays_fenced() -> None:
    script = reserving(Reserved(0, 0, 0, 0.0, []), {})
    epochs = iter((3, 4))
    script.answers["Join"] = lambda command: next(epochs)
    mine = verbs()
    script.run(mine.reserve(consumer="c", seq=1))
    script.run(mine.reserve(consumer="c", seq=2))
    reserves = [command for command in script.asked if isinstance(command, Reserve)]
    assert [(r.consumer, r.consumer_epoch, r.seq) for r in reserves] == [("c", 3, 1), ("c", 3, 2)]

    def fenced(command: object) -> None:
        raise ConsumerFenced

    script.answers["Reserve"] = fenced
    with pytest.raises(ConsumerFenced):
        script.run(mine.reserve(consumer="c", seq=3))


def test_two_threads_that_join_at_once_are_not_rivals() -> None:
    mine = verbs()
    seen: list[int] = []

    def reserve(command: Reserve) -> Reserved:
        seen.append(command.consumer_epoch)
        if command.consumer_epoch == 3:
            mine._epochs["c"] = 4  # the other thread joined after this one
            raise ConsumerFenced
        return Reserved(0, 0, 0, 0.0, [])

    script = Script(Join=lambda command: 3, Reserve=reserve)
    assert script.run(mine.reserve(consumer="c", seq=1)) == []
    assert seen == [3, 4]


def test_a_payload_by_reference_is_read_when_it_is_looked_at() -> None:
    run = Described("", 5, segments=(("memory://x", 2), ("memory://y", 3)))
    reserved = Reserved(3, 4, 6, 99.0, [(5, 1, 2, 1)], {5: run})
    read: list[str] = []

    def fetch(name: str) -> bytes:
        read.append(name)
        return name.encode()

    leases = reserving(reserved, {}).run(verbs(fetch=fetch).reserve(2))
    assert read == []
    assert [lease.payload for lease in leases] == [b"memory://x/1", b"memory://y/0"]
    assert leases[0].payload == b"memory://x/1"
    assert read == ["memory://x/1", "memory://y/0"]
    assert leases[1].result_object(255) == "memory://y/0.out.3.4.ff"

    (lease, _) = reserving(reserved, {}).run(verbs(fetch=None).reserve(2))
    assert lease.object == "memory://x/1"
    with pytest.raises(BadArgument, match=r"await queue\.payload"):
        _ = lease.payload
