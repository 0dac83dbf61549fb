"""Listings give what was asked for, and nothing beside it. No Spark is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.errors import BadArgument
from fairway.spark.listings import Listing
from fairway.spark.settings import READ, Settings
from tests.spark.pipeline import forget

pytestmark = pytest.mark.real


def listed(url: str, kind: str, **options: str) -> list[dict[str, Any]]:
    listing = Listing(Settings({"path": url, "kind": kind, **options}, READ))
    parts = listing.partitions()
    return [row for part in parts for batch in listing.read(part) for row in batch.to_pylist()]


def test_events_of_one_submission_are_its_own(tmp_path: Path, unhurried: None) -> None:
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        first, second = (q.submit(chunks=2, tenant=tenant) for tenant in ("a", "b"))
        q.complete(q.reserve(max=4))
        whole = listed(url, "events")
        for one in (first, second):
            found = listed(url, "events", submission=str(one.id))
            assert found == [event for event in whole if event["submission"] == one.id]
            assert {"submitted", "reserved", "completed"} <= {event["what"] for event in found}


def test_events_of_a_tenant_are_refused_and_not_those_of_all(tmp_path: Path, unhurried: None) -> None:
    """Only the first event of a submission tells the tenant."""
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        q.submit(chunks=2, tenant="a")
        with pytest.raises(BadArgument, match=r"option tenant: .*read the submissions of the tenant"):
            listed(url, "events", tenant="b")
        assert [row["tenant"] for row in listed(url, "submissions", tenant="a")] == ["a"]


def test_what_was_forgotten_since_it_was_listed_has_no_chunks(tmp_path: Path, unhurried: None) -> None:
    url = str(tmp_path / "q.db")
    with fairway.open(url) as q:
        q.submit(chunks=2, tenant="a")
        q.complete(q.reserve(max=2))
        q.submit(chunks=1, tenant="b")
        listing = Listing(Settings({"path": url, "kind": "chunks"}, READ))
        parts = listing.partitions()
        forget(q)
        found = [row for part in parts for batch in listing.read(part) for row in batch.to_pylist()]
        assert [(row["tenant"], row["state"]) for row in found] == [("b", "open")]
