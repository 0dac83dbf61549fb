"""Loading: a state made from what the store holds, after this owner took over.

Guards: V and the turns are exactly what was stored; leases, attempts and outcomes are as they were.
"""

from __future__ import annotations

from heapq import heapify, heappush

import msgspec

from fairway.engine.backlog import bytes_of, standing_of
from fairway.engine.clients import Client
from fairway.engine.closing import ClientBody, ConfigBody, HoldBody, TenantBody
from fairway.engine.consumer import Consumer
from fairway.engine.holds import Hold
from fairway.engine.leases import remove
from fairway.engine.lodging import enter, room, run_of
from fairway.engine.lookups import Lookups
from fairway.engine.presence import plan_silence_check
from fairway.engine.reads import Answer, Read
from fairway.engine.records import Answered, Record, Tallied, Tallies, Turned
from fairway.engine.records import decode as decode_records
from fairway.engine.replay import Replay
from fairway.engine.roll import Roll
from fairway.engine.run import Run
from fairway.engine.source import Source
from fairway.engine.state import DUE_DEADLINE, DUE_START, MetaBody, Start, State
from fairway.engine.thaw import decode_described, pages_into, thaw
from fairway.engine.windowing import settle, take_standing
from fairway.fair.levels import Level
from fairway.fair.turns import Tables, Turns
from fairway.fair.weights import W_DEFAULT
from fairway.fair.window import FINISHED, PARKED, Window
from fairway.limits import PAGE_CHUNKS, RESTORED_LEASE_SECONDS, TIMES_ROWS
from fairway.model.dice import Dice
from fairway.model.ids import ID_MAX
from fairway.model.stored import Kind, Meta, StoredRun
from fairway.strategy.plan import Plans

_decode_meta = msgspec.msgpack.Decoder(MetaBody).decode
_decode_config = msgspec.msgpack.Decoder(ConfigBody).decode
_decode_tenant = msgspec.msgpack.Decoder(TenantBody).decode
_decode_hold = msgspec.msgpack.Decoder(HoldBody).decode
_decode_client = msgspec.msgpack.Decoder(ClientBody).decode
_decode_consumer = msgspec.msgpack.Decoder(Consumer).decode


def load(source: Source, meta: Meta, start: Start) -> State:
    """Everything the store holds, as of its last group."""
    state = _empty(meta, start)
    for _, _, body in source.objects(Kind.CONFIG):
        config = _decode_config(body)
        state.config, state.paused = config.config, config.paused
    state.plans.own(state.config.strategy)
    _tenants(state, source)
    levels, end = _runs(state, source)
    journal = [(number, decode_records(body)) for number, body in source.journal()]
    holds = list(source.objects(Kind.HOLD))
    _touched(state, source, journal, [_decode_hold(body) for _, _, body in holds])
    replay = Replay(state)
    _holds(state, holds, replay)
    for key, _, body in source.objects(Kind.CLIENT):
        stored = _decode_client(body)
        client = state.clients[int(key)] = Client(stored.seen)
        client.received, client.outcomes, client.as_of = stored.received, stored.outcomes, stored.as_of
    for key, _, body in source.objects(Kind.CONSUMER):
        state.consumers[str(key)] = _decode_consumer(body)
    for number, records in journal:
        for record in records:
            replay.record(number, record)
    _lingering(state, source, replay)
    if state.live < 0:
        recount(state, source)
    _times(state, source)
    _admit(state, levels, end)
    _arm(state)
    return state


