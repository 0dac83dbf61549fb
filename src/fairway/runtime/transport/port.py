"""The port every transport implements; `fairway.testing.conformance.transport` is its executable meaning.

Guards: frames arrive whole, once and in order, or the connection ends; nothing here knows what a frame says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fairway.errors import OurError


class PeerGone(OurError):
    """The other process ended or broke the connection; what it did not answer is sent again by number."""

    code, status = "peer_gone", 503


class PeerSilent(PeerGone):
    """The other process is there and says nothing; it may be stopped or held up."""

    code, status = "peer_silent", 503


class Connection(Protocol):
    """One end. One thread receives; one thread at a time sends or flushes; `cut` may come from any thread."""

    peer_pid: int  # as the system says; 0: it does not

    def fileno(self) -> int:
        """Readable when `receive` has something to give or to raise, writable when `flush` can go on."""
        ...

    def send(self, frames: Sequence[bytes]) -> bool:
        """Send frames with as few writes as can be; False: some are left, `flush` when it is writable.

        Never blocks. Raises PeerGone; also if much is left for long and the peer reads none of it.
        Interrupted half way, the connection is cut: nobody can tell what went out.
        """
        ...

    def flush(self) -> bool:
        """Send what is left; True: nothing is."""
        ...

    @property
    def left_bytes(self) -> int:
        """How much is accepted and not yet sent."""
        ...

    def receive(self) -> list[bytes]:
        """All whole frames that are there; never blocks. Raises PeerGone when none will come any more."""
        ...

    def peer_alive(self) -> bool:
        """Whether the other process still exists, as far as can be told."""
        ...

    def cut(self) -> None:
        """End it for both sides; whoever receives hears of it."""
        ...

    def close(self) -> None:
        """Let go of it; idempotent. In a forked child this leaves the parent's end as it is."""
        ...


class Listener(Protocol):
    """Where others connect. Used by one thread."""

    def fileno(self) -> int:
        """Readable when `accept` has somebody."""
        ...

    def accept(self) -> Connection | None:
        """The next who connected; None: nobody waits. Others than this user are turned away.

        Raises OSError if the system has no room for one more; try later.
        """
        ...

    def close(self) -> None:
        """Nobody can connect any more, and nothing is left in the file system; idempotent."""
        ...

    def abandon(self) -> None:
        """In a forked child: let go and leave the parent's listener as it is."""
        ...
