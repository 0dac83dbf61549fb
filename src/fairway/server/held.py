"""What one answer holds of the memory for answers, from its first payload until its last byte is sent.

Guards: every byte that is read for an answer is counted for its caller, while it is built and while it is not read.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairway.server.admission import Admission


class Held:
    """The bytes of one answer."""

    def __init__(self, admission: Admission, caller: str = "") -> None:
        self._admission = admission
        self._caller = caller
        self.size = 0

    def of(self, caller: str) -> None:
        """It is known who asks; nothing is held yet."""
        assert not self.size
        self._caller = caller

    def take(self, size: int) -> bool:
        """So many bytes more. False: the bound is reached, and they may not be kept."""
        if self._admission.is_full(self._caller):
            return False
        self.now(self.size + size)
        return True

    @property
    def full(self) -> bool:
        """Whether the bound is reached."""
        return self._admission.is_full(self._caller)

    def check(self) -> None:
        """TooManyCalls or Busy, if the bound is reached."""
        self._admission.check_unread(self._caller)

    def reading(self, pages: int) -> AbstractAsyncContextManager[None]:
        """While inside, so many pages of payloads are read, of a size that nobody knows yet."""
        return self._admission.reading(pages)

    def now(self, size: int) -> None:
        """It has so many bytes now, whatever the bound."""
        if size != self.size:
            self._admission.hold_answer(self._caller, size - self.size)
            self.size = size
