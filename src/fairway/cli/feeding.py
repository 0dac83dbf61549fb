"""Chunks from files and standard input: a chunk per line, per some lines, or per file.

Guards: chunks come one by one, so a file larger than memory can be uploaded; no line is lost or changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from fairway.errors import BadArgument

Tell = Callable[[int], None]  # so many bytes more were read


def chunks(files: Sequence[str], lines: int, whole: bool, tell: Tell) -> Iterator[bytes]:
    """The payloads in files, `lines` lines each, or each file as one."""
    for name in files:
        with _opened(name) as file:
            if whole:
                data = file.read()
                tell(len(data))
                yield data
            else:
                yield from _by_lines(file, lines, tell)


def total_bytes(files: Sequence[str]) -> int | None:
    """How much there is to read; None if that cannot be told."""
    try:
        found = [os.stat(name) for name in files]
        return sum(one.st_size for one in found) if all(stat.S_ISREG(one.st_mode) for one in found) else None
    except OSError:
        return None  # opening it says why


def _by_lines(file: BinaryIO, lines: int, tell: Tell) -> Iterator[bytes]:
    some: list[bytes] = []
    for line in file:
        tell(len(line))
        some.append(line.removesuffix(b"\n").removesuffix(b"\r"))
        if len(some) == lines:
            yield b"\n".join(some)
            some = []
    if some:
        yield b"\n".join(some)


def _opened(name: str) -> BinaryIO:
    try:
        return open(name, "rb")
    except OSError as error:
        raise BadArgument(f"{name} cannot be read: {error.strerror}; give a file that is there") from None
