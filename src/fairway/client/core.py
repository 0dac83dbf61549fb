"""The client without I/O: numbers, polls, repeats and the choice of a node, as steps that a thread or a loop runs.

Guards: a call that changes something has one effect however often it is sent; leases that may have been given back
while an answer was lost are not believed before the queue has confirmed them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from fairway import limits
from fairway.client import wire
from fairway.client.address import Address
from fairway.client.lanes import Lane, Lanes
from fairway.engine.commands import Command, Goodbye, Part, Register, Renew, Reserve, Reserved, Settled, Wait
from fairway.errors import (
    Busy,
    ClientUnknown,
    NoHost,
    NotFound,
    OurError,
    OwnerGone,
    SlowBody,
    TooManyCalls,
    Unreachable,
)
from fairway.face.reads import Read, ReadPages
from fairway.face.receipts import spread

R = TypeVar("R")
NOTHING = Reserved(0, 0, 0, 0.0, [])
# Answers to a call that was not carried out. A head or body comes too late also from a client that is quick, where
# more connect at once than the server's machine takes in: the packets are sent again by the system, each time later.
NOT_DONE = (Busy, TooManyCalls, SlowBody)


@dataclass(frozen=True)
class Send:
    """Send this body to a node; `seconds` is how long an answer may take.

    A path is behind that of the queue, unless it begins with /v1/.
    """

    node: int
    body: bytes | None
    seconds: float
    method: str = "POST"
    path: str = "/call"


@dataclass(frozen=True)
class Rest:
    """Do nothing for a while."""

    seconds: float


@dataclass(frozen=True)
class Heard:
    """What a node answered."""

    status: int
    media: str
    body: bytes
    after_seconds: float = 0.0  # when to come again, if it said so


@dataclass(frozen=True)
class Lost:
    """No answer came. Whether the call arrived is unknown, unless nothing was `sent`."""

    why: str
    sent: bool = True


Exchange = Generator[Send | Rest, Heard | Lost | None, R]


class Client(Protocol):
    """What a port runs: a client of queues of one kind."""

    def ask(self, command: Any, kept: wire.Pages) -> Exchange[Any]: ...
    def enter(self, create: bool) -> Exchange[None]: ...
    def goodbye(self) -> Exchange[None]: ...


class Core:
    """One open queue on a server. Any number of threads or tasks may run exchanges of it at once."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self.nodes = nodes
        self.lanes = Lanes()
        self._node = random.randrange(len(nodes))  # clients spread over nodes by chance

    @classmethod
    def of(cls, address: Address) -> Core:
        return cls(address.calls)

    def ask(self, command: Command | Read, kept: wire.Pages) -> Exchange[Any]:
        """The reply to a command; `kept` holds, for one thread or task, the pages that came with a reservation."""
        if type(command) is ReadPages:
            return (yield from self._pages(command, kept))
        if isinstance(command, Reserve):
            return (yield from self._reserve(command, kept))
        if isinstance(command, Wait):
            return (yield from self._wait(command))
        reply, _ = yield from self._call(command)
        return reply

    def enter(self, create: bool) -> Exchange[None]:
        """The first word: NotFound if there is no such queue, Unauthorized or Forbidden if it may not be used."""
        try:
            lane = yield from self._register()
        except NotFound:
            if not create:
                raise
            yield from self._answered(b"", limits.ANSWER_SECONDS, method="PUT", path="")
            lane = yield from self._register()
        self.lanes.bring_back(lane)

    def goodbye(self) -> Exchange[None]:
        """Let the server forget this client's numbers; if it does not hear this, it does so after a day."""
        for lane in self.lanes.empty():
            asked = wire.Asked(Goodbye(), lane.client)
            yield Send(self._node, wire.asking(asked), limits.CONNECT_SECONDS)

    # -- what waits is cut into polls

    def _reserve(self, command: Reserve, kept: wire.Pages) -> Exchange[Reserved]:
        until, longest = time.monotonic() + command.wait_seconds, limits.POLL_SECONDS
        while True:
            left = max(0.0, until - time.monotonic())
            poll = msgspec.structs.replace(command, wait_seconds=min(left, longest))
            longest = limits.POLL_SECONDS_MAX
            kept.clear()
            reply, repeated = yield from self._call(poll, kept)
            if repeated and reply.spans and not command.consumer:
                reply = yield from self._confirmed(reply, command.lease_seconds)
                if not reply.spans:
                    continue  # they went back, which says nothing of what there is to reserve now
            if reply.spans or time.monotonic() >= until:
                return reply

    def _wait(self, command: Wait) -> Exchange[Any]:
        until, longest = time.monotonic() + command.seconds, limits.POLL_SECONDS
        while True:
            left = max(0.0, until - time.monotonic())
            reply, _ = yield from self._call(Wait(command.id, min(left, longest)))
            longest = limits.POLL_SECONDS_MAX
            if reply.state != "active" or time.monotonic() >= until:
                return reply

    def _confirmed(self, reserved: Reserved, seconds: float) -> Exchange[Reserved]:
        """The server may have seen the connection break and given these leases back: renew them, keep what is ours."""
        spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
        part = Part(reserved.epoch, reserved.count, reserved.seal, spans)
        settled: Settled
        settled, _ = yield from self._call(Renew([part], seconds))
        outcomes = iter(spread(settled.outcomes))
        ours = [
            (submission, index, 1, attempt)
            for submission, start, count, attempt in reserved.spans
            for index in range(start, start + count)
            if next(outcomes) == "renewed"
        ]
        if not ours:
            return NOTHING
        return msgspec.structs.replace(reserved, spans=ours, deadline=settled.deadline)

    def _pages(self, command: ReadPages, kept: wire.Pages) -> Exchange[wire.Pages]:
        found = {where: kept[where] for where in command.wanted if where in kept}
        kept.clear()
        missing = [where for where in command.wanted if where not in found]
        while missing:
            # An answer is bounded in bytes: it may bring some of them only.
            more, _ = yield from self._call(ReadPages(missing[: limits.PAGES_PER_CALL_MAX]))
            if not more:
                break
            found |= more
            missing = [where for where in missing if where not in found]
        return found

    # -- one call

    def _call(self, command: Command | Read, kept: wire.Pages | None = None) -> Exchange[tuple[Any, bool]]:
        """The reply, and whether an answer to the call was lost."""
        seconds = command.wait_seconds if isinstance(command, Reserve) else 0.0
        seconds = command.seconds if isinstance(command, Wait) else seconds
        if not Lanes.needed(command):
            reply, _, repeated = yield from self._repeat(wire.Asked(command), seconds)  # pyright: ignore[reportArgumentType]
            return reply, repeated
        for fresh in (False, True):
            lane = (None if fresh else self.lanes.take()) or (yield from self._register())
            number, received = lane.begin()
            asked = wire.Asked(command, lane.client, number, received)  # pyright: ignore[reportArgumentType]
            try:
                reply, pages, repeated = yield from self._repeat(asked, seconds)
            except ClientUnknown as error:
                # Nothing was carried out under this number if no answer to it was lost; another lane may carry it.
                if fresh or error.details.get("repeated"):
                    raise
                continue
            except BaseException:
                self.lanes.bring_back(lane)
                raise
            self.lanes.bring_back(lane)
            if kept is not None:
                kept.update(pages)
            return reply, repeated
        raise AssertionError("a fresh lane is known")

    def _register(self) -> Exchange[Lane]:
        client, _, _ = yield from self._repeat(wire.Asked(Register()), 0.0)
        return Lane(client)

    def _repeat(self, asked: wire.Asked, seconds: float) -> Exchange[tuple[Any, wire.Pages, bool]]:
        """The reply to a call, the pages that came with it, and whether an answer to it was lost."""
        heard, lost = yield from self._answered(wire.asking(asked), seconds + limits.ANSWER_SECONDS)
        try:
            return *wire.answer(asked.command, heard.body), lost
        except msgspec.DecodeError as error:
            raise OurError(f"the server's answer cannot be understood: {error}") from error

    def _answered(
        self, body: bytes, seconds: float, method: str = "POST", path: str = "/call"
    ) -> Exchange[tuple[Heard, bool]]:
        """Send until there is an answer; says whether it may have arrived before, without one."""
        until = time.monotonic() + limits.CLIENT_RETRY_SECONDS
        pause, lost, sent = limits.CLIENT_PAUSE_SECONDS, False, 0
        while True:
            node = self._node
            heard = yield Send(node, body, seconds, method, path)
            sent += 1
            if isinstance(heard, Heard) and heard.status < 300:
                return heard, lost
            before, lost = lost, lost or not _surely_not_done(heard)
            why = self._why(heard, before, lost)
            if time.monotonic() > until:
                raise why
            if len(self.nodes) > 1 and self._node == node:
                self._node = (node + 1) % len(self.nodes)
            # Another node may have room now; when all have refused, the last is taken at its word.
            told = heard.after_seconds if isinstance(heard, Heard) else 0.0
            after = told if sent % len(self.nodes) == 0 else 0.0
            yield Rest(max(after, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, limits.CLIENT_PAUSE_SECONDS_MAX)

    def _why(self, heard: Heard | Lost | None, before: bool, lost: bool) -> Exception:
        """What the call is repeated for; an answer that is final is raised.

        `before` says whether an earlier call may have been carried out, `lost` whether one of all may.
        """
        if not isinstance(heard, Heard):
            told = heard.why if heard is not None else "nothing was sent"
            effect = (
                "whether the call had an effect is known only when it is repeated"
                if lost
                else "nothing was sent, so the call had no effect"
            )
            return Unreachable(
                f"no server answered at {', '.join(self.nodes)} ({told}); {effect}", nodes=list(self.nodes)
            )
        error = wire.error_of(heard.body, heard.media)
        if isinstance(error, (*NOT_DONE, OwnerGone, NoHost)):
            return error
        if heard.status in (502, 503, 504) and type(error) is OurError:
            return Unreachable(f"a proxy answered {heard.status}: {error}")
        if isinstance(error, ClientUnknown):
            error.details["repeated"] = before
        raise error


def _surely_not_done(heard: Heard | Lost | None) -> bool:
    """Whether what came of a call says that it was not carried out."""
    if isinstance(heard, Heard):
        return isinstance(wire.error_of(heard.body, heard.media), NOT_DONE)
    return heard is None or not heard.sent
