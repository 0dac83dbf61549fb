"""Loading: a state made from what the store holds, after this owner took over.

Guards: V and the turns are exactly what was stored; leases, attempts and outcomes are as they were.
"""

from __future__ import annotations

from heapq import heapify, heappush

import msgspec

from fairway.engine.backlog import admit
from fairway.engine.clients import Client
from fairway.engine.closing import ClientBody, ConfigBody, HoldBody, TenantBody
from fairway.engine.consumer import Consumer
from fairway.engine.done import Page
from fairway.engine.due import plan_silence_check
from fairway.engine.holds import Hold
from fairway.engine.leases import remove
from fairway.engine.lookups import Lookups, Source
from fairway.engine.progress import decode_page, decode_progress, restore
from fairway.engine.records import decode as decode_records
from fairway.engine.replay import Replay
from fairway.engine.run import Run
from fairway.engine.state import MetaBody, Start, State
from fairway.engine.thaw import decode_described, pages_into, thaw
from fairway.fair.turns import Tables, Turns
from fairway.fair.weights import W_DEFAULT
from fairway.limits import PAGE_CHUNKS, RESTORED_LEASE_SECONDS
from fairway.model.dice import Dice
from fairway.model.stored import Kind, Meta
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
    _tenants(state, source)
    _runs(state, source)
    replay = Replay(state)
    _holds(state, source, replay)
    for key, _, body in source.objects(Kind.CLIENT):
        stored = _decode_client(body)
        client = state.clients[int(key)] = Client(stored.seen)
        client.received, client.outcomes, client.as_of = stored.received, stored.outcomes, stored.as_of
    for key, _, body in source.objects(Kind.CONSUMER):
        state.consumers[str(key)] = _decode_consumer(body)
    for number, body in source.journal():
        for record in decode_records(body):
            replay.record(number, record)
    _lingering(state, source, replay)
    _admit(state)
    _arm(state)
    return state


def _empty(meta: Meta, start: Start) -> State:
    dice = Dice(start.seed)
    if meta.body:
        body = _decode_meta(meta.body)
        body.now = max(body.now, start.now)
    else:
        secret = b"".join(dice.bits64().to_bytes(8, "big") for _ in range(4))
        body = MetaBody(0, (0, 0), 0, 0, 1, 1, 0, secret, dice.bits64(), start.now)
    weight: dict[str, int] = {}
    tables = Tables(weight, Turns.restore(weight, body.v, ()))
    runs: dict[int, Run] = {}
    plans: Plans[Run] = Plans(
        tables, dice, runs.values, lambda: ((run, len(run.out)) for run in runs.values() if run.out)
    )
    epoch = (meta.range_id << 32 | start.epoch_bits & 0xFFFFFFFF) & 0xFFFFFFFFFFFFFFFF
    state = State(start.queue, meta.queue_number, epoch, body, tables, plans)
    state.runs = runs
    state.last_id = max(state.last_id, start.above_id)
    state.number = meta.number + 1
    return state


def _tenants(state: State, source: Source) -> None:
    plain = state.tables.plain
    for key, _, body in source.objects(Kind.TENANT):
        name, stored = str(key), _decode_tenant(body)
        tenant = state.tenant(name)
        tenant.paused, tenant.as_of = stored.paused, stored.as_of
        if stored.weight != W_DEFAULT:
            state.tables.weight[name] = stored.weight
        if stored.turn is not None:
            plain.turn[name], plain.rest[name] = stored.turn, stored.rest
        if stored.forecast[0]:
            state.forecast.restore(name, *stored.forecast)


def _runs(state: State, source: Source) -> None:
    progress = {int(key): body for key, _, body in source.objects(Kind.PROGRESS)}
    for stored in source.active():
        described = decode_described(stored.body)
        run = Run.new(stored.id, stored.pass_, described, state.tenant(described.tenant), state.seed)
        body = progress.pop(run.id, None)
        if body is not None:
            restore(run, decode_progress(body))
        state.runs[run.id] = run
    for key, part, body in source.objects(Kind.PAGE):
        run = state.runs.get(int(key))
        if run is not None and run.total > PAGE_CHUNKS:
            page = decode_page(body)
            run.own_done().put(part, Page(page.winners, page.as_of))


def _holds(state: State, source: Source, replay: Replay) -> None:
    for key, part, body in source.objects(Kind.HOLD):
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


def _admit(state: State) -> None:
    """Count what waits and what is out, and open the backlog."""
    for run in list(state.runs.values()):
        if run.state != "active":
            continue
        run.ready = run.total - run.done.count - len(run.dead) - len(run.out) - run.backing_off
        if run.returned:
            run.gaps = list(run.returned)
            heapify(run.gaps)
        run.owner.leased += len(run.out)
        state.leased += len(run.out)
        assert (run.pass_, run.id) > state.acked.ack
        state.acked.placed((run.pass_, run.id))
        for index, tried in run.tried.items():
            if tried.due:
                heappush(state.dues, (tried.due, run.id, index))
        admit(state, run)
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
