"""Results: registered with their completion, read back in index order whatever pages they came in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.engine.commands import Complete, Settled, Win
from fairway.face.reads import ReadResults
from fairway.face.results import Result
from fairway.model.lease import Lease
from fairway.model.page import result_page
from fairway.model.stored import ResultPage, until_bytes
from fairway.model.submission import Described
from tests.face.script import Script, verbs


def stored(described: Described, pages: list[list[int]], wins: list[Win]) -> Script:
    """A store with result pages of these indexes; the result of chunk i is its number."""
    held = sorted(
        (ResultPage(9, p[0], result_page([(i, b"%d" % i) for i in p])) for p in pages), key=lambda p: p.first
    )

    def read(command: ReadResults) -> list[ResultPage]:
        return [page for page in held if page.first >= command.first_min][: command.limit]

    def winners(command: Any) -> list[Win]:
        end = command.start + command.count
        return [win for win in wins if command.start <= win.start < end]

    return Script(Describe=lambda command: described, ReadResults=read, Winners=winners)


@given(st.lists(st.integers(0, 39), min_size=1, max_size=300), st.integers(0, 2**32))
def test_overlapping_pages_come_out_in_index_order(homes: list[int], seed: int) -> None:
    # Chunk i is in page homes[i]; so pages overlap in every way, and there are more than one read takes.
    pages: dict[int, list[int]] = {}
    for index, home in enumerate(homes):
        pages.setdefault((home * 7919 + seed) % 97, []).append(index)
    script = stored(Described("", len(homes)), list(pages.values()), [])
    found = script.all(verbs().results(9))
    assert [(result.index, result.data) for result in found] == [(i, b"%d" % i) for i in range(len(homes))]


def test_more_pages_than_one_read_takes() -> None:
    script = stored(Described("", 1000), [[i] for i in range(1000)], [])
    assert [result.index for result in script.all(verbs().results(9))] == list(range(1000))
    assert len(script.asked) > 10


def test_a_read_that_ends_at_its_bytes_is_not_taken_for_the_last() -> None:
    big = b"x" * (limits.RESULTS_READ_BYTES // 2)
    held = [ResultPage(9, i, result_page([(i, big)])) for i in range(7)]

    def read(command: ReadResults) -> list[ResultPage]:
        behind = (page for page in held if page.first >= command.first_min)
        return list(until_bytes(behind, command.bytes_max))

    script = Script(Describe=lambda command: Described("", 7), ReadResults=read)
    assert [(one.index, one.data) for one in script.all(verbs().results(9))] == [(i, big) for i in range(7)]
    assert len(script.asked) == 1 + 4, "two at a time"


def test_pages_are_read_while_they_are_iterated() -> None:
    from fairway.face.driving import iterate

    script = stored(Described("", 1000), [[i] for i in range(1000)], [])
    found = iterate(verbs().results(9), script)
    assert next(found).index == 0
    assert len([command for command in script.asked if isinstance(command, ReadResults)]) == 1


def test_objects_and_inline_results_are_merged() -> None:
    many = 2 * limits.PAGE_CHUNKS + 10
    described = Described("", many, segments=(("memory://x", limits.PAGE_CHUNKS + 5), ("memory://y", many)))
    wins = [Win(3, 2, 0xE, 0xC, 0xA, 2), Win(10, 1, 1, 1, 0, 0), Win(limits.PAGE_CHUNKS + 5, 1, 1, 2, 3, 2)]
    script = stored(described, [[1, limits.PAGE_CHUNKS + 1], [4 + 2, many - 1]], wins)
    found = script.all(verbs(fetch=str.encode).results(9))
    inline = [(1, b"1"), (6, b"6"), (limits.PAGE_CHUNKS + 1, b"65537"), (many - 1, b"%d" % (many - 1))]
    assert [(r.index, r.data) for r in found if r.object is None] == inline
    assert [(r.index, r.object) for r in found if r.object is not None] == [
        (3, "memory://x/3.out.e.c.a"),
        (4, "memory://x/4.out.e.c.a"),
        (limits.PAGE_CHUNKS + 5, "memory://y/0.out.1.2.3"),
    ]
    assert [r.index for r in found] == sorted(r.index for r in found)
    assert found[1].read() == b"memory://x/3.out.e.c.a"
    assert found[0].read() == b"1"


def test_a_submission_without_chunks_has_no_results() -> None:
    assert stored(Described("", 0), [], []).all(verbs().results(9)) == []


INLINE = Described("", 100)
OBJECTS = Described("", 100, segments=(("memory://x", 100),))


def lease(index: int, described: Described) -> Lease:
    return Lease(9 if described is INLINE else 8, index, 1, 10.0, 1, 2, 5, described)


class Shelf:
    """Objects that are only noted."""

    def __init__(self) -> None:
        self.written: dict[str, bytes] = {}

    def write(self, blobs: dict[str, bytes]) -> None:
        self.written |= blobs

    def remove(self, names: list[str]) -> None:
        for name in names:
            del self.written[name]


def test_results_go_where_their_submission_keeps_them() -> None:
    shelf = Shelf()
    outcomes = iter((Settled([("done", 2), ("lost", 1)]), Settled([("done", 1), ("ended", 1)])))
    script = Script(Complete=lambda command: next(outcomes))
    given = [lease(0, INLINE), lease(0, OBJECTS), lease(1, INLINE), lease(1, OBJECTS), lease(2, OBJECTS)]
    blobs = [b"a", b"B", None, b"C", None]
    assert script.run(verbs(shelf).complete(given, results=blobs)) == [
        "done",
        "done",
        "done",
        "ended",
        "lost",
    ]
    inline, objects = script.asked
    assert [(s, i, n) for part in inline.parts for s, i, n in part.spans] == [(9, 0, 2), (8, 2, 1)]
    assert inline.results == [b"a", None, None]
    assert not inline.by_reference
    assert [(s, i, n) for part in objects.parts for s, i, n in part.spans] == [(8, 0, 2)]
    assert (objects.results, objects.by_reference, objects.writer) == (None, True, 100)
    # The object of the one that had ended belongs to nobody.
    assert shelf.written == {"memory://x/0.out.1.2.64": b"B"}


def test_an_object_that_one_of_several_commands_registered_is_not_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lease that is named twice so far apart that it goes in two commands: both places name the same object."""
    monkeypatch.setattr(limits, "CALL_CHUNKS_MAX", 2)
    shelf = Shelf()
    outcomes = iter((Settled([("done", 1), ("lost", 1)]), Settled([("already", 1)])))
    script = Script(Complete=lambda command: next(outcomes))
    given = [lease(0, OBJECTS), lease(1, OBJECTS), lease(0, OBJECTS)]
    assert script.run(verbs(shelf).complete(given, results=[b"a", b"b", b"late"])) == [
        "done",
        "lost",
        "already",
    ]
    assert shelf.written == {"memory://x/0.out.1.2.64": b"a"}, "the result of the place that was done"


