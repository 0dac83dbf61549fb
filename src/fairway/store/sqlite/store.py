"""One queue in a SQLite file: the writing half, and the life of the connections.

Guards: a group is one transaction conditional on (range id, number); nothing else ever writes.
"""

from __future__ import annotations

import os
import threading
from typing import Final

import apsw

from fairway.errors import BadArgument, FairwayError, Fenced, GroupUnknown, NotFound, StoreFailed
from fairway.limits import (
    BUSY_MILLISECONDS_MAX,
    QUEUE_NAME_BYTES_MAX,
    QUEUES_PER_FILE_MAX,
    WAL_BYTES_MAX,
    WRITER_CACHE_KIB,
)
from fairway.model.stored import Group, Meta
from fairway.store.sqlite.connections import (
    Readers,
    close_quietly,
    closed_if_it_fails,
    connect,
    rows,
    transaction,
)
from fairway.store.sqlite.doubt import Doubting
from fairway.store.sqlite.opening import open_file
from fairway.store.sqlite.reading import Reading, meta_of
from fairway.store.sqlite.statements import load, steps
from fairway.store.sqlite.translate import translate
from fairway.store.sqlite.writing import apply

_SQL: Final = load("write.sql")
_PASSES: Final = 3  # each copies what was written during the one before, which is less and less


