"""What must be true of an engine at any time, recomputed from first principles, and a dump to compare two engines by.

Everything here is O(everything) and looks at each chunk on its own: slow, and plain enough to be believed.
"""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy
from typing import Any

from fairway.engine import done
from fairway.engine.backlog import standing_of
from fairway.engine.commands import Win
from fairway.engine.done import wins_of
from fairway.engine.engine import Engine
from fairway.engine.named import expire_at
from fairway.engine.run import AWAY, FETCHED, TRACKED, Run
from fairway.engine.state import DUE_DEADLINE, DUE_START, State
from fairway.fair.weights import W_DEFAULT, U
from fairway.fair.window import COUNTED, PARKED
from fairway.model.stored import Kind
from fairway.strategy.candidate import selects, value_of

LOOKED_AT_MAX = 3000  # chunks of a run that are looked at one by one


def chunk_states(run: Run) -> dict[int, str]:
    """The state of every chunk of a run in the words of the life cycle; it fails if a chunk has two or none."""
    states: dict[int, str] = {}
    for index in range(run.total):
        fresh = index >= run.next and (not run.shuffled or run._permutation().place(index) >= run.shuffled)
        tried = run.tried.get(index)
        mine = {
            "done": index in run.done,
            "dead": index in run.dead,
            "leased": index in run.out,
            "backing off": tried is not None and tried.due > 0,
            "waiting": index in run.returned or fresh,
        }
        if (
            run.state != "active"
        ):  # what is neither done nor dead was skipped, though its lease may still be out
            left = [state for state in ("done", "dead") if mine[state]]
            assert len(left) + mine["leased"] <= 1, (run.id, index, mine)
            states[index] = left[0] if left else "skipped"
            continue
        (states[index],) = [state for state, is_so in mine.items() if is_so] or ["nothing"]
        assert not (fresh and (index in run.returned or tried)), (run.id, index)
        assert tried is None or states[index] in ("waiting", "leased", "backing off"), (
            run.id,
            index,
            states[index],
        )
    return states


def check(engine: Engine) -> None:
    """Everything that can be said of an engine alone."""
    state = engine.state
    for run in state.runs.values():
        _check_run(state, run)
    _check_tenants(state)
    _check_holds(state)
    _check_turns(state)
    _check_marks(state)
    _check_dues(state)
    _check_levels(state)
    _check_waits(state)
    _check_orders(state)


def _check_run(state: State, run: Run) -> None:
    assert run.owner is state.tenants[run.tenant]
    backing = sum(tried.due > 0 for tried in run.tried.values())
    if run.total <= LOOKED_AT_MAX:
        states = list(chunk_states(run).values())
        assert states.count("done") == run.done.count
        if run.state == "active":
            assert states.count("leased") == len(run.out)
            assert states.count("waiting") == run.ready, (run.id, run.ready, states)
            assert states.count("backing off") == backing
    assert sum(win.count for win in _wins(run)) == run.done.count, (
        "a winner for every done chunk, and one only"
    )
    if run.state != "active":
        assert run.out, "an ended run stays in memory only while leases of it are out"
        assert not run.eligible and run.id not in run.owner.runs and run.ended
        return
    assert run.id in run.owner.runs
    assert run.ready == run.total - run.done.count - len(run.dead) - len(run.out) - backing >= 0
    assert run.done.count + len(run.dead) < run.total, "else it has ended"
    may = run.ready > 0 and not run.paused and not run.owner.paused and not run.due
    assert run.eligible == (may and run.standing != AWAY), (run.id, run.eligible)
    assert run.returned <= set(run.gaps)


def _wins(run: Run) -> list[Win]:
    pages = run.done.pages.items()
    return [win for number, page in pages for win in wins_of(page, number * done.PAGE_CHUNKS)]


def _check_tenants(state: State) -> None:
    for name, tenant in state.tenants.items():
        assert tenant.name == name
        runs = [run for run in state.runs.values() if run.tenant == name]
        active = [run for run in runs if run.state == "active"]
        backing = sum(tried.due > 0 for run in active for tried in run.tried.values())
        assert set(tenant.runs) == {run.id for run in active}
        assert tenant.waiting == sum(run.ready for run in active) + backing + tenant.away, name
        assert tenant.leased == sum(len(run.out) for run in runs), name
    assert state.leased == sum(len(run.out) for run in state.runs.values())


