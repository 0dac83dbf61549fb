"""A host that serves a socket, and queues attached to it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.face.verbs import Verbs
from fairway.runtime import attached, hearing
from fairway.runtime.attached import Attached
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.lanes import Lanes
from fairway.runtime.numbers import Numbers
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.opening import writer
from fairway.runtime.pending import Pending
from fairway.runtime.running import Running
from fairway.runtime.serving import Serving
from fairway.runtime.transport import choosing, unix
from fairway.runtime.transport.port import Connection
from fairway.store.memory import MemoryStore, Shelf
from fairway.store.port import Store
from fairway.store.sqlite import SqliteStore
from tests.attach.member_script import PATIENT_SECONDS
from tests.ring.need import need_ring

pytest.register_assert_rewrite("fairway.testing.conformance")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that a busy machine held up is not replaced, and a close waits for it; who tests silence says so."""
    monkeypatch.setattr(hearing, "SILENT_SECONDS", PATIENT_SECONDS)
    monkeypatch.setattr(attached, "_CLOSE_SECONDS", PATIENT_SECONDS)


@pytest.fixture
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What every process of the test uses that is not told otherwise."""
    if request.param == "ring":
        need_ring()
    monkeypatch.setenv(choosing.VARIABLE, request.param)
    return request.param


def over_both(test: Callable[..., None]) -> Callable[..., None]:
    """A promise of attached processes that holds over the socket and over the ring."""
    both = pytest.mark.parametrize("transport", ["socket", "ring"], indirect=True)
    return pytest.mark.usefixtures("transport")(both(test))


class Way:
    """What a port talks to, with one way that never changes."""

    def __init__(self, attached: Attached) -> None:
        self.way = attached

    def __getattr__(self, name: str) -> Any:
        return getattr(self.way, name)


class Client:
    """One attached process, in this one."""

    def __init__(self, desk: Desk, connection: Connection | None = None, **kept: Any) -> None:
        self.store = desk.open_store()
        self.lost: list[tuple[str, list[Pending]]] = []
        self.numbers: Numbers = kept.get("numbers") or Numbers()
        self.lanes: Lanes = kept.get("lanes") or Lanes()
        self.attached = Attached(
            "default",
            connection or unix.connect(desk.path, 5.0),
            self.numbers,
            lambda: self.store,
            lambda reason, pendings: self.lost.append((reason, pendings)),
            self.lanes,
        )
        self.attached.start()
        self.q = queue_on(Way(self.attached), lambda: self.close())

    def close(self, goodbye: bool = True) -> None:
        self.attached.close(goodbye)
        self.store.close()


def queue_on(way: Any, let_go: Callable[[], None]) -> fairway.Queue:
    return fairway.Queue("default", Verbs(ObstoreObjects(), writer, read), ThreadPort(way, let_go))


class Desk:
    """A host over a store that others may open too, its socket, and who is attached."""

    def __init__(self, open_store: Callable[[], Store], path: str) -> None:
        self.open_store = open_store
        self.path = path
        self.clients: list[Client] = []
        self.start()

    def start(self) -> None:
        self.running = Running("default", self.open_store())
        self.host = self.running.host
        self.q = queue_on(self.running, lambda: None)
        self.serving = Serving(self.host, unix.listen(self.path), 7)
        self.serving.start()

    def attach(self, connection: Connection | None = None, **kept: Any) -> Client:
        self.clients.append(Client(self, connection, **kept))
        return self.clients[-1]

    def stop(self, bye: bool = True) -> None:
        self.serving.stop(bye)
        self.running.close()

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.stop()


def _desk(kind: str, folder: Path) -> Desk:
    if kind == "memory":
        shelf = Shelf()
        return Desk(lambda: MemoryStore.open("default", shelf), str(folder / "x.sock"))
    return Desk(lambda: SqliteStore.open(folder / "work.db", "default"), str(folder / "x.sock"))


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    desk = _desk(request.param, tmp_path)
    yield desk
    desk.close()


@pytest.fixture
def memory_desk(tmp_path: Path) -> Iterator[Desk]:
    desk = _desk("memory", tmp_path)
    yield desk
    desk.close()
