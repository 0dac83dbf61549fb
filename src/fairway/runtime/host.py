"""The host: one engine behind one lock, used by any number of threads and event loops.

Guards: callers execute commands in their own thread under the lock, and no answer leaves before its group is
stored. An engine that was interrupted half way is never used again: it is rebuilt from the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from fairway.engine.closing import Closing
from fairway.engine.commands import (
    READS,
    Accepted,
    Call,
    Command,
    Goodbye,
    Part,
    Register,
    Release,
    Reserved,
    Submit,
)
from fairway.engine.draft import Draft
from fairway.engine.engine import Engine
from fairway.engine.lookups import Found, Lookups
from fairway.errors import ClientUnknown, Closed, FairwayError, OurError
from fairway.face.reads import Read
from fairway.runtime.clock import Clock
from fairway.runtime.numbers import Numbers
from fairway.runtime.payloads import Payloads, Where
from fairway.runtime.pending import Pending, copy_of, seconds_of
from fairway.store.port import Store

_READS = frozenset(READS)
_LIVES_MAX = 3  # engines that fail under one waiting call before it is told so


def _nobody(pending: Pending) -> None:
    """Nobody waits for this answer."""


class Host:
    """The engine of one queue in this process; its store thread is a `Committer`."""

    commit: Callable[[Closing], None]  # stores a group; the store thread and callers that lead use it

    def __init__(self, name: str, store: Store, clock: Clock, ring: Callable[[], None]) -> None:
        self.name = name
        self.store = store
        self.clock = clock
        self.lock = threading.Lock()
        self.ring = ring  # wakes the store thread; called under the lock
        self.engine: Engine | None = None  # None: being rebuilt
        self.life = 0  # rises with every engine
        self.whole = True  # False while a command is executed; found False, that command was interrupted
        self.closed = False  # no more calls from ports
        self.stopped: FairwayError | None = None  # why nothing works any more
        self.storing = False  # a group is closed and not yet stored
        self.handed: Closing | None = None  # a group that a caller closed, for the store thread
        self.leader: Pending | None = None  # the call whose thread stores `led`
        self.led: Closing | None = None
        self.open: dict[Draft, Pending] = {}  # executed and not yet left
        self.later: list[Pending] = []  # for the store thread to execute
        self.behind: list[Pending] = []  # reads behind what is being filled
        self.riding: list[Pending] = []  # reads behind what is being stored
        self.numbers = Numbers()
        self.payloads = Payloads()
        self.sleeping_until = 0.0
        self.last_id = 0  # the highest submission id in any group that was closed

    # -- for ports

    def send(self, pending: Pending, lead: bool = False) -> Lookups | Closing | None:
        """Carry a call out; its answer comes through `notify`. What it needs looked up first goes to `look`.

        A caller that may block says `lead`: if no group is being stored it gets its own, for `Committer.commit`.
        """
        with self.lock:
            if self.closed:
                pending.leave(None, Closed())
                return None
            return self.take(pending, lead=lead)

    def look(self, pending: Pending, wanted: Lookups, lead: bool = False) -> Closing | None:
        """Read what a call needs, then carry it out. Blocks on the store."""
        while True:
            try:
                found = wanted.read(self.store)
            except BaseException:
                with self.lock:
                    self._give_up_lookups(pending, wanted)
                raise
            with self.lock:
                todo = self.take(pending, found, lead)
            if not isinstance(todo, Lookups):
                return todo
            wanted = todo

    def give_up(self, pending: Pending) -> None:
        """The caller is gone: a wait vanishes, leases that reached nobody go back, its group is seen to."""
        with self.lock:
            pending.lost = True
            if self.leader is pending:
                self.leader = None
                self.ring()
            if pending.left:
                self._give_back(pending.command, pending.reply)
            elif pending.draft is not None and not pending.draft.answered:
                engine = self.usable()
                if engine is not None:
                    self.whole = False
                    engine.abandon(pending.draft)
                    self.whole = True
                self.open.pop(pending.draft, None)

    def unreceived(self, reserved: Reserved) -> None:
        """Leases whose receiver failed before it could return them go back uncounted."""
        with self.lock:
            self.take(Pending(_release(reserved), _nobody))

    def pages(self, wanted: list[Where]) -> dict[Where, bytes]:
        """Payload pages, from memory or from the store."""
        found, missing = self.pages_here(wanted)
        return {**found, **self.store.pages(missing)} if missing else found

    def pages_here(self, wanted: list[Where]) -> tuple[dict[Where, bytes], list[Where]]:
        """Payload pages that are in memory, and where the others are."""
        with self.lock:
            return self.payloads.find(wanted)

    # -- under the lock

    def take(
        self, pending: Pending, found: Found | None = None, lead: bool = False
    ) -> Lookups | Closing | None:
        """Execute a call, or keep it for when there is an engine; see `send` for what is returned."""
        if self.stopped is not None:
            pending.leave(None, copy_of(self.stopped))
            return None
        if self.usable() is None:
            self.later.append(pending)
            self.ring()
            return None
        self.whole = False
        try:
            todo = self._execute(pending, found, lead)
        except Exception as error:
            raise OurError(f"the engine failed, and the call had no effect: {error!r}") from error
        self.whole = True
        return todo

    def usable(self) -> Engine | None:
        """The engine, unless there is none or a command in it was interrupted."""
        if not self.whole:
            self.whole = True
            self.engine = None
            self.ring()
        return self.engine

    def _execute(self, pending: Pending, found: Found | None, lead: bool) -> Lookups | Closing | None:
        engine, command = self.engine, pending.command
        assert engine is not None
        if isinstance(command, Read):
            self.behind.append(pending)
            self._close_if_idle()
            return None
        if pending.life != self.life:
            # Its number, and what was looked up for it, belong to an engine that is gone.
            pending.life, pending.call, found = self.life, self._call(command), None
        call = pending.call
        assert call is not None
        if found is None:
            wanted = engine.lookups(call)
            if wanted is not None:
                return wanted
        draft = engine.execute(call, self.clock.now(), found)
        if type(draft.error) is ClientUnknown and call.number:
            if call.client == self.numbers.client:
                self.numbers = Numbers()
            call = pending.call = self._call(command)
            draft = engine.execute(call, self.clock.now(), found)
        draft.on_leave = self._left
        pending.draft = draft
        self.open[draft] = pending
        if not draft.answered:
            pending.until = pending.until or self.clock.now() + seconds_of(command)
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
            self.numbers = Numbers(draft.reply)
        return self.numbers.call(command)

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

    def close_group(self) -> Closing | None:
        """Close the filling group; one with nothing to store is answered at once."""
        assert self.engine is not None
        closing = self.engine.close_group(self.clock.now())
        self.riding += self.behind
        self.behind = []
        if closing is not None and closing.group is not None:
            self.storing = True
            self.last_id = self.engine.state.last_id
            return closing
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
            self.numbers.answered(pending.call)
        if type(draft.reply) is Accepted and type(pending.command) is Submit:
            self.payloads.add(draft.reply, pending.command.offers)
        if pending.lost:
            self._give_back(pending.command, draft.reply)
        else:
            pending.leave(draft.reply, draft.error)
        self.open.pop(draft, None)

    def abandoned(self, pending: Pending) -> None:
        """An answer left that nobody can receive."""
        self._give_back(pending.command, pending.reply)

    def _give_back(self, command: object, reply: object) -> None:
        if type(reply) is Reserved and reply.spans and not getattr(command, "consumer", ""):
            self.later.append(Pending(_release(reply), _nobody))
            self.ring()

    def _give_up_lookups(self, pending: Pending, wanted: Lookups) -> None:
        if pending.call is not None:
            self.numbers.answered(pending.call)
        engine = self.usable()
        if engine is not None and pending.life == self.life:
            engine.looked(wanted)

    # -- engines come and go

    def wanted(self) -> bool:
        """Whether anybody waits for an engine."""
        return bool(self.open or self.later or self.behind or self.riding)

    def adopt(self, engine: Engine) -> None:
        """Begin with a new engine: calls that were executed by the one before and not stored are executed again."""
        with self.lock:
            again = [pending for pending in self.open.values() if not pending.lost]
            for pending in again:
                pending.begin_again(self.clock.now())
            self.open.clear()
            self.later = again + self.later
            self.behind = self.riding + self.behind
            self.riding, self.storing, self.handed, self.leader, self.led = [], False, None, None, None
            self.engine, self.whole = engine, True
            self.life += 1
            if self.numbers.client:
                engine.execute(Call(Goodbye(), self.numbers.client), self.clock.now())
                self.numbers = Numbers()

    def abandon_engine(self, error: FairwayError | None) -> None:
        """Its group was not stored: whoever was to leave with it, or after it, had no effect and is told so.

        Those who wait go on waiting, also if they were answered in that group, but not for ever. Without an error
        (the thread that was to store it was interrupted) everybody's call is executed again.
        """
        self.engine, self.whole = None, True
        self.storing, self.leader, self.led = False, None, None
        for draft, pending in list(self.open.items()):
            waits = pending.until and pending.lives < _LIVES_MAX
            if error is not None and draft.answered and not waits:
                del self.open[draft]
                pending.leave(None, copy_of(error))
        self.ring()

    def fail_all(self, error: FairwayError) -> None:
        """Everybody who waits gets this error."""
        for pending in (*self.open.values(), *self.later, *self.behind, *self.riding):
            pending.leave(None, copy_of(error))
        self.open.clear()
        self.later, self.behind, self.riding = [], [], []

    def stop(self, error: FairwayError) -> None:
        """Nothing works any more; everybody, now and later, gets this error."""
        with self.lock:
            self.stopped = self.stopped or error
            self.engine = None
            self.fail_all(error)

    def orphan(self, error: FairwayError) -> None:
        """In a forked child: the lock may be held by a thread that does not exist here."""
        self.lock = threading.Lock()
        self.engine, self.stopped = None, error

    def say_goodbye(self) -> None:
        """No more calls; those that wait get Closed, those that were executed are stored first."""
        with self.lock:
            self.closed = True
            engine = self.usable()
            if engine is not None:
                self.whole = False
                for draft, pending in list(self.open.items()):
                    if not draft.answered:
                        engine.abandon(draft)
                        del self.open[draft]
                        pending.leave(None, Closed())
                if self.numbers.client:
                    engine.execute(Call(Goodbye(), self.numbers.client), self.clock.now())
                self.whole = True
            self.ring()


def _release(reserved: Reserved) -> Release:
    spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
    return Release([Part(reserved.epoch, reserved.count, reserved.seal, spans)])
