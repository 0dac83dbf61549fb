"""What a group does to the tables, inside an open transaction.

Guards: a group that does not fit what is stored (an id twice, an end of a run that is not active) raises,
so that its transaction is rolled back whole. Order: rows, moves and ends as they followed each other; then
everything else; purges last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw
import msgspec

from fairway.errors import Fenced
from fairway.limits import INLINE_PAGE_BYTES_MAX
from fairway.model.ids import all_of
from fairway.model.stored import End, Group, Kind, Move, Row
from fairway.store.lives import folded, misfit
from fairway.store.sqlite import seals
from fairway.store.sqlite.connections import rows
from fairway.store.sqlite.many import run_flat, run_many
from fairway.store.sqlite.seals import seal
from fairway.store.sqlite.statements import load

PLACE_BITS: Final = 48  # group numbers below 2^48 under ten bits of queue number

_SQL: Final = load("write.sql")
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_json = msgspec.json.Encoder().encode


def places(queue: int) -> tuple[int, int]:
    """The first place of a queue in journal and events, and the first of the next queue."""
    return queue << PLACE_BITS, (queue + 1) << PLACE_BITS


def json_list(ids: Sequence[int]) -> str:
    """Ids for a statement that works on many at once: one step in C instead of one per id."""
    return _json(ids).decode()


def apply(connection: apsw.Connection, queue: int, group: Group) -> None:
    """Claim the group's number, then write all of it."""
    connection.execute(
        _SQL["claim"], (queue, group.range_id, group.number, seal(group.meta, seals.place(queue)))
    )
    if connection.changes() != 1:
        raise Fenced()
    _rows(connection, queue, group.rows)
    moves, ends = folded(group, lambda id: _where(connection, queue, id))
    _moves(connection, queue, moves)
    _ends(connection, queue, ends)
    _small(connection, queue, group)
    _logs(connection, queue, group)
    if group.purge:
        _purge(connection, queue, group.purge)


def _many(connection: apsw.Connection, name: str, values: Sequence[Sequence[Any]]) -> int:
    return run_many(connection, _SQL[name], values)


def _expect(what: str, wanted: int, found: int) -> None:
    if wanted != found:
        raise misfit(f"{what} ({wanted} wanted, {found} found)")


def _rows(connection: apsw.Connection, queue: int, new: Sequence[Row]) -> None:
    if not new:
        return
    outer: list[tuple[int, int, bytes]] = []
    pairs: list[tuple[int, str, str | int, int]] = []
    values: list[tuple[Any, ...]] = []
    messages: list[Any] = []  # of the usual ones all values in one list, six of each
    most = INLINE_PAGE_BYTES_MAX
    for row in new:
        pages, metadata, body = row.pages, row.metadata, seal(row.body, seals.run(row.id, row.tenant))
        if len(pages) == 1 and not metadata and len(pages[0]) <= most and not row.deadline:
            messages += (row.id, row.pass_, row.tenant, row.due, body, pages[0])
            continue
        id, page, packed = row.id, None, None
        if pages:
            page = pages[0]
            if len(pages) > 1 or len(page) > INLINE_PAGE_BYTES_MAX:
                page = page if len(page) <= INLINE_PAGE_BYTES_MAX else None
                outer += [(id, at, one) for at, one in enumerate(pages) if at or page is None]
        if metadata:
            packed = _pack(dict(metadata))
            pairs += [(queue, key, value, id) for key, value in metadata.items()]
        values.append((id, row.pass_, row.tenant, row.due, packed, body, page, row.deadline))
    ids = [row.id for row in new]
    if not all_of(queue, ids):
        raise misfit("a run has an id of another queue")
    span = (queue, min(ids), max(ids))
    alone = not rows(connection, _SQL["any_between"], span[1:])
    if messages:
        run_flat(connection, _SQL["insert_message"], 6, messages)
    if values:
        _many(connection, "insert_run", values)
    # Ids rise, so usually nothing but the new ones lies between them; looking up each costs twice as much.
    taken = _done(
        connection, *(("place_between", span) if alone else ("place_each", (queue, json_list(ids))))
    )
    _expect("runs", len(new), taken)
    if outer:
        _many(connection, "insert_page", outer)
    if pairs:
        _many(connection, "insert_metadata", pairs)


