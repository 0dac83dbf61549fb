"""The keeper: a process that starts nodes and ends them when the process they are for is gone, however it went.

Guards: no node outlives its user: if the user is killed the keeper kills the nodes, if the keeper is killed the kernel
does. Run as `python -m fairway.testing.cassandra.keeper PID`; it reads one command per line and answers with a pid.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Final

_POLL_SECONDS: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1


def keep(user: int) -> None:
    """Start what is asked for until the user is gone or says so."""
    started: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # a blocked mask would be inherited by the nodes
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user's Ctrl-C is for the user
    gone = _watch(user)
    listening = True
    try:
        while not gone():
            readable = select.select([0] if listening else [], [], [], _POLL_SECONDS)[0]
            line = sys.stdin.readline() if readable else ""
            if readable and not line:
                listening = False
            if line:
                started.append(_start(**json.loads(line)))
                print(started[-1].pid, flush=True)
            started = [process for process in started if process.poll() is None]
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
        for process in started:
            process.wait()


def _start(arguments: list[str], folder: str, output: str) -> subprocess.Popen[bytes]:
    with open(output, "ab") as out:
        return subprocess.Popen(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_keeper,
        )


def _die_with_keeper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(user: int) -> Callable[[], bool]:
    """A function that says whether a process is gone; a process that nobody has waited for is gone too."""
    if not hasattr(os, "pidfd_open"):
        return lambda: not _signalled(user)
    try:
        descriptor = os.pidfd_open(user)
    except ProcessLookupError:
        return lambda: True
    return lambda: bool(select.select([descriptor], [], [], 0)[0])


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    keep(int(sys.argv[1]))
