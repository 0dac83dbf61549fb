"""Functions that workers of the tests run; processes import them from here."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from fairway import Lease, Queue


def reverse(lease: Lease) -> bytes:
    return (lease.payload or b"")[::-1]


def tell_pid(lease: Lease) -> bytes:
    time.sleep(0.02)
    return str(os.getpid()).encode()


def die_once(lease: Lease) -> bytes:
    """The first try ends its whole process."""
    if lease.attempt == 1 and lease.payload == b"die":
        os._exit(9)
    return b"lived"


def leave_once(lease: Lease) -> None:
    """The first try ends its whole process, as if all were well."""
    if lease.attempt == 1:
        os._exit(0)


def mark_and_sleep(lease: Lease) -> bytes:
    """Say that it began, in the folder that the payload names, then take its time."""
    folder = Path((lease.payload or b"").decode())
    (folder / f"began-{lease.index}").touch()
    time.sleep(1.0)
    (folder / f"ended-{lease.index}").touch()
    return b"done"


def block(lease: Lease) -> bytes:
    """Sleep in one long call, after saying who does; or say who this is."""
    who = str(os.getpid())
    if lease.payload != b"who":
        (Path((lease.payload or b"").decode()) / f"pid-{who}").touch()
        time.sleep(600)
    return who.encode()


def work_a_little(lease: Lease) -> bytes:
    """Turn the payload round in a moment; the folder of the test says that this process began, and where it is."""
    folder, who = Path(os.environ["FAIRWAY_TEST_FOLDER"]), os.getpid()
    (folder / f"began-{who}").touch()
    here = folder / f"at-{who}-{lease.submission}-{lease.index}"
    here.touch()
    time.sleep(0.005)
    here.unlink()
    return reverse(lease)


def run_until_stopped(lease: Lease) -> None:
    """Say in the folder that the payload names that it began, go on for ever, and say when it is stopped."""
    folder = Path((lease.payload or b"").decode())
    (folder / "began").touch()
    try:
        while True:
            time.sleep(0.01)
    except BaseException as error:
        (folder / type(error).__name__).touch()
        raise


def told_done(queue: type[Queue]) -> None:
    """Write down, in one write, of which chunks a complete of this process was told that they are done."""
    sound, folder = queue.complete, Path(os.environ["FAIRWAY_TEST_FOLDER"])

    def complete(self: Queue, leases: list[Lease], *args: Any, **more: Any) -> list[str]:
        outcomes = sound(self, leases, *args, **more)
        done = [one for one, told in zip(leases, outcomes, strict=True) if told == "done"]
        with open(folder / "done", "a") as file:
            file.write("".join(f"{one.submission} {one.index}\n" for one in done))
        return outcomes

    queue.complete = complete
