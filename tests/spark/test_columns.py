"""Columns: no cast loses a field or changes a value in silence, at any depth. No session is needed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, FloatType, LongType, StructType

from fairway.errors import BadArgument
from fairway.spark.columns import arrow_of, fitted, schema_of, spark_of

WHERE = "the result of chunk 1 of submission 1 (tenant 't')"
NAIVE, NANO = pa.timestamp("us"), pa.timestamp("ns")
UTC, BERLIN = pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin")
NARROW = pa.struct([("a", pa.int64())])
WIDE = pa.struct([("a", pa.int64()), ("b", pa.int64())])
BOTH = {"a": 1, "b": 2}


def told(value: Any, has: pa.DataType, wanted: pa.DataType, chosen: bool = False) -> Any:
    """A value that a result has in a type, as it is told in that of the first result."""
    table = pa.table({"s": pa.chunked_array([pa.array([None], has), pa.array([value], has)])})
    return fitted(table, pa.schema([("s", wanted)]), {}, WHERE, chosen)["s"][1].as_py()


@pytest.mark.parametrize(
    ("value", "has", "wanted", "path"),
    [
        (BOTH, WIDE, NARROW, "s.b"),
        ({"s": BOTH}, pa.struct([("s", WIDE)]), pa.struct([("s", NARROW)]), "s.s.b"),
        ([BOTH], pa.list_(WIDE), pa.list_(NARROW), "s.element.b"),
        ([BOTH], pa.list_(WIDE, 1), pa.list_(NARROW), "s.element.b"),
        ([("k", BOTH)], pa.map_(pa.string(), WIDE), pa.map_(pa.string(), NARROW), "s.value.b"),
    ],
)
def test_a_field_that_only_a_later_result_has_is_dropped_only_by_who_chose(
    value: Any, has: pa.DataType, wanted: pa.DataType, path: str
) -> None:
    with pytest.raises(
        BadArgument, match=rf"chunk 1 .*tenant 't'.*'{path}' is not in the table that .*; give the"
    ):
        told(value, has, wanted)
    assert "b" not in str(told(value, has, wanted, chosen=True))


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize(
    ("value", "has", "wanted"),
    [
        (7, pa.int64(), pa.bool_()),
        (True, pa.bool_(), pa.int64()),
        (0.5, pa.float64(), pa.bool_()),
        (True, pa.bool_(), pa.float64()),
        (True, pa.dictionary(pa.int8(), pa.bool_()), pa.int8()),
    ],
)
def test_no_truth_value_is_made_of_a_number_nor_the_other_way_round(
    value: Any, has: pa.DataType, wanted: pa.DataType, chosen: bool
) -> None:
    named = rf"chunk 1 .*tenant 't'.*column '{{}}' is {'bool' if value is True else '(int64|double)'} and not"
    with pytest.raises(BadArgument, match=named.format("s")):
        told(value, has, wanted, chosen)
    with pytest.raises(BadArgument, match=named.format("s.b")):
        told({"b": value}, pa.struct([("b", has)]), pa.struct([("b", wanted)]), chosen)
    with pytest.raises(BadArgument, match=named.format("s.key")):
        told([(value, 1)], pa.map_(has, pa.int8()), pa.map_(wanted, pa.int8()), chosen)


@pytest.mark.parametrize(
    ("value", "has", "wanted", "chosen"),
    [
        (0.1, pa.float64(), pa.float32(), 0.10000000149011612),
        (1e300, pa.float64(), pa.float32(), float("inf")),
        (1.125, pa.float64(), pa.decimal128(5, 2), Decimal("1.12")),
        (Decimal("0.12345678901234567890"), pa.decimal128(20, 20), pa.float64(), None),
        (datetime(2026, 1, 2, 3), NAIVE, pa.date32(), date(2026, 1, 2)),
        (datetime(2026, 1, 2), NAIVE, UTC, None),
        ("007", pa.string(), pa.int64(), 7),
        (7, pa.int64(), pa.string(), "7"),
        (b"x", pa.binary(), pa.string(), "x"),
        (7, pa.int64(), NAIVE, None),
    ],
)
def test_a_value_that_another_type_would_change_is_an_error_unless_the_type_was_chosen(
    value: Any, has: pa.DataType, wanted: pa.DataType, chosen: Any
) -> None:
    with pytest.raises(
        BadArgument, match=r"chunk 1 .*tenant 't'.*column 's' is .* as in the table that .*; give"
    ):
        told(value, has, wanted)
    with pytest.raises(BadArgument, match=r"column 's.element' is "):
        told([value], pa.list_(has), pa.list_(wanted))
    found = told(value, has, wanted, chosen=True)
    assert chosen in (None, found)


@pytest.mark.parametrize(
    ("value", "has", "wanted"),
    [
        (7, pa.int32(), pa.int64()),
        (7, pa.int64(), pa.int8()),
        (7, pa.int64(), pa.float64()),
        (2**53, pa.int64(), pa.float64()),
        (7, pa.int64(), pa.decimal128(38, 2)),
        (2**64 - 1, pa.uint64(), pa.decimal128(20, 0)),
        (0.5, pa.float32(), pa.float64()),
        (0.5, pa.float64(), pa.float32()),
        (float("nan"), pa.float64(), pa.float32()),
        (float("-inf"), pa.float64(), pa.float32()),
        (0.5, pa.float16(), pa.float32()),
        (Decimal("1.5"), pa.decimal128(5, 2), pa.decimal128(20, 4)),
        (Decimal("1.5"), pa.decimal128(5, 2), pa.float64()),
        ("x", pa.large_string(), pa.string()),
        ("x", pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (b"xyz", pa.binary(3), pa.binary()),
        (datetime(2026, 1, 2, 3), NANO, NAIVE),
        (date(2026, 1, 2), pa.date64(), pa.date32()),
        ([1, 2], pa.large_list(pa.int32()), pa.list_(pa.int64())),
        ([1, 2], pa.list_(pa.int32(), 2), pa.list_(pa.int64())),
        ([("k", 1)], pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int64())),
        ({"b": 1, "a": 2}, pa.struct([("b", pa.int8()), ("a", pa.int8())]), WIDE),
    ],
)
def test_a_type_that_holds_every_value_takes_them(value: Any, has: pa.DataType, wanted: pa.DataType) -> None:
    for chosen in (False, True):
        found = told(value, has, wanted, chosen)
        lists = pa.struct([("x", pa.list_(has))]), pa.struct([("x", pa.list_(wanted))])
        inside = told({"x": [value]}, *lists, chosen)["x"][0]
        assert (found == value and inside == value) or (found != found and value != value)


def test_what_has_no_value_loses_none_and_the_same_instant_is_the_same_in_any_zone() -> None:
    for has, wanted in ((pa.null(), WIDE), (pa.int64(), pa.bool_()), (pa.string(), pa.int64())):
        assert told(None, has, wanted) is None
    noon = datetime.fromisoformat("2026-01-02T12:00:00+00:00")
    assert told(noon, BERLIN, UTC) == noon


def test_two_columns_of_one_name_are_refused_by_it() -> None:
    twice = pa.table([[1], [2]], names=["tax", "tax"])
    with pytest.raises(BadArgument, match=r"chunk 1 .*tenant 't'.* has two columns 'tax'"):
        fitted(twice, pa.schema([("tax", pa.int64())]), {}, WHERE)
    inside = pa.struct([("tax", pa.int64()), ("tax", pa.int64())])
    for given, path in (
        (twice.schema, "tax"),
        (StructType().add("tax", LongType()).add("tax", LongType()), "tax"),
        (pa.schema([("s", inside)]), "s.tax"),
        (pa.schema([("s", pa.list_(inside))]), "s.element.tax"),
    ):
        with pytest.raises(BadArgument, match=f"two columns '{path}'"):
            schema_of(given)


def test_unsigned_numbers_have_the_next_type_of_spark_at_any_depth() -> None:
    """As Spark reads them from Parquet."""
    given = pa.schema([("x", pa.uint64()), ("y", pa.list_(pa.struct([("z", pa.uint32())])))])
    found = spark_of(given)
    assert found["x"].dataType == DecimalType(20, 0)
    assert arrow_of(found).field("y").type == pa.list_(pa.struct([("z", pa.int64())]))
    assert spark_of(pa.schema([("x", pa.float16())])) == StructType().add("x", FloatType())
    assert spark_of(pa.schema([("x", pa.dictionary(pa.int8(), pa.uint32()))]))["x"].dataType == LongType()


@pytest.mark.parametrize("type", [pa.time32("s"), pa.month_day_nano_interval(), pa.list_(pa.date64())])
def test_a_type_that_spark_lacks_is_told_with_its_column(type: pa.DataType) -> None:
    with pytest.raises(BadArgument, match=r"column 'x' is .*, which Spark does not have.*cast it"):
        spark_of(pa.schema([("fine", pa.int64()), ("x", type)]))
