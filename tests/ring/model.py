"""The ring as a small model: a step is one access to shared memory, and all interleavings of all steps are walked.

Guards: the steps are those of ring.c: put, take, advance_tail, recover. Two producers, two consumers, one death at any
point, a ring of three blocks of one granule each, and two laps.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator

CLAIMED, COMMITTED, READING, DONE, SKIP, RETRY = 1, 2, 3, 4, 5, 6
N = 3
TORN = -1

# A state is a tuple of these; a process is (pc, sent, word, a, b, c, d).
INDEX, DATA, W, R, T, MADE, SEEN, DELIVERED, COMMITS, DEAD, PROCS = range(11)
FIELDS = {
    "INDEX": 0,
    "DATA": 1,
    "W": 2,
    "R": 3,
    "T": 4,
    "MADE": 5,
    "SEEN": 6,
    "DELIVERED": 7,
    "COMMITS": 8,
    "DEAD": 9,
}
State = tuple
Proc = tuple
# Where processes are: the names of the places are those of the functions in ring.c.
PUT, OVER, GONE = 0, 99, 100
TAIL, RECOVER, GET, TAKE = 20, 40, 50, 60
HINTS = {3: W, 6: W, 23: W, 25: R, 27: T, 47: W, 48: R, 63: W, 68: R, 69: R}  # steps that move a hint


class Broken(AssertionError):
    """An invariant does not hold."""


def word(lap: int, state: int, slot: int, tries: int = 0) -> int:
    return ((lap * 8 + tries) * 8 + slot) * 8 + state


def lap(e: int) -> int:
    return e >> 9


def slot(e: int) -> int:
    return e >> 3 & 7


def with_state(e: int, state: int) -> int:
    return e & ~7 | state


def tried(e: int) -> int:
    return with_state(e + 64, RETRY)


def lap_of(position: int) -> int:
    return position // N + 1


class Model:
    """Which mistakes are built in is for the tests of the model itself.

    It begins in the middle of the first lap, with `stored` messages in the ring, so that few steps lead over its end
    and to where it is full.
    """

    def __init__(
        self,
        puts: tuple[int, ...],
        consumers: int,
        at_most_once: bool,
        stored: int = 0,
        deaths: int = 1,
        mistake: str = "",
    ) -> None:
        self.puts, self.producers, self.at_most_once, self.mistake = puts, len(puts), at_most_once, mistake
        self.deaths = deaths
        self.messages = stored + sum(puts)
        self.first = tuple(stored + sum(puts[:n]) for n in range(len(puts)))
        procs = tuple((PUT, 0, 0, 0, 0, 0, 0) for _ in puts)
        procs += tuple((GET, 0, 0, 0, 0, 0, 0) for _ in range(consumers))
        index = [word(1, DONE, 7)] + [word(1, COMMITTED, 7) if n < stored else 0 for n in range(N - 1)]
        data = [TORN] + [n + 1 if n < stored else TORN for n in range(N - 1)]
        none = (0,) * self.messages
        commits = (1 << stored) - 1
        self.start: State = (tuple(index), tuple(data), 1 + stored, 1, 1, 0, 0, none, commits, 0, procs)
        self.places: dict[int, Callable[[State, int, Proc], State]] = {
            int(name[3:]): getattr(self, name) for name in dir(self) if re.fullmatch("at_[0-9]+", name)
        }

    # -- what a step does to a state

    @staticmethod
    def go(s: State, who: int, p: Proc, **changes: object) -> State:
        procs = s[PROCS]
        procs = (*procs[:who], p, *procs[who + 1 :])
        if not changes:
            return (*s[:PROCS], procs)
        fields = list(s)
        for name, value in changes.items():
            fields[FIELDS[name]] = value
        fields[PROCS] = procs
        return tuple(fields)

    @staticmethod
    def set(cells: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
        at %= N
        return (*cells[:at], value, *cells[at + 1 :])

    def home(self, who: int) -> int:
        return PUT if who < self.producers else GET

    def cas_index(self, s: State, who: int, at: int, old: int, new: int, ok: Proc, no: Proc) -> State:
        if s[INDEX][at % N] == old:
            return self.go(s, who, ok, INDEX=self.set(s[INDEX], at, new))
        return self.go(s, who, no)

    def move(self, s: State, who: int, hint: str, at: int, then: Proc) -> State:
        helps = s[PROCS][who][0] not in (6, 69)  # the place where one moves it for oneself
        if s[FIELDS[hint]] == at and not (helps and self.mistake == "nobody moves a hint for the dead"):
            return self.go(s, who, then, **{hint: at + 1})
        return self.go(s, who, then)

    # -- put. Head and word are one step: the second look at the head makes them one, or it begins again.

    def at_0(self, s: State, who: int, p: Proc) -> State:
        if p[1] == self.puts[who]:
            return self.go(s, who, (OVER, p[1], 0, 0, 0, 0, 0))
        e = s[INDEX][s[W] % N]
        return self.go(s, who, (3 if lap(e) == lap_of(s[W]) else 4, p[1], e, s[W], 0, 0, 0))

    def at_3(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "W", p[3], (PUT, p[1], 0, 0, 0, 0, 0))

    def at_4(self, s: State, who: int, p: Proc) -> State:
        if p[3] + 1 - s[T] > N and self.mistake != "space is taken before it is free":
            return self.go(s, who, (TAIL, p[1], 0, 0, 0, RECOVER if s[DEAD] else PUT, 0))
        return self.go(s, who, (5, *p[1:]))

    def at_5(self, s: State, who: int, p: Proc) -> State:
        mine = word(lap_of(p[3]), CLAIMED, who)
        if s[INDEX][p[3] % N] != p[2]:
            return self.go(s, who, (PUT, p[1], 0, 0, 0, 0, 0))
        index, data = self.set(s[INDEX], p[3], mine), self.set(s[DATA], p[3], TORN)
        return self.go(s, who, (6, p[1], mine, p[3], 0, 0, 0), INDEX=index, DATA=data)

    def at_6(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "W", p[3], (8, *p[1:]))

    def at_8(self, s: State, who: int, p: Proc) -> State:
        message = 1 + self.first[who] + p[1]
        return self.go(s, who, (9, *p[1:]), DATA=self.set(s[DATA], p[3], message))

    def at_9(self, s: State, who: int, p: Proc) -> State:
        if s[INDEX][p[3] % N] != p[2]:
            raise Broken("a living writer was robbed")
        index = self.set(s[INDEX], p[3], with_state(p[2], COMMITTED))
        commits = s[COMMITS] | 1 << self.first[who] + p[1]
        return self.go(s, who, (PUT, p[1] + 1, 0, 0, 0, 0, 0), COMMITS=commits, INDEX=index)

    # -- advance_tail: a is the tail, c where to go on

    def at_20(self, s: State, who: int, p: Proc) -> State:
        e = s[INDEX][s[T] % N]
        if lap(e) == lap_of(s[T]) and e & 7 in (DONE, SKIP):
            return self.go(s, who, (23, p[1], 0, s[T], 0, p[5], 0))
        return self.go(s, who, (p[5], p[1], 0, 0, 0, 0, 0))

    def at_23(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "W", p[3], (25, *p[1:]))

    def at_25(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "R", p[3], (27, *p[1:]))

    def at_27(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "T", p[3], (20, p[1], 0, 0, 0, p[5], 0))

    # -- recover: a is where the walk is, b whether there is a block to deliver again

    def at_40(self, s: State, who: int, p: Proc) -> State:
        return self.go(s, who, (41, p[1], 0, s[T], 0, 0, 0))

    def at_41(self, s: State, who: int, p: Proc) -> State:
        e = s[INDEX][p[3] % N]
        if lap(e) != lap_of(p[3]):
            return self.go(s, who, (42, *p[1:]))
        if e & 7 in (CLAIMED, READING):
            return self.go(s, who, (43, p[1], e, *p[3:]))
        return self.go(s, who, (41, p[1], 0, p[3] + 1, p[4] or int(e & 7 == RETRY), 0, 0))

    def at_42(self, s: State, who: int, p: Proc) -> State:
        if s[T] > p[3]:
            return self.go(s, who, (41, p[1], 0, s[T], p[4], 0, 0))
        if p[4]:
            return self.go(s, who, (46, p[1], 0, 0, 0, 0, 0))
        return self.go(s, who, (TAIL, p[1], 0, 0, 0, self.home(who), 0))

    def at_43(self, s: State, who: int, p: Proc) -> State:
        dead = s[DEAD] >> slot(p[2]) & 1 or self.mistake == "a slow owner counts as dead"
        if not dead:
            return self.go(s, who, (41, p[1], 0, p[3] + 1, p[4], 0, 0))
        return self.go(s, who, (44, *p[1:]))

    def at_44(self, s: State, who: int, p: Proc) -> State:
        e, on = p[2], (41, p[1], 0, p[3] + 1, p[4], 0, 0)
        to = (
            with_state(e, SKIP)
            if e & 7 == CLAIMED
            else with_state(e, DONE)
            if self.at_most_once
            else tried(e)
        )
        after = (
            45
            if to & 7 == RETRY and self.mistake != "nobody says that a block is to be delivered again"
            else 47
        )
        return self.cas_index(s, who, p[3], e, to, (after, p[1], to, *p[3:]), on)

    def at_45(self, s: State, who: int, p: Proc) -> State:
        return self.go(s, who, (47, *p[1:]), MADE=s[MADE] + 1)

    def at_47(self, s: State, who: int, p: Proc) -> State:
        on = (41, p[1], 0, p[3] + 1, p[4], 0, 0)
        return self.move(s, who, "W", p[3], on if p[2] & 7 == SKIP else (48, *p[1:]))

    def at_48(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "R", p[3], (41, p[1], 0, p[3] + 1, p[4], 0, 0))

    def at_46(self, s: State, who: int, p: Proc) -> State:
        tail = (TAIL, p[1], 0, 0, 0, self.home(who), 0)
        if s[MADE] == s[SEEN] and self.mistake != "nobody says that a block is to be delivered again":
            return self.go(s, who, tail, MADE=s[MADE] + 1)
        return self.go(s, who, tail)

    # -- take_retry: a made, b seen, c where the walk is, d its end

    def at_50(self, s: State, who: int, p: Proc) -> State:
        if s[MADE] == s[SEEN]:
            return self.at_60(s, who, p)
        return self.go(s, who, (52, 0, 0, s[MADE], s[SEEN], 0, 0))

    def at_52(self, s: State, who: int, p: Proc) -> State:
        return self.go(s, who, (53, 0, 0, p[3], p[4], s[T], 0))

    def at_53(self, s: State, who: int, p: Proc) -> State:
        return self.go(s, who, (54, 0, 0, p[3], p[4], p[5], s[R]))

    def at_54(self, s: State, who: int, p: Proc) -> State:
        on = (TAKE, 0, 0, 0, 0, 0, 0)
        if p[5] >= p[6]:
            return self.go(s, who, on, SEEN=p[3]) if s[SEEN] == p[4] else self.go(s, who, on)
        e = s[INDEX][p[5] % N]
        if lap(e) != lap_of(p[5]):
            return self.go(s, who, on)
        if e & 7 == RETRY:
            return self.go(s, who, (55, 0, e, *p[3:]))
        return self.go(s, who, (54, 0, 0, p[3], p[4], p[5] + 1, p[6]))

    def at_55(self, s: State, who: int, p: Proc) -> State:
        mine = with_state(p[2] & ~(7 << 3) | who << 3, READING)
        on = (54, 0, 0, p[3], p[4], p[5] + 1, p[6])
        return self.cas_index(s, who, p[5], p[2], mine, (65, 0, mine, p[5], 0, 0, 0), on)

    # -- try_take: a is the head

    def at_60(self, s: State, who: int, p: Proc) -> State:
        at, e = s[R], s[INDEX][s[R] % N]
        if lap(e) == lap_of(at):
            return self.go(s, who, (63, 0, e, at, 0, 0, 0))
        # Nothing is there. Who died is looked for; if nobody did it sleeps until something changes.
        return self.go(s, who, (RECOVER if s[DEAD] and s[T] != s[W] else GET, 0, 0, 0, 0, 0, 0))

    def at_63(self, s: State, who: int, p: Proc) -> State:
        state = p[2] & 7
        then = (67, *p[1:]) if state in (COMMITTED, RETRY) else (68, *p[1:])
        wait = (RECOVER if s[DEAD] else GET, 0, 0, 0, 0, 0, 0)
        return self.move(s, who, "W", p[3], wait if state == CLAIMED else then)

    def at_67(self, s: State, who: int, p: Proc) -> State:
        mine = with_state(p[2] & ~(7 << 3) | who << 3, READING)
        return self.cas_index(
            s, who, p[3], p[2], mine, (69, 0, mine, p[3], 0, 0, 0), (TAKE, 0, 0, 0, 0, 0, 0)
        )

    def at_68(self, s: State, who: int, p: Proc) -> State:
        skip = p[2] & 7 == SKIP
        return self.move(s, who, "R", p[3], (TAIL if skip else TAKE, 0, 0, 0, 0, TAKE if skip else 0, 0))

    def at_69(self, s: State, who: int, p: Proc) -> State:
        return self.move(s, who, "R", p[3], (65, *p[1:]))

    # -- the message is copied and acknowledged

    def at_65(self, s: State, who: int, p: Proc) -> State:
        message = s[DATA][p[3] % N]
        if message <= 0 or not s[COMMITS] >> message - 1 & 1:
            raise Broken("what was never committed was handed out")
        times = s[DELIVERED][message - 1] + 1
        if times > 2 or (times == 2 and (self.at_most_once or not s[DEAD])):
            raise Broken("a message was handed out twice, and no reader of it had died")
        delivered = (*s[DELIVERED][: message - 1], times, *s[DELIVERED][message:])
        return self.go(s, who, (70, 0, p[2], p[3], 0, 0, 0), DELIVERED=delivered)

    def at_70(self, s: State, who: int, p: Proc) -> State:
        if s[INDEX][p[3] % N] != p[2]:
            raise Broken("a living reader was robbed")
        index = self.set(s[INDEX], p[3], with_state(p[2], DONE))
        return self.go(s, who, (71, 0, 0, p[3], 0, 0, 0), INDEX=index)

    def at_71(self, s: State, who: int, p: Proc) -> State:
        if s[T] == p[3]:
            return self.go(s, who, (23, 0, 0, p[3], 0, GET, 0))
        return self.go(s, who, (GET, 0, 0, 0, 0, 0, 0))

    # -- all of it

    def steps(self, s: State) -> Iterator[State]:
        may_die = s[DEAD].bit_count() < self.deaths
        for who, p in enumerate(s[PROCS]):
            if p[0] in (OVER, GONE):
                continue
            yield self.on(self.places[p[0]](s, who, p), who)
            if may_die:
                yield self.go(s, who, (GONE, 0, 0, 0, 0, 0, 0), DEAD=s[DEAD] | 1 << who)

    def on(self, s: State, who: int) -> State:
        """Go over steps that move a hint which is moved already: hints only grow, so nobody sees the difference."""
        while (p := s[PROCS][who])[0] in HINTS and s[HINTS[p[0]]] != p[3]:
            s = self.places[p[0]](s, who, p)
        return s

    def check(self, s: State) -> None:
        if not s[T] <= s[R] <= s[W] <= s[T] + N:
            raise Broken(f"t <= r <= w <= t + n does not hold: {s[T]}, {s[R]}, {s[W]}")
        if any(lap(s[INDEX][at % N]) != lap_of(at) for at in range(s[T], s[W])):
            raise Broken("a block between tail and head has no word")

    def settled(self, s: State) -> bool:
        """Everybody is over, gone or waits, nothing is left in the ring, and all that was committed was handed out."""
        if s[T] != s[W] or any(p[0] not in (OVER, GONE, GET) for p in s[PROCS]):
            return False
        missing = sum(1 for n in range(self.messages) if s[COMMITS] >> n & 1 and not s[DELIVERED][n])
        return missing <= (1 if self.at_most_once and s[DEAD] else 0)

    def walk(self) -> tuple[int, int]:
        """All states that can be reached, and how many of them are ends. Raises Broken."""
        numbers: dict[State, int] = {self.start: 0}
        states = [self.start]
        heads, tails, ends = array("I"), array("I"), array("I")
        at = 0
        while at < len(states):
            s = states[at]
            states[at] = ()  # its number is enough from here on
            self.check(s)
            if self.settled(s):
                ends.append(at)
            for after in self.steps(s):
                number = numbers.get(after)
                if number is None:
                    number = numbers[after] = len(states)
                    states.append(after)
                heads.append(at)
                tails.append(number)
            at += 1
        stuck = len(states) - reach_back(len(states), heads, tails, ends)
        if stuck:
            raise Broken(
                f"from {stuck} states no end can be reached: something is lost, or somebody waits for ever"
            )
        return len(states), len(ends)


def reach_back(count: int, heads: array[int], tails: array[int], ends: array[int]) -> int:
    """From how many states an end can be reached."""
    first, following = array("i", [-1]) * count, array("i", [-1]) * len(heads)
    for edge, tail in enumerate(tails):
        following[edge] = first[tail]
        first[tail] = edge
    reached = bytearray(count)
    todo = list(ends)
    for state in todo:
        reached[state] = 1
    while todo:
        edge = first[todo.pop()]
        while edge >= 0:
            head = heads[edge]
            if not reached[head]:
                reached[head] = 1
                todo.append(head)
            edge = following[edge]
    return sum(reached)
