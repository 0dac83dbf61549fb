"""What belongs to one process: a forked child makes its own before its first call.

Guards: a parent and its child never share a connection or a number; neither closes what is the other's.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod

from fairway.errors import Closed


class OwnProcess(ABC):
    """Whoever has `_begin` make what may not be shared. Every call asks `_own` first."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._closed = False
        self._begin()
        self._pid = os.getpid()

    @abstractmethod
    def _begin(self) -> None: ...

    def _own(self) -> None:
        """See to it that all is this process's own; Closed after the end."""
        if self._closed:
            raise Closed
        if os.getpid() != self._pid:
            with self._guard:
                if os.getpid() != self._pid:
                    self._begin()
                    self._pid = os.getpid()

    def _ended(self) -> bool:
        """Close it; True if there is something to be let go: the first time, and where it was made."""
        with self._guard:
            closed, self._closed = self._closed, True
        return not closed and os.getpid() == self._pid
