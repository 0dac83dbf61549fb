"""The queues behind a server on this machine, as the embedded peers are, each with its own Python client if it has one.

The server of a peer is started for it and ended with it, on a free port, and told to sync before it answers.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.embedded import PAYLOAD, TEXT, Fairway, Peer

import fairway

# What a peer needs beside its Python package: the program, and the package of Debian that brings it.
DEBIAN = {"beanstalkd": "beanstalkd", "redis-server": "redis-server", "initdb": "postgresql"}
TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS = 30.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(ready: Callable[[], object]) -> None:
    """Wait for a server that is starting."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            ready()
            return
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def located(program: str) -> str:
    """Where a program is, or nothing; Debian keeps those of PostgreSQL apart, by version."""
    if (found := shutil.which(program)) or program != "initdb":
        return found or ""
    apart = sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{program}")))
    return apart[-1] if apart else ""


class Served(Peer):
    """A peer with a process that serves it."""

    process: subprocess.Popen[bytes]

    def start(self, command: list[str], **more: Any) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, cwd=self.folder, **quiet, **more)

    def server_cpu_seconds(self) -> float:
        total, todo = 0, [self.process.pid]
        while todo:
            pid = todo.pop()
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                todo += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            except FileNotFoundError:  # it has ended
                continue
            total += sum(
                int(field) for field in fields[11:15]
            )  # its own, and of children that it has waited for
        return total / TICKS

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT if self.program == "initdb" else signal.SIGTERM)
        self.process.wait()


class FairwayServer(Served, Fairway):
    batches, dies = True, "comes back when its lease ends"

    def __init__(self, folder: Path) -> None:
        Peer.__init__(self, folder)
        self._made = {}
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        serve = [sys.executable, "-m", "fairway.cli", "serve", "--store", "work.db", "--queue", "default"]
        self.start([*serve, "--port", str(port)])

        def connect() -> None:
            queue: Any = fairway.open(self.url)
            try:
                queue.stats()
            except BaseException:
                queue.close()
                raise
            self.queue = queue

        until(connect)

    def close(self) -> None:
        self.queue.close()
        Served.close(self)


class Beanstalkd(Served):
    """Its protocol, spoken over a socket; many at once are sent before their answers are read."""

    program, batches, dies = "beanstalkd", True, "comes back when its time to run ends"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        port = free_port()
        self.start(["beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", str(folder), "-f", "0"])

        def connect() -> None:
            self.socket = socket.create_connection(("127.0.0.1", port))

        until(connect)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = self.socket.makefile("rb")

    def put(self, many: int) -> int:
        self.socket.sendall(b"put 0 0 60 %d\r\n%s\r\n" % (len(PAYLOAD), PAYLOAD) * many)
        for _ in range(many):
            assert self.lines.readline().startswith(b"INSERTED")
        return many

    def take(self, many: int) -> int:
        self.socket.sendall(b"reserve-with-timeout 0\r\n" * many)
        ids: list[bytes] = []
        for _ in range(many):
            words = self.lines.readline().split()
            if words[0] == b"RESERVED":
                self.lines.read(int(words[2]) + 2)
                ids.append(words[1])
        self.socket.sendall(b"".join(b"delete %s\r\n" % id for id in ids))
        for _ in ids:
            assert self.lines.readline() == b"DELETED\r\n"
        return len(ids)

    def close(self) -> None:
        self.lines.close()
        self.socket.close()
        super().close()


class RedisList(Served):
    """A list, and one beside it for what was taken and is not acknowledged."""

    package, program, batches = "redis", "redis-server", True
    dies = "stays beside the list until somebody looks there"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import redis

        port = free_port()
        synced = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self.start(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *synced]
        )
        self.redis: Any = redis.Redis(port=port)
        until(self.redis.ping)

    def put(self, many: int) -> int:
        self.redis.lpush("q", *[PAYLOAD] * many)
        return many

    def take(self, many: int) -> int:
        with self.redis.pipeline(transaction=False) as calls:
            for _ in range(many):
                calls.lmove("q", "taken", "RIGHT", "LEFT")
            found = [one for one in calls.execute() if one is not None]
            for one in found:
                calls.lrem("taken", 1, one)
            calls.execute()
        return len(found)

    def close(self) -> None:
        self.redis.close()
        super().close()


class RedisStream(RedisList):
    """A stream with one group of consumers; what is acknowledged is deleted too."""

    dies = "can be claimed by another consumer"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.redis.xgroup_create("s", "g", mkstream=True)

    def put(self, many: int) -> int:
        if many == 1:
            self.redis.xadd("s", {"p": PAYLOAD})
            return 1
        with self.redis.pipeline(transaction=False) as calls:
            for _ in range(many):
                calls.xadd("s", {"p": PAYLOAD})
            calls.execute()
        return many

    def take(self, many: int) -> int:
        found = self.redis.xreadgroup("g", "c", {"s": ">"}, count=many)
        ids = [id for _, messages in found for id, _ in messages] if found else []
        if ids:
            with self.redis.pipeline(transaction=False) as calls:
                calls.xack("s", "g", *ids)
                calls.xdel("s", *ids)
                calls.execute()
        return len(ids)


