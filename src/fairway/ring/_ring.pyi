from types import TracebackType
from typing import Any, Self

from typing_extensions import Buffer

WITH_CRC: int
AT_MOST_ONCE: int
LOOK: int

class Lease:
    @property
    def payload(self) -> Any: ...
    @property
    def payloads(self) -> list[bytes]: ...
    def ack(self) -> bool: ...
    def release(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool: ...
    def __len__(self) -> int: ...

class Handle:
    def __new__(cls, fd: int, size: int = 0, flags: int = 0, bell: str | None = None, /) -> Self: ...
    @property
    def closed(self) -> bool: ...
    @property
    def message_bytes_max(self) -> int: ...
    def put(self, data: Buffer, timeout: float | None = None) -> None:
        """Put a message: bytes, or any object with a contiguous buffer. Returns when it is committed.

        It waits for room, at most `timeout` seconds (None: as long as it takes), then it raises RingFull.
        """
    def put_some(self, messages: list[Any], timeout: float | None = None) -> int:
        """Put a list in order, as far as there is room in time; gives how many were put, and raises no RingFull."""
    def get(self, timeout: float | None = None) -> Lease | None:
        """Take the next message as a lease: `payload`, `ack()`, `release()`; None: nothing came in time.

        A `with` block acknowledges at its end, and gives the message back if it raises. What is not acknowledged goes
        to another reader when its holder lets go of it or dies.
        """
    def get_many(self, max: int = 64, timeout: float | None = None) -> Lease:
        """Wait for one message and take what is there, up to `max`, as one lease: `payloads`, `ack()`, `release()`.

        It is empty, and false, if nothing came in time.
        """
    def pop(self, timeout: float | None = None) -> bytes | None:
        """Take the next message and acknowledge it at once; None: nothing came in time."""
    def pop_many(self, max: int = 64, timeout: float | None = None) -> list[bytes]:
        """Wait for one message and take what is there, up to `max`, acknowledged at once; empty: nothing came."""
    def get_into(self, buffer: Buffer, timeout: float | None = None) -> int | None:
        """Copy the next message into a writable buffer, acknowledge it, give its length; None: nothing came in time.

        If the buffer is too small the message goes back, and BadArgument says how long it is.
        """
    def arm(self) -> bool:
        """Ask who puts next to ring the bell (`fileno`). True: nothing is there; False: look again before you wait."""
    def disarm(self) -> bool:
        """Take that wish back. True: somebody had it, and it is on you to wake him."""
    def recover(self) -> int:
        """Settle now what the dead left; readers and writers do so by themselves. Gives how many blocks it settled."""
    def report(self) -> dict[str, Any]:
        """The plain figures that `stats` makes its values of."""
    def close(self) -> None: ...
