"""Programs of a few lines that stand before a program of somebody else's.

Guards: nobody runs half of one, or one that another user put there.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def placed(name: str, text: str) -> Path | None:
    """Where the program is, written unless it is there: beside the Python environment, or else among the user's own."""
    own = Path(tempfile.gettempdir()) / f"fairway-spark-{os.getuid()}"
    for folder in (Path(sys.prefix) / "share" / "fairway", own):
        try:
            return _written(folder, folder / name, text)
        except OSError:
            continue
    return None


def _written(folder: Path, path: Path, text: str) -> Path:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        half = path.with_suffix(f".{os.getpid()}")
        half.write_text(text, encoding="utf-8")
        half.chmod(0o755)
        half.replace(path)
    for one in (path, *(above for above in path.parents if above.is_relative_to(folder))):
        if one.stat().st_uid != os.getuid():
            raise PermissionError(f"{one} belongs to another user")
    return path
