"""A table of rows, its owner's window, and everything that can come between: to try the state machine alone.

Rows are levels. The table knows which are finished; the window learns of it by reads, and by what is finished here.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fairway.fair.levels import START, Level
from fairway.fair.window import COUNTED, FINISHED, NEVER, OUT, PARKED, Window


class Broken(AssertionError):
    """What must never happen happened."""


class Table:
    """The store: rows in level order, A as saved. Rows leave by range, up to the A of the same group."""

    def __init__(self) -> None:
        self.rows: dict[Level, bool] = {}  # whether it is finished
        self.tenant: dict[int, str] = {}
        self.ack = START
        self.top = 0
        self.owner = 0  # whoever took over last

    def above(self, level: Level, limit: int, upto: Level = NEVER) -> list[tuple[Level, bool]]:
        return [(at, self.rows[at]) for at in sorted(self.rows) if level < at <= upto][:limit]

    def live(self) -> list[Level]:
        return [level for level, finished in self.rows.items() if not finished]


class World:
    """One owner and its table. `make` gives the window, so that a test may break one."""

    def __init__(
        self, rows_max: int, make: Callable[..., Window] = Window, table: Table | None = None
    ) -> None:
        self.table = table or Table()
        self.rows_max = rows_max
        self.make = make
        self.paused: set[str] = set()
        self.ids = max((id for _, id in self.table.rows), default=0)
        self.handed: set[int] = set()
        self.start()

    def start(self) -> None:
        """A new owner: everything in memory is gone."""
        self.table.owner += 1
        self.owner = self.table.owner
        self.window = self.make(self.table.ack, self.rows_max, self.standing, 3)
        self.filling: list[Level] = []
        self.storing: list[Level] | None = None
        self.ended: dict[Level, bool] = {}  # finished here: whether that is stored
        self.leased: set[int] = set()
        self.hands: set[int] = set()  # who holds a row holds it, whatever the owner remembers
        self.seen: dict[Level, bool] = {}  # what the read that is being merged has seen
        self.main: tuple[Level, int, int, list[tuple[Level, bool]] | None] | None = None
        self.scan: tuple[Level, list[tuple[Level, bool]] | None] | None = None
        self.slice: list[tuple[Level, bool]] | None = None
        self.wanted: set[str] = set()
        self.moved: list[tuple[Level, Level]] = []
        self.place = {level[1]: level for level in self.table.rows}  # a row may be carried while it is leased

    # -- what a row is

    def finished(self, level: Level) -> bool:
        return level in self.ended or self.seen.get(level, self.table.rows.get(level, False))

    def standing(self, level: Level) -> int:
        if self.finished(level):
            return FINISHED
        if level[1] in self.leased:
            return OUT
        return PARKED if self.table.tenant[level[1]] in self.paused else COUNTED

    # -- events

    def submit(self, pass_: int, tenant: str = "a") -> Level:
        self.ids += 1
        self.table.tenant[self.ids] = tenant
        level = (max(self.window.ack[0], pass_), self.ids)
        self.table.top = max(self.table.top, level[0])
        self.filling.append(level)
        self.place[self.ids] = level
        self.window.submit(level)
        self.window.fit()
        return level

    def close(self) -> None:
        if self.storing is None:
            moves = self._carry()
            self.saved = self.window.advance()
            self.storing, self.filling = self.filling, []
            self.going = [level for level, stored in self.ended.items() if not stored]
            self.moved = moves

    def _carry(self) -> list[tuple[Level, Level]]:
        if self.slice is None:
            return []
        rows, self.slice = [(level, self.finished(level)) for level, _ in self.slice], None
        moves = self.window.carry(rows, self.table.top + 1)
        self.table.top += bool(moves)
        self.window.fetched.clear()
        self.place.update({new[1]: new for _, new in moves})
        return moves

    def store(self, gc: bool = True, fenced: bool = True) -> None:
        """The group that was closed is stored, with the A of then; not if there is another owner."""
        if self.storing is None or (fenced and self.owner != self.table.owner):
            return
        table, rows, self.storing = self.table, self.storing, None
        for level in rows:
            table.rows[level] = level in self.going
        for level in self.going:
            if level in table.rows:
                table.rows[level] = True
            self.ended[level] = True
        for old, new in self.moved:
            if table.rows.pop(old, None) is None:
                raise Broken(f"{old} is carried and is not there")
            table.rows[new] = new in self.going
        table.ack = self.saved
        if gc:
            for level in [level for level in table.rows if level <= table.ack]:
                if not table.rows.pop(level):
                    raise Broken(f"{level} was deleted unfinished")
        moved, self.moved = self.moved, []
        self.window.stored([*rows, *(new for _, new in moved)])
        self._let_go()

    def begin_main(self) -> None:
        if self.main is None and self.window.main_wanted():
            self.main = (*self.window.begin_main(), self.window.era, None)

    def make_main(self) -> None:
        if self.main is not None and self.main[3] is None:
            level, limit, era, _ = self.main
            self.main = (level, limit, era, self.table.above(level, limit))

    def end_main(self, error: bool = False) -> None:
        if self.main is None or (self.main[3] is None and not error):
            return
        level, limit, era, rows = self.main
        self.main = None
        if error or rows is None:
            self.window.main_over(era)
        else:
            self.seen = dict(rows)
            self.window.main_read(level, era, [at for at, _ in rows], len(rows) < limit)
            self.seen = {}
        self._let_go()

    def scan_step(self) -> None:
        if self.scan is None:
            if self.window.scan_wanted:
                self.scan = (self.window.begin_scan(), None)
        elif self.scan[1] is None:
            self.scan = (self.scan[0], self.table.above(self.scan[0], 3))
        else:
            rows = self.scan[1]
            self.scan = None
            self.window.scanned(
                [(level, done or self.finished(level)) for level, done in rows], len(rows) == 3
            )
            self._let_go()

    def begin_slice(self) -> None:
        if self.slice is None:
            self.slice = self.table.above(self.window.begin_slice(), 4)

    def pause(self, tenant: str) -> None:
        self.paused.add(tenant)
        for level in list(self.window.tracked):
            self.window.stands(level, self.standing(level))

    def resume(self, tenant: str) -> None:
        self.paused.discard(tenant)
        self.wanted.add(tenant)

    def unpark(self) -> None:
        """The rows of resumed tenants are read by their index."""
        for tenant in sorted(self.wanted):
            rows = self.table.above(self.window.ack, 10**6, self.window.read)
            mine = [level for level, _ in rows if self.table.tenant[level[1]] == tenant][: self.rows_max + 1]
            if mine:
                self.window.merge(mine, "UNPARK", len(mine) > self.rows_max)
        self.wanted.clear()

    def lease(self, newest: bool = False) -> Level | None:
        free = [level for level, standing in self.window.tracked.items() if standing == COUNTED]
        if not free:
            return None
        level = max(free) if newest else min(free)
        if level[1] in self.hands or self.finished(level):
            raise Broken(f"{level} is leased twice or after its end")
        self.leased.add(level[1])
        self.hands.add(level[1])
        self.window.stands(level, OUT)
        return level

    def release(self, level: Level) -> None:
        level = self.place[level[1]]
        self.leased.discard(level[1])
        self.hands.discard(level[1])
        if not self.window.stands(level, self.standing(level)) and level <= self.window.read:
            self.window.unpark(level)

    def finish(self, level: Level) -> None:
        level = self.place[level[1]]
        self.leased.discard(level[1])
        self.hands.discard(level[1])
        self.handed.add(level[1])
        self.ended[level] = False
        self.window.finish(level)

    def _let_go(self) -> None:
        """What was finished is remembered while a read that may not have seen it is out."""
        if self.main is None and self.scan is None and self.slice is None:
            self.ended = {level: stored for level, stored in self.ended.items() if not stored}

    # -- rules

    def check(self) -> None:
        window, table = self.window, self.table
        if window.ack > window.read:
            raise Broken("A is above R")
        if window.counted != sum(standing == COUNTED for standing in window.tracked.values()):
            raise Broken("rows are miscounted")
        moving = {old for old, _ in self.moved} if self.storing is not None else set[Level]()
        for level in [*table.live(), *(self.storing or ()), *self.filling]:
            if self.finished(level) or level in moving:
                continue
            if level <= window.ack:
                raise Broken(f"A {window.ack} passed {level}, which is unfinished")
            if level > window.read:
                if window.at_end and not window.pinned(level):
                    raise Broken(f"{level} lies above R at the end of the table")
            elif level not in window.tracked and level < window.parked and not window.pinned(level):
                raise Broken(f"{level} is in (A, R] and neither tracked, parked, held nor pinned")
        if table.ack > window.ack:
            raise Broken("A went back")

    def rest(self) -> None:
        """Everything under way comes to an end."""
        for _ in range(2000):
            self.close()
            self.store()
            self.end_main() if self.main and self.main[3] is not None else self.make_main()
            self.begin_main()
            self.scan_step()
            if self.wanted and self.main is None:
                self.unpark()
            self.window.advance()
            self.check()
            quiet = self.main is None and self.scan is None and not self.wanted and not self.filling
            if (
                quiet
                and self.storing is None
                and not self.window.main_wanted()
                and not self.window.scan_wanted
            ):
                return
        raise Broken("it never comes to rest")

    def drain(self) -> None:
        """Everything is resumed, handed out and finished; nothing may be left."""
        for tenant in sorted(self.paused):
            self.resume(tenant)
        self.leased.clear()
        self.hands.clear()
        for level in list(self.window.tracked):
            self.window.stands(level, self.standing(level))
        for _ in range(len(self.table.rows) + len(self.filling) + len(self.storing or ()) + 50):
            self.rest()
            level = self.lease()
            if level is None:
                break
            self.finish(level)
        self.rest()
        for _ in range(4):
            self.close()
            self.store()
            self.rest()
        if self.table.live():
            raise Broken(f"lost: {self.table.live()} were never handed out")
        if self.table.rows:
            raise Broken(f"A {self.window.ack} leaves {len(self.table.rows)} finished rows behind")


def random_steps(world: World, dice: Random, steps: int) -> None:
    """Any events in any order, with crashes; every rule is checked after each."""
    out: list[Level] = []
    for _ in range(steps):
        what = dice.randrange(24)
        if what < 5:
            world.submit(world.window.ack[0] + dice.randrange(-3, 30), dice.choice("abc"))
        elif what < 8:
            out += [level] if (level := world.lease(dice.random() < 0.3)) else []
        elif what < 11 and out:
            world.finish(out.pop(dice.randrange(len(out))))
        elif what == 11 and out:
            world.release(out.pop(dice.randrange(len(out))))
        elif what == 12:
            world.pause(dice.choice("abc"))
        elif what == 13:
            world.resume(dice.choice("abc"))
        elif what == 14:
            world.close()
        elif what == 15:
            world.store(dice.random() < 0.5)
        elif what == 16:
            world.begin_main()
        elif what == 17:
            world.make_main()
        elif what == 18:
            world.end_main(dice.random() < 0.1)
        elif what == 19:
            world.scan_step()
        elif what == 20:
            world.unpark()
        elif what == 21 and dice.random() < 0.3:
            world.begin_slice()
        elif what == 22:
            world.window.advance()
        elif what == 23 and dice.random() < 0.05:
            world.start()
            out.clear()
        world.check()
    world.drain()
