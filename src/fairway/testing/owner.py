"""A simulated owner: the engine over a store, driven one step at a time as the runtime drives it.

Guards: no answer leaves before its group and every earlier one is stored; an owner that cannot store its group is
thrown away with all that it had not answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from fairway.engine.closing import Closing
from fairway.engine.commands import Call, Reserved
from fairway.engine.draft import Draft
from fairway.engine.engine import Engine
from fairway.engine.lookups import Found, Lookups
from fairway.engine.reads import Answer, Read
from fairway.engine.state import Start
from fairway.errors import FairwayError, Fenced, GroupUnknown, StoreFailed
from fairway.model.page import payloads_of
from fairway.model.submission import Described
from fairway.store.port import Store
from fairway.testing.history import text_of

_READS_MAX = 10_000  # rounds; the largest simulated backlog needs some hundred
LoadEngine = Callable[[Store, Any, Start], Engine]


class Said(msgspec.Struct):
    """What leaves an owner: the reply or the error of something sent to it."""

    sent: Any
    reply: Any = None
    error: FairwayError | None = None


class Look(msgspec.Struct):
    """A call that waits for what it looks up, and what was found; None: it was not read yet."""

    sent: Any
    call: Call
    lookups: Lookups
    found: Found | None = None


class Owner:
    """An engine, its store handle, and what is on its way in and out."""

    def __init__(self, store: Store, start: Start, load: LoadEngine = Engine.load) -> None:
        self.store = store
        self.meta = store.take_over()
        self.engine = load(store, self.meta, start)
        self.inbox: deque[tuple[Any, Call]] = deque()
        self.looks: list[Look] = []  # of calls that are not carried out yet
        self.outbox: deque[Said] = deque()
        self.open: dict[int, tuple[Any, Draft]] = {}  # drafts that have not left, by id
        self.closing: Closing | None = None
        self.reads: list[Read] = []  # begun, and not made yet
        self.read: list[tuple[Read, Answer | None]] = []  # made (None: failed), and not delivered
        self.alive = True

    def put(self, sent: Any, call: Call) -> None:
        """Something sent arrives."""
        self.inbox.append((sent, call))

    def execute(self, now: float, linger: bool = False, late: bool = False) -> None:
        """Carry out the next call that arrived; one that lingers waits for `execute_looked`, and may read the store
        only then."""
        if self.engine.next_due <= now:
            self.engine.tick(now)
        sent, call = self.inbox.popleft()
        lookups = self.engine.lookups(call)
        if lookups is None:
            self._execute(sent, call, now, None)
            return
        self.looks.append(Look(sent, call, lookups))
        if not linger:
            self.execute_look(now, -1)
        elif not late:
            self._look(self.looks[-1])

    def _look(self, look: Look) -> None:
        """The store is read; what may be a later owner's is not looked at."""
        look.found = look.lookups.read(self.store)
        if look.found.lodges and not self._owns():
            self._end(Fenced())

    def execute_looked(self, now: float) -> None:
        """Carry out the calls that linger, though much may have happened since."""
        while self.looks:
            self.execute_look(now, 0)

    def execute_look(self, now: float, which: int) -> None:
        """Carry out one of them."""
        if self.looks[which].found is None:
            self._look(self.looks[which])
        if self.looks:  # else it was seen that the queue is another's
            look = self.looks.pop(which)
            self._execute(look.sent, look.call, now, look.found)

    def _execute(self, sent: Any, call: Call, now: float, found: Found | None) -> None:
        draft = self.engine.execute(call, now, found)
        draft.on_leave = lambda left: self._leave(sent, left)
        self.open[id(draft)] = (sent, draft)

    def _leave(self, sent: Any, draft: Draft) -> None:
        self.open.pop(id(draft), None)
        self.outbox.append(Said(sent, draft.reply, draft.error))

    def begin_reads(self, now: float) -> None:
        """What the window wants is asked of the store."""
        self.reads += self.engine.begin_reads(now)

    def make_read(self, fails: bool = False) -> None:
        """The store answers the oldest read, or does not; what may be a later owner's is not looked at."""
        read = self.reads.pop(0)
        self.read.append((read, None if fails else read.read(self.store)))
        if not fails and not self._owns():
            self._end(Fenced())

    def _owns(self) -> bool:
        return self.store.owns(self.meta.range_id)

    def deliver_read(self, now: float, which: int = 0) -> None:
        """The answer of a read arrives, though much may have happened since."""
        read, answer = self.read.pop(which)
        if answer is None:
            self.engine.read_failed(read, now, StoreFailed())
        else:
            self.engine.delivered(read, answer, now)

    def read_on(self, now: float) -> None:
        """Every read that is wanted is made and delivered; after one that failed there is a pause."""
        for _ in range(_READS_MAX):
            while self.reads:
                self.make_read()
            while self.read:
                self.deliver_read(now)
            if not self.alive or not self.engine.wants_reads():
                return
            self.begin_reads(now)
        raise AssertionError("the reads of the window never come to rest")

    def close(self, now: float) -> bool:
        """Close the filling group if none is being stored; says whether one is."""
        if self.closing is None:
            self.closing = self.engine.close_group(now)
        return self.closing is not None

    def commit(self) -> str:
        """Store the closed group and let its answers leave; says what came of it."""
        closing = self.closing
        if closing is None:
            return "idle"
        told = "stored"
        if closing.group is not None:
            try:
                self.store.commit(closing.group)
            except GroupUnknown:
                told = "unknown, stored"
                try:
                    if not self.store.settle(closing.group):
                        return self._end(StoreFailed())
                except Fenced as error:
                    return self._end(error)
            except (StoreFailed, Fenced) as error:
                return self._end(error)
        self.closing = None
        self.engine.stored(closing)
        return told

    def _end(self, error: FairwayError) -> str:
        """Everybody who has no answer gets this error; the engine is worth nothing any more."""
        self.alive = False
        for sent, _ in list(self.open.values()):
            self.outbox.append(Said(sent, error=error))
        for sent in (*(sent for sent, _ in self.inbox), *(look.sent for look in self.looks)):
            self.outbox.append(Said(sent, error=error))
        self.open.clear()
        self.inbox.clear()
        self.looks.clear()
        self.reads.clear()
        self.read.clear()
        self.closing = None
        return error.code

    def abandon(self, sent: Any) -> None:
        """The caller of a waiting call is gone."""
        for other, draft in list(self.open.values()):
            if other is sent and not draft.answered:
                self.engine.abandon(draft)
                del self.open[id(draft)]

    def give_up_look(self, look: Look) -> None:
        """The caller of a call that lingers is gone: nothing of it happened."""
        self.looks.remove(look)
        self.engine.looked(look.lookups)

    def payloads(self, reply: Reserved) -> list[list[Any]]:
        """The inline payloads of a reservation, read after its group is stored."""
        wanted: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for id, start, count, _ in reply.spans:
            described = reply.runs.get(id)
            if described is not None and described.page_starts:
                for index in range(start, start + count):
                    page = _page_of(described, index)
                    wanted.setdefault((id, page), []).append((index, index - described.page_starts[page]))
        pages = self.store.pages(list(wanted)) if wanted else {}
        texts: list[list[Any]] = []
        for (id, page), places in wanted.items():
            if (id, page) in pages:
                payloads = payloads_of(pages[id, page])
                texts += [[id, index, text_of(payloads[place])] for index, place in places]
        return texts


def _page_of(described: Described, index: int) -> int:
    return max(n for n, first in enumerate(described.page_starts) if first <= index)