def _empty(meta: Meta, start: Start) -> State:
    dice = Dice(start.seed)
    if meta.body:
        body = _decode_meta(meta.body)
        body.now = max(body.now, start.now)
    else:
        secret = b"".join(dice.bits64().to_bytes(8, "big") for _ in range(4))
        body = MetaBody(0, (0, 0), 0, 0, 1, 1, 0, secret, dice.bits64(), start.now, live=0)
    weight: dict[str, int] = {}
    tables = Tables(weight, Turns.restore(weight, body.v, ()))
    runs: dict[int, Run] = {}
    plans: Plans[Run] = Plans(tables, dice, runs, lambda run: len(run.out), steps=start.plan_steps)
    epoch = epoch_of(meta.range_id, start.epoch_bits)
    state = State(start.queue, meta.queue_number, epoch, body, tables, plans)
    state.runs, state.roll = runs, Roll(runs)
    state.last_id = max(state.last_id, start.above_id)
    state.closed_given = state.given
    state.number = meta.number + 1
    state.stored_number = meta.number
    state.aside.rows_max = start.window_rows
    state.aside.gc_rows = start.gc_rows
    state.aside.given_up_at = state.now
    state.dirty.groups_max = start.journal_groups or state.dirty.groups_max
    state.window = Window(
        body.ack, start.window_rows, lambda level: _standing(state, level), start.fetched_rows
    )
    return state


def epoch_of(range_id: int, bits: int) -> int:
    """The owner's part of an attempt: a range id is given once, and the bits differ after a restored backup."""
    return (range_id << 32 | bits & 0xFFFFFFFF) & 0xFFFFFFFFFFFFFFFF


def _standing(state: State, level: Level) -> int:
    """What the run in a place is to the window."""
    run = state.runs.get(level[1])
    if run is None:
        # One that was carried while it was not in memory may be anything: it bounds A as a parked one does.
        known = level in state.aside.over or level[1] in state.recent_ends
        return FINISHED if known else PARKED
    return FINISHED if run.pass_ != level[0] else standing_of(run)


def _tenants(state: State, source: Source) -> None:
    plain = state.tables.plain
    for key, _, body in source.objects(Kind.TENANT):
        name, stored = str(key), _decode_tenant(body)
        tenant = state.tenant(name)
        tenant.paused, tenant.as_of = stored.paused, stored.as_of
        tenant.submissions, tenant.waiting = stored.submissions, stored.waiting
        if stored.weight != W_DEFAULT:
            state.tables.weight[name] = stored.weight
        if stored.turn is not None:
            plain.turn[name], plain.rest[name] = stored.turn, stored.rest
        if stored.forecast[0]:
            state.forecast.restore(name, *stored.forecast)


def _runs(state: State, source: Source) -> tuple[list[Level], bool]:
    """The first rows above A; gives their levels, and whether there are no more."""
    state.aside.by_range = source.deletes_by_range
    level, limit = state.window.begin_main()
    most, most_bytes = room(state)
    read = Read("main", min(limit, most), level=level, bytes_max=most_bytes)
    rows = source.above(level, read.limit, bytes_max=most_bytes)
    for stored in rows:
        if stored.state == "active":
            _lodge(state, source, stored)
        else:
            state.aside.over.add((stored.pass_, stored.id))
    return [(stored.pass_, stored.id) for stored in rows], not read.more(Answer(rows))


def _lodge(state: State, source: Source, stored: StoredRun) -> None:
    described = decode_described(stored.body)
    pages: list[tuple[int, bytes]] = []
    if described.total > PAGE_CHUNKS:
        pages = [(part, body) for _, part, body in source.objects(Kind.PAGE, stored.id)]
    state.runs[stored.id] = run_of(state, stored, described, pages)


def _touched(
    state: State, source: Source, journal: list[tuple[int, list[Record]]], holds: list[HoldBody]
) -> None:
    """Runs that are leased, or that the journal knows more of than their objects, are in memory wherever they stand."""
    spans = [span for hold in holds for span in hold.spans]
    ids = {span[0] for span in spans}
    for _, records in journal:
        for record in records:
            if not isinstance(record, Turned | Answered | Tallied | Tallies):
                ids.update(span[0] for span in record.spans)
    for id in sorted(ids):
        if id not in state.runs:
            stored = source.run(id)
            if stored is not None and stored.state == "active":
                _lodge(state, source, stored)


