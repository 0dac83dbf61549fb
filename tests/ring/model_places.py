"""The model with one step more: who has walked the ring frees the places of those who were dead when he began.

Guards: the sixth invariant, that no word names a place which was freed: its next owner would be taken for the block's.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.ring.model import (
    CLAIMED,
    DEAD,
    GET,
    INDEX,
    PROCS,
    READING,
    RECOVER,
    TAIL,
    Broken,
    Model,
    Proc,
    State,
    slot,
)

FREEING = 49
# Beside who is dead, the same field says whose places are free, and whom each process knew to be dead.
_FREE, _KNOWN, _BITS = 8, 16, 8
_ALL = (1 << _BITS) - 1


class ModelOfPlaces(Model):
    """A place that was freed is not taken again: that no word names it is enough for whoever takes it.

    Who waits looks now and then, whether anybody died or not, as a sleeper of the ring does.
    """

    def steps(self, s: State) -> Iterator[State]:
        yield from super().steps(s)
        for who, p in enumerate(s[PROCS]):
            if p[0] == GET:
                yield self.go(s, who, (RECOVER, 0, 0, 0, 0, 0, 0))

    def at_40(self, s: State, who: int, p: Proc) -> State:
        known = (s[DEAD] & _ALL) << _KNOWN + _BITS * who
        return super().at_40((*s[:DEAD], s[DEAD] | known, *s[DEAD + 1 :]), who, p)

    def at_42(self, s: State, who: int, p: Proc) -> State:
        return self._then_free(super().at_42(s, who, p), who)

    def at_46(self, s: State, who: int, p: Proc) -> State:
        return self._then_free(super().at_46(s, who, p), who)

    def _then_free(self, s: State, who: int) -> State:
        p = s[PROCS][who]
        return self.go(s, who, (*p[:5], FREEING, *p[6:])) if p[0] == TAIL else s

    def at_49(self, s: State, who: int, p: Proc) -> State:
        at = _KNOWN + _BITS * who
        known = s[DEAD] >> at & _ALL
        if self.mistake == "places are freed of those who died during the walk":
            known = s[DEAD] & _ALL
        dead = s[DEAD] & ~(_ALL << at) | known << _FREE
        return self.go(s, who, (self.home(who), p[1], 0, 0, 0, 0, 0), DEAD=dead)

    def check(self, s: State) -> None:
        super().check(s)
        free = s[DEAD] >> _FREE & _ALL
        if free and any(e & 7 in (CLAIMED, READING) and free >> slot(e) & 1 for e in s[INDEX]):
            raise Broken("a word names a place that was freed")
