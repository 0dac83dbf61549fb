"""The desk: how HTTP processes ask the engine's process whether it has begun, and to host, make or delete a queue.

Guards: it is a socket in a folder of its own that only the server's user can enter; what comes over it is checked.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

import msgspec

from fairway.client import wire
from fairway.errors import FairwayError, NoHost, OurError
from fairway.server.hosting import Hosting

_SECONDS: Final = 60.0  # loading a queue takes seconds, deleting one may take longer
_BYTES_MAX: Final = 4096
_BACKLOG: Final = 128
_THREADS: Final = 4
_log: Final = logging.getLogger("fairway.server")

Verb = Literal["begin", "host", "make", "drop"]


class Wish(msgspec.Struct, frozen=True):
    """What the engine's process is asked. It hears nobody before it hosts all that it is to host: then it has begun."""

    do: Verb
    queue: str = ""


class Granted(msgspec.Struct, frozen=True):
    """What it answers; `made` says whether the queue is new."""

    made: bool = False


class Desk(Protocol):
    """Who sees to it that queues are hosted."""

    async def ask(self, do: Verb, queue: str = "") -> bool: ...


class OwnDesk:
    """In the process that hosts: nobody need be asked."""

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting

    async def ask(self, do: Verb, queue: str = "") -> bool:
        return await asyncio.to_thread(_do, self._hosting, Wish(do, queue))


class FarDesk:
    """In an HTTP process: the engine's process is asked over its socket, also while it is being started again."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def ask(self, do: Verb, queue: str = "") -> bool:
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(msgspec.json.encode(Wish(do, queue)) + b"\n")
                    await writer.drain()
                    answer = await reader.readline()
                finally:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()
        except (OSError, TimeoutError) as error:
            raise NoHost("the engine's process does not answer; try again") from error
        if not answer:
            raise NoHost("the engine's process went away; try again")
        if answer.startswith(b'{"error"'):
            raise wire.error_of(answer, wire.JSON)
        return msgspec.json.decode(answer, type=Granted).made


class DeskService:
    """In the engine's process: answers the others, in threads of its own."""

    def __init__(self, hosting: Hosting, listener: socket.socket) -> None:
        self._hosting = hosting
        self._listener = listener
        self._pool = ThreadPoolExecutor(_THREADS, "fairway desk")
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="fairway desk", daemon=True)

    def start(self) -> None:
        self._listener.listen(_BACKLOG)
        self._listener.settimeout(0.5)
        self._thread.start()

    def stop(self) -> None:
        self._ending = True
        self._thread.join()
        self._pool.shutdown(wait=True)

    def _run(self) -> None:
        while not self._ending:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            self._pool.submit(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(_SECONDS)
            with suppress(OSError):
                connection.sendall(self._answer(lambda: connection.recv(_BYTES_MAX)) + b"\n")

    def _answer(self, receive: Callable[[], bytes]) -> bytes:
        try:
            wish = msgspec.json.decode(receive(), type=Wish)
            return msgspec.json.encode(Granted(_do(self._hosting, wish)))
        except FairwayError as error:
            return wire.refusal(error)
        except Exception as error:
            _log.exception("the desk failed")
            return wire.refusal(OurError(f"the engine's process failed: {type(error).__name__}"))


def _do(hosting: Hosting, wish: Wish) -> Any:
    if wish.do == "begin":
        return False
    if wish.do == "drop":
        hosting.drop(wish.queue)
        return False
    return hosting.host(wish.queue, create=wish.do == "make")
