"""A rule that can be left out unnoticed is not tested: windows and owners broken in one way each are found out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

import pytest

from fairway.fair.levels import START, Level
from fairway.fair.window import COUNTED, NEVER, Mode, Window
from tests.fair.window_world import Broken, Table, World, random_steps

SEEDS_MAX = 260


class NoPin(Window):
    def lowest_pin(self) -> Level:
        return NEVER


class PinAsAFlag(Window):
    def lowest_pin(self) -> Level:
        return START if self._pins else NEVER


class HeldRowsDoNotPin(Window):
    def lowest_pin(self) -> Level:
        return min((level for level in self._pins if level not in self.held), default=NEVER)


class HeldRowsMergedEarly(Window):
    def stored(self, levels: Iterable[Level]) -> None:
        self.merge_written([level for level in levels if level in self._pins])


class MarksLeftAboveACut(Window):
    def cut(self, level: Level) -> None:
        marks = list(self.marks)
        super().cut(level)
        for mark in marks:
            self.marks.add(mark)
            self._push(mark)


class ReadLevelSetBack(Window):
    """R falls back to A when only finished rows remain."""

    def advance(self) -> Level:
        if not self.tracked:
            self.read = self.ack
        return super().advance()


class ParkedRowsDoNotBound(Window):
    def _parks(self, level: Level) -> None:
        pass


class ReadLevelOfTrackedRowsOnly(Window):
    def merge(self, levels: Sequence[Level], mode: Mode, more: bool = False) -> None:
        before = self.read
        super().merge(levels, mode, more)
        if mode == "MIDDLE":
            self.read = max(before, max(self.tracked, default=before))


class StaleReadsAreMerged(Window):
    def main_read(self, start: Level, era: int, levels: Sequence[Level], end: bool) -> bool:
        return super().main_read(self.read, era, levels, end)


class ScanForgetsWhatWasParkedSince(Window):
    def scanned(self, rows: Sequence[tuple[Level, bool]], more: bool) -> None:
        self._since["scan"] = NEVER
        super().scanned(rows, more)


class UnparkWithoutACut(Window):
    def merge(self, levels: Sequence[Level], mode: Mode, more: bool = False) -> None:
        super().merge(levels, mode, False)


class FetchedRowsAreSkipped(Window):
    def _enter(self, level: Level) -> None:
        if level[1] not in self.fetched:
            super()._enter(level)


class SliceBlindToWhatIsStored(Window):
    def _unknown(self, level: Level) -> None:
        pass


class ParkedLevelNeverDoubted(Window):
    """P is not found anew when its row is finished or unparked."""

    def advance(self) -> Level:
        self.sure = True
        return super().advance()


class PlaceBelowA(World):
    def submit(self, pass_: int, tenant: str = "a") -> Level:
        level = (pass_, self.ids + 1)
        if level <= self.window.ack:
            self.table.tenant[level[1]] = tenant
            self.ids += 1
            self.filling.append(level)
            self.window.pin(level)
            return level
        return super().submit(pass_, tenant)


class GcAboveTheSavedA(World):
    def store(self, gc: bool = True) -> None:
        if gc:
            for level in [level for level in self.table.rows if level <= self.window.ack]:
                if not self.table.rows.pop(level) and level not in {old for old, _ in self.moved}:
                    raise Broken(f"{level} was deleted unfinished")
        super().store(gc=False)


class EndsForgottenTooSoon(World):
    def _let_go(self) -> None:
        self.ended = {level: stored for level, stored in self.ended.items() if not stored}


class RetryWakeUpLost(World):
    def end_main(self, error: bool = False) -> None:
        if error and self.main is not None:
            self.main = None
        else:
            super().end_main()


class CarriedInTwoGroups(World):
    """A passes with the slice, the rows are stored a group later."""

    late: list[tuple[Level, Level]]

    def close(self) -> None:
        fresh = self.storing is None
        before = getattr(self, "late", [])
        super().close()
        if fresh:
            self.moved, self.late = before, self.moved


class LeasesLeaveWithTheirRows(World):
    def check(self) -> None:
        for level in self.window.gone:
            self.leased.discard(level[1])
        self.window.gone.clear()
        super().check()


def chance(world: type[World], window: Callable[..., Window]) -> None:
    """Random histories, the same ones that hold with nothing planted."""
    for seed in range(SEEDS_MAX):
        random_steps(world((1, 2, 8)[seed % 3], window), Random(seed), 160)


def stale_start(world: type[World], window: Callable[..., Window]) -> None:
    it = world(1, window)
    it.pause("a")
    for pass_ in (10, 20, 30):
        it.submit(pass_, "a")
    for pass_ in (60, 70, 80):
        it.submit(pass_, "b")
    it.rest()
    held = [it.lease()]
    it.begin_main()
    it.resume("a")
    it.unpark()
    held.append(it.lease())
    it.make_main()
    it.end_main()
    it.check()
    for level in held:
        assert level is not None
        it.finish(level)
    it.drain()


def unparked(world: type[World], window: Callable[..., Window]) -> None:
    it = world(1, window)
    it.submit(5, "a")
    it.rest()
    held = it.lease()  # it stays tracked, and stands among those that are read
    assert held is not None
    it.pause("a")
    for pass_ in (10, 20, 30, 40):
        it.submit(pass_, "a")
    it.rest()
    it.resume("a")
    it.unpark()
    it.check()
    it.finish(held)
    it.drain()


def scanning(world: type[World], window: Callable[..., Window]) -> None:
    it = world(8, window)
    it.pause("a")
    first, later = it.submit(10, "a"), it.submit(40, "b")
    it.rest()
    it.resume("a")
    it.rest()
    it.lease()
    it.finish(first)
    it.rest()
    it.pause("c")
    it.window.scan_wanted = True
    it.scan_step()
    it.scan_step()
    it.submit(20, "c")
    it.close()
    it.store()
    it.scan_step()
    it.lease()
    it.finish(later)
    it.window.advance()
    it.check()
    it.drain()


def fetching(world: type[World], window: Callable[..., Window]) -> None:
    table = Table()
    for id, pass_ in enumerate((10, 20, 30), 1):
        table.rows[pass_, id], table.tenant[id] = False, "a"
    it = world(1, window, table)
    it.rest()
    it.window.fetch((20, 2))
    level = it.lease()
    assert level is not None
    it.finish(level)
    it.drain()


def held(world: type[World], window: Callable[..., Window]) -> None:
    """A read at the end of the table is out when a row is stored above R, or below what finishes next."""
    for pass_ in (22, 45):
        table = Table()
        for id, at in enumerate((11, 21, 31, 41), 1):
            table.rows[at, id], table.tenant[id] = False, "a"
        it = world(2, window, table)
        it.rest()
        for _ in range(2):
            level = it.lease()
            assert level is not None
            it.finish(level)
        it.begin_main()
        it.make_main()
        it.submit(pass_)
        it.close()
        it.store()
        it.window.advance()
        it.check()
        it.end_main()
        it.check()
        it.drain()


def endless(world: type[World], window: Callable[..., Window]) -> None:
    it = world(8, window)
    for n in range(200):
        it.submit(10 * n + 1)
        it.store()
        it.submit(10 * n + 5)
        it.close()
        it.begin_main()
        it.make_main()
        it.end_main()
        for _ in range(3):
            level = it.lease()
            if level is not None:
                it.finish(level)
        it.window.advance()
        if 10 * n - it.window.ack[0] > 40:
            raise Broken("A stands still under an endless stream")


def sliced(world: type[World], window: Callable[..., Window]) -> None:
    table = Table()
    for id, pass_ in enumerate((10, 20, 30), 1):
        table.rows[pass_, id], table.tenant[id] = False, "a"
    it = world(1, window, table)
    it.rest()
    it.begin_slice()
    late = it.submit(26)
    it.table.rows[late] = False
    it.window.stored([late])
    it.filling.clear()
    it.close()
    it.check()


PROGRAMS = (chance, stale_start, unparked, scanning, fetching, held, endless, sliced)

PLANTED: dict[str, tuple[type[World], Callable[..., Window]]] = {
    "no pin": (World, NoPin),
    "a pin that is a flag": (World, PinAsAFlag),
    "held rows do not pin": (World, HeldRowsDoNotPin),
    "held rows merged early": (World, HeldRowsMergedEarly),
    "finished marks left above a cut": (World, MarksLeftAboveACut),
    "R set back to A when only finished rows remain": (World, ReadLevelSetBack),
    "parked rows do not bound A": (World, ParkedRowsDoNotBound),
    "R follows tracked rows only": (World, ReadLevelOfTrackedRowsOnly),
    "a read from another R is merged": (World, StaleReadsAreMerged),
    "a scan forgets what was parked since": (World, ScanForgetsWhatWasParkedSince),
    "unparking more than fits does not cut": (World, UnparkWithoutACut),
    "a fetched row is skipped when a read reaches it": (World, FetchedRowsAreSkipped),
    "a slice does not see what is stored since": (World, SliceBlindToWhatIsStored),
    "the lowest parked level is never found anew": (World, ParkedLevelNeverDoubted),
    "a row is placed below A": (PlaceBelowA, Window),
    "rows are deleted above the saved A": (GcAboveTheSavedA, Window),
    "ends are forgotten while a read is out": (EndsForgottenTooSoon, Window),
    "the wake-up after a failed read is lost": (RetryWakeUpLost, Window),
    "rows are carried in two groups": (CarriedInTwoGroups, Window),
    "leases leave with rows that are cut": (LeasesLeaveWithTheirRows, Window),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str) -> None:
    world, window = PLANTED[bug]
    for program in reversed(PROGRAMS):
        try:
            program(world, window)
        except AssertionError:  # Broken is one
            return
    pytest.fail(f"nothing shows that {bug}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_hold_with_nothing_planted(
    program: Callable[[type[World], Callable[..., Window]], None],
) -> None:
    program(World, Window)


def test_a_window_counts_what_can_be_handed_out() -> None:
    window = Window((0, 0), 2)
    window.at_end = True
    for id in range(1, 5):
        window.submit((id, id))
    window.fit()
    assert window.counted == 2 and sorted(window.tracked) == [(1, 1), (2, 2)]
    assert all(standing == COUNTED for standing in window.tracked.values())
