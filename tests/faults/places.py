"""Where the files that a power cut left are put."""

from __future__ import annotations

from pathlib import Path

import apsw


def place(files: dict[str, bytes], folder: Path) -> Path:
    """Write them into a new folder; gives the path of the queue's file."""
    folder.mkdir()
    for path, content in files.items():
        (folder / Path(path).name).write_bytes(content)
    return folder / "work.db"


def unsound(path: Path) -> str:
    """What SQLite finds wrong in a file; nothing: the empty text."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        found = str(connection.pragma("integrity_check"))
    except apsw.Error as error:
        return str(error)
    finally:
        connection.close()
    return "" if found == "ok" else found
