"""How a process of a worker ended: as it should, by an error that is final, or not by itself.

Guards: one that was killed holds nothing, and what it left half told is not believed.
"""

from __future__ import annotations

from typing import Any, Final

from fairway.client.wire import JSON, error_of, refusal
from fairway.errors import BadArgument, FairwayError
from fairway.limits import FINAL_ERROR_BYTES_MAX

_OPEN: Final = -1  # nothing was told
_RAISED: Final = 1  # the exit code of a process that an exception ended
_CHAR_BYTES_MAX: Final = 6  # of a character in JSON
_FRAME_BYTES_MAX: Final = 200  # of an error in JSON without its message


class Ending:
    """Memory of one place. The process there writes it as the last thing it does; its parent reads it after that.

    `began` is one flag for all places: whether any process came as far as to its own code.
    """

    def __init__(self, context: Any, began: Any) -> None:
        self._began = began
        self._told = context.RawArray("c", FINAL_ERROR_BYTES_MAX)
        self._length = context.RawValue("q", _OPEN)  # is written behind what it counts; 0: without an error

    def open(self) -> None:
        """For a process that is about to start."""
        self._length.value = _OPEN

    def begin(self) -> None:
        """This process has started, with all that was sent to it."""
        self._began.value = True

    def tell(self, error: FairwayError | None) -> None:
        """This process ends by itself."""
        told = b"" if error is None else _short(error)
        self._told[: len(told)] = told
        self._length.value = len(told)

    def by_itself(self, code: int | None) -> bool:
        """Whether the process, which ended with this code, told that it does. Raises the error by which it did."""
        length = self._length.value
        if length > 0:
            raise error_of(self._told[:length], JSON)
        if code == _RAISED and not self._began.value:
            raise BadArgument(
                "no other process can begin with fn, and standard error says why: fn must be a function of a module"
                " that others can import, and a program that starts processes does so under"
                ' `if __name__ == "__main__":`',
                argument="fn",
            )
        return length == 0


def _short(error: FairwayError) -> bytes:
    told = refusal(error)
    if len(told) <= FINAL_ERROR_BYTES_MAX:
        return told
    return refusal(type(error)(str(error)[: (FINAL_ERROR_BYTES_MAX - _FRAME_BYTES_MAX) // _CHAR_BYTES_MAX]))