def _check_holds(state: State) -> None:
    out: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for run in state.runs.values():
        for index, hold in run.out.items():
            assert state.holds[hold.count, hold.part] is hold
            out.setdefault((hold.count, hold.part), []).append((run.id, index))
    assert set(out) == set(state.holds), "a hold is there as long as something of it is out"
    for where, hold in state.holds.items():
        assert where == (hold.count, hold.part)
        assert hold.left == len(out[where]), where
        named = [(id, index) for id, start, many, _ in hold.spans for index in range(start, start + many)]
        assert len(set(named)) == len(named) and set(out[where]) <= set(named)
        assert (hold.deadline, *where) in state.expiries, "every hold has a time at which it is looked at"
    counts = {}
    for hold in state.holds.values():
        assert counts.setdefault(hold.count, hold.epoch) == hold.epoch, "one attempt, one epoch"
    assert all(
        hold.count < state.next_count and hold.part < state.next_count for hold in state.holds.values()
    )


def _check_turns(state: State) -> None:
    plain = state.tables.plain
    assert set(plain.turn) == set(plain.rest)
    for name, tenant in state.tenants.items():
        busy = tenant.waiting > 0 or tenant.leased > 0
        assert not busy or name in plain.turn, f"{name} has chunks and no turn"
        if name in plain.turn:
            assert (name in plain._idle) == (not busy), name
    for name, turn in plain.turn.items():
        w = plain.weight.get(name, W_DEFAULT)
        assert turn * w < plain.v * w + U + w, "turn < V + stride + 1"
        assert 0 <= plain.rest[name] < w
        assert name in state.tenants


def _check_marks(state: State) -> None:
    """What says that it is marked is; else a change of it would be missing from the store for ever."""
    for run in state.runs.values():
        assert not run.marked or (Kind.PROGRESS, run.id, 0) in state.dirty, run.id
        for number, page in run.done.pages.items():
            assert not page.marked or (Kind.PAGE, run.id, number) in state.dirty, (run.id, number)
    for name, tenant in state.tenants.items():
        assert not tenant.marked or (Kind.TENANT, name, 0) in state.dirty, name


def _check_dues(state: State) -> None:
    dues = set(state.dues)
    for run in state.runs.values():
        if run.state != "active":
            continue
        if run.due:
            assert run.due > state.now
            assert (run.due, run.id, DUE_START) in dues or _later(state.aside.due_until, (run.due, run.id))
        for index, tried in run.tried.items():
            assert not tried.due or (tried.due, run.id, index) in dues
        if run.described.deadline and run.life == 1:
            at = (run.described.deadline, run.id)
            assert (*at, DUE_DEADLINE) in dues or _later(state.aside.over_until, at)


def _later(until: tuple[float, int] | None, time: tuple[float, int]) -> bool:
    """Whether a time lies beyond those that are known: it is read from the store when it is near."""
    return until is not None and time > until


def _check_levels(state: State) -> None:
    window, aside = state.window, state.aside
    runs = [run for run in state.runs.values() if run.state == "active"]
    assert aside.here == len(runs)
    assert all(run.level > window.ack for run in runs), "A never reaches an unfinished level"
    assert window.ack <= window.read and window.counted <= window.rows_max
    assert window.counted == sum(standing == COUNTED for standing in window.tracked.values())
    assert set(window.tracked) == {run.level for run in runs if run.standing == TRACKED}
    assert set(window.fetched) == {run.id for run in runs if run.standing == FETCHED}
    for run in runs:
        standing = standing_of(run)
        if run.standing == TRACKED:
            assert window.tracked[run.level] == standing, run.id
        elif run.level <= window.read:
            assert standing == PARKED or window.pinned(run.level), (run.id, standing)
            # What is pinned bounds A by itself.
            known = window.parked <= run.level or window.pinned(run.level)
            assert standing != PARKED or known, run.id
        assert (run.id in aside.spare) == (run.standing == AWAY and standing == COUNTED)
        assert (run.id in aside.idle) == (run.standing == AWAY and standing == PARKED)
    assert all(run.pass_ <= state.top for run in runs)


