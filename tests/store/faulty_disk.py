"""A disk that fails on request: SQLite's own file layer with a hook before every write and sync."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

_names = itertools.count()


def full(operation: str, file: str) -> None:
    """Nothing more fits."""
    if operation == "write":
        raise apsw.FullError("no space left")


def sync_fails(operation: str, file: str) -> None:
    """What is written may or may not survive."""
    if operation == "sync":
        raise apsw.IOError("sync failed")


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._disk, self._suffix = disk, path.rpartition(".db")[2]

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.before("write", self._suffix)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._disk.before("truncate", self._suffix)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._disk.before("sync", self._suffix)
        super().xSync(flags)


class FaultyDisk(apsw.VFS):
    """`fault(operation, file)` is asked before each; file is "" for the database, "-wal" for its log."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_names)}"
        self.fault: Callable[[str, str], None] | None = None
        self.counts: Counter[tuple[str, str]] = Counter()
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _File(self, name, flags)

    def before(self, operation: str, file: str) -> None:
        self.counts[operation, file] += 1
        if self.fault is not None:
            self.fault(operation, file)

    @contextmanager
    def failing(self, fault: Callable[[str, str], None]) -> Iterator[None]:
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None
