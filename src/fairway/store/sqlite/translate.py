"""SQLite's error codes as errors of Fairway.

Guards: "not stored" is only said when it is certain.
"""

from __future__ import annotations

import apsw

from fairway.errors import FairwayError, GroupUnknown, ReadOnly, StoreCorrupt, StoreFailed, StoreFull

_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
# A commit that ends so has written no valid commit frame; after anything else a crash could still revive it.
_SURELY_NOT_STORED = (apsw.FullError, apsw.BusyError, apsw.ReadOnlyError)


def translate(error: apsw.Error) -> FairwayError:
    """The error of a statement that had no effect, or of a transaction that is rolled back."""
    if isinstance(error, apsw.FullError) or _extended(error) == apsw.SQLITE_IOERR_SHMSIZE:
        return StoreFull(sqlite=str(error))
    if isinstance(error, _DAMAGED):
        return StoreCorrupt(sqlite=str(error))
    if isinstance(error, apsw.ReadOnlyError):
        return ReadOnly(sqlite=str(error))
    if isinstance(error, apsw.BusyError):
        return StoreFailed("Another process holds the file's write lock; repeat the call.", sqlite=str(error))
    return StoreFailed(f"The store refused the group ({error}); the call had no effect.", sqlite=str(error))


def translate_commit(error: apsw.Error) -> FairwayError:
    """The error of the commit itself, whose outcome may be unknown."""
    if isinstance(error, _SURELY_NOT_STORED):
        return translate(error)
    return GroupUnknown(sqlite=str(error))


def breaks_connection(error: apsw.Error) -> bool:
    """Whether the connection should be thrown away: the file under it misbehaved."""
    return not isinstance(error, (apsw.FullError, apsw.BusyError, apsw.ConstraintError))


def _extended(error: apsw.Error) -> int:
    return getattr(error, "extendedresult", 0)
