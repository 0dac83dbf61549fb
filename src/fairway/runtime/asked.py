"""Asked: how a fair queue is to be opened, as one value.

Guards: an option that the place of a queue does not have is refused before anything is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from fairway.errors import BadArgument
from fairway.face import checks
from fairway.limits import WINDOW_ROWS, WINDOW_ROWS_MAX

Kind = Literal["fair", "bucket"]
Transport = Literal["socket", "ring"]


class Asked(msgspec.Struct, frozen=True):
    """What `fairway.open` was given beside a place and a name."""

    create: bool = True
    forget_leases: bool = False
    host: bool = True
    window_rows: int = WINDOW_ROWS
    transport: Transport | None = None
    standby: bool = False
    options: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        for flag in ("create", "forget_leases", "host", "standby"):
            checks.flag(flag, getattr(self, flag))
        checks.whole("window_rows", self.window_rows, 1, WINDOW_ROWS_MAX)

    def given(self) -> list[str]:
        """The options that differ from what they are by default."""
        usual = Asked()
        return [name for name in self.__struct_fields__ if getattr(self, name) != getattr(usual, name)]

    def only(self, why: str, *names: str) -> None:
        """Refuse every option but these."""
        for name in self.given():
            if name not in names:
                raise BadArgument(f"{name}: {why}; leave it out", argument=name)


def is_bucket(kind: object) -> bool:
    """Whether a bucket queue is asked for."""
    if kind not in ("fair", "bucket"):
        checks.refuse("kind", "'fair' or 'bucket'", kind)
    return kind == "bucket"
