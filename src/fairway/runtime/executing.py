"""Executing: what is done to the engine of a host, one call at a time, and how answers leave.

Guards: no answer leaves before its group is stored, or without a group before it is certain that nobody else has
taken over. An engine that was interrupted half way is never used again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from fairway.engine.closing import Closing
from fairway.engine.commands import (
    READS,
    Accepted,
    Call,
    Command,
    Purge,
    Register,
    Reserved,
    Submit,
)
from fairway.engine.draft import Draft
from fairway.engine.engine import Engine
from fairway.engine.filling import Filling
from fairway.engine.lookups import Found, Lookups
from fairway.errors import ClientUnknown, Closed, FairwayError, Fenced, GroupUnknown, OurError
from fairway.face.reads import Read
from fairway.limits import OWNER_CONFIRMED_SECONDS
from fairway.runtime.clock import Clock
from fairway.runtime.numbers import Numbers
from fairway.runtime.payloads import Payloads
from fairway.runtime.pending import Pending, copy_of, giving_back, to_give_back
from fairway.store.port import Store

_READS = frozenset(READS)
# Other processes hear nothing of these: they ask the next host by number.
RESENT = (Fenced, Closed, GroupUnknown)


def _nobody_reads() -> None:
    """A host without a reader: nothing is larger than its window."""


class Shelter(Protocol):
    """Who takes in the calls of a host that was replaced."""

    def host_stopped(self) -> None: ...
    def carry_on(self, pending: Pending) -> None: ...


class Lanes(Protocol):
    """Clients that carry one waiting call each."""

    def answered(self, call: Call) -> None: ...
    def forget(self, client: int) -> None: ...
    def clients(self) -> list[int]: ...


class Executing:
    """The engine of one queue and the calls in it. Everything here is called under the lock."""

    commit: Callable[[Closing], None]  # stores a group; the store thread and callers that lead use it

    def __init__(
        self,
        name: str,
        store: Store,
        clock: Clock,
        ring: Callable[[], None],
        numbers: Numbers | None = None,
        lanes: Lanes | None = None,
        shelter: Shelter | None = None,
    ) -> None:
        self.name = name
        self.store = store
        self.clock = clock
        self.way = self  # a queue that is always hosted here
        self.shelter = shelter  # None: if it is fenced out, so are its callers
        self.lanes = lanes
        self.unstored = -1  # a client that was registered by an engine that is gone, and is not stored
        self.unknown = False  # nobody can say whether the last group was stored
        self.range_id = 0  # of the last engine
        self.confirmed = 0.0  # when it was last certain that nobody else has taken over; monotonic
        self.lock = threading.Lock()
        self.ring = ring  # wakes the store thread; called under the lock
        self.engine: Engine | None = None  # None: being rebuilt
        self.life = 0  # rises with every engine
        self.whole = True  # False while a command is executed; found False, that command was interrupted
        self.taken: Pending | None = None  # the call that is executed
        self.holed = False  # a number may have been taken that nobody has
        self.closed = False  # no more calls from ports
        self.ended = False  # closed, and the store thread has gone: nothing more is carried out
        self.stopped: FairwayError | None = None  # why nothing works any more
        self.storing = False  # a group is closed and not yet stored
        self.handed: Closing | None = None  # a group that a caller closed, for the store thread
        self.leader: Pending | None = None  # the call whose thread stores `led`
        self.led: Closing | None = None
        self.open: dict[Draft, Pending] = {}  # executed and not yet left
        self.later: list[Pending] = []  # for the store thread to execute
        self.behind: list[Pending] = []  # reads behind what is being filled
        self.riding: list[Pending] = []  # reads behind what is being stored
        self.numbers = numbers or Numbers()
        self.payloads = Payloads()
        self.want_reads: Callable[[], None] = _nobody_reads  # wakes the reader; called under the lock
        self.sleeping_until = 0.0
        self.last_id = 0  # the highest submission id in any group that was closed

    @property
    def unsure(self) -> bool:
        """Whether nobody can say, after `stop`, if the last group was stored."""
        return self.unknown or self.storing

    def take(
        self, pending: Pending, found: Found | None = None, lead: bool = False
    ) -> Lookups | Closing | None:
        """Execute a call, or keep it for when there is an engine; see `send` for what is returned."""
        if self.stopped is not None or self.ended or self.usable() is None:
            self._put_off(pending)
            return None
        self.whole, self.taken = False, pending
        try:
            todo = self._execute(pending, found, lead)
        except Exception as error:
            raise OurError(f"the engine failed, and the call had no effect: {error!r}") from error
        self.whole, self.taken = True, None
        return todo

    def _put_off(self, pending: Pending) -> None:
        """There is no engine to execute it."""
        pending.wanted = None
        if self.stopped is not None:
            self._refuse(pending)
        elif not self.ended:
            self.later.append(pending)
            self.ring()
        elif not pending.remote:  # it was looking something up meanwhile
            pending.leave(None, Closed())

    def usable(self) -> Engine | None:
        """The engine, unless there is none or a command in it was interrupted."""
        if not self.whole:
            self.engine = None
            self._interrupted(self.taken)
            self.ring()
            self.whole, self.taken = True, None  # last: interrupted before, it is done again
        return self.engine

    def _interrupted(self, pending: Pending | None) -> None:
        """The call that was executed when its engine broke is told so by whoever sent it, and not carried out again."""
        if pending is None:
            return
        if pending.call is None:
            self.holed = True
        elif pending.draft is None or pending.draft not in self.open:
            self.over(pending)

    def _execute(self, pending: Pending, found: Found | None, lead: bool) -> Lookups | Closing | None:
        engine, command = self.engine, pending.command
        assert engine is not None
        if isinstance(command, Read):
            self.behind.append(pending)
            self._close_if_idle()
            return None
        if pending.life != self.life:
            # What was looked up for it belongs to an engine that is gone; its number, if it has one, is its own.
            pending.life, found = self.life, None
            pending.call = pending.call or self._call(command)
        call = pending.call
        assert call is not None
        if found is None:
            wanted = engine.lookups(call)
            if wanted is not None:
                pending.wanted = wanted
                return wanted
        pending.wanted = None
        draft = engine.execute(call, self.clock.now(), found)
        if type(draft.error) is ClientUnknown and self._was_never_stored(pending, call):
            call = pending.call = self._call(command)
            draft = engine.execute(call, self.clock.now(), found)
        draft.on_leave = self._left
        pending.draft = draft
        self.open[draft] = pending
        if engine.wants_reads():
            self.want_reads()
        if not draft.answered:
            pending.arm()
            self._wake_in_time()
        elif type(command) in _READS or (type(draft.reply) is Reserved and not draft.reply.spans):
            self._close_if_idle()
        elif not self.storing:  # else whoever stores looks for more when it is done
            if lead:
                return self._lead(pending)
            self.ring()
        return None

    def _lead(self, pending: Pending) -> Closing | None:
        """Let the caller store its own group: nothing is under way, and waking a thread costs more than it helps."""
        closing = self.next_group()
        if closing is not None:
            self.leader, self.led = pending, closing
        self._wake_in_time()
        return closing

    def _wake_in_time(self) -> None:
        if self.engine is not None and self.engine.next_due < self.sleeping_until:
            self.ring()

    def _call(self, command: Command) -> Call:
        if not Numbers.needed(command):
            return Call(command)
        if not self.numbers.client:
            # The id may be used before it is stored: no answer of it leaves before this one.
            assert self.engine is not None
            draft = self.engine.execute(Call(Register()), self.clock.now())
            if draft.error is not None or not isinstance(draft.reply, int):
                return Call(command)
            self.numbers.__init__(draft.reply, stored=False)
            draft.on_leave = self._registered
        return self.numbers.call(command)

    def _registered(self, draft: Draft) -> None:
        if draft.reply == self.numbers.client:
            self.numbers.stored = True

    def forget_unstored(self) -> None:
        """The engine that registered this client is gone, and the client with it: its calls begin as another's."""
        if self.numbers.client and not self.numbers.stored:
            self.unstored = self.numbers.client
            self.numbers.__init__()

    def renumber(self, pending: Pending) -> None:
        """A call that was numbered for a client that was never stored gets a new number."""
        if pending.call is not None and not pending.remote and pending.call.client == self.unstored:
            pending.call = None

    def _was_never_stored(self, pending: Pending, call: Call) -> bool:
        """Whether a call of an unknown client may get a new number: nothing was ever carried out under this one."""
        if not call.number or pending.remote or pending.fixed:
            return False
        if call.client == self.numbers.client:
            self.numbers.__init__()
        elif self.lanes is not None:
            self.lanes.forget(call.client)
        return pending.lives == 1  # sent to one engine only, which did not know its client

    def _close_if_idle(self) -> None:
        """What has no effect need not wait for the store thread, if nothing before it is on its way."""
        if self.storing:
            return  # the store thread closes again when it is done
        closing = self.close_group()
        if closing is not None:
            self.handed = closing
            self.ring()

    def next_group(self) -> Closing | None:
        """What is to be stored next, after what is due is done."""
        assert self.engine is not None
        if self.engine.next_due <= (now := self.clock.now()):
            self.engine.tick(now)
        return self.close_group()

    def ring_if_answered(self) -> None:
        """What the reader brought may have answered somebody."""
        engine = self.engine
        if engine is not None and (engine.state.filling.drafts or engine.state.aside.slice is not None):
            if not self.storing:
                self.ring()
        elif engine is not None and engine.next_due < self.sleeping_until:
            self.ring()

    def close_group(self) -> Closing | None:
        """Close the filling group; one with nothing to store is answered at once."""
        assert self.engine is not None
        if self.engine.wants_reads():
            self.want_reads()
        closing = self.engine.close_group(self.clock.now())
        self.riding += self.behind
        self.behind = []
        if closing is not None and closing.group is not None:
            self.storing = True
            self.last_id = self.engine.state.last_id
            return closing
        if closing is None and not self.riding:
            return None
        if monotonic() - self.confirmed > OWNER_CONFIRMED_SECONDS:
            self.storing = True  # another may have taken over: whoever stores asks the store first
            # Reads of the store too: its tables may be behind what another has acknowledged.
            state = self.engine.state
            return closing or Closing(None, Filling(), state.number - 1, state.last_id)
        if closing is not None:
            self.engine.stored(closing)
        self.let_riders_go()
        return None

    def stored(self, closing: Closing) -> None:
        """A group is stored; its answers leave, even if its engine is gone meanwhile.

        Interrupted half way it is called again: every answer leaves once.
        """
        engine = self.usable()
        if engine is not None:
            self.whole = False
            engine.stored(closing)
            self.whole = True
            if engine.wants_reads():
                self.want_reads()
        else:
            for draft in closing.drafts:
                draft.leave()
        self.let_riders_go()
        self.storing, self.leader, self.led = False, None, None
        if self.later or self.behind or self.closed or engine is None or engine.state.filling.drafts:
            self.ring()

    def let_riders_go(self) -> None:
        """Everything before these reads is stored."""
        while self.riding:
            self.riding[-1].leave(None, None)
            self.riding.pop()

    def _left(self, draft: Draft) -> None:
        pending = self.open.get(draft)
        if pending is None:
            return
        if pending.call is not None:
            self.over(pending)
        if type(draft.reply) is Accepted and type(pending.command) is Submit:
            self.payloads.add(draft.reply, pending.command.offers)
        if pending.lost:
            self._give_back(pending.command, draft.reply)
        else:
            pending.leave(draft.reply, draft.error)
        self.open.pop(draft, None)

    def over(self, pending: Pending) -> None:
        """Its number will not be sent again, and nobody asks what became of it."""
        call = pending.call
        if call is None or not call.number or pending.remote:
            return
        if call.client == self.numbers.client:
            self.numbers.answered(call)
        elif self.lanes is not None:
            self.lanes.answered(call)
        pending.call = None  # last: interrupted before, it is told again, which changes nothing

    def abandoned(self, pending: Pending) -> None:
        """An answer left that nobody can receive."""
        self._give_back(pending.command, pending.reply)

    def _give_back(self, command: object, reply: object) -> None:
        if type(reply) is Reserved and to_give_back(command, reply):
            if self.stopped is not None:
                self._refuse(giving_back(reply))
            else:
                self.later.append(giving_back(reply))
            self.ring()

    def _refuse(self, pending: Pending) -> None:
        """Nothing works any more here; where a new host is sought, the call goes there."""
        assert self.stopped is not None
        if self.shelter is not None and type(self.stopped) is Fenced and type(pending.command) is not Purge:
            if pending.remote:
                return
            if self.unsure and pending.call is not None and pending.call.client == self.unstored:
                pending.leave(None, GroupUnknown())
                return
            self.renumber(pending)
            self.shelter.carry_on(pending)
        elif not (pending.remote and isinstance(self.stopped, RESENT)):
            pending.leave(None, copy_of(self.stopped))

    def give_up_lookups(self, pending: Pending, wanted: Lookups) -> None:
        """Nobody reads what it needs, so it is not carried out."""
        self.over(pending)
        engine = self.usable()
        if engine is not None and pending.life == self.life:
            engine.looked(wanted)
        pending.wanted = None  # last: interrupted before, it is done again

    def dropped(self, pending: Pending) -> bool:
        """Whether nobody needs this any more."""
        if pending.needed:
            return False
        self.over(pending)
        return True
