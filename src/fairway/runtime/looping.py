"""The port of awaiting queues: an event loop executes commands itself and sleeps until their group is stored.

Guards: no thread per waiting call; a cancelled caller leaves no wait and no lease behind.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fairway.engine.commands import Call, Command, Reserved
from fairway.engine.lookups import Lookups
from fairway.errors import Closed
from fairway.face.reads import Read, ReadPages
from fairway.runtime.pending import Pending
from fairway.runtime.reading import answer
from fairway.runtime.way import Member, give_up

_THREADS = 8  # for reads of the store and of objects, which block


class LoopPort:
    """One open handle on a queue, for one event loop."""

    def __init__(self, member: Member, let_go: Callable[[], None]) -> None:
        self._member = member
        self._let_go = let_go
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(_THREADS, f"fairway aio {member.name}")
        self._left: deque[Pending] = deque()
        self._called = False

    async def ask(self, command: Command | Read, call: Call | None = None) -> Any:
        """The answer to a command; `call` is the same with a number that the caller keeps and repeats himself."""
        if self._closed:
            raise Closed
        if type(command) is ReadPages:
            return await self._pages(command)
        pending = Pending(command, self._notify, self._loop.create_future())
        if call is not None:
            pending.call, pending.fixed = call, True
        way = self._member.way
        try:
            wanted = way.send(pending)
            if isinstance(wanted, Lookups):
                await self.do(lambda: way.look(pending, wanted))
            if pending.left:
                await asyncio.sleep(0)  # a caller in a loop must let others run
            else:
                await pending.box
        except BaseException:
            give_up(self._member, pending)
            raise
        if pending.error is not None:
            raise pending.error
        return (
            await self.do(lambda: answer(self._member.store, command))
            if isinstance(command, Read)
            else pending.reply
        )

    async def _pages(self, command: ReadPages) -> Any:
        found, missing = self._member.way.pages_here(command.wanted)
        if not missing:
            return found
        return {**found, **await self.do(lambda: self._member.store.pages(missing))}

    async def do(self, function: Callable[[], Any]) -> Any:
        """Run what blocks in a thread."""
        return await self._loop.run_in_executor(self._pool, function)

    def unreceived(self, reserved: Reserved) -> None:
        self._member.way.unreceived(reserved)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.do(self._let_go)
            self._pool.shutdown(wait=False)

    # -- from any thread, under the lock of the way

    def _notify(self, pending: Pending) -> None:
        """One wake-up of the loop serves all answers that leave together."""
        self._left.append(pending)
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                # The loop was closed with calls under way; nobody will ever receive their answers. They are given
                # up in a thread, since the lock is held here.
                threading.Thread(target=self._abandon, name="fairway abandoned", daemon=True).start()
                self._called = False

    def _abandon(self) -> None:
        while self._left:
            give_up(self._member, self._left.popleft())

    def _deliver(self) -> None:
        self._called = False
        while self._left:
            future = self._left.popleft().box
            if not future.done():
                future.set_result(None)
