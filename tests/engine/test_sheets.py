"""Pages of winners are stored in sheets: what a change costs, and pages that were written whole before."""

from __future__ import annotations

import pytest

from fairway import limits
from fairway.engine import sheets
from fairway.engine.sheets import SHEET_SHIFT, page_of
from fairway.limits import CHUNKS_MAX, PAGE_CHUNKS
from fairway.model.stored import Kind, Put
from tests.engine.desk import Desk, small_journal, small_pages, some

TOTAL = 3 * 512  # three pages of 512 chunks


def fragmented(desk: Desk, x: int, n: int) -> None:
    """Complete n chunks of a submission, each by a reservation of its own."""
    for _ in range(n):
        held = desk.reserve(1)
        assert desk.complete(held) == ["done"]


def page_puts(desk: Desk, since: int = 0) -> list[Put]:
    return [put for group in desk.groups[since:] for put in group.puts if put.kind is Kind.PAGE]


def small_sheets(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    small_pages(monkeypatch, 512)
    small_journal(monkeypatch, 4, 16)
    monkeypatch.setattr(sheets, "SHEET_ROWS", rows)


def test_a_change_costs_a_sheet_or_two_however_much_of_a_page_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_sheets(monkeypatch, 8)
    desk = Desk(audited=False)
    x = desk.submit(n=TOTAL)
    most: list[int] = []
    for _ in range(4):
        since = len(desk.groups)
        fragmented(desk, x, 100)
        most.append(max(len(put.body) for put in page_puts(desk, since)))
    assert len(page_puts(desk)) > 100
    assert max(most) <= 8 * 32 + 16
    per_group = [sum(put.kind is Kind.PAGE for put in group.puts) for group in desk.groups]
    assert max(per_group) <= 2
    desk.audit()


def test_every_sheet_comes_back_at_a_start_and_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    small_sheets(monkeypatch, 8)
    desk = Desk(audited=False)
    x = desk.submit(n=TOTAL)
    fragmented(desk, x, 60)
    before = desk.winners(x)
    desk.restart()
    assert desk.winners(x) == before and len(before) == 60
    since = len(desk.groups)
    fragmented(desk, x, 20)
    assert min(put.part >> SHEET_SHIFT for put in page_puts(desk, since)) >= 5
    desk.restart()
    assert len(desk.winners(x)) == 80
    desk.audit()


def test_a_row_that_grows_in_a_full_sheet_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    small_sheets(monkeypatch, 4)
    desk = Desk()
    x = desk.submit(n=TOTAL)
    fragmented(desk, x, 3)
    held = desk.reserve(6)
    for index in range(3, 9):
        desk.complete(some(held, (x, index)))
        for _ in range(3):
            desk.weigh("w", 7 + index), desk.weigh("w", 8 + index)  # the page is written meanwhile
    desk.restart()
    wins = desk.winners(x)
    assert [(win.start, win.count) for win in wins] == [(0, 1), (1, 1), (2, 1), (3, 6)]


def test_a_page_that_was_written_whole_is_read_and_cut_into_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    small_sheets(monkeypatch, 512)  # as before there were sheets
    desk = Desk(audited=False)
    x = desk.submit(n=TOTAL)
    fragmented(desk, x, 50)
    for _ in range(6):
        desk.weigh("w", 7), desk.weigh("w", 8)
    assert {put.part for put in page_puts(desk)} == {0}
    monkeypatch.setattr(sheets, "SHEET_ROWS", 8)
    desk.restart()
    assert len(desk.winners(x)) == 50
    since = len(desk.groups)
    fragmented(desk, x, 10)
    for _ in range(6):
        desk.weigh("w", 7), desk.weigh("w", 8)
    assert {put.part >> SHEET_SHIFT for put in page_puts(desk, since)} == set(range(8))
    desk.restart()
    assert len(desk.winners(x)) == 60
    desk.audit()


@pytest.mark.parametrize("rows", [1, 8, 512])
def test_who_won_a_chunk_of_an_ended_submission_is_found_in_its_sheets(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    small_sheets(monkeypatch, rows)
    desk = Desk(audited=False)
    x = desk.submit(n=TOTAL)
    fragmented(desk, x, 24)
    held = desk.reserve(1)
    desk.complete(held)
    desk.cancel(x)
    desk.submit("z")
    desk.restart()
    assert desk.complete(held) == ["already"]
    assert [win.start for win in desk.winners(x, 0, 512)] == list(range(25))
    assert desk.redrive(x).done == 25
    fragmented(desk, x, 11)  # one of them is z's
    desk.restart()
    assert len(desk.winners(x)) == 35
    desk.audit()


def test_every_page_and_sheet_has_a_part_of_its_own() -> None:
    last = (CHUNKS_MAX - 1) // PAGE_CHUNKS
    most = PAGE_CHUNKS // limits.SHEET_ROWS
    assert last < 1 << SHEET_SHIFT and (most << SHEET_SHIFT | last) < 1 << 31, (
        "a part has 32 bits in Cassandra"
    )
    assert page_of(most << SHEET_SHIFT | last) == last
