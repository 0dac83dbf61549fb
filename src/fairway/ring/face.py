"""`fairway.Ring`: a queue of messages between processes, in shared memory, that no kill can hang.

Guards: put returns only when the message will be delivered whoever dies; what a dead reader held is delivered again
(at least once) or dropped (at most once), never both and never neither.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, cast

from fairway.errors import BadArgument, NotRing, RingFull
from fairway.limits import RING_BYTES, RING_LISTEN_SECONDS
from fairway.ring import places
from fairway.ring.native import AT_MOST_ONCE, BUILT, LOOK, WITH_CRC, Handle, missing
from fairway.ring.reports import RingStats, stats_of

Delivery = Literal["at_least_once", "at_most_once"]
_FLAGS = {"at_least_once": 0, "at_most_once": AT_MOST_ONCE}


class Ring(Handle):
    """A place in a ring. Any number of processes, up to 256 places, each with one of its own.

    `put` and `pop` are what `multiprocessing.Queue` has as put and get; `get` gives a lease instead: acknowledge it
    when the work is done, and if this process dies before, another gets the message.
    """

    path: str
    _bell: int = -1
    _ears: dict[asyncio.AbstractEventLoop, set[asyncio.Future[None]]]  # those who wait for the bell

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        size: int = RING_BYTES,
        *,
        delivery: Delivery = "at_least_once",
        crc: bool | None = None,
    ) -> Self:
        """Make a ring and attach to it. `size` is its data in bytes, a power of two; messages have a quarter at most.

        A name without a slash lies in shared memory. `crc` checks every message: by default where the file
        outlives a power cut. Raises BadArgument if something is there already.
        """
        if not BUILT:
            raise missing()
        full, size = places.full_path(path), places.size_of(size)
        if delivery not in _FLAGS:
            raise BadArgument(
                f"delivery: at_least_once or at_most_once, not {delivery!r}", argument="delivery"
            )
        if crc is None:
            crc = not places.in_memory(os.path.dirname(full) or ".")
        fd, temporary = places.open_new(full, size)
        try:
            made = cls._over(fd, full, size, _FLAGS[delivery] | (WITH_CRC if crc else 0))
            try:
                places.appear(fd, temporary, full)
            except BaseException:
                made.close()
                raise
            return made
        finally:
            places.close_new(fd, temporary)

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> Self:
        """Attach to a ring that is there; every process, and every forked child, does this for itself."""
        return cls._open(path)

    @classmethod
    def look(cls, path: str | os.PathLike[str]) -> Self:
        """A handle without a place, for `stats` and `recover` alone: it is there also when all places are taken."""
        return cls._open(path, LOOK)

    @classmethod
    def _open(cls, path: str | os.PathLike[str], flags: int = 0) -> Self:
        if not BUILT:
            raise missing()
        full = places.full_path(path)
        fd = places.open_old(full)
        try:
            return cls._over(fd, full, 0, flags)
        finally:
            os.close(fd)

    @classmethod
    def _over(cls, fd: int, path: str, size: int = 0, flags: int = 0) -> Self:
        made = cls.__new__(cls, fd, size, flags, f"{path}.bell")
        made.path = path
        made._ears = {}
        return made

    # -- messages: put, get, get_many, pop, pop_many and get_into are the extension's own

    def put_many(self, messages: Iterable[Any], timeout: float | None = None) -> int:
        """Put messages in order, with one wake-up. Raises RingFull, whose details say how many were put.

        If one can never be put (it is too large, or no message), none is.
        """
        wanted = messages if isinstance(messages, list) else list(messages)
        done = self.put_some(wanted, timeout)
        if done < len(wanted):
            raise RingFull(
                f"{done} of {len(wanted)} messages were put, then there was no room in time", put=done
            )
        return done

    async def pop_soon(self, timeout: float | None = None) -> bytes | None:
        """`pop` for an event loop: the loop goes on meanwhile. None: nothing came in time."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        while True:
            found = self.pop(0)
            if found is not None:
                return found
            left = RING_LISTEN_SECONDS if until is None else min(RING_LISTEN_SECONDS, until - loop.time())
            if left <= 0:
                return None
            if self.fileno() >= 0 and self.arm():
                await self._rung(loop, left)

    def fileno(self) -> int:
        """A descriptor that becomes readable after `arm` has said True and somebody puts."""
        if self._bell < 0:
            bell = f"{self.path}.bell"
            with suppress(FileExistsError):
                os.mkfifo(bell, 0o600)
            # Open for writing too, or it would tell the end of it whenever a writer leaves.
            found = os.open(bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            if not stat.S_ISFIFO(os.fstat(found).st_mode):
                os.close(found)
                raise NotRing(f"{bell} is in the way: the ring's bell should be there; remove it")
            self._bell = found
        return self._bell

    async def _rung(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        heard: asyncio.Future[None] = loop.create_future()
        ears, bell = self._ears.setdefault(loop, set()), self._bell
        if not ears:
            loop.add_reader(bell, self._hear, loop)
        ears.add(heard)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(heard, seconds)
        finally:
            ears.discard(heard)
            if not ears and self._ears.pop(loop, None) is not None:
                loop.remove_reader(bell)

    def _hear(self, loop: asyncio.AbstractEventLoop) -> None:
        """The bell rings once for all who wait: each looks for itself, and who finds nothing arms it again."""
        with suppress(OSError):
            os.read(self._bell, 4096)
        for heard in self._ears.get(loop, ()):
            if not heard.done():
                heard.set_result(None)

    # -- the ring

    def stats(self) -> RingStats:
        """What is in it, who uses it, and who is stuck."""
        report = self.report()
        flags = cast(int, report["flags"])
        delivery = "at_most_once" if flags & AT_MOST_ONCE else "at_least_once"
        return stats_of(report, delivery, bool(flags & WITH_CRC), self.message_bytes_max)

    def close(self) -> None:
        """Leave the ring; leases that are open go back. Idempotent. The ring stays where it is: see `remove`."""
        super().close()
        bell, self._bell = self._bell, -1
        if bell >= 0:
            os.close(bell)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to another process, it attaches there."""
        return (type(self).attach, (self.path,))

    @staticmethod
    def remove(path: str | os.PathLike[str]) -> None:
        """Take the ring's name away; who is attached may go on, and its memory is free when the last has left."""
        full = places.full_path(path)
        for name in (full, f"{full}.bell"):
            with suppress(FileNotFoundError):
                os.unlink(name)
