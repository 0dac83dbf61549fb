"""The call: what Fairway's own clients send, the commands of the engine under their own numbers.

Guards: a command is carried out only if its caller has the right, and only as the face could have made it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairway.client import wire
from fairway.engine.commands import Call, Goodbye, Register, Reserve, Reserved
from fairway.errors import BadArgument, Forbidden
from fairway.face import checks
from fairway.face.reads import ReadPages
from fairway.server import payloads
from fairway.server.asking import Answer, Ask
from fairway.server.counting import CountedPort
from fairway.server.rights import NEEDED


def decode(body: bytes) -> wire.Asked:
    """The body of a call."""
    try:
        return wire.asked(body)
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError) as error:
        raise BadArgument(f"the call cannot be understood: {error}") from None


async def call(ask: Ask) -> Answer:
    """Carry a command out."""
    assert ask.queue is not None
    asked: wire.Asked = ask.body
    command = asked.command
    kind = type(command)
    right = NEEDED.get(kind)
    if kind not in NEEDED or not ask.token.allows(right, ask.queue.name):
        raise Forbidden(_why(kind.__name__, right, ask.queue.name), right=right or "none")
    command = ask.app.guard.check(command, ask.token)
    if kind is Register:
        return await _register(ask)
    if kind is ReadPages:
        return _answer(await payloads.read(ask.queue.port, command.wanted, ask.held))
    reply = await CountedPort(ask.queue.port, ask.held).ask(command, _numbered(ask, asked, command))
    if not isinstance(reply, Reserved):
        return _answer(reply)
    try:
        reply, pages, _ = await payloads.bundled(ask.queue.port, reply, ask.held, ask.kept)
    except BaseException:
        if reply.spans and not command.consumer:
            ask.queue.port.unreceived(reply)
        raise
    named = isinstance(command, Reserve) and command.consumer
    return Answer(wire.answering(reply, pages), media=wire.MSGPACK, reserved=None if named else reply)


def _answer(reply: Any) -> Answer:
    return Answer(wire.answering(reply), media=wire.MSGPACK)


def _numbered(ask: Ask, asked: wire.Asked, command: Any) -> Call | None:
    """The command with its caller's number; None: it has none."""
    assert ask.queue is not None
    if not asked.client:
        return None
    client = ask.app.seals.id(ask.queue.name, ask.token.id, asked.client)
    if type(command) is Goodbye:
        return Call(command, client)
    number = checks.whole("number", asked.number, 1, 2**62)
    received = checks.whole("received", asked.received, 0, number - 1)
    return Call(command, client, number, received)


def _why(call: str, right: str | None, queue: str) -> str:
    if right is None:
        return f"this token may not call {call} on queue {queue!r}"
    return f"this token does not have the right {right!r} on queue {queue!r}, which the call {call} needs"


async def _register(ask: Ask) -> Answer:
    assert ask.queue is not None
    id = await ask.queue.port.ask(Register())
    return _answer(ask.app.seals.name(ask.queue.name, ask.token.id, id))
