"""The ring's extension, or a stand-in that says what to do where it is not built.

Guards: a Fairway without a C compiler installs, imports and runs; only what needs the ring is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairway.errors import RingMissing

if TYPE_CHECKING:
    from fairway.ring._ring import AT_MOST_ONCE, WITH_CRC, Handle, Lease

    BUILT: bool
else:
    try:
        from fairway.ring._ring import AT_MOST_ONCE, WITH_CRC, Handle, Lease

        BUILT: Final = True
    except ImportError:
        BUILT: Final = False
        WITH_CRC, AT_MOST_ONCE = 1, 2

        class Lease:
            """Nothing is ever leased."""

        class Handle:
            """Every way to a ring ends here."""

            def __new__(cls, *args: object) -> Handle:
                raise RingMissing
