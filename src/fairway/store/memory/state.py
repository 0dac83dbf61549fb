"""What one queue in memory holds, and what a group does to it.

Guards: a group is checked against the whole state before it changes any of it. Order: rows, moves and
ends as they followed each other; then everything else; purges last.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.errors import Fenced
from fairway.model.ids import queue_of
from fairway.model.stored import End, Group, KeyRow, Kind, Move, Row
from fairway.store.lives import folded, misfit

Level = tuple[int, int]


class State:
    """One queue: plain dicts, nothing derived."""

    def __init__(self, queue: int, by_range: bool = False) -> None:
        self.queue = queue
        self.by_range = by_range  # places stay until delete_upto, as in a store that deletes by range
        self.range_id = 0
        self.number = 0
        self.burnt = 0
        self.meta = b""
        self.rows: dict[int, Row] = {}
        self.passes: dict[int, int] = {}  # of every run; a Row keeps the pass it was stored with
        self.places: dict[Level, None] = {}
        self.order: tuple[Level, ...] = ()  # the places at the last look, sorted; never changed in place
        self.added: dict[Level, None] = {}  # since then
        self.ends: dict[int, End] = {}
        self.keys: dict[tuple[str, str], KeyRow] = {}
        self.results: dict[int, dict[tuple[int, int], bytes]] = {}  # by id, then (first, group number)
        self.objects: dict[tuple[Kind, str | int], dict[int, bytes]] = {}  # by key, then part
        self.journal: dict[int, bytes] = {}
        self.events: dict[int, tuple[float, bytes]] = {}

    def admits(self, group: Group) -> bool:
        """The condition of every group: this owner, this number."""
        return group.range_id == self.range_id and group.number == self.number + 1

    def apply(self, group: Group) -> None:
        """Store a group, or raise and change nothing."""
        if not self.admits(group):
            raise Fenced()
        moves, ends = folded(group, self._where)
        self._check(group, moves, ends)
        self.number, self.meta = group.number, group.meta
        self.rows.update({row.id: row for row in group.rows})
        self.passes.update({row.id: row.pass_ for row in group.rows})
        self._take([(row.pass_, row.id) for row in group.rows])
        for move in moves:
            self._give_up((self.passes[move.id], move.id))
            self._take([(move.pass_, move.id)])
            self.passes[move.id] = move.pass_
            self.ends.pop(move.id, None)
        for end in ends:
            self._give_up((end.pass_, end.id))
        self.ends.update({end.id: end for end in ends})
        if self.by_range and group.delete_upto is not None:
            for place in [place for place in self.places if place <= group.delete_upto]:
                del self.places[place]
        self._small(group)
        self._logs(group)
        self._purge(group.purge)

    def _take(self, places: Sequence[Level]) -> None:
        new = dict.fromkeys(places)
        self.places.update(new)
        self.added.update(new)

    def _give_up(self, place: Level) -> None:
        if not self.by_range:
            self.places.pop(place, None)

    def sorted(self) -> tuple[Level, ...]:
        """The places in level order, those that were given up since the last look included."""
        if self.added or len(self.order) > 2 * len(self.places) + 64:
            known = [place for place in self.order if place in self.places and place not in self.added]
            self.order = tuple(sorted([*known, *self.added]))
            self.added = {}
        return self.order

    def burn(self, number: int) -> None:
        """An empty group in the place of one that is not stored."""
        self.number = self.burnt = number

    def is_active(self, id: int) -> bool:
        """Whether a run is stored and has not ended."""
        return id in self.rows and id not in self.ends

    def _where(self, id: int) -> tuple[int, bool] | None:
        return (self.passes[id], self.is_active(id)) if id in self.rows else None

    def _check(self, group: Group, moves: Sequence[Move], ends: Sequence[End]) -> None:
        if len({row.id for row in group.rows} - self.rows.keys()) != len(group.rows):
            raise misfit("a run is stored twice")
        if any(queue_of(row.id) != self.queue for row in group.rows):
            raise misfit("a run has an id of another queue")
        place = {row.id: (row.pass_, True) for row in group.rows}
        for move in moves:
            pass_, active = place.get(move.id) or self._where(move.id) or (None, True)
            if active and pass_ != move.old_pass:
                raise misfit("a moved run is not in its old place")
            place[move.id] = (move.pass_, True)
        for end in ends:
            if (place.get(end.id) or self._where(end.id)) != (end.pass_, True):
                raise misfit("an ended run is not active in its place")
            place[end.id] = (end.pass_, False)
        if self.by_range and group.delete_upto is not None:
            upto = group.delete_upto
            low = [id for pass_, id in self.places if (pass_, id) <= upto and id not in place]
            if any(self.is_active(id) and (self.passes[id], id) <= upto for id in low) or any(
                active and (pass_, id) <= upto for id, (pass_, active) in place.items()
            ):
                raise misfit("an active run stands where places are given up")
        if len({(page.id, page.first) for page in group.results}) != len(group.results):
            raise misfit("two result pages have one place")

    def _small(self, group: Group) -> None:
        """Keys, results and objects. Removals go first: what a group writes is there after it."""
        for place in group.purge_keys:
            if place in self.keys and self.keys[place].expires > 0:
                del self.keys[place]
        self.keys.update({(key.tenant, key.key): key for key in group.keys})
        for page in group.results:
            self.results.setdefault(page.id, {})[page.first, group.number] = page.body
        for drop in group.drops:
            parts = self.objects.get((drop.kind, drop.key), {})
            parts.pop(drop.part, None)
            if not parts:  # else every lease record ever dropped would leave an empty shell
                self.objects.pop((drop.kind, drop.key), None)
        for put in group.puts:
            self.objects.setdefault((put.kind, put.key), {})[put.part] = put.body

    def _logs(self, group: Group) -> None:
        """The journal and the events, and what leaves them."""
        if group.journal:
            self.journal[group.number] = group.journal
        for number in [number for number in self.journal if number < group.journal_floor]:
            del self.journal[number]
        if group.purge_events_before > 0:
            before = group.purge_events_before
            self.events = {number: batch for number, batch in self.events.items() if batch[0] >= before}
        if group.events:
            self.events[group.number] = (group.event_time, group.events)

    def _purge(self, wanted: list[int]) -> None:
        """Ended runs leave with all that is theirs; an id that is active, or not there, is passed over."""
        for id in wanted:
            if id in self.ends:
                del self.rows[id], self.passes[id], self.ends[id]
                self.results.pop(id, None)
                self.objects.pop((Kind.PROGRESS, id), None)
                self.objects.pop((Kind.PAGE, id), None)
