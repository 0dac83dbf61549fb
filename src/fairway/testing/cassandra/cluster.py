"""Nodes on 127.0.0.1, .2 and .3: starting, stopping, killing, pausing.

Guards: every node is a child of the keeper, so none is left behind; a node that does not start says why.
"""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import IO, Final

from fairway.errors import OurError
from fairway.testing.cassandra.jars import NODE, jars
from fairway.testing.cassandra.java import find_java

START_SECONDS: Final = 180.0  # three nodes on two busy cores
STOP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_TOLD_BYTES: Final = 3000  # of the logs of a node that does not start
_PORT_TRIES: Final = 1000
_FOLDERS: Final = ("conf", "logs", "tmp")
_ADDRESSES: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
_GIVEN_AWAY: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_PORT_MIN, _PORT_MAX = 10_000, 32_000


class Node:
    """One node. What is done to it is done to its process, from any process of this machine."""

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.cluster, self.index = cluster, index
        self.address = _ADDRESSES[index]
        self.folder = cluster.folder / f"node{index + 1}"
        self.pid = 0

    def start(self) -> None:
        """Start the process; `wait` waits until it answers."""
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        conf = self.folder / "conf"
        text = Template((NODE / "cassandra.yaml").read_text(encoding="utf-8")).substitute(
            token=-(2**63) + (2**64 // len(self.cluster.nodes)) * self.index + 1,
            address=self.address,
            cql_port=self.cluster.port,
            storage_port=self.cluster.storage_port,
            seeds=",".join(node.address for node in self.cluster.nodes),
            folder=self.folder,
            internode_timeout=str(not self.cluster.skewed).lower(),
        )
        (conf / "cassandra.yaml").write_text(text + self.cluster.settings, encoding="utf-8")
        (conf / "logback.xml").write_bytes((NODE / "logback.xml").read_bytes())
        self.pid = self.cluster.run(self._arguments(conf), self.folder, self.folder / "logs" / "stdout.log")

    def _arguments(self, conf: Path) -> list[str]:
        lines = (NODE / "jvm.options").read_text(encoding="utf-8").splitlines()
        options = [word for line in lines if not line.startswith("#") for word in line.split()]
        paths = self.cluster.jars
        agent = next(path for path in paths if "jamm-" in path.name)
        skew = self.cluster.skew_millis[self.index] if self.cluster.skewed else 0
        clock = ["-Dcassandra.clock=OffsetClock", f"-Doffset.ms={skew}"] if self.cluster.skewed else []
        return [
            str(self.cluster.java), *options, *clock, *self.cluster.properties, f"-javaagent:{agent}",
            f"-Djava.io.tmpdir={self.folder}/tmp",
            f"-Dcassandra.config=file://{conf}/cassandra.yaml", f"-Dcassandra.storagedir={self.folder}",
            f"-Dcassandra.logdir={self.folder}/logs", f"-Dlogback.configurationFile=file://{conf}/logback.xml",
            f"-Dcassandra.jmx.local.port={self.cluster.jmx_port + self.index}",
            "-cp", os.pathsep.join(map(str, (*self.cluster.classes, conf, *paths))),
            "org.apache.cassandra.service.CassandraDaemon",
        ]  # fmt: skip

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until the node answers CQL."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self.alive():
                raise OurError(f"the node on {self.address} ended at its start\n{self.told()}")
            if self.answers():
                return
            time.sleep(_POLL_SECONDS)
        raise OurError(f"the node on {self.address} does not answer in {seconds:.0f} s\n{self.told()}")

    def answers(self) -> bool:
        """Whether its CQL port is open."""
        with socket.socket() as probe:
            probe.settimeout(0.3)
            return probe.connect_ex((self.address, self.cluster.port)) == 0

    def alive(self) -> bool:
        """Whether its process runs."""
        try:
            return _state(Path(f"/proc/{self.pid}/stat")) not in "ZX"
        except OSError:
            return False

    def sees(self, other: Node) -> bool:
        """Whether it takes another node for up, by the last that its log says of it."""
        path = self.folder / "logs" / "system.log"
        said = re.findall(
            rf"InetAddress /{re.escape(other.address)}:\d+ is now (UP|DOWN)", path.read_text(errors="replace")
        )
        return bool(said) and said[-1] == "UP"

    def told(self) -> str:
        """The end of its logs."""
        parts = []
        for name in ("system.log", "stdout.log"):
            path = self.folder / "logs" / name
            if path.exists():
                parts.append(f"-- {path}\n" + path.read_bytes()[-_TOLD_BYTES:].decode(errors="replace"))
        return "\n".join(parts)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it write what it has, and wait until it is gone."""
        self.resume()
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stop it, and wait until it stands still: on busy cores its threads go on for a while."""
        os.kill(self.pid, signal.SIGSTOP)
        until = time.monotonic() + STOP_SECONDS
        while set(_states(self.pid)) - {"T"}:
            if time.monotonic() > until:
                raise TimeoutError(f"node {self.address} does not stand still")
            time.sleep(0.001)

    def resume(self) -> None:
        if self.alive():
            os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if not self.alive():
            return
        watched = os.pidfd_open(self.pid)
        try:
            os.kill(self.pid, number)
            if not select.select([watched], [], [], STOP_SECONDS)[0]:
                os.kill(self.pid, signal.SIGKILL)
                select.select([watched], [], [], STOP_SECONDS)
        finally:
            os.close(watched)


class Cluster:
    """Nodes that live as long as the process `user`, this one if none is named; `with` starts and stops them."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 1,
        *,
        port: int | None = None,
        user: int | None = None,
        skew_millis: tuple[int, ...] = (),
        classes: tuple[Path, ...] = (),
        settings: str = "",
        properties: tuple[str, ...] = (),
    ) -> None:
        """`settings` are lines added to every node's cassandra.yaml, `properties` options of its JVM."""
        self.settings, self.properties = settings, properties
        self.folder = folder.resolve()
        self.java, self.jars = find_java(), jars()
        self.port = port or free_port()
        self.storage_port, self.jmx_port = self._storage_port(), free_port(len(_ADDRESSES))
        self.skew_millis, self.classes = skew_millis, classes
        self.nodes = [Node(self, index) for index in range(nodes)]
        self._user = user or os.getpid()
        self._keeper: subprocess.Popen[str] | None = None

    def _storage_port(self) -> int:
        """The port between nodes. They remember one another with it, so it is kept beside their data."""
        kept = self.folder / "storage_port"
        if not kept.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(str(free_port()), encoding="utf-8")
        return int(kept.read_text(encoding="utf-8"))

    @property
    def skewed(self) -> bool:
        return bool(self.skew_millis)

    @property
    def hosts(self) -> list[str]:
        return [node.address for node in self.nodes]

    @property
    def keeper_pid(self) -> int:
        return self._keeper.pid if self._keeper is not None else 0

    def start(self) -> Cluster:
        """Start every node at once and wait for all of them."""
        command = [sys.executable, "-m", "fairway.testing.cassandra.keeper", str(self._user)]
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.wait()
            self._acquaint()
        except BaseException:
            self.kill()
            raise
        return self

    def _acquaint(self, seconds: float = START_SECONDS) -> None:
        """Wait until every node has seen every other: before, a keyspace could be made for fewer of them."""
        until = time.monotonic() + seconds
        while not all(node.sees(other) for node in self.nodes for other in self.nodes if other is not node):
            if time.monotonic() > until:
                raise OurError(f"the nodes have not all seen each other in {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def run(self, arguments: list[str], folder: Path, output: Path) -> int:
        """Have the keeper start a process; gives its pid."""
        keeper = self._keeper
        assert keeper is not None, "start the cluster first"
        wanted, told = keeper.stdin, keeper.stdout
        assert wanted is not None and told is not None
        wanted.write(
            json.dumps({"arguments": arguments, "folder": str(folder), "output": str(output)}) + "\n"
        )
        wanted.flush()
        return int(told.readline())

    def stop(self) -> None:
        """End every node gently, so that its data can be used again."""
        for node in self.nodes:
            if node.alive():
                node.resume()
                os.kill(node.pid, signal.SIGTERM)
        for node in self.nodes:
            node.stop()
        self.kill()

    def kill(self) -> None:
        """End everything at once."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.terminate()
            _close(keeper.stdin)
            _close(keeper.stdout)
            keeper.wait()

    def leave(self) -> None:
        """Forget the keeper: the nodes go on for as long as their user lives."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            _close(keeper.stdin)
            _close(keeper.stdout)
            keeper.returncode = 0  # it is somebody else's now, and nobody waits for it here

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


def free_port(many: int = 1) -> int:
    """A port that nobody listens on, on any of the addresses, and the free ones after it.

    It is none of those that the kernel gives away by itself: a node that was killed must find it free again.
    """
    low = int(_GIVEN_AWAY.read_text().split()[0]) if _GIVEN_AWAY.exists() else _PORT_MAX
    ports = range(_PORT_MIN, min(low, _PORT_MAX) - many)
    for _ in range(_PORT_TRIES):
        first = random.choice(ports)
        if all(_is_free(address, first + n) for address in _ADDRESSES for n in range(many)):
            return first
    raise OurError(f"no {many} ports in a row are free between {ports.start} and {ports.stop}")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def _states(pid: int) -> list[str]:
    """What each thread of a process is doing, by its letter."""
    found: list[str] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has just ended
            found.append(_state(thread / "stat"))
    return found


def _state(stat: Path) -> str:
    """The letter in what the kernel tells of a process or a thread."""
    return stat.read_text().rsplit(")", 1)[1].split()[0]


def _close(pipe: IO[str] | None) -> None:
    if pipe is not None:
        pipe.close()
