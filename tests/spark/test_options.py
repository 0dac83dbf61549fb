"""Options: what a caller gives is what the queue gets. No Spark is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructType, YearMonthIntervalType

import fairway
from fairway.errors import BadArgument
from fairway.spark.columns import ORIGINS, schema_of
from fairway.spark.datasource import FairwaySource
from fairway.spark.places import batches_folder
from fairway.spark.processing import _checkpoint
from fairway.spark.settings import SOURCE, WRITE, Settings, located
from fairway.spark.shapes import REFERENCE
from fairway.spark.telling import unwrapped


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


@pytest.mark.parametrize("spelled", ["a b.db", "file:{}/a%20b.db", "file:///{}/a%20b.db", Path("a b.db")])
def test_a_queue_has_one_place_for_fairway_and_for_spark_however_it_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str | Path
) -> None:
    monkeypatch.chdir(tmp_path)
    if isinstance(spelled, str):
        spelled = spelled.replace("/{}", str(tmp_path)).replace("{}", str(tmp_path))
    fairway.open(spelled).close()
    path = str(tmp_path / "a b.db")
    assert [str(one) for one in tmp_path.glob("*.db")] == [path]
    assert located(spelled) == path
    assert Settings({"path": str(spelled)}, WRITE).objects == f"file://{tmp_path}/a%20b.db-objects"
    assert batches_folder(spelled, "q") == batches_folder(path, "q")
    assert _checkpoint(located(spelled), "q", "c") == f"{path}-spark/q/c"


def test_a_relative_file_url_is_relative_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("file:work.db") == str(tmp_path / "work.db")


@pytest.mark.parametrize("url", ["s3://bucket/q.db", "file://elsewhere/q.db", 7, None, ["http://a:1"]])
def test_what_is_no_place_of_a_queue_is_refused(url: object) -> None:
    with pytest.raises(BadArgument, match=r"url must be|URL is missing"):
        located(url)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "name", "text"),
    [(WRITE, "weight", text) for text in ("1000", "0", "nan", "0.0005", "much")]
    + [(SOURCE, "waitSeconds", text) for text in ("-1", "nan", "inf", "3601", "soon")],
)
def test_a_number_that_the_queue_would_refuse_is_refused_before_any_work(
    where: str, name: str, text: str
) -> None:
    with pytest.raises(BadArgument, match=f"{name} must be a number from 0"):
        Settings({"path": "/q.db", name: text}, where)


@pytest.mark.parametrize("given", [{"strategy": "Fair"}, {"emit": "references"}, {"waitSeconds": "1"}])
def test_a_stream_without_a_consumer_is_told_so(given: dict[str, str]) -> None:
    stream = FairwaySource({"path": "/q.db", **given})
    schema = stream.schema()
    assert schema == REFERENCE
    with pytest.raises(BadArgument, match="option 'consumer' is missing"):
        stream.streamReader(StructType())


def test_who_gives_neither_a_kind_nor_a_consumer_is_told_of_both() -> None:
    with pytest.raises(BadArgument, match=r"option 'kind' is missing.*a stream needs a consumer"):
        FairwaySource({"path": "/q.db"}).schema()
    with pytest.raises(
        BadArgument, match=r"option 'strategy' is unknown to batch reads.*a stream needs a con"
    ):
        FairwaySource({"path": "/q.db", "kind": "chunks", "strategy": "Fair"}).schema()


def test_an_error_of_ours_that_spark_wrapped_comes_out_as_itself() -> None:
    wrapped = "An exception was thrown\n  File ...\nfairway.errors.BadArgument: option weight is bad\n\tat x"
    with pytest.raises(BadArgument, match=r"^option weight is bad$"), unwrapped():
        raise PySparkException(wrapped)
    with pytest.raises(PySparkException, match=r"^something else$"), unwrapped():
        raise PySparkException("something else")


def test_rows_have_the_schema_that_ended_submissions_noted_if_none_is_active(
    tmp_path: Path, unhurried: None
) -> None:
    url, noted = str(tmp_path / "q.db"), pa.schema([("x", pa.int64())])
    rows = FairwaySource({"path": url, "consumer": "c", "emit": "rows"})
    with fairway.open(url) as q:
        q.cancel(q.submit(chunks=1))
        with pytest.raises(BadArgument, match=r"give the schema of the rows with .schema"):
            rows.schema()
        q.cancel(q.submit(chunks=1, info=b"0123456789ab " + noted.serialize().to_pybytes()))
        found = rows.schema()
        assert isinstance(found, StructType) and found.fieldNames() == ["x", *ORIGINS]
        q.submit(chunks=1)
        with pytest.raises(BadArgument, match=r"give the schema of the rows with .schema"):
            rows.schema()


def test_rows_may_have_columns_that_are_called_as_those_of_their_origin_and_nulls_in_any(
    tmp_path: Path, unhurried: None
) -> None:
    """As rows have that were collected and are submitted again; a later submission may have nulls."""
    url = str(tmp_path / "q.db")
    noted = pa.schema([pa.field("_tenant", pa.string(), nullable=False), ("x", pa.int64())])
    with fairway.open(url) as q:
        q.submit(chunks=1, info=b"0123456789ab " + noted.serialize().to_pybytes())
        found = FairwaySource({"path": url, "consumer": "c", "emit": "rows"}).schema()
    assert isinstance(found, StructType)
    assert found.fieldNames() == ["_tenant", "x", "_submission", "_index", "_chunk"]
    assert all(field.nullable for field in found)


@pytest.mark.parametrize("given", [{f"k{at}": at for at in range(32)}, {"token": "mine"}])
def test_metadata_that_leave_no_place_for_the_token_are_refused_before_any_work(
    given: dict[str, Any],
) -> None:
    source = FairwaySource({"path": "/q.db", "tenantColumn": "tenant", "metadata": json.dumps(given)})
    with pytest.raises(BadArgument, match=r"option metadata: .*token"):
        source.writer(StructType().add("tenant", StringType()), False)


def test_a_stream_in_the_mode_complete_is_not_submitted() -> None:
    """Each of its batches has all rows again."""
    source = FairwaySource({"path": "/q.db", "tenantColumn": "tenant", "submissionToken": "s"})
    columns = StructType().add("tenant", StringType())
    source.streamWriter(columns, False)
    with pytest.raises(BadArgument, match=r"a queue is only added to: use outputMode\('append'\)"):
        source.streamWriter(columns, True)


TEXT, TENANT = StringType(), StructType().add("a", StringType())


@pytest.mark.parametrize(
    ("tenant", "x", "named"),
    [
        (TENANT, TEXT, r"option tenantColumn: column 'tenant' is struct.*cast it to a string"),
        (ArrayType(TEXT), TEXT, r"option tenantColumn: column 'tenant' is list.*cast it to a string"),
        (
            TEXT,
            YearMonthIntervalType(),
            r"column 'x' cannot be written: .*YearMonthInterval.*cast it or leave it",
        ),
    ],
)
def test_a_column_that_cannot_be_what_it_should_is_named_before_any_work(
    tenant: DataType, x: DataType, named: str
) -> None:
    columns = StructType().add("tenant", tenant).add("x", x)
    with pytest.raises(BadArgument, match=named):
        FairwaySource({"path": "/q.db", "tenantColumn": "tenant"}).writer(columns, False)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (StructType().add("tenant", TEXT).add("x", TEXT).add("x", TEXT), "x"),
        (StructType().add("tenant", TEXT).add("x", TEXT).add("tenant", TEXT), "tenant"),
        (StructType().add("tenant", TEXT).add("s", StructType().add("x", TEXT).add("x", TEXT)), "s.x"),
    ],
)
def test_two_columns_of_one_name_are_not_submitted(columns: StructType, named: str) -> None:
    source = FairwaySource({"path": "/q.db", "tenantColumn": "tenant", "submissionToken": "s"})
    for write in (source.writer, source.streamWriter):
        with pytest.raises(BadArgument, match=f"the DataFrame has two columns '{named}'"):
            write(columns, False)


def test_a_listing_that_is_asked_for_other_columns_says_which_it_has() -> None:
    listing = FairwaySource({"path": "/q.db", "kind": "submissions"})
    given = listing.schema()
    assert isinstance(given, StructType)
    listing.reader(given)
    with pytest.raises(
        BadArgument, match=r"kind=submissions has the columns id, state, tenant.*leave the schema"
    ):
        listing.reader(StructType().add("id", LongType()))


@pytest.mark.parametrize("schema", ["", " ", 7, pa.schema([]), StructType()])
def test_a_schema_without_a_column_is_refused(schema: Any) -> None:
    """Results that were cut down to it would have no column left."""
    with pytest.raises(BadArgument, match="schema must be columns"):
        schema_of(schema)
