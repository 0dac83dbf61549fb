"""Connections that end at a byte that a test chooses, in a request or in an answer.

Guards: what was passed on before the cut is exactly what was asked for; both sides hear of the end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from fairway.engine.commands import Call
from fairway.runtime import wire
from fairway.runtime.transport import unix

HEAD_BYTES = 4  # the length before a frame
SLOW_SECONDS = 0.15  # of a commit that is under way when the connection goes

# What has passed when the connection goes: how much of the request, or all of it and how much of the answer.
POINTS = {
    "nothing was sent": ("request", 0.0),
    "half of the request was sent": ("request", 0.5),
    "the request was sent": ("request", 1.0),
    "the request was carried out and is being stored": ("storing", 1.0),
    "the answer was sent": ("answer", 0.0),
    "half of the answer was read": ("answer", 0.5),
    "all but a byte of the answer was read": ("answer", 0.999999),
    "the answer was read": ("answer", 1.0),
}


class CutSocket(socket.socket):
    """A socket that passes as many bytes as it is told, then ends for both sides."""

    where: str = ""  # what it cuts: nothing, the next request, the next answer; or that it has ended
    part: float = 0.0
    cuts: int = 0
    line: Line

    def send(self, data: Any, *flags: Any) -> int:
        data = bytes(data)
        self.line.asked.append(data)
        if self.where not in ("request", "storing"):
            return super().send(data)
        storing, self.where = self.where == "storing", "ended"  # first: an answer may be quick
        whole = int(len(data) * self.part)
        assert super().send(data[:whole]) == whole
        if storing:
            self.line.wait_while_it_stores()
        self.break_off()
        return len(data)

    def recv(self, most: int, *flags: Any) -> bytes:
        data = super().recv(most)
        if self.where != "answer":
            return b"" if self.where == "ended" else data
        passed, at = b"", 0
        while at < len(data):
            end = at + HEAD_BYTES + int.from_bytes(data[at : at + HEAD_BYTES], "little")
            if isinstance(wire.at_attached(data[at + HEAD_BYTES : end]), wire.Answer):
                passed = data[: at + int((end - at) * self.part)]
                self.break_off()
                return passed
            at = end
        return data

    def break_off(self) -> None:
        self.where = "ended"
        self.cuts += 1
        self.line.at_cut()
        self.shutdown(socket.SHUT_RDWR)


class Line:
    """All connections that this process makes, and what is done between one that is cut and the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[CutSocket] = []
        self.asked: list[bytes] = []
        self.at_cut: Callable[[], object] = lambda: None
        self.between: Callable[[], object] = lambda: None
        self.wait_while_it_stores: Callable[[], object] = lambda: None  # until the request is being stored
        self._connect = unix.connect
        monkeypatch.setattr(unix, "connect", self.connect)

    def connect(self, path: str, timeout: float) -> unix.UnixConnection:
        if self.made and self.made[-1].cuts:
            self.between()
        connection = self._connect(path, timeout)
        mine = CutSocket(fileno=connection._socket.detach())
        mine.setblocking(False)
        mine.line = self
        connection._socket = mine
        self.made.append(mine)
        return connection

    def cut(self, where: str, part: float) -> None:
        self.made[-1].part = part
        self.made[-1].where = where

    def calls(self) -> list[Call]:
        """Every call that was sent, as often as it was."""
        found: list[Call] = []
        for data in self.asked:
            at = 0
            while at < len(data):
                end = at + HEAD_BYTES + int.from_bytes(data[at : at + HEAD_BYTES], "little")
                message = wire.at_host(data[at + HEAD_BYTES : end])
                if isinstance(message, wire.Ask):
                    found.append(message.call)
                at = end
        return found