class SqliteStore(Reading, Doubting):
    """A queue in a file; several queues, and several owners in turn, may share the file."""

    def __init__(self, path: str, vfs: str | None, queue: int, writer: apsw.Connection) -> None:
        Reading.__init__(self, Readers(path, vfs), queue)
        Doubting.__init__(self, path, vfs, WRITER_CACHE_KIB)
        self._lock = threading.Lock()  # for close beside a commit; commits come from one thread at a time
        self._checkpoint_lock = threading.Lock()
        self._checkpointer: apsw.Connection | None = None
        self._wal_bytes = 0
        self._wal_bytes_next = WAL_BYTES_MAX
        self._rest_only = False  # a checkpoint beside the writer copied all but what was written meanwhile
        self._rest_bytes_next = 0
        self._adopt(writer)

    @classmethod
    def open(cls, path: str | os.PathLike[str], queue_name: str, *, vfs: str | None = None) -> SqliteStore:
        """Open the file, or make it, and find the queue in it, or add it."""
        if not queue_name or len(queue_name.encode()) > QUEUE_NAME_BYTES_MAX:
            raise BadArgument(f"queue: a name of 1 to {QUEUE_NAME_BYTES_MAX} bytes; got {queue_name!r}.")
        try:
            full, writer = open_file(path, vfs, steps())
            try:
                return cls(full, vfs, _find_queue(writer, queue_name), writer)
            except BaseException:
                close_quietly(writer)
                raise
        except GroupUnknown as error:
            # A step or a queue is there or not; opening again finds out.
            raise StoreFailed() from error

    # -- the writing half: one thread at a time
    def take_over(self) -> Meta:
        with self._lock:
            try:
                with transaction(self._ready(sync=True)) as connection:
                    found = rows(connection, _SQL["take_over"], (self._queue,))
            except GroupUnknown as error:
                # Raised or not, the caller takes over again before it writes anything.
                self._let_go(error)
                raise StoreFailed() from error
            except FairwayError as error:
                self._let_go(error)
                raise
            if not found:
                raise NotFound("This queue was deleted; make it anew.")
            return meta_of(self._queue, *found[0])

    def commit(self, group: Group) -> None:
        with self._lock:
            try:
                with transaction(self._ready(group.sync)) as connection:
                    apply(connection, self._queue, group)
            except FairwayError as error:
                self._let_go(error)
                raise
            if self._wal_bytes >= self._wal_bytes_next or (
                self._rest_only and self._wal_bytes >= self._rest_bytes_next
            ):
                self._shorten_wal()

    def settle(self, group: Group) -> bool:
        with self._lock:
            self._drop_writer()  # what the failed connection believes is worth nothing
            try:
                # Synced either way: a burnt number must stay burnt, and the group may not be durable yet.
                with transaction(self._ready(sync=True)) as connection:
                    return self._settled(connection, group)
            except FairwayError as error:
                self._let_go(error)
                if isinstance(error, StoreFailed):
                    raise GroupUnknown(sqlite=str(error)) from error
                raise

    def _settled(self, connection: apsw.Connection, group: Group) -> bool:
        range_id, number, burnt = rows(connection, _SQL["fence"], (self._queue,))[0]
        if range_id != group.range_id or not group.number - 1 <= number <= group.number:
            raise Fenced()
        if number == group.number:
            connection.execute(_SQL["confirm"], (self._queue,))
            return burnt != number
        connection.execute(_SQL["burn"], (self._queue, group.number))
        return False

    # -- who owns it
    def owns(self, range_id: int) -> bool:
        with self._readers.borrow() as connection:
            return rows(connection, _SQL["fence"], (self._queue,))[0][0] == range_id

    def free_to_write(self, seconds: float) -> bool:
        """Whether the file's write lock can be had within a time: one who is stopped holding it never lets go."""
        with self._lock:
            writer = self._connected()
            writer.set_busy_timeout(int(seconds * 1000))
            try:
                with transaction(writer):
                    return True
            except FairwayError as error:
                self._let_go(error)
                if isinstance(error.__cause__, apsw.BusyError):
                    return False
                raise
            finally:
                if self._writer is not None:
                    self._writer.set_busy_timeout(BUSY_MILLISECONDS_MAX)

    # -- fork
    def hold_still(self, seconds: float) -> bool:
        """Before a fork: no statement runs from here to `go_on`. False: it did not come to rest in time."""
        taken: list[threading.Lock] = []
        for lock in (self._lock, self._checkpoint_lock):
            if not lock.acquire(timeout=seconds):
                break
            taken.append(lock)
        else:
            if self._readers.hold_still(seconds):
                return True
        for lock in taken:
            lock.release()
        return False

    def go_on(self) -> None:
        """In the parent, after the fork."""
        self._readers.go_on()
        self._checkpoint_lock.release()
        self._lock.release()

    def leave_to_parent(self) -> None:
        """In the child, after the fork: close the connections and nothing else, for the log is the parent's.

        SQLite keeps locks by file in the memory of a process. Without this a new connection here would believe in
        locks that only the parent has, and the parent could remove a log that is being written here.
        """
        self._closed = True
        for connection in (*self._readers.leave_to_parent(), self._checkpointer, self._writer):
            if connection is not None:
                connection.close(True)
        self._checkpointer = self._writer = None
        self.go_on()

    # -- the log
    @property
    def wal_bytes(self) -> int:
        """The length of the log after the last commit, for whoever decides when to checkpoint."""
        return self._wal_bytes

    def checkpoint(self) -> bool:
        """Copy the log into the file, from any thread; the writer goes on. True if all of it was copied."""
        with self._checkpoint_lock:
            if self._closed:
                return True
            checkpointer, whole = self._checkpointer, False
            if checkpointer is None or self._doubtful or not self._copies:
                return False  # what is copied must be on the disk; the next write sees to that
            try:
                for _ in range(_PASSES):
                    size = self._wal_bytes
                    whole = _passive(checkpointer)
                    if not whole or self._wal_bytes == size:
                        break
            except apsw.Error as error:
                self._not_copied(error)
                self._checkpointer = None
                close_quietly(checkpointer)
                raise translate(error) from error
            # A log that is written anew in its old place is synced in half of the time of one that grows.
            self._rest_only = whole
            return whole

    def _shorten_wal(self) -> None:
        """The writer copies what the checkpoints beside it left, and starts the log anew."""
        assert self._writer is not None
        # A reader may hold the log back; the next try waits until it grew by an eighth of the bound.
        self._wal_bytes_next = self._rest_bytes_next = self._wal_bytes + WAL_BYTES_MAX // 8
        self._rest_only = False
        if not self._copies:
            return
        try:
            _passive(self._writer)
        except apsw.Error as error:
            self._not_copied(error)

    def size_bytes(self) -> int:
        total = 0
        for name in (self._path, self._path + "-wal"):
            try:
                total += os.stat(name).st_size
            except FileNotFoundError:
                continue
        return total

    def close(self) -> None:
        with self._lock, self._checkpoint_lock:
            if self._closed:
                return
            self._closed = True
            self._readers.close()
            if self._checkpointer is not None:
                close_quietly(self._checkpointer)
            self._leave()

    # -- the writer's connection
    def _prepare(self, connection: apsw.Connection) -> None:
        self._page_bytes = int(connection.pragma("page_size"))
        connection.pragma("journal_size_limit", WAL_BYTES_MAX)
        connection.set_wal_hook(self._grown)

    def _before_belief(self) -> None:
        with self._checkpoint_lock:
            former, self._checkpointer = self._checkpointer, None
            if former is not None:
                close_quietly(former)  # it would be told of what is being mended
            checkpointer = connect(self._path, self._vfs, 0)
            with closed_if_it_fails(checkpointer):
                checkpointer.pragma("schema_version")  # opens the log
            self._checkpointer = checkpointer

    def _grown(self, connection: apsw.Connection, name: str, pages: int) -> int:
        bytes_now = pages * self._page_bytes
        if bytes_now < self._wal_bytes:
            self._rest_only, self._rest_bytes_next = False, 0  # the log began anew
        self._wal_bytes = bytes_now
        if bytes_now < WAL_BYTES_MAX:
            self._wal_bytes_next = WAL_BYTES_MAX
        return apsw.SQLITE_OK


def _passive(connection: apsw.Connection) -> bool:
    try:
        log, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.BusyError:
        return False  # another checkpoint is under way
    return log == copied


def _find_queue(connection: apsw.Connection, name: str) -> int:
    try:
        found = rows(connection, _SQL["find_queue"], (name,))
    except apsw.Error as error:
        raise translate(error) from error
    if not found:
        with transaction(connection):
            found = rows(connection, _SQL["find_queue"], (name,))
            if not found and rows(connection, _SQL["bucket_queue"], (name,)):
                raise BadArgument(
                    f"queue: {name} is a bucket queue in this file; open it with kind='bucket'.",
                    argument="queue",
                )
            found = found or rows(connection, _SQL["add_queue"], (name, QUEUES_PER_FILE_MAX))
        if not found:
            raise BadArgument(f"queue: the file has {QUEUES_PER_FILE_MAX} queues already; use another file.")
    return found[0][0]