def _check_waits(state: State) -> None:
    waiters = [waiter for queue in state.waiters.values() for waiter in queue.values()]
    watchers = [watcher for some in state.watchers.values() for watcher in some.values()]
    assert state.waiting == len(waiters) + len(watchers)
    assert all(queue for queue in state.waiters.values()) and all(state.watchers.values())
    timed = {id(entry[2]) for entry in state.timeouts}
    for who in (*waiters, *watchers):
        assert who.drafts and not any(draft.answered for draft in who.drafts)
        assert id(who) in timed or who.ticket in state.aside.overdue
    for id_ in state.watchers:
        assert state.runs[id_].state == "active"
    for text in () if state.paused else state.waiters:
        plan = state.plans.get(text)
        assert plan.pinned >= len(state.waiters[text])
        up = plan.next_up(1, state.reservers.count(state.now)) if plan.ready else []
        assert not up, "somebody waits though there is work"
    pending = {(id, number) for id, client in state.clients.items() for number in client.pending}
    assert pending == {(waiter.client, waiter.number) for waiter in waiters if waiter.number}


def _check_orders(state: State) -> None:
    eligible = [run for run in state.runs.values() if run.eligible]
    building = state.plans._building
    new = {live.tier for live in building.lives} if building is not None else set()
    for tier, order in state.plans._orders.items():
        if tier in new:
            continue  # it has not met all runs yet
        known = {run.id: run for run in order.runs()}
        for run in eligible:
            if selects(tier.selection, run):
                assert known.get(run.id) is run, f"an order does not know run {run.id}"
    for key, counts in state.plans.in_flight.counts.items():
        if building is not None and key in building.keys:
            continue
        out: Counter[str | int] = Counter()
        for run in state.runs.values():
            value = value_of(run, key)
            if value is not None:
                out[value] += len(run.out)
        assert +Counter(counts) == +out, f"what is in flight by {key}"


# -- two engines compared


def dump(engine: Engine) -> dict[str, Any]:
    """Everything of an engine that a restart must bring back."""
    state = engine.state
    plain = state.tables.plain
    return {
        "meta": (
            state.queue,
            state.era,
            state.last_id,
            state.next_count,
            state.next_client,
            state.top,
            state.secret,
        ),
        "config": (state.config, state.paused, state.seed),
        "v": plain.v,
        "turns": {name: (turn, plain.rest[name]) for name, turn in plain.turn.items()},
        "idle": set(plain._idle),
        "weights": {name: w for name, w in plain.weight.items() if w != W_DEFAULT},
        "ack": state.window.ack,
        "counts": (state.live, state.done, state.dead),
        "tenants": {
            name: (t.paused, t.waiting, t.leased, t.submissions)
            for name, t in state.tenants.items()
            if t.paused or t.waiting or t.leased or t.submissions
        },
        "forecast": {name: state.forecast.ahead(name) for name, t in state.tenants.items() if t.waiting},
        "runs": {id: _run(run) for id, run in state.runs.items()},
        "holds": {where: _hold(state, hold) for where, hold in state.holds.items()},
        "leased": state.leased,
        "clients": {
            id: {n: body for n, body in client.outcomes.items() if n > client.received}
            for id, client in state.clients.items()
        },
        "consumers": {
            name: (consumer.epoch, consumer.trimmed, deepcopy(consumer.open))
            for name, consumer in state.consumers.items()
        },
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "state": run.state,
        "described": run.described,
        "pass": run.pass_,
        "life": run.life,
        "paused": run.paused,
        "due": run.due,
        "ended": run.ended,
        "error": (run.error, run.error_index),
        "cursors": (run.next, run.shuffled),
        "returned": set(run.returned),
        "out": {index: (hold.epoch, hold.count, hold.part) for index, hold in run.out.items()},
        "tried": {i: (t.attempts, t.epoch, t.count, t.due, t.error) for i, t in run.tried.items()},
        "dead": {i: (d.attempts, d.at, d.error) for i, d in run.dead.items()},
        "done": sorted((w.start, w.count, w.epoch, w.reservation, w.writer, w.kind) for w in _wins(run)),
        "counts": (run.done.count, run.ready if run.state == "active" else None, run.eligible),
    }


