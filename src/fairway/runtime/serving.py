"""Serving: the thread through which other processes use this process's host.

Guards: it never blocks on the store or on a peer, so its beats come whatever those do; what a peer sends cannot
harm the host or another peer; a call is carried out under its caller's own number.
"""

from __future__ import annotations

import logging
import os
import selectors
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import msgspec

from fairway.engine.commands import Reserved
from fairway.engine.lookups import Lookups
from fairway.errors import BadArgument, Closed, FairwayError, Fenced, QueueHeld, TooLarge
from fairway.face.reads import ReadEvents
from fairway.limits import ATTACHED_MAX, BEAT_SECONDS, FRAME_BYTES_MAX, OUTBOX_BYTES_MAX, REJOIN_SECONDS
from fairway.runtime import wire
from fairway.runtime.host import Host
from fairway.runtime.peers import Peer, request_of
from fairway.runtime.pending import Pending, ours
from fairway.runtime.transport.port import Listener, PeerGone
from fairway.runtime.transport.wake import Wake

_LOOKING: Final = 4  # threads for calls that need the store first
_log: Final = logging.getLogger("fairway")
_BARRIER: Final = ReadEvents()  # any read: the host tells when it may be done, the peer does it
_GIVEN_UP: Final = Closed("the caller gave this call up")


