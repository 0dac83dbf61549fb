"""A busy ring makes no system call: the kernel ends the process that makes one."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import signal
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.ring.face import Delivery, Ring
from tests.ring.victims import child

pytestmark = pytest.mark.real

EXIT_GROUP = {"x86_64": 231, "aarch64": 94}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
MESSAGE = b"x" * 64


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def no_more_system_calls() -> None:
    """From here on this process may only end."""
    steps = [
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, EXIT_GROUP[platform.machine()]),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, KILL_PROCESS),
    ]
    program = Program(len(steps), b"".join(struct.pack("<HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        os._exit(77)


def work(ring: Ring, times: int) -> None:
    for _ in range(times):
        ring.put(MESSAGE)
        ring.put_many([MESSAGE] * 8)
        ring.pop()
        with ring.get():
            pass
        ring.pop_many(7)


def ended(path: Path, act: Callable[[Ring], object]) -> int:
    """How a process ended that did something with a ring, and was not allowed a system call."""

    def alone() -> None:
        ring = Ring.attach(path)
        gc.disable()
        work(ring, 300)  # Python has the memory that it needs from here on
        no_more_system_calls()
        act(ring)
        os._exit(0)

    status = os.waitstatus_to_exitcode(os.waitpid(child(alone), 0)[1])
    if status == 77:
        pytest.skip("needs seccomp: this machine has no filters of system calls")
    return status


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_a_busy_ring_makes_no_system_call(place: Path, delivery: Delivery) -> None:
    """Over many laps; a wait is a system call, which shows that somebody looks."""
    with Ring.create(place / "ring", 1 << 16, delivery=delivery, crc=True) as ring:
        assert ended(place / "ring", lambda own: work(own, 5_000)) == 0, "it made a system call"
        assert ring.stats().written > 20 * (1 << 16) // 64
        assert ended(place / "ring", lambda own: own.pop(0.01)) == -signal.SIGSYS
