"""The engine: calls and the time in, drafts and groups out.

Guards: it is pure (no clock, thread, socket or entropy), so one sequence of calls gives one sequence of groups.
"""

from __future__ import annotations

from fairway.engine import (
    batches,
    closing,
    due,
    explaining,
    listing,
    named,
    presence,
    returning,
    steering,
    submitting,
    views,
    waiting,
    windowing,
)
from fairway.engine.answering import answer, record_outcome, refuse
from fairway.engine.backlog import fit, refresh
from fairway.engine.clients import decode_reply
from fairway.engine.closing import Closing
from fairway.engine.commands import (
    READS,
    Call,
    Cancel,
    Command,
    Complete,
    Configure,
    Consumers,
    Explain,
    Fail,
    Finish,
    Goodbye,
    Join,
    ListActive,
    ListDead,
    Pause,
    Purge,
    Redrive,
    Register,
    Release,
    Renew,
    Reply,
    Reserve,
    Reserved,
    SetWeight,
    Show,
    ShowConfig,
    Stats,
    Submit,
    Tenants,
    Trim,
    Wait,
    Winners,
)
from fairway.engine.draft import Draft
from fairway.engine.finishing import complete
from fairway.engine.load import load
from fairway.engine.lodging import bring, lodge
from fairway.engine.lookups import Found, Lookups
from fairway.engine.purging import purge
from fairway.engine.reads import Answer, Read
from fairway.engine.renewing import renew
from fairway.engine.reserving import NOTHING, check, pick, reserved, strategy_of
from fairway.engine.search import in_vain
from fairway.engine.seeking import Seeking
from fairway.engine.source import Source
from fairway.engine.state import Start, State, Waiter, Watcher, who_reserves
from fairway.errors import BadArgument, ClientUnknown, FairwayError, RequestDropped, TooLarge
from fairway.limits import OUTCOMES_PER_CLIENT_MAX, WAIT_SECONDS_MAX
from fairway.model.stored import Meta

_NOTHING_FOUND = Found()
_UNSYNCED = (Renew, Release)  # beside unnamed reserves and expiries: power loss may forget them


