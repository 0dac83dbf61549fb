"""The window: which rows of a long backlog are in memory, and the reads that bring them there.

Guards: A <= R; no unfinished row is at or below A; every unfinished stored row in (A, R] is tracked, parked, held or
pinned; a read that did not begin at the present R is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.fair.levels import Level
from fairway.fair.tracking import COUNTED as COUNTED
from fairway.fair.tracking import FINISHED as FINISHED
from fairway.fair.tracking import NEVER as NEVER
from fairway.fair.tracking import OUT as OUT
from fairway.fair.tracking import PARKED as PARKED
from fairway.fair.tracking import Mode as Mode
from fairway.fair.tracking import Tracking, just_above


class Window(Tracking):
    """Tracking, with the main read, the scan for the lowest parked row, carrying forward, and rows beside it."""

    # -- the main read

    def main_wanted(self) -> bool:
        """Whether rows above R are to be read: a good part of the window is free, so that reads are few."""
        return (
            not self.at_end
            and self.main_from is None
            and self.counted <= self.rows_max - max(1, self.rows_max // 4)
        )

    def begin_main(self) -> tuple[Level, int]:
        """A main read goes out; gives the level that it begins above, and how many rows it may bring."""
        self.main_from = self.read
        return self.read, max(1, self.rows_max - self.counted)

    def main_read(self, start: Level, era: int, levels: Sequence[Level], end: bool) -> bool:
        """What a main read found; False: it did not begin at the present R, so it is thrown away."""
        fits = era == self.era and start == self.read
        if fits:
            self.merge(levels, "END" if end else "MIDDLE")
        self.main_over(era)
        return fits

    def main_over(self, era: int) -> None:
        """The main read has ended, by answer or error: what was held for it is merged now."""
        if era == self.era:
            self.main_from = None
            held, self.held = self.held, []
            self.merge_written(held)

    # -- the scan for the lowest parked row

    def begin_scan(self) -> Level:
        self.scan_wanted = False
        self._since["scan"] = NEVER
        return self.ack

    def scanned(self, rows: Sequence[tuple[Level, bool]], more: bool) -> None:
        """Rows above A in order, with whether they are finished: find P anew."""
        since = self._since.pop("scan", NEVER)
        found, sure = NEVER, True
        for level, finished in rows:
            if level <= self.ack:
                continue
            if level > self.read:
                break
            if level in self.tracked:
                found, sure = just_above(level), False  # asked again when A gets there
                break
            if not finished:
                found = level
                break
            if level not in self.marks:
                self._mark(level)
        else:
            if more and rows:
                found, sure = just_above(rows[-1][0]), False
        if since <= found and since != NEVER:
            found, sure = since, False
        self.parked, self.sure = found, sure

    def found_parked(self, level: Level) -> None:
        """The lowest parked row, by somebody who knows all of them."""
        self.parked, self.sure = level, True
        self.advance()

    def scan_failed(self) -> None:
        self._since.pop("scan", None)
        self.scan_wanted = True

    # -- carrying forward, for stores that delete by range

    def begin_slice(self) -> Level:
        self._since["slice"] = NEVER
        return self.ack

    def slice_over(self) -> None:
        self._since.pop("slice", None)

    def carry(self, rows: Sequence[tuple[Level, bool]], pass_: int) -> list[tuple[Level, Level]]:
        """Close a slice of rows above A (with whether they are finished now): where each live one goes.

        A moves to the end of what is carried; the moves, A and the delete up to it must be one group.
        """
        mine = {level for level, _ in rows}
        limit = min(
            self._since.pop("slice", NEVER),
            self.lowest_pin(),
            min((level for level in self.tracked if level not in mine), default=NEVER),
        )
        moves: list[tuple[Level, Level]] = []
        upto = self.ack
        for level, finished in rows:
            if level <= self.ack:
                continue
            if level >= limit:
                break
            if not finished:
                moves.append((level, (pass_, level[1])))
            self.passed += 1
            upto = level
        if upto == self.ack:
            return []
        self._leave_below(upto, {old for old, _ in moves})
        for _, new in moves:
            self.pin(new)
        return moves

    def _leave_below(self, upto: Level, moved: set[Level]) -> None:
        for level in [level for level in self.tracked if level <= upto]:
            if self.tracked.pop(level) == COUNTED:
                self.counted -= 1
            if level in moved:
                self.fetched[level[1]] = level  # beside the window; its owner gives it its new level
        for level in [level for level in self.marks if level <= upto]:
            self.marks.discard(level)
        self.ack, self.read = upto, max(self.read, upto)
        if self.parked <= upto:
            self.parked, self.sure = just_above(upto), False

    # -- rows beside the window

    def fetch(self, level: Level) -> bool:
        """A row above R for a plan that found nothing; False if there is no room, or the window has it."""
        if level in self.tracked or level in self.marks or level <= self.ack:
            return False
        if len(self.fetched) >= self.fetched_max:
            return False
        self.fetched[level[1]] = level
        return True

    def unfetch(self, id: int) -> None:
        """It cannot be handed out any more, or room is needed."""
        self.fetched.pop(id, None)