def recount(state: State, source: Source) -> None:
    """Count what is active, for a store that was written before it was counted."""
    state.live = state.done = state.dead = 0
    for tenant in state.tenants.values():
        tenant.submissions = tenant.waiting = 0
    progress = {int(key): body for key, _, body in source.objects(Kind.PROGRESS)}
    for stored in source.active():
        run = state.runs.get(stored.id)
        if run is None:
            full = msgspec.structs.replace(stored, progress=progress.get(stored.id, b""))
            described = decode_described(stored.body)
            pages: list[tuple[int, bytes]] = []
            if described.total > PAGE_CHUNKS:
                pages = [(part, body) for _, part, body in source.objects(Kind.PAGE, stored.id)]
            run = run_of(state, full, described, pages)
        state.live += 1
        state.done += run.done.count
        state.dead += len(run.dead)
        run.owner.submissions += 1
        run.owner.waiting += run.total - run.done.count - len(run.dead) - len(run.out)
        state.counted.add(run.tenant)


def _times(state: State, source: Source) -> None:
    """The next due times and deadlines of all active runs."""
    for what, kind, after in (("due", DUE_START, state.now), ("deadline", DUE_DEADLINE, 0.0)):
        times = source.times(what, (after, ID_MAX), TIMES_ROWS)
        state.dues += [(time, id, kind) for time, id in times]
        last = times[-1] if len(times) == TIMES_ROWS else None
        if kind == DUE_START:
            state.aside.due_until = last
        else:
            state.aside.over_until = last
    heapify(state.dues)


def _holds(state: State, stored_holds: list[tuple[str | int, int, bytes]], replay: Replay) -> None:
    for key, part, body in stored_holds:
        stored = _decode_hold(body)
        hold = Hold(stored.epoch, int(key), part, stored.deadline, stored.seconds)
        hold.spans, hold.consumer, hold.seq, hold.as_of = (
            stored.spans,
            stored.consumer,
            stored.seq,
            stored.as_of,
        )
        state.holds[hold.count, part] = hold
        for id, start, count, _ in stored.spans:
            replay.put(hold, id, start, count, hold.as_of)


def _lingering(state: State, source: Source, replay: Replay) -> None:
    """Leases of submissions that ended count in flight until they are answered or run out."""
    for id, out in replay.ghosts.items():
        stored = source.run(id) if out else None
        if stored is None or stored.state == "active":
            for hold in out.values():
                hold.left -= 1
            continue
        run = thaw(stored, state.seed)
        pages_into(run, Lookups(0, whole=[id]).read(source))
        run.owner = state.tenant(run.tenant)
        run.out = out
        run.returned = set(run.returned).difference(out)
        run.owner.leased += len(out)
        state.leased += len(out)
        state.runs[id] = run
        state.aside.bytes += bytes_of(run)


def _admit(state: State, levels: list[Level], end: bool) -> None:
    """Count what waits and what is out in memory, and open the window over it."""
    for tenant in state.tenants.values():
        tenant.away = tenant.waiting
    for run in list(state.runs.values()):
        if run.state != "active":
            continue
        run.ready = run.total - run.done.count - len(run.dead) - len(run.out) - run.backing_off
        if run.returned:
            run.gaps = list(run.returned)
            heapify(run.gaps)
        run.owner.leased += len(run.out)
        state.leased += len(run.out)
        assert (run.pass_, run.id) > state.window.ack
        if run.described.not_before > state.now:
            run.due = run.described.not_before
        enter(state, run)
    state.window.main_read(state.window.read, state.window.era, levels, end)
    state.aside.over.clear()
    take_standing(state, [run.id for run in state.runs.values()])
    settle(state)
    for tenant in state.tenants.values():
        if not tenant.waiting and not tenant.leased:
            state.tables.idle(tenant.name)


def _arm(state: State) -> None:
    """Restored leases live at least a little longer: their holders may be on their way."""
    for where, hold in list(state.holds.items()):
        if hold.left <= 0:
            remove(state, hold)
            continue
        hold.deadline = max(hold.deadline, state.now + min(hold.seconds, RESTORED_LEASE_SECONDS))
        heappush(state.expiries, (hold.deadline, *where))
    for consumer in state.consumers.values():
        consumer.seen = (
            state.now
        )  # signs of life are not all stored, and a start is no silence of the consumer
    plan_silence_check(state)
