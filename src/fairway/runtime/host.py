"""The host: one engine behind one lock, used by any number of threads and event loops.

Guards: callers execute commands in their own thread under the lock; when the engine is thrown away, calls that had
no effect are executed again by the next one, here or, if the host was replaced, elsewhere.
"""

from __future__ import annotations

import threading
import time

from fairway.engine.closing import Closing
from fairway.engine.commands import Call, Goodbye, Reserved
from fairway.engine.draft import Draft
from fairway.engine.engine import Engine
from fairway.engine.lookups import Lookups
from fairway.errors import Closed, FairwayError, Fenced, GroupUnknown
from fairway.face.reads import Where
from fairway.limits import BUSY_MILLISECONDS_MAX
from fairway.runtime.executing import RESENT, Executing
from fairway.runtime.pending import Pending, copy_of, giving_back

_REST_SECONDS = 0.005  # between two looks at whether a group is still being stored
_LIVES_MAX = 3  # engines that fail under one waiting call before it is told so


class Host(Executing):
    """The engine of one queue in this process; its store thread is a `Committer`."""

    # -- for ports

    def send(self, pending: Pending, lead: bool = False) -> Lookups | Closing | None:
        """Carry a call out; its answer comes through `notify`. What it needs looked up first goes to `look`.

        A caller that may block says `lead`: if no group is being stored it gets its own, for `Committer.commit`.
        """
        with self.lock:
            if self.closed:
                if not pending.remote:
                    pending.leave(None, Closed())
                return None
            return self.take(pending, lead=lead)

    def look(self, pending: Pending, wanted: Lookups, lead: bool = False) -> Closing | None:
        """Read what a call needs, then carry it out, if it was not given up. Blocks on the store."""
        while True:
            try:
                found = wanted.read(self.store)
                if found.lodges:
                    self.confirm()
            except BaseException:
                with self.lock:
                    self.give_up_lookups(pending, wanted)
                raise
            with self.lock:
                if pending.wanted is not wanted:
                    return None
                if not pending.needed:
                    self.give_up_lookups(pending, wanted)
                    return None
                todo = self.take(pending, found, lead)
            if not isinstance(todo, Lookups):
                return todo
            wanted = todo

    def confirm(self) -> None:
        """After a read for the engine: if another has taken over, what was read may be the other's, so this one stops.

        An engine that takes in what a later owner stored believes what cannot be. Blocks on the store.
        """
        range_id = self.range_id
        if not self.store.owns(range_id):
            with self.lock:
                replaced = self.engine is not None and self.range_id == range_id
            if replaced:  # else this host itself has taken over anew
                self.stop(Fenced())

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
                self.over(pending)
                self._vanish(pending.draft)
            elif pending.wanted is not None and not pending.remote and pending.lives == 1:
                # Who reads for other processes, or for what was sent before, sees to it: leases may be found by then.
                self.give_up_lookups(pending, pending.wanted)

    def _vanish(self, draft: Draft) -> None:
        """Nobody waits for this answer any more. Called under the lock."""
        engine = self.usable()
        if engine is not None:
            self.whole = False
            engine.abandon(draft)
            self.whole = True
        self.open.pop(draft, None)

    def give_up_wait(self, pending: Pending) -> bool:
        """The connection of a caller who may live is gone: a call that waits vanishes, and is asked again.

        False: it was answered, or is just being carried out. It is not lost then: what is stored under its number is
        what its caller gets who asks again.
        """
        with self.lock:
            draft = pending.draft
            if draft is None:
                waited = pending in self.later
                if waited:
                    self.later.remove(pending)
                return waited
            if draft.answered:
                return False
            self._vanish(draft)
            return True

    def unreceived(self, reserved: Reserved) -> None:
        """Leases whose receiver failed before it could return them go back uncounted."""
        with self.lock:
            self.take(giving_back(reserved))

    def pages(self, wanted: list[Where]) -> dict[Where, bytes]:
        """Payload pages, from memory or from the store."""
        found, missing = self.pages_here(wanted)
        return {**found, **self.store.pages(missing)} if missing else found

    def pages_here(self, wanted: list[Where]) -> tuple[dict[Where, bytes], list[Where]]:
        """Payload pages that are in memory, and where the others are."""
        with self.lock:
            return self.payloads.find(wanted)

    # -- engines come and go

    def wanted(self) -> bool:
        """Whether anybody waits for an engine."""
        return bool(self.open or self.later or self.behind or self.riding)

    def adopt(self, engine: Engine) -> None:
        """Begin with a new engine: calls that were executed by the one before and not stored are executed again."""
        with self.lock:
            again = [pending for pending in self.open.values() if not self.dropped(pending)]
            self.forget_unstored()
            if self.holed:
                self.numbers.__init__()
                self.holed = False
            for pending in (*again, *self.later):
                self.renumber(pending)
            for pending in again:
                pending.begin_again()
            self.open.clear()
            self.later = again + self.later
            self.behind = self.riding + self.behind
            self.riding, self.storing, self.handed, self.leader, self.led = [], False, None, None, None
            self.engine, self.whole = engine, True
            self.range_id, self.confirmed = engine.range_id, 0.0
            self.life += 1

    def resume(self, pendings: list[Pending]) -> None:
        """Calls that were sent to another host, or to none; the store thread executes them."""
        with self.lock:
            if self.stopped is None and not self.closed:
                self.later += pendings
                self.ring()
                return
        for pending in pendings:
            self.send(pending)

    def evacuate(self) -> None:
        """A host that was replaced gives its own callers' calls away; those of other processes come by themselves."""
        with self.lock:
            every = [*self.open.values(), *self.later, *self.riding, *self.behind]
            self.open.clear()
            self.later, self.behind, self.riding = [], [], []
            for pending in every:
                if not self.dropped(pending) and (pending.lost or not pending.left):
                    self._refuse(pending)

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
                self.over(pending)
                pending.leave(None, copy_of(error))
        self.ring()

    def fail_all(self, error: FairwayError) -> None:
        """Everybody who waits gets this error."""
        for pending in (*self.open.values(), *self.later, *self.behind, *self.riding):
            self.over(pending)
            if not (pending.remote and isinstance(error, RESENT)):
                pending.leave(None, copy_of(error))
        self.open.clear()
        self.later, self.behind, self.riding = [], [], []

    def stop(self, error: FairwayError, known: bool = False) -> None:
        """Nothing works any more; everybody, now and later, gets this error, or goes elsewhere if it was replaced.

        `known`: what became of the group under way is known. Otherwise another thread may find out that the queue was
        taken over while a group is under way, which may be stored: `come_to_rest` waits for that.
        """
        with self.lock:
            self.ring()  # first: interrupted here, the store thread finds out for itself
            self.forget_unstored()
            # Not before the engine is gone: who came in between would be told what is not stored.
            self.storing = self.storing and not known and self.handed is None  # nobody stores that any more
            self.handed = None
            self.unknown = self.unknown or isinstance(error.__cause__, GroupUnknown)
            self.stopped = self.stopped or error
            self.engine = None
            if self.shelter is None or type(self.stopped) is not Fenced:
                self.fail_all(self.stopped)
        if self.shelter is not None:
            self.shelter.host_stopped()

    def come_to_rest(self) -> None:
        """After `stop`: wait until whoever stores a group knows what became of it. Not if it was interrupted."""
        until = time.monotonic() + BUSY_MILLISECONDS_MAX / 1000
        while self.storing and time.monotonic() < until:
            with self.lock:
                if self.led is not None and self.leader is None:
                    return
            time.sleep(_REST_SECONDS)

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
                        if not pending.remote:
                            pending.leave(None, Closed())
                for client in (self.numbers.client, *(self.lanes.clients() if self.lanes else ())):
                    if client:
                        engine.execute(Call(Goodbye(), client), self.clock.now())
                self.whole = True
            self.ring()
