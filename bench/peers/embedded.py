"""The queues that live in a process and a file, each as put, take and acknowledge, and close.

Each is used as its own documentation says, one caller in one thread. `batches` says whether it has calls for many
messages at once; `dies` what becomes of a message whose worker dies with it in hand.
"""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

from peers.plain_queue import PlainQueue

import fairway

PAYLOAD = b"x" * 200
TEXT = PAYLOAD.decode()
TENANTS = 20


class Peer:
    """What all have in common; a peer is made in a process and a folder of its own."""

    package = ""  # of which the version is told
    program = ""  # without which it is left out
    batches = False
    dies = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, many: int) -> int:
        """Put so many; how many they were."""
        raise AssertionError

    def take(self, many: int) -> int:
        """Take and acknowledge so many; none if nothing is left."""
        raise AssertionError

    def server_cpu_seconds(self) -> float:
        return 0.0

    def close(self) -> None: ...


class Fairway(Peer):
    batches, dies = True, "comes back when its lease ends"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.queue: Any = fairway.open(folder / "fairway.db")
        self._made: dict[int, list[Any]] = {}

    def put(self, many: int) -> int:
        if many == 1:
            self.queue.put(PAYLOAD, tenant="t")
        else:
            if many not in self._made:
                self._made[many] = [{"payload": PAYLOAD, "tenant": f"t{i % TENANTS}"} for i in range(many)]
            self.queue.put_many(self._made[many])
        return many

    def take(self, many: int) -> int:
        leases = self.queue.reserve(max=many)
        self.queue.complete(leases)
        return len(leases)

    def close(self) -> None:
        self.queue.close()


class FairwayBucket(Fairway):
    """Without an owner and without fairness."""

    def __init__(self, folder: Path) -> None:
        Peer.__init__(self, folder)
        self.queue = fairway.open(folder / "bucket.db", kind="bucket")

    def put(self, many: int) -> int:
        self.queue.put_many([PAYLOAD] * many)
        return many


class PlainTable(Peer):
    batches, dies = True, "is lost: nothing brings it back"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.queue = PlainQueue(folder / "plain.db")

    def put(self, many: int) -> int:
        self.queue.put_many([(f"t{i % TENANTS}", PAYLOAD) for i in range(many)])
        return many

    def take(self, many: int) -> int:
        found = self.queue.reserve(many)
        if found:
            self.queue.complete([id for id, _ in found])
        return len(found)

    def close(self) -> None:
        self.queue.close()


class Huey(Peer):
    """Tasks are taken out of the file before they run; `execute` runs one."""

    package, dies = "huey", "is lost"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from huey import SqliteHuey

        self.huey: Any = SqliteHuey(filename=str(folder / "huey.db"), results=False)

        @self.huey.task()
        def work(payload: bytes) -> None:
            return None

        self.work = work

    def put(self, many: int) -> int:
        for _ in range(many):
            self.work(PAYLOAD)
        return many

    def take(self, many: int) -> int:
        for done in range(many):
            task = self.huey.dequeue()
            if task is None:
                return done
            self.huey.execute(task)
        return many

    def close(self) -> None:
        self.huey.storage.close()


class PersistQueue(Peer):
    package, dies = "persist-queue", "comes back when the file is opened again"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import persistqueue

        self._empty = persistqueue.Empty
        self.queue: Any = persistqueue.SQLiteAckQueue(str(folder / "persist"))

    def put(self, many: int) -> int:
        for _ in range(many):
            self.queue.put(PAYLOAD)
        return many

    def take(self, many: int) -> int:
        for done in range(many):
            try:
                item = self.queue.get(block=False)
            except self._empty:
                return done
            self.queue.ack(item)
        return many

    def close(self) -> None:
        del self.queue


class LiteQueue(Peer):
    package, dies = "litequeue", "stays locked until somebody sets it free"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import litequeue

        self.queue: Any = litequeue.LiteQueue(folder / "lite.db")

    def put(self, many: int) -> int:
        for _ in range(many):
            self.queue.put(TEXT)
        return many

    def take(self, many: int) -> int:
        for done in range(many):
            message = self.queue.pop()
            if message is None:
                return done
            self.queue.done(message.message_id)
        return many

    def close(self) -> None:
        self.queue.close()


class Multiprocessing(Peer):
    """Memory and a pipe: nothing is kept, and nothing is acknowledged."""

    dies = "is lost, and so is all the rest when the process ends"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.queue: Any = multiprocessing.Queue()
        self.waiting = 0

    def put(self, many: int) -> int:
        for _ in range(many):
            self.queue.put(PAYLOAD)
        self.waiting += many
        return many

    def take(self, many: int) -> int:
        many = min(many, self.waiting)
        for _ in range(many):
            self.queue.get()
        self.waiting -= many
        return many

    def close(self) -> None:
        self.queue.cancel_join_thread()
        self.queue.close()


EMBEDDED: dict[str, type[Peer]] = {
    "Fairway": Fairway,
    "Fairway, bucket queue": FairwayBucket,
    "a bare SQLite table": PlainTable,
    "huey on SQLite": Huey,
    "persist-queue, SQLiteAckQueue": PersistQueue,
    "litequeue": LiteQueue,
    "multiprocessing.Queue": Multiprocessing,
}
