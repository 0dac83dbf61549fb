"""Options: what a caller gives is what the queue gets. No Spark is needed."""

from __future__ import annotations

import json

import pytest

from fairway.errors import BadArgument
from fairway.spark.settings import WRITE, Settings


def metadata(text: str) -> object:
    return Settings({"path": "/q.db", "tenantColumn": "t", "metadata": text}, WRITE)["metadata"]


@pytest.mark.parametrize(
    "given",
    [{"zip": "01234"}, {"note": "a,b=c", "n": 7}, {"a": "a,b"}, {"v": "²"}, {"q": " x "}, {"é": "{}"}],
)
def test_metadata_in_json_stays_as_it_was(given: dict[str, str | int]) -> None:
    assert metadata(json.dumps(given)) == given


def test_the_short_form_of_metadata_makes_numbers_only_of_what_is_written_as_one() -> None:
    assert metadata("mode=full, n=7,m=-12,zip=01234,v=²,d=--5,zero=0") == {
        "mode": "full",
        "n": 7,
        "m": -12,
        "zip": "01234",
        "v": "²",
        "d": "--5",
        "zero": 0,
    }


@pytest.mark.parametrize("text", ["a,b", "{", '{"a": 1.5}', '{"a": [1]}', '{"tenant": "x"}', '{"a": true}'])
def test_metadata_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(BadArgument, match="metadata"):
        metadata(text)
