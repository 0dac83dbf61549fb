"""Building the ring's extension with the machine's C compiler.

Guards: it imports nothing of Fairway, so that the build can run it before Fairway is installed; what it cannot build
it says, and leaves nothing half made behind.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("ring.c")
NAME = "_ring"
SUFFIX = ".abi3.so"  # one file serves every Python from 3.11 on
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-fPIC", "-shared")
_SECONDS = 120


class CannotBuild(Exception):
    """What the machine lacks, or what its compiler said."""


def compiler() -> list[str]:
    """The command of the C compiler. Raises CannotBuild where there is none, or not for this system."""
    if not sys.platform.startswith("linux"):
        raise CannotBuild("the ring works on Linux only")
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        command = shlex.split(name) if name else []
        if command and shutil.which(command[0]):
            return command
    raise CannotBuild("there is no C compiler (cc, gcc or clang)")


def headers() -> str:
    """The folder with Python.h."""
    folder = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(folder, "Python.h")):
        raise CannotBuild("the C headers of Python are not there")
    return folder


def build(folder: Path, name: str = NAME, define: Sequence[str] = ()) -> Path:
    """Build the extension into a folder, with macros if any. Raises CannotBuild."""
    target = folder / f"{name}{SUFFIX}"
    fresh = folder / f"{name}.{os.getpid()}.new"
    macros = [f"-D{macro}" for macro in (f"RING_MODULE={name}", *define)]
    command = [*compiler(), *_FLAGS, *macros, f"-I{headers()}", str(SOURCE), "-o", str(fresh)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        if run.returncode:
            raise CannotBuild(f"the compiler refused: {run.stderr.strip()[-2000:]}")
        os.replace(fresh, target)  # a process may have the old one mapped
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(str(error)) from error
    finally:
        fresh.unlink(missing_ok=True)
    return target
