"""A simulated caller: its request numbers, the calls it has open, and the leases it believes to hold.

Guards: a caller knows only what answers told it; it never looks into the queue.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairway.engine.commands import READS, Call, Command, Part, Reserved
from fairway.errors import FairwayError
from fairway.testing.deliveries import ChunkId
from fairway.testing.history import Recorder, text_of
from fairway.testing.vocabulary import args_of, op_of, reply_of


class Asked(msgspec.Struct):
    """A request without an answer, and how often it was sent."""

    op: str
    command: Command
    args: dict[str, Any]
    number: int
    sent_at: float = 0.0
    tries: int = 0
    answered: bool = False


class Sent(msgspec.Struct):
    """One sending of a request, on its way to an owner."""

    caller: Caller
    asked: Asked
    call: Call
    line: int  # the call number in the history


class Held(msgspec.Struct):
    """Leases of one reservation."""

    epoch: int
    count: int
    seal: int
    deadline: float
    chunks: list[ChunkId]
    consumer: str = ""

    def part(self, chunks: list[ChunkId], seal: int | None = None) -> Part:
        """Some of its chunks as a call names them."""
        spans: list[tuple[int, int, int]] = []
        for id, index in chunks:
            if spans and spans[-1][0] == id and spans[-1][1] + spans[-1][2] == index:
                spans[-1] = (id, spans[-1][1], spans[-1][2] + 1)
            else:
                spans.append((id, index, 1))
        return Part(self.epoch, self.count, self.seal if seal is None else seal, spans)


class Caller:
    """One client of the queue, with a request number for every change it asks for."""

    def __init__(self, name: str, recorder: Recorder, ack_lag: int = 0) -> None:
        self.name = name
        self.id = 0  # 0: not registered
        self.joining: Asked | None = None
        self.recorder = recorder
        self.ack_lag = ack_lag
        self.next_number = 1
        self.open: dict[int, Asked] = {}  # by number; reads and registering have negative ones
        self.past: list[Asked] = []  # answered, and perhaps not yet acknowledged
        self.held: list[Held] = []
        self.old: list[Held] = []  # receipts that were used, or are too old
        self.consumer = ""
        self.consumer_epoch = 0
        self.run = ""  # what other processes of this one's run would show
        self.seq = 0
        self.reads = 0

    @property
    def received(self) -> int:
        """Every number up to this was answered; a lazy caller says so late."""
        lowest = min((number for number in self.open if number > 0), default=self.next_number)
        return max(0, lowest - 1 - self.ack_lag)

    def ask(self, command: Command, args: dict[str, Any] | None = None) -> Asked:
        """A new request, not yet sent."""
        if self.id and not isinstance(command, READS):
            number = self.next_number
            self.next_number += 1
        else:
            self.reads += 1
            number = -self.reads
        asked = Asked(op_of(command), command, args_of(command) if args is None else args, number)
        self.open[number] = asked
        return asked

    def send(self, asked: Asked, now: float) -> Sent:
        """Send a request, for the first time or again under the same number."""
        number = max(asked.number, 0)
        asked.tries += 1
        asked.sent_at = now
        call = Call(asked.command, self.id, number, self.received) if number else Call(asked.command)
        line = self.recorder.begin(
            now, self.name, asked.op, asked.args, call.client, call.number, call.received
        )
        return Sent(self, asked, call, line)

    def hear(
        self, sent: Sent, now: float, reply: Any, error: FairwayError | None, payloads: list[Any] | None
    ) -> None:
        """An answer arrives."""
        ok = None if error is not None else reply_of(reply)
        if ok is not None and payloads is not None:
            ok["payloads"] = payloads
        self.recorder.end(now, sent.line, ok, error.code if error is not None else "")
        asked = sent.asked
        if sent.call.client != self.id and sent.call.number:
            return  # of a former life under another client id
        if (error is not None and error.status >= 500) or (
            error is not None and error.code in ("fenced", "closed")
        ):
            return  # nothing happened, the same number may be sent again
        self.open.pop(asked.number, None)
        if error is not None:
            self._refused(error)
            return
        if asked.number > 0 and not asked.answered:
            self.past.append(asked)
            del self.past[:-20]
        if isinstance(reply, Reserved) and reply.spans:
            self._hold(reply, getattr(asked.command, "consumer", ""))
        asked.answered = True

    def _refused(self, error: FairwayError) -> None:
        if error.code == "client_unknown":
            self.forget_me()
        elif error.code == "consumer_fenced":
            self.consumer_epoch = 0

    def _hold(self, reply: Reserved, consumer: str) -> None:
        if any((held.epoch, held.count) == (reply.epoch, reply.count) for held in (*self.held, *self.old)):
            return
        chunks = [(id, i) for id, start, count, _ in reply.spans for i in range(start, start + count)]
        self.held.append(Held(reply.epoch, reply.count, reply.seal, reply.deadline, chunks, consumer))

    def forget_me(self) -> None:
        """The queue does not know this caller any more, or it died and came back: everything open is given up."""
        self.id = 0
        self.next_number = 1
        self.open.clear()
        self.past.clear()
        self.joining = None

    def drop(self, held: Held, chunks: list[ChunkId]) -> None:
        """Some leases were answered; keep their receipts for mischief."""
        gone = set(chunks)
        held.chunks = [chunk for chunk in held.chunks if chunk not in gone]
        self.old.append(Held(held.epoch, held.count, held.seal, held.deadline, chunks))
        del self.old[:-30]
        if not held.chunks and held in self.held:
            self.held.remove(held)


def results_of(chunks: list[ChunkId], epoch: int, count: int) -> list[bytes]:
    """A result that nobody else would give for the same chunk."""
    return [f"{id % 1000003}.{index}.{epoch % 1000003}.{count}".encode() for id, index in chunks]


def payload_of(mark: int, index: int) -> bytes:
    """The payload of a chunk of the submission with this mark."""
    return f"{mark}/{index}".encode()


def texts(payloads: list[bytes]) -> list[str | None]:
    """Payloads as they stand in a history."""
    return [text_of(payload) for payload in payloads]