class Serving:
    """Runs the thread that serves attached processes."""

    def __init__(self, host: Host, listener: Listener, generation: int = 0) -> None:
        self._host = host
        self._listener = listener
        self._generation = generation
        self._wake = Wake()
        self._selector = selectors.DefaultSelector()
        self._pool = ThreadPoolExecutor(_LOOKING, f"fairway lookups {host.name}")
        self._peers: dict[int, Peer] = {}  # by file descriptor
        self._rejoining: list[Peer] = []  # connections that ended while their process lives
        self._left: list[Pending] = []  # answers that may be sent
        self._speaking: set[Peer] = set()  # those with frames to send in this turn
        self._rung = True
        self._ending = False
        self._bye = False
        self._beat_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"fairway serving {host.name}", daemon=True)

    def start(self) -> None:
        """Let others in, also while the engine is still being loaded."""
        self._selector.register(self._listener.fileno(), selectors.EVENT_READ)
        self._selector.register(self._wake.fileno(), selectors.EVENT_READ)
        self._thread.start()

    def stop(self, bye: bool) -> None:
        """Close every connection, with a Bye if the host ends cleanly. Answers that leave later reach nobody."""
        self._bye = bye
        self._ending = True
        self._wake.ring()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._pool.shutdown(wait=False)
        self._close_all()
        self._selector.close()
        self._wake.close()

    def forked(self) -> None:
        """In a forked child: let go of what belongs to the parent."""
        self._ending = True
        self._listener.abandon()
        for peer in self._peers.values():
            peer.connection.close()
        self._selector.close()
        self._wake.abandon()

    # -- under the host's lock, from any thread

    def _notify(self, pending: Pending) -> None:
        self._left.append(pending)
        if not self._rung:
            self._rung = True
            self._wake.ring()

    # -- the serving thread

    def _run(self) -> None:
        try:
            while not self._ending and self._host.stopped is None:
                self._turn()
            self._deliver()
            if self._bye and self._host.stopped is None:
                for peer in self._peers.values():
                    self._say(peer, wire.BYE)
            self._speak()
        except BaseException as error:
            _log.exception("the thread that serves attached processes failed")
            self._host.stop(ours(error))
        finally:
            self._close_all()

    def _turn(self) -> None:
        # In this order, or an answer that leaves in between is heard of too late.
        self._rung = False
        wait = 0.0 if self._left else max(0.0, self._beat_at - time.monotonic())
        ready = self._selector.select(wait)
        self._rung = True
        for key, events in ready:
            peer = self._peers.get(key.fd)
            if peer is not None:
                self._serve(peer, events)
            elif key.fd == self._wake.fileno():
                self._wake.heard()
            else:
                self._accept()
        self._deliver()
        self._beat_if_due()
        self._speak()

    def _beat_if_due(self) -> None:
        """Also half way through a turn: ten thousand waits that come or end at once take longer than a silence may."""
        if time.monotonic() >= self._beat_at:
            self._beat()
            self._speak()

    def _accept(self) -> None:
        try:
            while (connection := self._listener.accept()) is not None:
                peer = Peer(connection)
                self._peers[peer.fd] = peer
                self._selector.register(peer.fd, selectors.EVENT_READ)
                if len(self._peers) > ATTACHED_MAX:
                    self._refuse(peer, TooLarge(f"a host serves at most {ATTACHED_MAX} processes"))
        except OSError as error:
            _log.warning("a process cannot be let in just now: %s", error)
            self._selector.unregister(self._listener.fileno())  # until the next beat, or this would spin

    def _beat(self) -> None:
        self._beat_at = time.monotonic() + BEAT_SECONDS
        if self._listener.fileno() not in self._selector.get_map():
            self._selector.register(self._listener.fileno(), selectors.EVENT_READ)
        for peer in list(self._peers.values()):
            if peer.writing:
                self._speaking.add(peer)  # enough is on its way; has it read any of it?
            elif peer.welcome:
                self._say(peer, wire.BEAT)
        for peer in list(self._rejoining):
            if not peer.connection.peer_alive() or time.monotonic() > peer.rejoin_until:
                self._rejoining.remove(peer)
                peer.bury(self._host)

    # -- what peers say

    def _serve(self, peer: Peer, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self._speaking.add(peer)
            if events & selectors.EVENT_READ:
                for frame in peer.connection.receive():
                    if peer.gone:
                        return
                    self._hear(peer, frame)
                    self._beat_if_due()
        except PeerGone as error:
            self._lose(peer, error)

    def _hear(self, peer: Peer, frame: bytes) -> None:
        try:
            message = wire.at_host(frame)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            tag = wire.tag_of(frame) if peer.welcome else None
            if tag is None:
                return self._refuse(peer, BadArgument(f"what came cannot be understood: {error}"))
            return self._say(peer, wire.failed(tag, BadArgument(f"the call cannot be understood: {error}")))
        if type(message) is wire.Hello:
            return self._greet(peer, message)
        if not peer.welcome:
            return self._refuse(peer, BadArgument("the first word must be Hello"))
        match message:
            case wire.Ask(tag, call):
                for ghost in self._rejoining:
                    if call.number:
                        ghost.asked_again(request_of(call))
                self._send(peer, tag, Pending(call.command, self._notify, (peer, tag), call))
            case wire.Barrier(tag):
                pending = Pending(_BARRIER, self._notify, (peer, tag))
                pending.remote = True
                self._send(peer, tag, pending)
            case wire.Got(tag):
                peer.unreceived.pop(tag, None)
            case wire.GiveUp(tag):
                pending = peer.open.pop(tag, None)
                if pending is not None:
                    self._host.give_up(pending)
                self._say(peer, wire.failed(tag, _GIVEN_UP))
            case _:
                raise AssertionError(message)

    def _greet(self, peer: Peer, hello: wire.Hello) -> None:
        if hello.version != wire.VERSION:
            pid = os.getpid()
            text = f"process {pid} has this queue open with another version of Fairway; use the same version"
            return self._refuse(peer, QueueHeld(text, pid=pid))
        if hello.queue != self._host.name:
            return self._refuse(peer, BadArgument(f"this is the queue {self._host.name!r}", argument="queue"))
        peer.welcome, peer.pid = True, hello.pid
        # It asks again for what it did not receive. The rest it has, though its word of that was lost on the way.
        self._rejoining = [ghost for ghost in self._rejoining if ghost.pid != hello.pid]
        self._say(peer, wire.encode(wire.Welcome(os.getpid(), self._generation)))

    def _send(self, peer: Peer, tag: int, pending: Pending) -> None:
        if tag in peer.open:
            return self._refuse(peer, BadArgument(f"the tag {tag} is in use"))
        peer.open[tag] = pending
        try:
            wanted = self._host.send(pending)
        except Exception as error:
            with self._host.lock:
                pending.leave(None, ours(error))
        else:
            if type(wanted) is Lookups:
                self._pool.submit(self._look, pending, wanted)

    def _look(self, pending: Pending, wanted: Lookups) -> None:
        """In a thread of the pool."""
        try:
            self._host.look(pending, wanted)
        except BaseException as error:
            with self._host.lock:
                pending.leave(None, ours(error))
        if pending.lost:
            self._host.give_up(pending)  # it may have begun to wait after its caller had gone

    # -- what peers are told

    def _deliver(self) -> None:
        """Everything that left goes into the outboxes."""
        if not self._left:
            return
        with self._host.lock:  # a group's answers leave under it: whoever takes them then takes them all
            left, self._left = self._left, []
        for pending in left:
            peer, tag = pending.box
            if peer.open.get(tag) is not pending:
                continue  # given up
            if self._host.stopped is not None or type(pending.error) in (Fenced, Closed):
                # Not an answer: another host gives it. Its process hears that this one is gone, and moves.
                self._ending = True
                continue
            if not peer.gone:
                frame = self._frame(tag, pending)
                if frame is None:
                    continue
                self._say(peer, frame)
            del peer.open[tag]
            peer.answered(tag, pending)
            self._beat_if_due()

    def _frame(self, tag: int, pending: Pending) -> bytes | None:
        if pending.error is not None:
            return wire.failed(tag, pending.error)
        frame = wire.answer(tag, pending.reply)
        if len(frame) <= FRAME_BYTES_MAX:
            return frame
        peer = pending.box[0]
        del peer.open[tag]
        if type(pending.reply) is Reserved:
            self._host.give_up(pending)
        self._say(
            peer, wire.failed(tag, TooLarge(f"the answer has {len(frame)} bytes; ask for less at once"))
        )
        return None

    def _say(self, peer: Peer, frame: bytes) -> None:
        peer.out.append(frame)
        self._speaking.add(peer)

    def _speak(self) -> None:
        """One write for each peer that has something to hear."""
        speaking, self._speaking = self._speaking, set()
        for peer in speaking:
            if peer.gone:
                continue
            frames, peer.out = peer.out, []
            try:
                done = peer.connection.send(frames) if frames else peer.connection.flush()
            except PeerGone as error:
                self._lose(peer, error)
                continue
            if peer.writing or not done:
                self._watch(peer)

    def _watch(self, peer: Peer) -> None:
        """Who does not read is not read from."""
        left = peer.connection.left_bytes
        peer.writing = left > 0
        events = selectors.EVENT_WRITE if left else 0
        self._selector.modify(peer.fd, events | (selectors.EVENT_READ if left <= OUTBOX_BYTES_MAX else 0))

    # -- peers that go

    def _refuse(self, peer: Peer, error: FairwayError) -> None:
        """Tell why, then end the connection."""
        peer.out.append(wire.refused(error))
        frames, peer.out = peer.out, []
        with suppress(PeerGone):
            peer.connection.send(frames)
        self._lose(peer, error)

    def _lose(self, peer: Peer, why: FairwayError) -> None:
        if peer.gone:
            return
        _log.info("process %d is no longer attached: %s", peer.connection.peer_pid, why)
        peer.hear_the_rest()
        self._drop(peer)
        for _ in peer.give_up_waits(self._host):
            self._beat_if_due()
        if (peer.open or peer.unreceived) and not self._ending:
            if peer.connection.peer_alive():
                peer.rejoin_until = time.monotonic() + REJOIN_SECONDS
                self._rejoining.append(peer)
            else:
                peer.bury(self._host)

    def _drop(self, peer: Peer) -> None:
        peer.gone = True
        self._peers.pop(peer.fd, None)
        self._selector.unregister(peer.fd)
        peer.connection.cut()
        peer.connection.close()

    def _close_all(self) -> None:
        """Without giving anything up: whoever lives asks the next host by number."""
        for peer in list(self._peers.values()):
            self._drop(peer)
        self._listener.close()
