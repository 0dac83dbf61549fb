"""A process with a queue, told by lines what to do; each runs in a thread of its own, so that calls can overlap.

Run as a program it is the process; imported it is what a test holds of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

LIVELY_SECONDS = 60.0  # whatever takes longer than this has stopped
PATIENT_SECONDS = 600.0  # of silence: a host that a busy machine held up stays the host


class Child:
    """A process that was started by a test. It does not replace a silent host before it is told to heed silence."""

    def __init__(self, *, start: str = "") -> None:
        root = Path(__file__).resolve().parents[2]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.attach.member_script"],
            cwd=root,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH")))),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._told: dict[int, Any] = {}
        self._came = threading.Condition()
        self._count = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if start:
            self.do(start)

    @classmethod
    def opened(cls, path: Path | str, **options: Any) -> Child:
        return cls(start=f"use(fairway.open({str(path)!r}, **{options!r}))")

    @property
    def pid(self) -> int:
        return self.process.pid

    def begin(self, code: str) -> int:
        """Start an expression; gives a ticket for `result`."""
        assert self.process.stdin is not None
        self._count += 1
        self.process.stdin.write(json.dumps([self._count, code]) + "\n")
        self.process.stdin.flush()
        return self._count

    def result(self, ticket: int, seconds: float = LIVELY_SECONDS) -> Any:
        with self._came:
            assert self._came.wait_for(lambda: ticket in self._told, seconds), f"no answer in {seconds} s"
            kind, value = self._told.pop(ticket)
        if kind == "error":
            raise ChildError(*value)
        return value

    def came(self, ticket: int) -> bool:
        with self._came:
            return ticket in self._told

    def do(self, code: str, seconds: float = LIVELY_SECONDS) -> Any:
        return self.result(self.begin(code), seconds)

    @property
    def way(self) -> str:
        return self.do("type(q._port._member.way).__name__")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            wait_until(
                lambda: Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """End it as a program ends, without a close."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIVELY_SECONDS)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._reader.join(LIVELY_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            ticket, kind, value = json.loads(line)
            with self._came:
                self._told[ticket] = (kind, value)
                self._came.notify_all()


class ChildError(Exception):
    """What a call in a child raised: the name of its class, its text, its details."""

    def __init__(self, kind: str, text: str, details: dict[str, Any]) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text, self.details = kind, text, details


def wait_until(true: Callable[[], bool], seconds: float = LIVELY_SECONDS) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.02)


# -- the process -------------------------------------------------------------------------------------------


def main() -> None:
    import ctypes

    import apsw

    import fairway
    from fairway.limits import SILENT_SECONDS
    from fairway.runtime import hearing
    from fairway.runtime.entrance import Entrance

    hearing.SILENT_SECONDS = PATIENT_SECONDS
    connects = 0
    connect = Entrance.connect

    def counted(self: Entrance, *args: Any) -> Any:
        nonlocal connects
        connects += 1
        return connect(self, *args)

    Entrance.connect = counted

    names: dict[str, Any] = {"fairway": fairway, "os": os, "sys": sys, "time": time}
    saying = threading.Lock()

    def use(queue: object) -> None:
        names["q"] = queue

    def heed_silence(heed: bool) -> None:
        """Replace a silent host as soon as the limit says, or never."""
        hearing.SILENT_SECONDS = SILENT_SECONDS if heed else PATIENT_SECONDS

    def hold_gil(held: str, go_on: str) -> None:
        """Say so to one pipe and wait for the other, in C, without letting go of the interpreter."""
        ctypes.PyDLL(None).system(f"echo held > '{held}'; read line < '{go_on}'".encode())

    def begin_write(path: str) -> None:
        """Stand inside a transaction."""
        names["writer"] = apsw.Connection(path)
        names["writer"].execute("BEGIN IMMEDIATE")

    def end_write() -> None:
        names.pop("writer").close()

    def die_after_commit() -> None:
        """Die when the next group is stored, before anybody hears of it."""
        store = names["q"]._port._member.store
        commit = store.commit

        def last(group: object) -> None:
            commit(group)
            os.kill(os.getpid(), signal.SIGKILL)

        store.commit = last

    def put_many(prefix: str, count: int) -> list[int]:
        """One call after the other, each waiting for its answer."""
        return [names["q"].put(f"{prefix}-{i}".encode()).id for i in range(count)]

    storing = threading.Event()

    def slow_commit(seconds: float) -> None:
        """The next commit takes so long, and `storing` tells when it has begun."""
        store = names["q"]._port._member.store
        commit = store.commit
        storing.clear()

        def slow(group: object) -> None:
            del store.commit
            storing.set()
            time.sleep(seconds)
            commit(group)

        store.commit = slow

    enough = threading.Event()

    def put_until_enough(prefix: str) -> list[int]:
        found: list[int] = []
        while not enough.is_set():
            found.append(names["q"].put(f"{prefix}-{len(found)}".encode()).id)
        return found

    said = (
        *(use, heed_silence, hold_gil, begin_write, end_write),
        *(die_after_commit, slow_commit, put_many, put_until_enough),
    )
    names |= {function.__name__: function for function in said}
    names |= {"enough": enough.set, "storing": storing.is_set, "connects": lambda: connects}

    def run(ticket: int, code: str) -> None:
        try:
            said = ["value", eval(code, names)]
            text = json.dumps([ticket, *said])
        except BaseException as error:
            said = [type(error).__name__, str(error), getattr(error, "details", {})]
            text = json.dumps([ticket, "error", said])
        with saying:
            print(text, flush=True)

    for line in sys.stdin:
        threading.Thread(target=run, args=json.loads(line), daemon=True).start()


if __name__ == "__main__":
    main()
