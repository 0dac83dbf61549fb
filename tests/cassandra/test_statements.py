"""The statements that are sent to Cassandra: nothing in them lets a row vanish by itself."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from fairway.store.cassandra.connection import statements

FILES = sorted(one.name for one in files("fairway.store.cassandra").iterdir() if one.name.endswith(".cql"))


def test_every_file_of_statements_is_looked_at() -> None:
    assert {"schema.cql", "fence.cql", "write.cql", "bucket_schema.cql", "buckets.cql"} <= set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_no_row_has_a_time_to_live(file: str) -> None:
    for name, text in statements(file).items():
        assert not re.search(r"\bTTL\b", text, re.IGNORECASE), name
        if text.lstrip().upper().startswith("CREATE TABLE"):
            assert "default_time_to_live = 0" in text, name
