"""Tracking: the rows of the window, one merge for reads and writes, pins, and A.

Guards: A never reaches a row that is unfinished, parked, or chosen and not merged; only a cut lowers R; after a merge
at most `rows_max` tracked rows can be handed out.

A row is its level. What it is at the moment comes from outside: COUNTED (a chunk can be handed out), OUT (none can,
but it must stay: leased or backing off), PARKED (paused or not due: it leaves memory), FINISHED.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Literal

from fairway.fair.levels import START, Level
from fairway.fair.marks import Marks

COUNTED: Final = 1
OUT: Final = 2
PARKED: Final = 3
FINISHED: Final = 4

NEVER: Final[Level] = (1 << 80, 0)  # above every level
Mode = Literal["END", "MIDDLE", "WRITE", "UNPARK"]


def just_above(level: Level) -> Level:
    """The lowest level that lies above one."""
    return level[0], level[1] + 1


class Tracking:
    """One owner's view of the backlog; `standing` says what the row at a level is now."""

    def __init__(
        self,
        ack: Level = START,
        rows_max: int = 200_000,
        standing: Callable[[Level], int] = lambda level: COUNTED,
        fetched_max: int = 10_000,
    ) -> None:
        self.rows_max = rows_max
        self.fetched_max = fetched_max
        self.standing = standing
        self.ack = ack  # A
        self.read = ack  # R
        self.at_end = False  # no stored row above R but those chosen and not merged
        self.tracked: dict[Level, int] = {}  # unfinished rows: COUNTED or OUT
        self.marks = Marks()  # finished rows that A has not passed
        self.counted: int = 0
        self.parked = NEVER  # P: no parked row is below it
        self.sure = True  # a parked row is really there
        self.held: list[Level] = []  # stored while a main read was out
        self.fetched: dict[int, Level] = {}  # by id, beside the window
        self.gone: list[Level] = []  # rows that were cut, for the owner to let go of
        self.passed = 0  # finished places that A went over
        self.era = 0
        self.main_from: Level | None = None  # where the main read that is out began
        self.scan_wanted = False
        self._pins: set[Level] = set()
        self._low: list[Level] = []  # a heap over what is tracked or marked, with stale entries
        self._high: list[Level] | None = None  # negated levels, once there was a cut
        self._since: dict[str, Level] = {}  # the lowest level parked since a scan or slice began

    # -- rows are chosen and stored

    def submit(self, level: Level) -> bool:
        """A row is chosen; says whether the window covers it already, though it is not stored."""
        assert level > self.ack, (level, self.ack)
        self._pins.add(level)
        if not self.at_end and level > self.read:
            return False
        self._enter(level)
        if level > self.read:
            self.read = level
        return True

    def submit_counted(self, levels: Sequence[Level]) -> set[Level]:
        """`submit` of new rows that can be handed out, the usual ones; gives those that are not covered."""
        top, outside = max(levels), set[Level]()
        assert min(levels) > self.ack, (levels, self.ack)
        self._pins.update(levels)
        if top > self.read:
            if self.at_end:
                self.read = top
            else:
                outside = {level for level in levels if level > self.read}
                levels = [level for level in levels if level <= self.read]
        self.tracked.update(dict.fromkeys(levels, COUNTED))
        self.counted += len(levels)
        low = self._low
        for level in levels:
            heappush(low, level)
        if self._high is not None:
            for pass_, id in levels:
                heappush(self._high, (-pass_, -id))
        return outside

    def pin(self, level: Level) -> None:
        """A stays below a level that is chosen and not merged."""
        self._pins.add(level)

    def pinned(self, level: Level) -> bool:
        return level in self._pins

    def stored(self, levels: Sequence[Level]) -> Sequence[Level]:
        """A group with these rows is stored; gives those that were merged for it, and were not taken in before."""
        pins = self._pins
        if self.main_from is not None:
            self.held += [
                level for level in levels if level in pins
            ]  # the read that is out may not have seen them
            return ()
        if not self.at_end:
            others = [level for level in levels if level in pins]
        elif all(map(self.tracked.__contains__, levels)):
            pins.difference_update(levels)  # the usual case: they were taken in when they were chosen
            return ()
        else:
            tracked, over = self.tracked, self.marks.count
            known = {level for level in levels if level in tracked or level in over}
            pins -= known
            others = [level for level in levels if level not in known and level in pins]
        self.merge_written(others)
        return others

    def merge_written(self, levels: Sequence[Level]) -> None:
        """Rows that are stored and that no read can miss; they are pinned no longer."""
        found = sorted(levels)
        if found and not self.at_end and found[-1] > self.read:  # above R: of these only the lowest matters
            above = bisect_right(found, self.read)
            self._unknown(found[above])
            del found[above:]
        self.merge(found, "WRITE")
        self._pins.difference_update(levels)

    def lowest_pin(self) -> Level:
        """The lowest level of any row that is chosen and not merged."""
        # At most the rows of a few groups, looked at once in each: a heap of them would cost more.
        return min(self._pins) if self._pins else NEVER

    # -- the merge

    def merge(self, levels: Sequence[Level], mode: Mode, more: bool = False) -> None:
        """One function for reads (END or MIDDLE of the table), writes and unparked rows; in level order."""
        for level in levels:
            if level <= self.ack or level in self.tracked or level in self.marks.count:
                continue
            if mode in ("WRITE", "UNPARK") and not self.at_end and level > self.read:
                self._unknown(level)
                continue
            self._enter(level)
            if mode == "WRITE" and level > self.read:
                self.read = level
        if mode in ("END", "MIDDLE"):
            if levels and levels[-1] > self.read:
                self.read = levels[-1]
            self.at_end = mode == "END"
        elif mode == "UNPARK" and more:
            self.cut(levels[-1])
        self.fit()

    def _enter(self, level: Level) -> None:
        if self.fetched.get(level[1]) == level:  # it is not the place that a fetched row has left
            del self.fetched[level[1]]  # from now on it bounds A
        standing = self.standing(level)
        if standing == PARKED:
            self._parks(level)
            return
        if level == self.parked:
            self.sure = False
        if standing == FINISHED:
            self._mark(level)
            return
        self.tracked[level] = standing
        self._push(level)
        if standing == COUNTED:
            self.counted += 1

    def _mark(self, level: Level) -> None:
        self.marks.add(level)
        self._push(level)
        if self.marks.many(self.rows_max):
            self.marks.thin(self.tracked)
            self._low = [*self.tracked, *self.marks]
            heapify(self._low)

    def _push(self, level: Level) -> None:
        heappush(self._low, level)
        if self._high is not None:
            heappush(self._high, (-level[0], -level[1]))

    def fit(self) -> None:
        """Cut behind counted row number `rows_max`."""
        if self.counted > self.rows_max:
            self.cut(self._last_that_fits())

    def _last_that_fits(self) -> Level:
        high, over = self._highest(), self.counted - self.rows_max
        kept: list[Level] = []
        while True:
            level = (-high[0][0], -high[0][1])
            if self.tracked.get(level) == COUNTED:
                if not over:
                    break
                over -= 1
            kept.append(heappop(high))
            while high and high[0] == kept[-1]:
                heappop(high)
        for item in kept:
            heappush(high, item)
        return level

    def _highest(self) -> list[Level]:
        if self._high is None or len(self._high) > 2 * (len(self.tracked) + len(self.marks)) + 1024:
            self._high = [(-pass_, -id) for pass_, id in (*self.tracked, *self.marks)]
            heapify(self._high)
        return self._high

    def cut(self, level: Level) -> None:
        """Everything above a level leaves, finished marks too: A must not jump over what is no longer known."""
        high = self._highest()
        while high and (-high[0][0], -high[0][1]) > level:
            item = heappop(high)
            above = (-item[0], -item[1])
            standing = self.tracked.pop(above, None)
            if standing is None:
                self.marks.discard(above)
            else:
                self.gone.append(above)
                self._unknown(above)
                if standing == COUNTED:
                    self.counted -= 1
        self.read = min(self.read, max(level, self.ack))
        self.at_end = False

    # -- what happens to rows

    def stands(self, level: Level, standing: int) -> bool:
        """What a tracked row is now; False if it leaves: it is parked, or was not tracked at all."""
        before = self.tracked.get(level)
        if before is None:
            return False
        if standing == before:
            return True
        if before == COUNTED:
            self.counted -= 1
        if standing == COUNTED:
            self.counted += 1
        if standing == PARKED:
            del self.tracked[level]
            self._parks(level)
            return False
        self.tracked[level] = standing
        return True

    def finish(self, level: Level) -> None:
        """The row is finished, wherever it is."""
        before = self.tracked.pop(level, None)
        if before is not None:
            if before == COUNTED:
                self.counted -= 1
            marks = self.marks
            marks.count[level] = 1  # its entry in the heap stays
            if len(marks.count) > self.rows_max and marks.many(self.rows_max):
                self._mark(level)
        elif level == self.parked:
            self.sure = False

    def unpark(self, level: Level) -> bool:
        """A row in memory can be handed out again, or must stay; says whether the window has it now."""
        self.merge([level], "UNPARK")
        return level in self.tracked

    def _parks(self, level: Level) -> None:
        if level <= self.parked:
            self.parked, self.sure = level, True
        for read, lowest in self._since.items():
            self._since[read] = min(lowest, level)

    def _unknown(self, level: Level) -> None:
        """A stored row is not in memory, and a slice that is out may not have seen it."""
        lowest = self._since.get("slice")
        if lowest is not None and level < lowest:
            self._since["slice"] = level

    # -- A

    def advance(self) -> Level:
        """Move A over finished rows below every unfinished, parked and pinned one; gives A."""
        pin = self.lowest_pin()
        bound = min(self.parked, pin)
        low, tracked, marks = self._low, self.tracked, self.marks.count
        lowest = NEVER
        while low:
            level = low[0]
            if level in marks:
                if level >= bound:
                    lowest = level
                    break
                self.ack = level
                self.passed += marks.pop(level)
            elif level in tracked:
                lowest = level
                break
            heappop(low)
        if not self.sure and self.parked <= min(lowest, self.read, pin):
            self.scan_wanted = True
        return self.ack

    def reset(self) -> None:
        """A new era: nothing is unfinished, so levels start again. What was read before it is worth nothing."""
        assert not self.tracked, self.tracked
        self.ack = self.read = START
        self.at_end = True
        self.parked, self.sure = NEVER, True
        self.scan_wanted = False
        self.main_from = None
        self.held.clear()
        self.fetched.clear()
        self._pins.clear()
        self._low.clear()
        self._high = None
        self._since.clear()
        self.marks = Marks()
        self.passed = 0
        self.era += 1
