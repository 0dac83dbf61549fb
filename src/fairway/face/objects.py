"""The object stores as the verbs see them; `fairway.runtime.objects` is the one over obstore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol


class Objects(Protocol):
    """Objects by URL. Every method blocks; the verbs call them in a `Do`."""

    def read(self, name: str) -> bytes:
        """The object, or ObjectMissing that names it."""
        ...

    def write(self, blobs: Mapping[str, bytes]) -> None:
        """Write objects whose names nobody else uses."""
        ...

    def upload(self, prefix: str, payloads: Iterable[bytes]) -> Upload:
        """Write `prefix/0`, `prefix/1`, ... while iterating; if one fails, those made here are removed."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""
        ...


class Upload(Protocol):
    """Payloads that were uploaded."""

    @property
    def count(self) -> int: ...

    @property
    def made(self) -> list[str]:
        """The names that this upload created; others were there before, with the same content."""
        ...
