"""The window alone: its rules in any order of events, and the cases that the design names."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.fair.levels import Level
from fairway.fair.window import COUNTED, FINISHED, NEVER, OUT, Window
from tests.fair.window_world import Broken, Table, World, random_steps


@pytest.mark.parametrize("rows_max", [1, 2, 8])
@pytest.mark.parametrize("seed", range(120))
def test_the_rules_hold_in_any_order_of_events_and_nothing_is_lost(rows_max: int, seed: int) -> None:
    random_steps(World(rows_max), Random(1000 * rows_max + seed), 250)


def loaded(rows_max: int, passes: list[int]) -> World:
    """A table of rows that were stored before, and an owner that has read what fits."""
    table = Table()
    for id, pass_ in enumerate(passes, 1):
        table.rows[pass_, id] = False
        table.tenant[id] = "a"
    world = World(rows_max, table=table)
    world.rest()
    return world


LEVELS = st.lists(st.integers(1, 40), min_size=0, max_size=14, unique=True)


def view(window: Window) -> tuple[dict[Level, int], Level, bool]:
    return dict(window.tracked), window.read, window.at_end


@given(stored=LEVELS, written=LEVELS, rows_max=st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_reload_equals_merge(stored: list[int], written: list[int], rows_max: int) -> None:
    """Plan 2 of the seed (merge what was written) leaves what plan 1 does: drop everything and read again."""
    merging = Window((0, 0), rows_max)
    rows = sorted((pass_, 1) for pass_ in stored)
    merging.begin_main()
    merging.main_read((0, 0), 0, rows[:rows_max], len(rows) < rows_max)
    new = sorted((pass_, 2) for pass_ in written)
    for level in new:
        merging.pin(level)
    merging.stored(new)
    every = sorted([*rows, *new])
    fresh = Window((0, 0), rows_max)
    fresh.begin_main()
    fresh.main_read((0, 0), 0, every[:rows_max], len(every) < rows_max)
    assert set(merging.tracked) == set(fresh.tracked) and merging.read == fresh.read
    # Both know that they are at the end, but for a read that brought just as many rows as it might.
    assert merging.at_end == fresh.at_end or (merging.at_end and len(every) == rows_max)
    read_on(merging, every), read_on(fresh, every)
    assert set(merging.tracked) == set(fresh.tracked) == set(every[:rows_max])
    assert merging.read == fresh.read


def read_on(window: Window, every: list[Level]) -> None:
    """Reads until it is full or at the end, whether it wants them yet or not."""
    while not window.at_end and window.counted < window.rows_max:
        start, limit = window.begin_main()
        found = [level for level in every if level > start]
        window.main_read(start, window.era, found[:limit], len(found) < limit)


@given(data=st.data(), rows_max=st.integers(1, 8), written=LEVELS)
@settings(max_examples=150, deadline=None)
def test_a_merge_is_idempotent_and_independent_of_how_rows_are_cut(
    data: st.DataObject, rows_max: int, written: list[int]
) -> None:
    rows = sorted((pass_, 1) for pass_ in written)

    def fresh() -> Window:
        window = Window((0, 0), rows_max)
        window.at_end = True
        return window

    whole = fresh()
    whole.merge(rows, "WRITE")
    again = fresh()
    again.merge(rows, "WRITE")
    again.merge([level for level in rows if level <= again.read], "WRITE")
    assert view(again) == view(whole)
    parts = fresh()
    order = data.draw(st.permutations(rows))
    cuts = sorted({0, len(rows), *data.draw(st.lists(st.integers(0, len(rows)), max_size=4))})
    for first, last in pairwise(cuts):
        parts.merge(sorted(order[first:last]), "WRITE")
    assert view(parts) == view(whole)


@given(data=st.data(), rows_max=st.integers(1, 8), stored=LEVELS, written=LEVELS)
@settings(max_examples=200, deadline=None)
def test_reads_and_writes_in_any_mixture_leave_what_one_read_would(
    data: st.DataObject, rows_max: int, stored: list[int], written: list[int]
) -> None:
    """Rows are written in any parts, while reads are out, are answered late, fail, or are not made at all."""
    table = sorted((pass_, 1) for pass_ in stored)
    to_write = data.draw(st.permutations([(pass_, 2) for pass_ in written]))
    window = Window((0, 0), rows_max)
    read: tuple[Level, int, list[Level]] | None = None
    steps = st.sampled_from(["write", "begin", "look", "answer", "fail"])
    for step in data.draw(st.lists(steps, max_size=25)):
        if step == "write" and to_write:
            part = sorted(to_write.pop() for _ in range(min(len(to_write), data.draw(st.integers(1, 4)))))
            for level in part:
                window.submit(level)
            window.fit()
            table = sorted([*table, *part])
            window.stored(part)
        elif step == "begin" and read is None and not window.at_end and window.counted < rows_max:
            start, limit = window.begin_main()
            read = start, limit, [level for level in table if level > start]
        elif step == "look" and read is not None:  # the store is asked as late as that
            read = *read[:2], [level for level in table if level > read[0]]
        elif step == "answer" and read is not None:
            start, limit, found = read
            read = None
            window.main_read(start, window.era, found[:limit], len(found) < limit)
        elif step == "fail" and read is not None:
            read = None
            window.main_over(window.era)
        assert set(window.tracked) | set(window.held) >= {level for level in table if level <= window.read}
    if read is not None:
        window.main_over(window.era)
    read_on(window, table)
    once = Window((0, 0), rows_max)
    read_on(once, table)
    assert (set(window.tracked), window.read) == (set(once.tracked), once.read)
    assert window.at_end == once.at_end or (window.at_end and len(table) == rows_max)


def test_the_cases_p_q_r_s_of_the_seed() -> None:
    """Where a write lies to R, and how much of it fits: R and the rows that are kept."""
    cases = {
        # P: all of it above R, at the end of the table
        "P fits": (8, [10, 20, 30], [40, 50], [10, 20, 30, 40, 50], (50, 0), True),
        "P cut": (4, [10, 20, 30], [40, 50], [10, 20, 30, 40], (40, 0), False),
        # Q: across R, and all of it fits
        "Q": (8, [10, 20, 30], [25, 35], [10, 20, 25, 30, 35], (35, 0), True),
        # R: across R, and the cut falls inside it
        "R": (4, [10, 20, 30], [25, 35], [10, 20, 25, 30], (30, 0), False),
        # S: all of it below R
        "S fits": (8, [10, 20, 30], [15, 25], [10, 15, 20, 25, 30], (30, 0), True),
        "S cut": (4, [10, 20, 30], [15, 25], [10, 15, 20, 25], (25, 0), False),
    }
    for name, (rows_max, there, written, kept, read, at_end) in cases.items():
        window = Window((0, 0), rows_max)
        window.begin_main()
        window.main_read((0, 0), 0, [(pass_, 0) for pass_ in there], True)
        levels = [(pass_, 0) for pass_ in written]
        for level in levels:
            window.pin(level)
        window.stored(levels)
        assert sorted(window.tracked) == [(pass_, 0) for pass_ in kept], name
        assert (window.read, window.at_end) == (read, at_end), name


def test_in_the_middle_of_the_table_what_is_written_above_r_is_left_to_the_next_read() -> None:
    world = loaded(4, [10, 20, 30, 40, 50, 60])
    assert not world.window.at_end
    between, beyond = world.submit(35), world.submit(70)
    world.close()
    world.store()
    assert between in world.window.tracked and beyond not in world.window.tracked
    world.drain()


def test_the_pin_scenario() -> None:
    """Loaded 11, 21, 31; 13, 15 and 25 are chosen; 11 and 21 finish before they are stored."""
    world = loaded(8, [11, 21, 31])
    eleven, twenty_one = world.lease(), world.lease()
    assert eleven == (11, 1) and twenty_one == (21, 2)
    new = [world.submit(13), world.submit(15), world.submit(25)]
    world.finish(eleven)
    world.finish(twenty_one)
    assert world.window.advance() < new[0], "A stays below every level that is chosen and not merged"
    world.close()
    world.check()
    world.store()
    assert world.window.advance() == eleven
    world.drain()


def test_the_pin_scenario_in_its_even_worse_form() -> None:
    """The rows are stored, and held because a read is out: A may not pass them then either."""
    world = loaded(2, [11, 21, 31, 41])
    first = world.lease()
    assert first == (11, 1)
    world.finish(first)
    second = world.lease()
    assert second == (21, 2)
    world.begin_main()
    assert world.main is not None
    world.make_main()  # before the new rows are there
    held = [world.submit(22), world.submit(29)]
    world.close()
    world.store()
    assert world.window.held == held
    world.finish(second)
    assert world.window.advance() < held[0]
    world.check()
    world.end_main()
    world.check()
    world.drain()


def test_held_rows_are_merged_when_their_read_ends_with_an_error_too() -> None:
    world = loaded(2, [11, 21, 31, 41])
    for _ in range(2):
        level = world.lease()
        assert level is not None
        world.finish(level)
    world.begin_main()
    low = world.submit(22)
    world.close()
    world.store()
    assert world.window.held
    world.end_main(error=True)
    assert not world.window.held and not world.window.pinned(low)
    world.drain()


def test_a_read_that_did_not_begin_at_the_present_r_is_thrown_away() -> None:
    world = loaded(2, [10, 20, 30, 40])
    world.lease()
    world.lease()
    world.begin_main()
    world.make_main()
    world.window.cut((10, 1))
    before = dict(world.window.tracked)
    world.end_main()
    assert world.window.tracked == before and world.window.read == (10, 1)


def test_a_row_that_was_cut_while_leased_is_not_counted_or_leased_again() -> None:
    world = loaded(1, [50])
    fifty = world.lease()
    assert fifty == (50, 1)
    for pass_ in (30, 20):
        world.submit(pass_)
        world.close()
        world.store()
    assert fifty not in world.window.tracked
    seen = [world.lease()]
    world.rest()
    while level := world.lease():
        seen.append(level)
        world.rest()
    assert fifty not in seen, "it is read again as what it is: leased"
    assert world.window.tracked.get(fifty) in (None, OUT)
    world.drain()


def test_finished_marks_above_a_cut_leave_with_it() -> None:
    """50 is finished, 30 is cut out of memory by 20: A must not go to 50 when 20 finishes."""
    world = loaded(1, [50])
    fifty = world.lease()
    assert fifty is not None
    world.submit(30)
    world.close()
    world.store()
    world.finish(fifty)
    world.submit(20)
    world.close()
    world.store()
    twenty = world.lease()
    assert twenty is not None and twenty[0] == 20
    world.finish(twenty)
    assert world.window.advance() < (30, 0)
    world.drain()


def test_r_stays_when_only_finished_rows_remain() -> None:
    world = loaded(8, [10, 20, 30])
    while level := world.lease():
        world.finish(level)
    world.window.advance()
    assert world.window.read == world.window.ack == (30, 3) and world.window.at_end
    world.close()
    world.store()
    assert not world.window.main_wanted()


def test_a_row_parked_while_a_scan_is_out_bounds_a() -> None:
    world = World(8)
    world.pause("a")
    first, later = world.submit(10, "a"), world.submit(40, "b")
    world.rest()
    world.resume("a")
    world.rest()
    assert world.lease() == first
    world.finish(first)
    world.rest()
    world.pause("c")
    world.window.scan_wanted = True
    world.scan_step()
    world.scan_step()  # it has read
    parked = world.submit(20, "c")
    world.close()
    world.store()
    world.scan_step()
    taken = world.lease()
    assert taken == later
    world.finish(taken)
    assert world.window.advance() < parked
    world.check()
    world.drain()


def test_a_moves_under_an_endless_stream_of_submits() -> None:
    """10^5 submits, and at no time is no level chosen: A follows within two groups."""
    world = World(64)
    passes, behind = 0, []
    for _ in range(25_000):
        passes += 10
        world.submit(passes)
        world.submit(passes + 3)
        world.store()
        low = world.submit(passes + 5)  # the next group has rows before this one is stored
        world.submit(passes + 8)
        world.close()
        world.begin_main()
        world.make_main()
        world.end_main()
        assert world.window.pinned(low), "there is no gap"
        for _ in range(5):
            level = world.lease()
            if level is not None:
                world.finish(level)
        behind.append(passes - world.window.advance()[0])
        world.table.rows = {
            level: done for level, done in world.table.rows.items() if level > world.table.ack
        }
    assert len(behind) * 4 == 100_000
    # The group of this round, from `passes` on, is being stored when A is asked for; all that was stored is finished.
    # So A stands at the last row of the group before, two below: less than one group behind, though there is no gap.
    assert behind[0] == 10 and set(behind[1:]) == {2}, "A follows within two groups"


def test_a_moves_under_an_endless_stream_through_a_window_that_holds_a_tenth_of_the_queue() -> None:
    """The same where rows wait in the store: reads are out while groups are stored, so rows are held for them."""
    rows_max, backlog, rounds = 8, 80, 2_500
    world = loaded(rows_max, list(range(1, backlog + 1)))
    pass_, lags, held = backlog, [], 0
    unfinished = backlog
    for _ in range(rounds):
        world.begin_main()
        for _ in range(2):  # a group is stored while the read is out, and the next one has rows by then
            pass_ += 1
            world.submit(pass_)
            world.close()
            world.submit(pass_)
            world.make_main()
            world.store()
            held += len(world.window.held)
            assert world.window.lowest_pin() != NEVER, "there is no gap"
        world.end_main()
        unfinished += 4
        for _ in range(4):
            level = world.lease()
            if level is not None:
                world.finish(level)
                unfinished -= 1
        world.check()
        lags.append(pass_ - world.window.advance()[0])
        world.table.rows = {
            level: done for level, done in world.table.rows.items() if level > world.table.ack
        }
    assert held > rounds / 10, "rows were held"
    # As many leave as come, so it is behind by the backlog and by what is on its way: it never falls further back.
    assert max(lags[rounds // 2 :]) <= max(lags[: rounds // 2]) <= backlog + 4, (max(lags), unfinished)
    world.drain()


def test_marks_do_not_pile_up_behind_a_row_that_stays() -> None:
    """One long lease at the front, and everything behind it finishes: memory does not grow with it."""
    window = Window((0, 0), 8, lambda level: OUT if level == (1, 1) else FINISHED)
    window.at_end = True
    window.tracked[1, 1] = OUT
    window._low.append((1, 1))
    for id in range(2, 20_000):
        window.submit((id, id))
        window.stored([(id, id)])
    assert len(window.marks) <= 1100 and window.advance() == (0, 0)
    window.finish((1, 1))
    assert window.advance() == (19_999, 19_999) and window.passed == 19_999


def test_a_row_in_fetched_bounds_a_once_a_read_reaches_it() -> None:
    world = loaded(1, [10, 20, 30])
    window = world.window
    assert window.fetch((20, 2)) and window.read == (10, 1)
    ten = world.lease()
    assert ten is not None
    world.finish(ten)
    world.rest()
    assert (20, 2) in window.tracked and not window.fetched
    assert window.advance() == ten
    world.drain()


def test_a_place_that_a_fetched_row_has_left_takes_nothing_from_it() -> None:
    """A store that deletes by range still has it: the row itself stands beside the window, and counts there."""
    window = Window((0, 0), 8, lambda level: FINISHED if level == (10, 1) else COUNTED, fetched_max=1)
    assert window.fetch((30, 1))
    window.merge([(10, 1)], "MIDDLE")
    assert window.fetched == {1: (30, 1)} and not window.fetch((40, 2))
    window.merge([(30, 1)], "END")
    assert not window.fetched and (30, 1) in window.tracked


def test_the_fetched_rows_have_a_bound_of_their_own() -> None:
    window = Window((0, 0), 1, lambda level: COUNTED, fetched_max=2)
    assert [window.fetch((n, n)) for n in (5, 6, 7)] == [True, True, False]
    window.unfetch(5)
    assert window.fetch((7, 7)) and window.read == (0, 0) and not window.at_end


def test_a_row_stored_out_of_sight_of_a_slice_is_not_passed_when_it_is_carried() -> None:
    """The slice reaches above R; a row that is stored there meanwhile is in neither."""
    world = loaded(1, [10, 20, 30])
    world.begin_slice()
    missed = world.submit(25)
    world.close()
    assert world.window.ack < missed
    world.store()
    world.check()
    world.begin_slice()
    late = world.submit(26)
    world.table.rows[late] = False
    world.window.stored([late])
    world.filling.clear()
    world.close()
    world.check()
    world.store()
    world.drain()


@pytest.mark.parametrize("crash_after", ["slice", "close", "store", "merge"])
def test_a_crash_between_any_two_steps_of_carrying_forward_loses_nothing(crash_after: str) -> None:
    for seed in range(40):
        dice = Random(seed)
        world = World(dice.choice((1, 2, 8)))
        for _ in range(12):
            world.submit(dice.randrange(1, 60), dice.choice("ab"))
        world.rest()
        world.pause("a")
        for _ in range(6):
            if (level := world.lease()) is not None:
                world.finish(level)
        world.rest()
        world.begin_slice()
        if crash_after != "slice":
            world.close()
        if crash_after in ("store", "merge"):
            world.store()
        if crash_after == "merge":
            world.rest()
        everything = len(world.table.live())
        world.start()
        world.check()
        world.rest()
        assert len(world.table.live()) == everything
        world.drain()


def test_a_deposed_owners_gc_deletes_nothing_of_the_new_owner() -> None:
    """The old owner's A in memory is ahead of the saved one; the new owner places a row in between."""
    world = loaded(8, [10, 20, 30])
    for _ in range(3):
        level = world.lease()
        assert level is not None
        world.finish(level)
    world.close()  # with A = (30, 3), and the delete up to it
    assert world.saved == (30, 3) and world.table.ack == (0, 0)
    new = World(8, table=world.table)  # takes over; what was finished is not stored
    row = new.submit(5)
    new.close()
    new.store()
    assert row < world.saved and row in new.table.rows
    before = dict(new.table.rows)
    world.store()  # the delete goes with the group that saves its A, and that group is fenced
    assert new.table.rows == before and new.table.ack < row
    with pytest.raises(Broken, match="deleted unfinished"):
        world.store(fenced=False)
    new.table.rows = before
    new.table.ack = new.saved
    new.drain()
    assert row[1] in new.handed


