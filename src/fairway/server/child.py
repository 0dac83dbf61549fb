"""A process of a server with several: the one with the engines, or one that speaks HTTP.

Guards: it ends when it is told to, and when the process that started it is gone, however that ended.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

import msgspec

from fairway.server import logs
from fairway.server.settings import Settings


class Orders(msgspec.Struct, frozen=True):
    """What a child is told: its part, the settings, and what it inherits."""

    part: str  # "engine" or "http"
    settings: Settings
    desk: str  # the path of the desk's socket
    listener: int  # of the desk for the engine, of HTTP for the others
    parent: int  # the reading end of a pipe that its parent holds open as long as it needs the child


def _watch(parent: int, stop: Callable[[], object]) -> None:
    def wait() -> None:
        while os.read(parent, 1):
            pass
        stop()

    threading.Thread(target=wait, name="fairway parent", daemon=True).start()


def _engine(orders: Orders) -> None:
    from fairway.server.desk import DeskService
    from fairway.server.hosting import Hosting
    from fairway.server.places import file_place

    ending = threading.Event()
    # Signals reach all processes at once, and the others need this one longest.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    _watch(orders.parent, ending.set)
    hosting = Hosting(file_place(orders.settings))
    hosting.start(orders.settings.queues)
    desk = DeskService(hosting, socket.socket(fileno=orders.listener))
    desk.start()
    try:
        ending.wait()
    finally:
        desk.stop()
        hosting.close()


def _http(orders: Orders) -> None:
    from fairway.server.desk import FarDesk
    from fairway.server.serving import HttpProcess

    process = HttpProcess(orders.settings, FarDesk(orders.desk), host=False)
    _watch(orders.parent, process.stop)
    process.main(socket.socket(fileno=orders.listener))


def main(text: str) -> None:
    orders = msgspec.json.decode(text, type=Orders)
    logs.configure(orders.settings.log_level)
    (_engine if orders.part == "engine" else _http)(orders)


if __name__ == "__main__":
    main(sys.argv[1])
