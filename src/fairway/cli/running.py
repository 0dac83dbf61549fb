"""What `fairway work` does with a chunk: a command is run, or a Python function is called.

Guards: a command ends in a result, in a reason to try again or to give up, or is ended, and in nothing else; one that
is ended leaves no process of its group behind.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from fairway.errors import BadArgument
from fairway.model.lease import Lease
from fairway.worker.loop import Endable, Failed, Function, Stopped

GIVE_UP: Final = 65  # EX_DATAERR of sysexits.h: the input is wrong, and will be the next time
_TAIL_CHARS: Final = 2000  # of what a command said on standard error


class RunCommand(Endable):
    """Runs a program for each chunk: payload in, result out."""

    def __init__(self, arguments: Sequence[str], timeout: float | None) -> None:
        self._arguments = list(arguments)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: set[str] = set()

    def __call__(self, lease: Lease) -> bytes | None:
        payload = lease.payload or b""
        try:
            process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **variables(lease)},
                start_new_session=True,  # Ctrl-C at the terminal is ours to hear, and it is ended as a group
            )
        except OSError as error:
            raise Failed(f"{self._arguments[0]}: {error.strerror}") from None
        with process:
            with self._lock:
                self._running[lease.receipt] = process
                if lease.receipt in self._ended:
                    _end(process)
            try:
                out, err = process.communicate(payload, self._timeout)
            except subprocess.TimeoutExpired:
                _end(process)
                raise Failed(f"it took longer than {self._timeout:g} s and was ended") from None
            finally:
                with self._lock:
                    del self._running[lease.receipt]
                    ended = lease.receipt in self._ended
                    self._ended.discard(lease.receipt)
        if ended:
            raise Stopped
        if process.returncode:
            raise Failed(_why(process.returncode, err), process.returncode != GIVE_UP)
        return out or None

    def end(self, lease: Lease) -> None:
        with self._lock:
            self._ended.add(lease.receipt)
            process = self._running.get(lease.receipt)
            if process is not None:
                _end(process)


def command_of(words: Sequence[str], timeout: float | None) -> RunCommand:
    """One word is for the shell; several are a program and its arguments."""
    return RunCommand(["/bin/sh", "-c", words[0]] if len(words) == 1 else words, timeout)


def function_of(name: str) -> Function:
    """module:function, found as `python -m` would find it."""
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise BadArgument(f"{name!r} names no function; write module:function")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise BadArgument(f"{name} cannot be found: {error}") from None
    if not callable(found):
        raise BadArgument(f"{name} is a {type(found).__name__}; name a function")
    return cast(Function, found)


def variables(lease: Lease) -> dict[str, str]:
    """What a command is told of its chunk."""
    told = {
        "FAIRWAY_SUBMISSION": str(lease.submission),
        "FAIRWAY_INDEX": str(lease.index),
        "FAIRWAY_ATTEMPT": str(lease.attempt),
        "FAIRWAY_TENANT": lease.tenant,
        "FAIRWAY_META": msgspec.json.encode(dict(lease.metadata)).decode(),
        "FAIRWAY_INFO": lease.info.decode(errors="replace"),
        "FAIRWAY_OBJECT": lease.object or "",
    }
    # A variable cannot hold a NUL; a name or an info with one is for programs that read the lease itself.
    return {name: value.replace("\0", "") for name, value in told.items()}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return  # its number may belong to another by now
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _why(code: int, err: bytes) -> str:
    how = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    said = err.decode(errors="replace").strip()[-_TAIL_CHARS:]
    return f"{how}: {said}" if said else how