def _done(connection: apsw.Connection, name: str, values: Sequence[Any]) -> int:
    """Run a statement; how many rows changed."""
    before = connection.total_changes()
    connection.execute(_SQL[name], values)
    return connection.total_changes() - before


def _where(connection: apsw.Connection, queue: int, id: int) -> tuple[int, bool] | None:
    found = rows(connection, _SQL["where"], (queue, id))
    return (found[0][0], bool(found[0][1])) if found else None


def _moves(connection: apsw.Connection, queue: int, moves: Sequence[Move]) -> None:
    if not moves:
        return
    left = _many(connection, "delete_level", [(queue, move.old_pass, move.id) for move in moves])
    left += _many(connection, "delete_end", [(queue, move.id) for move in moves])
    _expect("a moved run is neither ended nor in its old place", len(moves), left)
    _many(connection, "insert_level", [(queue, move.pass_, move.id) for move in moves])
    _many(connection, "move_run", [(move.pass_, move.id) for move in moves])


def _ends(connection: apsw.Connection, queue: int, ends: Sequence[End]) -> None:
    if not ends:
        return
    left = _many(connection, "delete_level", [(queue, end.pass_, end.id) for end in ends])
    _expect("an ended run is not active in its place", len(ends), left)
    values: list[tuple[Any, ...]] = []
    for end in ends:
        body = seal(end.body, seals.run(end.id, end.state))
        values.append((queue, end.id, end.tenant, end.state, end.at, end.failed, body))
    _many(connection, "insert_end", values)


def _small(connection: apsw.Connection, queue: int, group: Group) -> None:
    """Keys, results and objects. Removals go first: what a group writes is there after it."""
    if group.purge_keys:
        _many(connection, "purge_key", [(queue, tenant, key) for tenant, key in group.purge_keys])
    if group.keys:
        values = [(queue, key.tenant, key.key, key.id, key.fingerprint, key.expires) for key in group.keys]
        _many(connection, "put_key", values)
    if group.results:
        pages = [(page.id, page.first, group.number, page.body) for page in group.results]
        _many(connection, "insert_result", pages)
    if group.drops:
        drops = [(queue, drop.kind, drop.key, drop.part) for drop in group.drops]
        _many(connection, "drop_object", drops)
    if group.puts:
        puts = [
            (queue, put.kind, put.key, put.part, seal(put.body, seals.thing(put.kind, put.key, put.part)))
            for put in group.puts
        ]
        _many(connection, "put_object", puts)


def _logs(connection: apsw.Connection, queue: int, group: Group) -> None:
    """The journal and the events, and what leaves them."""
    start, end = places(queue)
    at = start + group.number
    if group.journal:
        connection.execute(_SQL["insert_journal"], (at, seal(group.journal, seals.place(at))))
    if group.journal_floor > 0:
        connection.execute(_SQL["trim_journal"], (start, min(start + group.journal_floor, end)))
    if group.purge_events_before > 0:
        connection.execute(_SQL["purge_events"], (queue, group.purge_events_before))
    if group.events:
        batch = (at, queue, group.event_time, seal(group.events, seals.place(at)))
        connection.execute(_SQL["insert_events"], batch)


def _purge(connection: apsw.Connection, queue: int, wanted: Sequence[int]) -> None:
    """Ended runs leave with all that is theirs; an id that is active, or not there, is passed over."""
    found = rows(connection, _SQL["ended_among"], (queue, json_list(wanted)))
    gone = json_list([id for id, _ in found])
    held = [(id, _unpack(packed)) for id, packed in found if packed]
    pairs = [(queue, key, value, id) for id, metadata in held for key, value in metadata.items()]
    _many(connection, "delete_metadata", pairs)
    connection.execute(_SQL["delete_ends"], (queue, gone))
    for name in ("delete_runs", "delete_pages", "delete_results"):
        connection.execute(_SQL[name], (gone,))
    for kind in (Kind.PROGRESS, Kind.PAGE):
        connection.execute(_SQL["delete_run_objects"], (queue, kind, gone))
