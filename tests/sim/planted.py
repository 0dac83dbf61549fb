"""Worlds that are broken from outside, each in one way: what the simulator and the checker must find.

Guards: nothing in the engine is changed; a fault is put between the engine and the store, or into what a start loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from fairway.engine import commands as c
from fairway.engine.backlog import back, refresh
from fairway.engine.engine import Engine
from fairway.engine.holds import seal_of
from fairway.engine.leases import drop_out
from fairway.engine.state import Start
from fairway.model.stored import Group, Meta
from fairway.store.memory.shelf import Shelf
from fairway.testing.owner import Owner
from fairway.testing.profile import Profile
from fairway.testing.world import World

Make = Callable[[Profile], World]


# -- faults of the store


class LossyShelf(Shelf):
    """Of every so many groups one is acknowledged and not stored as it is."""

    def __init__(self, strip: Callable[[Group], Group], every: int) -> None:
        super().__init__()
        self._strip, self._every, self._seen = strip, every, 0

    def store(self, name: str, group: Group) -> None:
        self._seen += 1
        super().store(name, self._strip(group) if self._seen % self._every == 0 else group)


def _lossy(strip: Callable[[Group], Group], every: int = 1) -> Make:
    return lambda profile: World(profile, shelf=LossyShelf(strip, every))


def _empty(group: Group) -> Group:
    return Group(group.range_id, group.number, group.sync, group.meta)


def _without(**fields: Any) -> Callable[[Group], Group]:
    return lambda group: msgspec.structs.replace(group, **fields)


class UnfencedShelf(Shelf):
    """Groups are stored whoever sent them."""

    def store(self, name: str, group: Group) -> None:
        stored = self.queue(name)
        super().store(
            name, msgspec.structs.replace(group, range_id=stored.range_id, number=stored.number + 1)
        )


# -- faults of an owner


class Hasty(Owner):
    """Answers leave before their group is stored."""

    def commit(self) -> str:
        closing, drafts = self.closing, []
        if closing is not None:
            drafts, closing.drafts = closing.drafts, []
            for draft in drafts:
                draft.leave()
        return super().commit()


class HastyWorld(World):
    owner_of = Hasty


# -- faults of a start


def _loaded(spoil: Callable[[Engine], None]) -> Make:
    """Every start but the first spoils what it loaded."""

    def load(source: Any, meta: Meta, start: Start) -> Engine:
        engine = Engine.load(source, meta, start)
        if meta.body:
            spoil(engine)
        return engine

    return lambda profile: World(profile, load)


def _forget_outcomes(engine: Engine) -> None:
    for client in engine.state.clients.values():
        client.outcomes.clear()


def _forget_attempts(engine: Engine) -> None:
    for run in engine.state.runs.values():
        run.tried = {index: tried for index, tried in run.tried.items() if tried.due}
        for tried in run.tried.values():
            tried.attempts = 0


def _forget_pauses(engine: Engine) -> None:
    state = engine.state
    state.paused = False
    for tenant in state.tenants.values():
        tenant.paused = False
    for run in state.runs.values():
        run.paused = False
        refresh(state, run)


def _forget_delays(engine: Engine) -> None:
    for run in engine.state.runs.values():
        run.due = 0.0
        refresh(engine.state, run)


def _forget_turns(engine: Engine) -> None:
    plain = engine.state.tables.plain
    for name in sorted(plain.turn)[1:]:
        plain.turn[name] += 5_000_000_000


def _forget_leases(source: Any, meta: Meta, start: Start) -> Engine:
    return Engine.load(source, meta, msgspec.structs.replace(start, forget_leases=True))


# -- faults while calls are executed


def _executed(
    tamper: Callable[[Engine, c.Call], c.Call], after: Callable[[Engine, c.Call], None] | None = None
) -> Make:
    """Calls are changed on their way in, or the state after them."""

    class Tampered(Engine):
        def execute(self, call: c.Call, now: float, found: Any = None) -> Any:
            draft = super().execute(tamper(self, call), now, found)
            if after is not None:
                after(self, call)
            return draft

    return lambda profile: World(profile, Tampered.load)


def _same(engine: Engine, call: c.Call) -> c.Call:
    return call


def _with(call: c.Call, **fields: Any) -> c.Call:
    return msgspec.structs.replace(call, command=msgspec.structs.replace(call.command, **fields))


def _hand_out_again(engine: Engine, call: c.Call) -> None:
    """A chunk that is out goes back though its lease lasts, and nobody is told."""
    if not isinstance(call.command, c.Reserve):
        return
    for run in engine.state.runs.values():
        if run.state == "active" and run.out:
            index = next(iter(run.out))
            drop_out(engine.state, run, index)
            back(engine.state, run, index)
            refresh(engine.state, run)
            return


def _newest_receipt(engine: Engine, call: c.Call) -> c.Call:
    """Whatever receipt comes, the one that is valid now is used."""
    if not isinstance(call.command, c.Complete):
        return call
    state, parts = engine.state, []
    for part in call.command.parts:
        for id, start, count in part.spans:
            for index in range(start, start + count):
                run = state.runs.get(id)
                hold = run.out.get(index) if run is not None else None
                epoch, number = (part.epoch, part.count) if hold is None else (hold.epoch, hold.count)
                seal = part.seal if hold is None else seal_of(state.secret, epoch, number)
                parts.append(c.Part(epoch, number, seal, [(id, index, 1)]))
    return _with(call, parts=parts)


def _no_back_off(engine: Engine, call: c.Call) -> c.Call:
    return _with(call, delay_seconds=0.0) if isinstance(call.command, c.Fail) else call


def _more_than_asked(engine: Engine, call: c.Call) -> c.Call:
    return _with(call, max=call.command.max + 1) if isinstance(call.command, c.Reserve) else call


def _leak_a_count(engine: Engine, call: c.Call) -> None:
    if isinstance(call.command, c.Complete):
        engine.state.leased += 1


def _every_number_is_new(engine: Engine, call: c.Call) -> c.Call:
    return msgspec.structs.replace(call, number=0) if isinstance(call.command, c.Submit) else call


def _any_consumer(engine: Engine, call: c.Call) -> c.Call:
    command = call.command
    if isinstance(command, c.Reserve | c.Trim) and command.consumer in engine.state.consumers:
        return _with(call, consumer_epoch=engine.state.consumers[command.consumer].epoch)
    return call


def _newest_first(engine: Engine, call: c.Call) -> c.Call:
    return _with(call, strategy="NewestFirst") if isinstance(call.command, c.Reserve) else call


def _no_limits(engine: Engine, call: c.Call) -> c.Call:
    """Hard limits are not looked at."""
    limited = isinstance(call.command, c.Reserve) and call.command.strategy.startswith("MaxSimultaneous")
    return _with(call, strategy="Fair") if limited else call


def _short_lease(engine: Engine, call: c.Call) -> None:
    """Leases run out sooner than was said."""
    if isinstance(call.command, c.Reserve):
        for hold in engine.state.holds.values():
            hold.deadline = min(hold.deadline, engine.state.now + 0.2)
            engine.state.expiries.append((hold.deadline, hold.count, hold.part))
        engine.state.expiries.sort()


class Deaf(Engine):
    """A submit does not wake those who wait for work."""

    def execute(self, call: c.Call, now: float, found: Any = None) -> Any:
        state, waiters = self.state, self.state.waiters
        if isinstance(call.command, c.Submit):
            state.waiters = {}
        draft = super().execute(call, now, found)
        if isinstance(call.command, c.Submit):
            state.waiters, state.woken = waiters, False
        return draft


def _unfenced(profile: Profile) -> World:
    return World(profile, shelf=UnfencedShelf())


FAULTS: dict[str, tuple[Make, set[str]]] = {
    "a stored group is lost": (_lossy(_empty, 7), {"accepted_is_found", "nothing_is_lost"}),
    "results are lost": (_lossy(_without(results=[])), {"results_are_kept"}),
    "keys are lost": (_lossy(_without(keys=[])), {"keys_name_one_submission"}),
    "the journal is lost": (_lossy(_without(journal=b"")), {"no_double_lease", "latest_receipt_wins"}),
    "anybody may write": (
        _unfenced,
        {"nothing_is_lost", "accepted_is_found", "no_double_lease", "nothing_is_raised"},
    ),
    "answers leave before their group": (
        HastyWorld,
        {"accepted_is_found", "nothing_is_lost", "receipts_are_unique", "answers_fit_their_calls"},
    ),
    "outcomes are forgotten": (_loaded(_forget_outcomes), {"one_effect", "same_number_same_answer"}),
    "attempts are forgotten": (_loaded(_forget_attempts), {"attempts_are_counted", "deliveries_are_bounded"}),
    "pauses are forgotten": (_loaded(_forget_pauses), {"pauses_hold"}),
    "delays are forgotten": (_loaded(_forget_delays), {"not_before_due"}),
    "turns are forgotten": (_loaded(_forget_turns), {"fair_shares"}),
    "leases are forgotten": (lambda profile: World(profile, _forget_leases), {"no_double_lease"}),
    "a leased chunk is handed out again": (_executed(_same, _hand_out_again), {"no_double_lease"}),
    "a stale receipt is accepted": (_executed(_newest_receipt), {"latest_receipt_wins", "winners_are_true"}),
    "nobody backs off": (_executed(_no_back_off), {"back_off_holds"}),
    "more is handed out than asked": (_executed(_more_than_asked), {"batches_fit"}),
    "a count leaks": (_executed(_same, _leak_a_count), {"counts_agree"}),
    "a number is executed twice": (
        _executed(_every_number_is_new),
        {"one_effect", "same_number_same_answer"},
    ),
    "an old consumer is heard": (_executed(_any_consumer), {"consumers_are_fenced"}),
    "Fair is not fair": (_executed(_newest_first), {"fifo_inside_a_tenant", "fair_shares"}),
    "limits do not hold": (_executed(_no_limits), {"ceilings_hold"}),
    # A window that reads looks for work again by itself, so only one that holds everything stays deaf.
    "a wake-up is lost": (
        lambda profile: World(replace(profile, window=0, by_range=False), Deaf.load),
        {"no_wrong_empty_answer"},
    ),
    "leases end too soon": (_executed(_same, _short_lease), {"no_double_lease"}),
}
