"""Attached: the way to a queue that another process hosts.

Guards: every call is answered here, or is told to `on_lost` with its number, so that sent again it has one effect.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from fairway.engine.commands import Call, Goodbye, Register, Reserved
from fairway.engine.lookups import Lookups
from fairway.errors import BadArgument, ClientUnknown, Closed, FairwayError, OurError, TooLarge
from fairway.face.reads import Read, Where
from fairway.limits import FRAME_BYTES_MAX
from fairway.runtime import wire
from fairway.runtime.hearing import Hearing
from fairway.runtime.lanes import Lanes
from fairway.runtime.numbering import Numbering
from fairway.runtime.numbers import Numbers
from fairway.runtime.outbox import Outbox
from fairway.runtime.pending import Pending, copy_of, giving_back, seconds_of, to_give_back
from fairway.runtime.transport.port import Connection, PeerGone, PeerSilent
from fairway.store.port import Store

if TYPE_CHECKING:  # a part of the engine, which only a host loads
    from fairway.engine.closing import Closing

_CLOSE_SECONDS: Final = 5.0  # a close waits so long for calls that do not wait themselves

OnLost = Callable[[str, list[Pending]], None]
# An answer that came: tag, reply, error, and the number of the frame that says Got.
Heard = tuple[int, Any, FairwayError | None, int]


class Attached:
    """One connection to a host, used by any number of threads and event loops."""

    commit: Callable[[Closing], None]  # never asked for: the host stores

    def __init__(
        self,
        name: str,
        connection: Connection,
        numbers: Numbers,
        open_store: Callable[[], Store],
        on_lost: OnLost,
        lanes: Lanes | None = None,
    ) -> None:
        self.name = name
        self.host_pid = 0
        self.generation = 0
        self._connection = connection
        self._open_store = open_store
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._hearing = Hearing(connection)
        self._out = Outbox(connection, self._hearing.wake.ring)
        self._tags: dict[Pending, int] = {}  # every unanswered call, in order; 0: it has no number yet
        self._open: dict[int, Pending] = {}  # those that were sent, by tag
        self._held: list[Heard] = []  # leases that came; the host does not know it yet
        self._last_tag = 0
        self._numbering = Numbering(numbers, lanes or Lanes(), self._internal, self._go_on)
        self._closed = False
        self._lost = ""  # why the connection is gone
        self._quiet = threading.Condition(self._lock)
        self._thread = threading.Thread(target=self._run, name=f"fairway attached {name}", daemon=True)

    def start(self) -> None:
        """Say hello. Raises PeerGone, PeerSilent, or why the host refuses."""
        try:
            self._connection.send([wire.encode(wire.Hello(wire.VERSION, self.name, os.getpid()))])
            welcome = self._hearing.first()
            if isinstance(welcome, wire.Refused):
                raise wire.error_of(welcome)
            if not isinstance(welcome, wire.Welcome):
                raise PeerGone(f"the host did not say Welcome but {type(welcome).__name__}")
            self.host_pid, self.generation = welcome.pid, welcome.generation
        except BaseException:
            self._connection.close()
            self._hearing.close()
            raise
        self._thread.start()

    @property
    def store(self) -> Store:
        """The file, for reading."""
        return self._open_store()

    # -- for ports

    def send(self, pending: Pending, lead: bool = False) -> None:
        """Send a call; its answer comes through `notify`. Never blocks."""
        self._take(pending, self._closed)

    def look(self, pending: Pending, wanted: Lookups, lead: bool = False) -> NoReturn:
        raise AssertionError("the host looks up")

    def give_up(self, pending: Pending) -> None:
        """The caller is gone: a wait vanishes, leases that reached nobody go back."""
        with self._lock:
            pending.lost = True
            if pending.left:
                self._give_back(pending)
            elif self._tags.get(pending, 0):
                self._out.put(wire.encode(wire.GiveUp(self._tags[pending])))
            elif pending in self._tags:
                self._numbering.answered(pending.call)  # first: who is interrupted here does it again
                del self._tags[pending]
        self._out.flush()

    def unreceived(self, reserved: Reserved) -> None:
        """Leases whose receiver failed before it could return them go back uncounted."""
        self._take(giving_back(reserved), closed=False)

    def abandoned(self, pending: Pending) -> None:
        """An answer left that nobody can receive. Called by `notify`, so under the lock."""
        self._give_back(pending)

    def pages(self, wanted: list[Where]) -> dict[Where, bytes]:
        """Payload pages, from the file."""
        return self.store.pages(wanted)

    def pages_here(self, wanted: list[Where]) -> tuple[dict[Where, bytes], list[Where]]:
        """None is in memory here."""
        return {}, wanted

    def _take(self, pending: Pending, closed: bool) -> None:
        with self._lock:
            lost = self._lost
            if closed:
                pending.leave(None, Closed())
            elif not pending.needed:
                return self._numbering.answered(pending.call)
            elif not lost:
                pending.arm()
                self._tags[pending] = 0
                self._dispatch(pending)
        if not lost:
            self._out.flush()
        elif not closed:
            self._on_lost(lost, [pending])

    # -- under the lock

    def _give_back(self, pending: Pending) -> None:
        if to_give_back(pending.command, pending.reply) and not self._lost:
            back = giving_back(pending.reply)
            self._tags[back] = 0
            self._dispatch(back)

    def _dispatch(self, pending: Pending) -> None:
        """Give a call its number, if it needs one, and put it into the outbox."""
        command = pending.command
        if isinstance(command, Read):
            return self._post(pending, lambda tag: wire.Barrier(tag))
        call = pending.call
        if call is None:
            call = pending.call = self._numbering.number(pending)
            if call is None:
                return None
        elif call.command is not command:
            call = pending.call = msgspec.structs.replace(call, command=command)
        return self._post(pending, lambda tag: wire.Ask(tag, call))

    def _internal(self, pending: Pending) -> None:
        assert not isinstance(pending.command, Read)
        call = pending.call = pending.call or Call(pending.command)
        self._tags[pending] = 0
        self._post(pending, lambda tag: wire.Ask(tag, call))

    def _post(self, pending: Pending, message: Callable[[int], wire.Ask | wire.Barrier]) -> None:
        tag = self._last_tag = self._last_tag + 1
        try:
            frame = wire.encode(message(tag))
        except (TypeError, ValueError, OverflowError) as error:
            return self._end(pending, None, BadArgument(f"the call cannot be sent: {error}"))
        if len(frame) > FRAME_BYTES_MAX:
            return self._end(pending, None, TooLarge(f"the call has {len(frame)} bytes; cut it into several"))
        self._open[tag] = pending
        self._tags[pending] = tag
        self._out.put(frame)
        return None

    def _go_on(self, pending: Pending, error: FairwayError | None) -> bool:
        """A call that waited for a client is sent, or gets the error that it got; False: it was given up meanwhile."""
        if pending not in self._tags:
            return False
        if error is not None:
            self._end(pending, None, copy_of(error))
        else:
            self._dispatch(pending)
        return True

    def _end(self, pending: Pending, reply: Any, error: FairwayError | None) -> None:
        """A call is over."""
        self._tags.pop(pending, None)
        self._numbering.answered(pending.call)
        if pending.lost:
            pending.reply = reply
            self._give_back(pending)
        else:
            pending.leave(reply, error)
        self._numbering.lane_is_free()

    # -- the reader thread

    def _run(self) -> None:
        reason = "error"
        try:
            while True:
                self._heard(self._hearing.next(self._out))
        except PeerSilent:
            reason = "silent"
        except PeerGone:
            reason = "bye" if self._hearing.bye else "eof"
        finally:
            self._finish(reason)

    def _heard(self, messages: list[wire.ToAttached]) -> None:
        for message in messages:
            if isinstance(message, wire.Answer):
                pending = self._open.get(message.tag)
                if pending is not None:
                    self._held.append((message.tag, *self._read(pending, message)))
            elif isinstance(message, wire.Failed):
                self._held.append((message.tag, None, wire.error_of(message), 0))
            elif isinstance(message, wire.Bye):
                self._hearing.bye = True
        self._out.flush()
        # Nobody works on leases before word of it is on its way: who dies from then on has had them, and that counts.
        held, self._held = self._held, []
        with self._lock:
            for heard in held:
                tag, reply, error, got = heard
                if got and not self._out.has_sent(got):
                    self._held.append(heard)
                elif (pending := self._open.pop(tag, None)) is not None:  # it was not answered before
                    self._answered(pending, reply, error)
            if not self._tags:
                self._quiet.notify_all()
        self._out.flush()

    def _answered(self, pending: Pending, reply: Any, error: FairwayError | None) -> None:
        """Under the lock."""
        call = pending.call
        if type(error) is ClientUnknown and call is not None and self._numbering.begun_anew(pending, call):
            self._dispatch(pending)
        else:
            self._end(pending, reply, error)

    def _read(self, pending: Pending, answer: wire.Answer) -> tuple[Any, FairwayError | None, int]:
        if isinstance(pending.command, Read):
            return None, None, 0
        try:
            reply = wire.reply_to(pending.command, answer.reply)
        except msgspec.DecodeError as error:
            return None, OurError(f"the host's answer cannot be understood: {error}"), 0
        if to_give_back(pending.command, reply):
            return reply, None, self._out.put(wire.encode(wire.Got(answer.tag)))
        return reply, None, 0

    def _finish(self, reason: str) -> None:
        """The connection is over."""
        with self._lock:
            self._lost = reason
            pendings = list(self._unanswered())
            self._tags.clear()
            self._open.clear()
            self._quiet.notify_all()
            if self._closed:
                for pending in pendings:
                    pending.leave(None, Closed())
        self._out.end()
        self._connection.close()
        if not self._closed:
            self._on_lost(reason, pendings)

    def _unanswered(self) -> Iterable[Pending]:
        for pending in self._tags:
            if isinstance(pending.command, Register | Goodbye):
                continue
            if pending.lost:
                pending.forsake()
            if pending.needed:
                yield pending
            else:
                self._numbering.answered(pending.call)

    # -- the end

    def close(self, goodbye: bool) -> None:
        """Let calls end that do not wait, tell the others Closed, forget this client, and let go."""
        with self._lock:
            closed, self._closed = self._closed, True
            if not closed and not self._lost:
                for pending in list(self._tags):
                    if seconds_of(pending.command) or not self._tags[pending]:
                        self._tell_closed(pending)
                self._wait_until_quiet(_CLOSE_SECONDS)
                if goodbye:
                    for client in self._numbering.clients():
                        self._internal(Pending(Goodbye(), lambda _: None, call=Call(Goodbye(), client)))
                    self._wait_until_quiet(_CLOSE_SECONDS)
        self._out.end()
        self._hearing.wake.ring()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._connection.close()
        self._hearing.close()

    def _tell_closed(self, pending: Pending) -> None:
        tag = self._tags[pending]
        pending.leave(None, Closed())
        pending.lost = True
        if tag:
            self._out.put(wire.encode(wire.GiveUp(tag)))
        else:
            del self._tags[pending]

    def _wait_until_quiet(self, seconds: float) -> None:
        """Under the lock, which is let go of meanwhile."""
        self._lock.release()
        try:
            self._out.flush()
        finally:
            self._lock.acquire()
        until = time.monotonic() + seconds
        while self._tags and not self._lost and (left := until - time.monotonic()) > 0:
            self._quiet.wait(left)

    def forked(self) -> None:
        """In a forked child: let go of what belongs to the parent."""
        self._connection.close()
        self._hearing.wake.abandon()
