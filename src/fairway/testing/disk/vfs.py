"""A disk under SQLite: the system's own file layer, with a platter beside it, whose calls fail as a plan says.

Guards: calls are carried out one at a time, so that they have one order; after the power is cut none is carried out.
A failed sync is told once to every handle that is open on the file, as Linux does, and never again. What a handle
still writes or syncs after it was told is kept in `retried`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw

from fairway.testing.disk.faults import CHANGES, Call, Fault, Plan
from fairway.testing.disk.platter import Platter
from fairway.testing.disk.sheet import Sheet

_names = itertools.count()
_DIRECTORY_TOO = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


class Disk(apsw.VFS):
    """The disk of one folder; give `name` to SQLite as its VFS."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.name = f"disk-{next(_names)}"
        self.platter = Platter(folder)
        self.dice = Random(seed)
        self.plan: Plan | None = None
        self.calls = 0
        self.changes = 0  # of them, those that change something
        self.cut_at = 0  # the change before which the power goes
        self.faults: list[Call] = []  # that were told
        self.retried: list[Call] = []
        self.off = False
        self.dark: Callable[[], None] = lambda: None  # called when the power goes
        self.lock = threading.RLock()
        self.open: dict[str, set[_File]] = {}
        super().__init__(self.name, "")

    def cut(self) -> None:
        """The power goes now."""
        with self.lock:
            if not self.off:
                self.off = True
                self.dark()

    def before(self, operation: str, path: str, file: _File | None = None) -> Fault | None:
        """Number a call and fail it if the plan says so; a fault that is given back lets a part of a write through."""
        self.calls += 1
        if operation in CHANGES:
            self.changes += 1
            if self.changes == self.cut_at:
                self.cut()
        if self.off:
            raise apsw.IOError("the power is off")
        call = Call(self.calls, operation, path)
        if file is not None and file.told and operation in CHANGES:
            self.retried.append(call)
        fault = self.plan(call) if self.plan is not None else None
        if fault is None and operation == "sync" and file is not None and file.owed:
            file.owed, file.told = False, True
            raise _as_told(apsw.IOError("an earlier sync of this file failed"), operation)
        if fault is None:
            return None
        self.faults.append(call)
        if operation == "sync" and file is not None:
            self._sync_failed(path, file)
        if fault.part:
            return fault
        raise _as_told(fault.error(f"{operation} fails as planned"), operation)

    def _sync_failed(self, path: str, file: _File) -> None:
        self.platter.sheet(path).fail_sync(self.dice)
        file.told = True
        for other in self.open.get(path, ()):
            other.owed = other is not file

    # -- what SQLite calls

    def excepthook(self, etype: object, evalue: object, etraceback: object) -> bool:
        """What SQLite does not pass on, a planned fault for example."""
        return isinstance(evalue, apsw.Error)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        with self.lock:
            self.before("open", path)
            return _File(self, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.lock:
            self.before("delete", filename)
            super().xDelete(filename, syncdir)
            self.platter.remove(filename)
            if syncdir:
                self.platter.sync_folder()

    def xAccess(self, pathname: str, flags: int) -> bool:
        with self.lock:
            self.before("access", pathname)
            return super().xAccess(pathname, flags)


def _as_told(error: apsw.Error, operation: str) -> apsw.Error:
    """SQLite says of an input or output error which call met it."""
    if operation == "sync" and isinstance(error, apsw.IOError):
        error.__dict__["extendedresult"] = apsw.SQLITE_IOERR_FSYNC
    return error


class _File(apsw.VFSFile):
    """One handle. The system's file has what a read gives; what is synced, and when, is the platter's."""

    def __init__(self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk, self._path = disk, path
        self._sheet = disk.platter.sheet(path) if path else Sheet()
        # SQLite syncs the folder of a log or journal with the first sync of the file.
        self._folder_too = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _DIRECTORY_TOO)
        self.owed = self.told = False
        disk.open.setdefault(path, set()).add(self)

    def excepthook(self, etype: object, evalue: object, etraceback: object) -> bool:
        return isinstance(evalue, apsw.Error)

    def xRead(self, amount: int, offset: int) -> bytes:
        with self._disk.lock:
            self._disk.before("read", self._path)
            return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._disk.lock:
            fault = self._disk.before("write", self._path, self)
            through = bytes(data)[: int(len(data) * fault.part)] if fault else bytes(data)
            self._sheet.write(offset, through)
            super().xWrite(through, offset)
            if fault:
                raise fault.error("a part of it was written")

    def xTruncate(self, newsize: int) -> None:
        with self._disk.lock:
            self._disk.before("truncate", self._path, self)
            self._sheet.truncate(newsize)
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        with self._disk.lock:
            self._disk.before("sync", self._path, self)
            self._sheet.sync()
            if self._folder_too:
                self._folder_too = False
                self._disk.platter.sync_folder()

    def xFileSize(self) -> int:
        with self._disk.lock:
            self._disk.before("size", self._path)
            return super().xFileSize()

    def xClose(self) -> None:
        with self._disk.lock:
            self._disk.open.get(self._path, set()).discard(self)
        super().xClose()
