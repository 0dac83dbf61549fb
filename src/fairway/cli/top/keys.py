"""Keys of a live view: q ends it.

Guards: the terminal is left as it was found.
"""

from __future__ import annotations

import select
import sys
import time
from typing import Any, Self

try:
    import termios
    import tty
except ImportError:  # not a Unix: Ctrl-C is left
    termios = tty = None


class Keys:
    """Reads single keys while it lasts, if standard input is a terminal."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        if termios is not None and tty is not None and sys.stdin is not None and sys.stdin.isatty():
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if self._before is not None and termios is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
        return kind is KeyboardInterrupt  # that is how one leaves

    def waited(self, seconds: float) -> bool:
        """Wait so long; True at once if q was pressed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._before is None:
                time.sleep(left)
            elif select.select([sys.stdin], [], [], left)[0] and sys.stdin.read(1) in ("q", "Q", "\x04", ""):
                return True
        return False
