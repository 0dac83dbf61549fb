"""A bare peer: it says and hears single messages, so that a test can stop half way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from fairway.engine.commands import Call, Command
from fairway.runtime import wire
from fairway.runtime.transport import unix
from fairway.runtime.transport.port import PeerGone
from fairway.testing.conformance.ends import readable

PATIENCE_SECONDS = 30.0


class Talk:
    """One connection to a host, spoken by hand. It never says Got by itself."""

    def __init__(self, path: str, hello: bool = True) -> None:
        self.connection = unix.connect(path, 5.0)
        self.heard: list[Any] = []
        self.beats = 0
        self._tag = 0
        if hello:
            self.say(wire.Hello(wire.VERSION, "default", 1))
            assert isinstance(self.hear(), wire.Welcome)

    def say(self, *messages: Any) -> None:
        self.raw(*[wire.encode(message) for message in messages])

    def raw(self, *frames: bytes) -> None:
        if not self.connection.send(frames):
            until = time.monotonic() + PATIENCE_SECONDS
            while not self.connection.flush() and time.monotonic() < until:
                time.sleep(0.001)

    def ask(self, command: Command, client: int = 0, number: int = 0, received: int = 0) -> int:
        """Send a call; gives its tag."""
        self._tag += 1
        self.say(wire.Ask(self._tag, Call(command, client, number, received)))
        return self._tag

    def call(self, command: Command, client: int = 0, number: int = 0, received: int = 0) -> Any:
        """Send a call and wait for its reply or error."""
        tag = self.ask(command, client, number, received)
        message = self.hear()
        assert message.tag == tag
        return (
            wire.error_of(message)
            if isinstance(message, wire.Failed)
            else wire.reply_to(command, message.reply)
        )

    def hear(self) -> Any:
        """The next message that is not a beat."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not self.heard and time.monotonic() < until:
            self._listen()
        assert self.heard, "the host says nothing"
        return self.heard.pop(0)

    def hear_beats(self, count: int) -> None:
        """Wait for so many more beats; what comes between them is kept."""
        until, enough = time.monotonic() + PATIENCE_SECONDS, self.beats + count
        while self.beats < enough:
            assert time.monotonic() < until, "the host seems silent"
            self._listen()

    def _listen(self) -> None:
        if readable(self.connection, 0.1):
            for frame in self.connection.receive():
                message = wire.at_attached(frame)
                if isinstance(message, wire.Beat):
                    self.beats += 1
                else:
                    self.heard.append(message)

    def ended(self) -> bool:
        """Whether the host ends the connection; what it says before is kept, but for its beats."""
        until = time.monotonic() + PATIENCE_SECONDS
        try:
            while time.monotonic() < until:
                self._listen()
        except PeerGone:
            return True
        return False

    def close(self) -> None:
        self.connection.close()


def until(true: Callable[[], object]) -> None:
    """Wait for something, with patience."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


class stopped_store:
    """While inside, nothing is stored, until the test lets it go on."""

    def __init__(self, desk: Any) -> None:
        self.store, self.gate = desk.host.store, threading.Event()

    def __enter__(self) -> Callable[[], None]:
        self.commit = self.store.commit
        self.store.commit = self._commit
        return self.gate.set

    def _commit(self, group: object) -> None:
        assert self.gate.wait(60)
        self.commit(group)

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        del self.store.commit