def _hold(state: State, hold: Any) -> tuple[Any, ...]:
    out = sorted((run.id, index) for run in state.runs.values() for index, h in run.out.items() if h is hold)
    return (hold.epoch, hold.seconds, hold.left, hold.consumer, hold.seq, out)


def footprint(engine: Engine) -> dict[str, Any]:
    """All that a call could change: the state, and what is on its way to the store."""
    state, filling = engine.state, engine.state.filling
    on_its_way = {
        name: getattr(filling, name) for name in filling.__slots__ if name not in ("calls", "drafts")
    }
    sizes = {name: len(value) if isinstance(value, list) else value for name, value in on_its_way.items()}
    marks = (dict(state.dirty._since), dict(state.dirty._now))
    times = (len(state.dues), len(state.expiries), state.waiting)
    lines = [(text, list(line)) for text, line in state.waiters.items()]
    return {**dump(engine), "sizes": sizes, "marks": marks, "times": times, "lines": lines}


def untouched(engine: Engine, before: dict[str, Any]) -> None:
    """A refused call has no effect at all; that its client has received earlier answers is not one."""
    after = footprint(engine)
    for key in before:
        assert key == "clients" or before[key] == after[key], f"a refused call changed {key}"


def covered(live: Engine, fresh: Engine) -> None:
    """Every unfinished run in the store is where the window's rules say; `fresh` sees all of them."""
    window, runs = live.state.window, live.state.runs
    for run in fresh.state.runs.values():
        if run.state != "active":
            continue
        assert run.level > window.ack, "A passed an unfinished row"
        if run.level <= window.read and run.id not in runs and not live.state.aside.tenants:
            assert window.parked <= run.level, "a row below R is neither tracked nor parked"
            assert standing_of(run) == PARKED or run.id in live.state.aside.ids, (run.id, standing_of(run))
        if run.level > window.read:
            assert not window.at_end or window.pinned(run.level), "a row above R at the end of the table"


def named(state: State, hold: Any) -> bool:
    consumer = state.consumers.get(hold.consumer)
    return consumer is not None and hold.seq in consumer.open


def ends_at(state: State, where: tuple[int, int]) -> float:
    """When a hold runs out if nobody gives a sign any more."""
    hold = state.holds[where]
    return expire_at(state, hold) if hold.consumer else hold.deadline


def same(live: Engine, fresh: Engine) -> None:
    """A fresh engine is the live one in everything that matters."""
    mine, its = dump(live), dump(fresh)
    # A client's acknowledgement is stored with its next outcome: until then a start knows a few outcomes more.
    for id, outcomes in its["clients"].items():
        received = live.state.clients[id].received
        assert fresh.state.clients[id].received <= received
        its["clients"][id] = {n: body for n, body in outcomes.items() if n > received}
    ahead = its.pop("ack") <= mine.pop("ack")
    assert ahead or live.state.window.rows_max < 1000, "A is stored with the next group"
    its["runs"] = {id: its["runs"].get(id) for id in mine["runs"]}  # others left memory
    for known in (*mine["runs"].values(), *its["runs"].values()):
        known["counts"] = known["counts"][:2]  # whether it is handed out from is the window's to say
    for key in mine:
        if isinstance(mine[key], dict) and mine[key] != its[key]:
            for inner in mine[key].keys() | its[key].keys():
                assert mine[key].get(inner) == its[key].get(inner), (key, inner)
        assert mine[key] == its[key], key
    silent = live.state.config.consumer_silent_seconds
    for where, hold in live.state.holds.items():
        until, after = ends_at(live.state, where), ends_at(fresh.state, where)
        grace = fresh.state.now + (silent if named(live.state, hold) else min(hold.seconds, 30.0))
        if hold.consumer and not named(
            live.state, hold
        ):  # trimmed: how long its consumer gave signs is forgotten
            assert grace <= after <= max(until, grace)
            continue
        assert math.isclose(after, max(until, grace)), (
            f"a restored lease ends at {after}, not {max(until, grace)}"
        )
