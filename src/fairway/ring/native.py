"""The ring's extension, or a stand-in that says what to do where it is not built.

Guards: a Fairway without a C compiler installs, imports and runs; only what needs the ring is refused, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairway.errors import RingMissing

if TYPE_CHECKING:
    from fairway.ring._ring import AT_MOST_ONCE, LOOK, WITH_CRC, Handle, Lease

    BUILT: bool
    REASON: str
else:
    try:
        from fairway.ring._ring import AT_MOST_ONCE, LOOK, WITH_CRC, Handle, Lease

        BUILT: Final = True
        REASON: Final = ""
    except ImportError as error:
        BUILT: Final = False
        REASON: Final = "" if isinstance(error, ModuleNotFoundError) else str(error)
        WITH_CRC, AT_MOST_ONCE, LOOK = 1, 2, 4

        class Lease:
            """Nothing is ever leased."""

        class Handle:
            """Every way to a ring ends here."""

            def __new__(cls, *args: object) -> Handle:
                raise missing()


def missing() -> RingMissing:
    """Why there is no ring here: it was not built, or what was built does not load."""
    if not REASON:
        return RingMissing()
    return RingMissing(
        f"The ring's extension does not load here ({REASON}); install Fairway again on this machine."
    )
