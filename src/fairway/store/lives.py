"""Several ends and moves of one run in one group, folded into what is left of them.

Guards: after folding a run has at most one move and one end, the move first, with the meaning of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from fairway.errors import StoreFailed
from fairway.model.stored import End, Group, Move

Where = tuple[int, bool]  # the pass of a run, and whether it is active


def misfit(why: str) -> StoreFailed:
    """The error of a group that contradicts what is stored: its maker must be rebuilt from the store."""
    return StoreFailed(f"The group does not fit the store: {why}; nothing was stored.")


def folded(group: Group, stored: Callable[[int], Where | None]) -> tuple[Sequence[Move], Sequence[End]]:
    """The moves and ends of a group, at most one of each per run; `stored` knows where a run stands."""
    if not group.moves:
        return group.moves, group.ends  # a run cannot end twice without a move in between
    times = Counter(move.id for move in group.moves)
    times.update(end.id for end in group.ends)
    several = {id for id, count in times.items() if count > 1}
    if not several:
        return group.moves, group.ends
    moves = [move for move in group.moves if move.id not in several]
    ends = [end for end in group.ends if end.id not in several]
    fresh = {row.id: (row.pass_, True) for row in group.rows if row.id in several}
    for id in several:
        start = fresh.get(id) or stored(id)
        if start is None:
            raise misfit("a moved run is not stored")
        mine = [move for move in group.moves if move.id == id]
        pass_, last = _lived(start, mine, [end for end in group.ends if end.id == id])
        if pass_ != start[0] or not start[1]:
            moves.append(Move(id, start[0], pass_))
        if last is not None:
            ends.append(last)
    return moves, ends


def _lived(start: Where, moves: list[Move], ends: list[End]) -> tuple[int, End | None]:
    """Live through a run's moves and ends in the only order they can have happened in.

    An active run ends where it stands, or moves; an ended one can only move.
    """
    pass_, active = start
    last: End | None = None
    moves, ends = moves[::-1], ends[::-1]
    while moves or ends:
        if active and ends and ends[-1].pass_ == pass_:
            last, active = ends.pop(), False
        elif moves and moves[-1].old_pass == pass_:
            pass_, active, last = moves.pop().pass_, True, None
        else:
            raise misfit("a run's moves and ends do not follow each other")
    return pass_, last
