"""A damaged row in a real file, met by a read of the window: callers hear of it, and so does the log."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import fairway

SECONDS = 60.0  # nothing here takes one; a hang must end


def damage(path: Path, which: int) -> int:
    """Spoil the row of the n-th message in an open file; gives its id."""
    with sqlite3.connect(path, timeout=30) as file:
        id, body = file.execute("SELECT id, body FROM runs ORDER BY id LIMIT 1 OFFSET ?", (which,)).fetchone()
        spoilt = bytearray(body)
        spoilt[len(spoilt) // 2] ^= 0xFF
        file.execute("UPDATE runs SET body = ? WHERE id = ?", (bytes(spoilt), id))
    file.close()
    return id


def work(q: fairway.Queue, got: list[bytes], end: list[BaseException]) -> None:
    try:
        while leases := q.reserve():
            got.extend(lease.payload for lease in leases)
            q.complete(leases)
    except BaseException as error:
        end.append(error)


def test_a_reserve_that_needs_a_damaged_row_hears_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairway")
    path = tmp_path / "q.db"
    with fairway.open(path, window_rows=1) as q:
        for n in range(6):
            q.put(b"%d" % n)
        damage(path, 3)
        got: list[bytes] = []
        end: list[Any] = []
        thread = threading.Thread(target=work, args=(q, got, end), daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert not thread.is_alive(), "it hangs"
        assert got == [b"0", b"1", b"2"] and isinstance(end[0], fairway.StoreCorrupt)
        assert "damaged" in str(end[0])
        said = [record.getMessage() for record in caplog.records if "backlog" in record.getMessage()]
        assert said and "damaged" in said[0] and len(said) <= 4, "each kind of read that fails, once"
        assert q.put(b"more").id, "puts go on"