class Engine:
    """One queue, owned by one range id."""

    def __init__(self, state: State, range_id: int) -> None:
        self.state = state
        self.range_id = range_id
        self._seeking = Seeking(state)

    @classmethod
    def load(cls, source: Source, meta: Meta, start: Start) -> Engine:
        """The engine as of the last stored group."""
        state = load(source, meta, start)
        if start.forget_leases:
            due.release_all(state)
        return cls(state, meta.range_id)

    # -- calls

    def lookups(self, call: Call) -> Lookups | None:
        """What must be read from the store before this call is executed; None: nothing."""
        return self._seeking.lookups(call)

    def looked(self, lookups: Lookups) -> None:
        """The reads were given up."""
        self._seeking.close(lookups.ticket)

    def execute(self, call: Call, now: float, found: Found | None = None) -> Draft:
        """Carry out a call; bad calls are answered with their error and have no effect."""
        state = self.state
        if now > state.now:
            state.now = now
        if due.next_due(state) <= state.now:
            due.do_due(state)  # nobody is told "no work" because the clock's caller is late
        state.calls += 1
        state.filling.calls += 1
        draft = Draft()
        try:
            if found is not None:
                self._lodge(call, found)
            if not self._repeated(call, draft, found or _NOTHING_FOUND):
                self._carry_out(call, draft, found or _NOTHING_FOUND)
        except FairwayError as error:
            refuse(state, draft, error)
        if found is not None:
            self._seeking.close(found.ticket)
        fit(state)
        if state.woken and state.waiters:
            waiting.serve(state)
        if state.plans.made:
            due.drop_idle_plans(state)  # from now on they are looked over
        return draft

    def _lodge(self, call: Call, found: Found) -> None:
        """What a call names comes into memory first."""
        state = self.state
        answer = Answer()
        for (id, part), body in found.pages.items():
            answer.pages.setdefault(id, []).append((part, body))
        for stored in found.runs.values():
            run = lodge(state, answer, stored) if stored.state == "active" else None
            if run is not None:
                refresh(state, run)
        bring(state, self._seeking.named(call.command))

    def _repeated(self, call: Call, draft: Draft, found: Found) -> bool:
        """Whether the call was carried out before, or waits already; then the draft is taken care of."""
        state = self.state
        if not call.number or isinstance(call.command, READS):
            return False
        client = state.clients.get(call.client)
        if client is None:
            raise ClientUnknown
        client.seen = state.now
        client.receive(call.received)
        if call.number <= client.received:
            raise RequestDropped(
                f"request {call.number} was answered and acknowledged before; it was not executed again"
            )
        outcome = client.outcomes.get(call.number)
        if outcome is not None:
            reply = decode_reply(outcome)
            if isinstance(reply, Reserved):
                reply = views.described_again(state, reply, found)
            answer(state, draft, reply)
            return True
        if call.number in client.pending:
            waiting.join(client.pending[call.number], draft)
            return True
        if len(client.outcomes) >= OUTCOMES_PER_CLIENT_MAX:
            raise TooLarge(
                f"{OUTCOMES_PER_CLIENT_MAX} outcomes wait to be acknowledged; send `received` with your calls"
            )
        return False

    def _carry_out(self, call: Call, draft: Draft, found: Found) -> None:
        state, command = self.state, call.command
        if isinstance(command, Reserve):
            self._reserve(call, command, draft, found)
            return
        if isinstance(command, Wait):
            self._wait(command, draft, found)
            return
        if isinstance(command, Explain):
            explaining.ask(state, command, draft)
            return
        reply = self._do(call, command, found)
        if not isinstance(command, READS):
            record_outcome(state, call.client, call.number, reply)
            if not isinstance(command, _UNSYNCED):
                state.filling.sync = True
        answer(state, draft, reply)

    def _do(self, call: Call, command: Command, found: Found) -> Reply:
        state = self.state
        match command:
            case Submit():
                return submitting.submit(state, command, found)
            case Complete():
                return complete(state, command, found)
            case Fail():
                return returning.fail(state, command, found)
            case Release():
                return returning.release(state, command, found)
            case Renew():
                return renew(state, command, found)
            case Register():
                return presence.register(state)
            case Goodbye():
                return presence.goodbye(state, call.client)
            case Show():
                return views.submission_of(views.find(state, command.id, found))
            case SetWeight():
                return steering.set_weight(state, command.tenant, command.weight)
            case Pause():
                return steering.pause(state, command)
            case Configure():
                return steering.configure(state, command)
            case Cancel():
                return steering.cancel(state, command, found)
            case Redrive():
                return steering.redrive(state, command, found)
            case Join():
                return named.join(state, command)
            case Trim():
                return named.trim(state, command, found)
            case Finish():
                return batches.finish(state, command, found)
            case Purge():
                return purge(state, command, found)
            case _:
                return self._view(command, found)

    def _view(self, command: Command, found: Found) -> Reply:
        state = self.state
        match command:
            case ListActive():
                return listing.list_active(state, command, found)
            case ListDead():
                return listing.list_dead(state, command, found)
            case Stats():
                return views.stats(state, command)
            case Tenants():
                return views.tenants(state, command)
            case Consumers():
                return views.consumers(state, command)
            case Winners():
                return views.winners(state, command, found)
            case ShowConfig():
                return steering.config_dict(state.config)
            case _:
                raise BadArgument(f"the engine does not know the command {type(command).__name__}")

    def _reserve(self, call: Call, command: Reserve, draft: Draft, found: Found) -> None:
        state = self.state
        check(command)
        if state.reservers.seen(who_reserves(command, call.client), state.now):
            state.aside.unseen += 1
            # A limit that is a share of the consumers may have grown, and they were here first.
            if state.waiters:
                waiting.serve(state)
        reply = None
        if command.consumer:
            reply = named.reserve_named(state, command)
            if reply is not None:
                reply = views.described_again(state, reply, found)
        else:
            hold = pick(state, command)
            if hold is not None:
                reply = reserved(state, hold)
        if reply is not None:
            record_outcome(state, call.client, call.number, reply)
            answer(state, draft, reply)
        elif command.wait_seconds or not in_vain(state, strategy_of(state, command)):
            waiter = Waiter(command, draft, call.client, call.number, state.now + command.wait_seconds)
            waiting.add_waiter(state, waiter)
            if call.number:
                state.clients[call.client].pending[call.number] = waiter
        else:
            answer(state, draft, NOTHING)

    def _wait(self, command: Wait, draft: Draft, found: Found) -> None:
        state = self.state
        if not 0 <= command.seconds <= WAIT_SECONDS_MAX:
            raise BadArgument(f"seconds must be from 0 to {WAIT_SECONDS_MAX:.0f}, not {command.seconds}")
        run = views.find(state, command.id, found)
        if run.state != "active" or not command.seconds:
            answer(state, draft, views.submission_of(run))
        else:
            waiting.add_watcher(state, Watcher(command.id, draft), state.now + command.seconds)

    def abandon(self, draft: Draft) -> None:
        """The caller of a waiting draft is gone."""
        waiting.abandon(self.state, draft)

    # -- time

    def tick(self, now: float) -> None:
        """Do what is due."""
        state = self.state
        if now > state.now:
            state.now = now
        due.do_due(state)

    @property
    def next_due(self) -> float:
        """When `tick` must be called next."""
        return due.next_due(self.state)

    # -- reads of the window, and plans

    @property
    def builds(self) -> bool:
        """Whether a plan is being made, slice by slice, by `begin_reads`."""
        return self.state.plans.building

    def wants_reads(self) -> bool:
        """Whether `begin_reads` has something to do; asked after every call, so it is quick."""
        return self.builds or windowing.wanted(self.state)

    def begin_reads(self, now: float) -> list[Read]:
        """Reads to be made now; the answer of each goes to `delivered`, its error to `read_failed`.

        A plan that is being made takes in its next slice of runs; calls may be executed between two slices.
        """
        state = self.state
        state.now = max(state.now, now)
        if state.plans.build():
            state.woken = True
            self._after_reads()  # whoever is served now need not search the store
        reads = windowing.begin(state)
        self._after_reads()
        return reads

    def delivered(self, read: Read, answer: Answer, now: float) -> None:
        """What a read found, however long ago."""
        state = self.state
        state.now = max(state.now, now)
        windowing.deliver(state, read, answer)
        self._after_reads()

    def read_failed(self, read: Read, now: float, error: FairwayError) -> None:
        """A read could not be made; it is wanted again later, and who may not wait for it is told why."""
        self.state.now = max(self.state.now, now)
        windowing.fail(self.state, read, error)
        self._after_reads()
        waiting.tell(self.state)
        explaining.tell(self.state)

    def _after_reads(self) -> None:
        state = self.state
        if due.next_due(state) <= state.now:
            due.do_due(state)
        if state.woken and state.waiters:
            waiting.serve(state)
        waiting.give_up(state)
        explaining.serve(state)

    # -- groups

    def close_group(self, now: float) -> Closing | None:
        """Close the filling group; call it only when no group is being stored."""
        self.state.now = max(self.state.now, now)
        return closing.close(self.state, self.range_id)

    def stored(self, closed: Closing) -> None:
        """The group is stored: its drafts leave."""
        if closed.group is not None:
            self.state.stored_number, self.state.stored_id = closed.number, closed.last_id
            windowing.stored(self.state, closed.places)
            self._after_reads()
        elif self.state.aside.spare:
            windowing.settle(self.state)
        self._seeking.stored(closed)
        for draft in closed.drafts:
            draft.leave()

    def drafts_open(self) -> list[Draft]:
        """Every draft that is not in a closed group: those of the filling group, and those that wait."""
        return [*self.state.filling.drafts, *waiting.open_drafts(self.state)]
