"""How verbs of a bucket queue are carried out: in the caller's thread, or beside an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fairway.engine.commands import Reserved
from fairway.face.bucket.desk import Pause
from fairway.runtime.bucket.office import Office


class OfficePort:
    """For threads: everything happens in the caller's own."""

    def __init__(self, office: Office) -> None:
        self._office = office

    def ask(self, command: Any) -> None:
        assert isinstance(command, Pause)
        self._office.wait(command.seconds)

    def unreceived(self, reserved: Reserved) -> None:
        """Bucket queues never hand out a Reserved."""

    def close(self) -> None:
        self._office.close()


class LoopOfficePort:
    """For event loops: a look at the storage is a short turn of a thread, a wait is a timer."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def ask(self, command: Any) -> None:
        assert isinstance(command, Pause)
        await asyncio.sleep(command.seconds)

    async def do(self, function: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(function)

    def unreceived(self, reserved: Reserved) -> None:
        """Bucket queues never hand out a Reserved."""

    async def close(self) -> None:
        await asyncio.to_thread(self._office.close)