def nothing(payload: object) -> None:
    """What the workers of peers do with a message."""


class Rq(RedisList):
    """Its own worker runs the jobs in this process, one after the other; the worker takes so many in a run."""

    package, dies = "rq", "is marked as failed when its worker is missed"
    JOBS = 100

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import rq

        self.queue: Any = rq.Queue("bench", connection=self.redis)
        self.worker: Any = rq.SimpleWorker([self.queue], connection=self.redis)

    def put(self, many: int) -> int:
        if many == 1:
            self.queue.enqueue(nothing, PAYLOAD, result_ttl=0)
        else:
            one = [self.queue.prepare_data(nothing, args=(PAYLOAD,), result_ttl=0) for _ in range(many)]
            self.queue.enqueue_many(one)
        return many

    def take(self, many: int) -> int:
        before = len(self.queue)
        self.worker.work(burst=True, max_jobs=self.JOBS, logging_level="CRITICAL")
        return before - len(self.queue)


class Procrastinate(Served):
    """Its own worker runs the jobs in this process, one at a time, until none is left."""

    package, program, batches = "procrastinate", "initdb", True
    dies = "stays in `doing` until somebody retries it"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import procrastinate

        port, data = free_port(), folder / "postgres"
        data.mkdir()
        who: dict[str, Any] = {}
        if os.getuid() == 0:  # PostgreSQL does not run as root
            user = pwd.getpwnam("postgres")
            os.chown(data, user.pw_uid, user.pw_gid)
            who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        tools = Path(located("initdb")).resolve().parent
        made = [str(tools / "initdb"), "-D", str(data), "-U", "bench", "-A", "trust", "--no-sync"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=data, **who)
        serve = [str(tools / "postgres"), "-D", str(data), "-k", str(data), "-p", str(port)]
        self.start([*serve, "-c", "listen_addresses="], **who)
        place = f"host={data} port={port} user=bench dbname=postgres"
        connector: Any = procrastinate.PsycopgConnector(conninfo=place)
        self.app: Any = procrastinate.App(connector=connector)
        self.task: Any = self.app.task(queue="bench", name="nothing")(_nothing)
        self.loop = asyncio.new_event_loop()
        self.waiting = 0
        until(lambda: self._psql(tools, data, port))
        self.loop.run_until_complete(self.app.open_async())
        self.loop.run_until_complete(self.app.schema_manager.apply_schema_async())

    @staticmethod
    def _psql(tools: Path, data: Path, port: int) -> None:
        asked = [str(tools / "psql"), "-h", str(data), "-p", str(port), "-U", "bench", "postgres", "-c", ""]
        subprocess.run(asked, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def put(self, many: int) -> int:
        if many == 1:
            self.loop.run_until_complete(self.task.defer_async(payload=TEXT))
        else:
            self.loop.run_until_complete(self.task.batch_defer_async(*[{"payload": TEXT}] * many))
        self.waiting += many
        return many

    def take(self, many: int) -> int:
        done, self.waiting = self.waiting, 0
        if done:
            run = self.app.run_worker_async(
                wait=False, listen_notify=False, install_signal_handlers=False, delete_jobs="always"
            )
            self.loop.run_until_complete(run)
        return done

    def close(self) -> None:
        self.loop.run_until_complete(self.app.close_async())
        self.loop.close()
        super().close()


async def _nothing(payload: str) -> None:
    """The same for a worker in an event loop."""


class Opsqueue(Served):
    """A server given by OPSQUEUE=/path/to/opsqueue, through its own client; payloads are objects in a folder."""

    package, program, batches = "opsqueue", os.environ.get("OPSQUEUE", "opsqueue"), True
    dies = "comes back when its connection is missed"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from opsqueue.consumer import ConsumerClient, Strategy
        from opsqueue.producer import ProducerClient

        port, objects = free_port(), f"file://{folder}/objects"
        self.port = port
        (folder / "objects").mkdir()
        self.start([self.program, "--port", str(port), "--database-filename", str(folder / "opsqueue.db")])
        until(lambda: socket.create_connection(("127.0.0.1", port)).close())
        self.producer: Any = ProducerClient(f"localhost:{port}", objects)
        self.consumer: Any = ConsumerClient(f"localhost:{port}", objects)
        self.strategy: Any = Strategy.Oldest()
        self.waiting = 0

    def put(self, many: int) -> int:
        self.producer.insert_submission_chunks([PAYLOAD] * many)
        self.waiting += many
        return many

    def take(self, many: int) -> int:
        many = min(many, self.waiting)  # it waits where there is nothing
        if not many:
            return 0
        chunks = self.consumer.reserve_chunks(many, self.strategy)
        for one in chunks:
            self.consumer.complete_chunk(one.submission_id, one.submission_prefix, one.chunk_index, b"")
        self.waiting -= len(chunks)
        return len(chunks)


SERVERS: dict[str, type[Peer]] = {
    "Fairway server": FairwayServer,
    "beanstalkd": Beanstalkd,
    "Redis list": RedisList,
    "Redis stream": RedisStream,
    "RQ on Redis": Rq,
    "procrastinate on PostgreSQL": Procrastinate,
    "opsqueue": Opsqueue,
}