def test_carrying_costs_less_than_one_rewrite_per_finished_row() -> None:
    """A few rows are paused for ever and the rest flows: the table stays short."""
    for seed in range(8):
        dice = Random(seed)
        world = World((1, 2, 8, 200)[seed % 4])
        carried = finished = longest = pass_ = 0
        for n in range(300):
            pass_ += dice.randrange(10)
            world.submit(pass_ + dice.randrange(20), "a" if dice.random() < 0.05 else "b")
            if n == 20:
                world.pause("a")
            if n % 3 == 0:
                world.rest()
                for _ in range(3):
                    if (level := world.lease()) is not None:
                        world.finish(level)
                        finished += 1
                        world.rest()
                over = len(world.table.rows) - len(world.table.live())
                if over > max(4, 2 * len(world.table.live())):
                    world.begin_slice()
                    world.close()
                    carried += len(world.moved)
                    world.store()
                    world.rest()
                longest = max(longest, over)
        assert carried <= finished, (carried, finished)
        assert longest <= max(12, 3 * len(world.table.live()) + 8)
        world.drain()


def test_a_new_era_forgets_what_was_read_before_it() -> None:
    world = loaded(1, [10, 20])
    window = world.window
    first = world.lease()
    assert first is not None
    world.finish(first)
    start, _ = window.begin_main()
    era = window.era
    window.tracked.clear()
    window.counted = 0
    window.reset()
    assert not window.main_read(start, era, [(20, 2)], True)
    assert not window.tracked and window.read == (0, 0) and window.parked == NEVER