def test_each_call_writes_under_a_number_of_its_own() -> None:
    shelf = Shelf()
    script = Script(Complete=lambda command: Settled([("done", 1)]))
    mine = verbs(shelf)
    for _ in range(2):
        script.run(mine.complete(lease(0, OBJECTS), b"x"))
    assert sorted(shelf.written) == ["memory://x/0.out.1.2.64", "memory://x/0.out.1.2.65"]


def test_results_that_were_written_already_are_only_registered() -> None:
    script = Script(Complete=lambda command: Settled([("done", 2)]))
    script.run(verbs().complete([lease(0, OBJECTS), lease(1, OBJECTS)], by_reference=True, writer=7))
    assert [(c.by_reference, c.writer, c.results) for c in script.asked] == [(True, 7, None)]


def test_inline_results_are_cut_by_bytes() -> None:
    script = Script(
        Complete=lambda command: Settled([("done", sum(n for p in command.parts for _, _, n in p.spans))])
    )
    big = b"x" * limits.PAYLOAD_BYTES_MAX
    leases = [lease(i, INLINE) for i in range(100)]
    assert script.run(verbs().complete(leases, results=[big] * 100)) == ["done"] * 100
    assert len(script.asked) == 2
    assert all(isinstance(command, Complete) for command in script.asked)


def test_an_empty_result_is_a_result() -> None:
    script = Script(Complete=lambda command: Settled([("done", 1)]))
    script.run(verbs().complete(lease(0, INLINE), b""))
    assert script.asked[0].results == [b""]
    assert Result(0, b"").read() == b""


@pytest.mark.parametrize("receipt", [True, False])
def test_a_receipt_takes_its_result_inline(receipt: bool) -> None:
    script = Script(Complete=lambda command: Settled([("done", 1)]))
    one = lease(0, INLINE)
    script.run(verbs().complete(one.receipt if receipt else one, b"x"))
    assert script.asked[0].results == [b"x"]
