"""Finding a Java that Cassandra 5.0 runs on.

Guards: a Java of another version is never used: a newer one fails at the start, with an error that says little.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairway.errors import NeedMissing

JAVA_VERSION: Final = 17
_RELEASE = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_PLACES: Final = ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines", "/opt/java")


def find_java() -> Path:
    """The `java` of a Java 17."""
    for home in _homes():
        program = home / "bin" / "java"
        if _version(home) == JAVA_VERSION and os.access(program, os.X_OK):
            return program
    raise NeedMissing(
        f"Cassandra needs Java {JAVA_VERSION}, and there is none on this machine; run `make system`, "
        f"or install it and set JAVA{JAVA_VERSION}_HOME"
    )


def _homes() -> Iterator[Path]:
    for name in (f"JAVA{JAVA_VERSION}_HOME", "JAVA_HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for place in map(Path, _PLACES):
        if place.is_dir():
            yield from sorted(entry for entry in place.iterdir() if entry.is_dir())
            yield from sorted(place.glob("*/Contents/Home"))


def _version(home: Path) -> int:
    try:
        found = _RELEASE.search((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return 0
    return int(found[1]) if found else 0
