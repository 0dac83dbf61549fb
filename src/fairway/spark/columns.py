"""Columns: tables in the shape that a Spark schema promises, with columns that say where rows come from.

Guards: a row never loses or changes a value on the way to Spark; a column that is missing is an error that says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import pyarrow as pa
from pyarrow import types
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from fairway.errors import BadArgument
from fairway.spark.casting import check_cast, check_none_left_out

# Spark has no unsigned numbers. These are what it makes of them in Parquet.
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
# Filled by the source where a schema names them.
ORIGINS = {"_tenant": pa.string(), "_submission": pa.int64(), "_index": pa.int32(), "_chunk": pa.string()}


def arrow_of(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema, timezone="UTC")


def writable(schema: StructType) -> pa.Schema:
    """The schema of rows that are written; a column that Arrow or Spark cannot write is refused by its name."""
    try:
        arrow = arrow_of(schema)
        check_once(arrow, "the DataFrame")
        return arrow
    except PySparkException:
        for field in schema.fields:
            try:
                arrow_of(StructType([field]))
            except PySparkException as error:
                raise BadArgument(
                    f"column {field.name!r} cannot be written: {error}; cast it or leave it out",
                    argument=field.name,
                ) from None
        raise


def spark_of(schema: pa.Schema) -> StructType:
    """The schema as Spark has it; a column of a type that Spark lacks is refused by its name."""
    found = StructType()
    for field in schema:
        try:
            one = from_arrow_schema(pa.schema([_widened(field)]), prefer_timestamp_ntz=True)
        except PySparkException:
            raise BadArgument(
                f"column {field.name!r} is {field.type}, which Spark does not have; cast it, or give the columns that"
                " you want as a schema, in types of Spark's",
                argument=field.name,
            ) from None
        found.add(one.fields[0])
    return found


def _widened(field: pa.Field) -> pa.Field:
    type = field.type
    if types.is_dictionary(type):
        type = type.value_type
    if types.is_struct(type):
        type = pa.struct([_widened(inner) for inner in type])
    elif types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        type = pa.list_(_widened(type.value_field))
    elif types.is_map(type):
        type = pa.map_(_widened(type.key_field), _widened(type.item_field))
    return field.with_type(_WIDER.get(type, type))


def check_once(fields: Iterable[pa.Field], what: str, path: str = "") -> None:
    """Nobody can say which of two columns, or fields of a struct, that have one name is meant."""
    names: set[str] = set()
    for field in fields:
        where = path + field.name
        if field.name in names:
            raise BadArgument(f"{what} has two columns {where!r}; rename one of them", argument=where)
        names.add(field.name)
        inner = [field.type.field(at) for at in range(field.type.num_fields)]
        check_once(inner, what, f"{where}.")


def first_of_many(schema: pa.Schema) -> StructType:
    """The columns of one table, for others too: they may have nulls where this one has none."""
    return spark_of(schema).toNullable()


def schema_of(given: str | StructType | pa.Schema) -> StructType:
    """A schema from its DDL text, or as Arrow or Spark have it."""
    found = given
    if isinstance(given, pa.Schema):
        found = spark_of(given)
    elif isinstance(given, str) and given.strip():
        found = StructType.fromDDL(given)
    if not isinstance(found, StructType) or not found.fields:
        raise BadArgument(
            "schema must be columns, as a text such as 'x long, y string', a StructType or a pyarrow.Schema,"
            f" not {given!r:.80}",
            argument="schema",
        )
    with suppress(PySparkException):  # a type that Arrow lacks is told by who uses it
        check_once(arrow_of(found), "schema")
    return found


def fitted(
    table: pa.Table, schema: pa.Schema, origin: Mapping[str, object], what: str, chosen: bool = True
) -> pa.Table:
    """The table with exactly these columns; `origin` has the values for columns that tell where rows come from.

    Who chose the schema may leave fields out and have values rounded. Else it is that of the first table.
    """
    try:
        if not chosen:
            check_none_left_out(table.column_names, schema.names)
    except BadArgument as error:
        raise BadArgument(f"{what}: {error}", argument="schema") from error
    arrays: list[pa.ChunkedArray | pa.Array] = []
    for field in schema:
        if field.name in table.column_names:
            arrays.append(_cast(table, field, what, chosen))
        elif field.name in origin:
            arrays.append(pa.repeat(pa.scalar(origin[field.name], field.type), table.num_rows))
        else:
            raise BadArgument(
                f"{what} has no column {field.name!r}; it has {', '.join(table.column_names)}",
                argument=field.name,
            )
        if not field.nullable and (nulls := arrays[-1].null_count):  # Spark would not look for them
            raise BadArgument(
                f"{what}: column {field.name!r} has {nulls} nulls, and its schema allows none",
                argument=field.name,
            )
    return pa.Table.from_arrays(arrays, schema=schema)


def _cast(table: pa.Table, field: pa.Field, what: str, chosen: bool) -> pa.ChunkedArray:
    if table.column_names.count(field.name) > 1:
        check_once(table.schema, what)
    column = table.column(field.name)
    try:
        check_cast(column, field.type, field.name, chosen)
        return column if column.type == field.type else column.cast(field.type)
    except BadArgument as error:
        raise BadArgument(f"{what}: {error}", argument=field.name) from error
    except pa.ArrowException as error:
        raise BadArgument(
            f"{what}: column {field.name!r} is {column.type} and not {field.type}: {error}"
        ) from error


def split(table: pa.Table, keys: pa.ChunkedArray) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each key, in the order in which keys appear."""
    import pyarrow.compute as pc  # here: it is slow to load, and a sink's commit is a new process

    equal = getattr(pc, "equal")  # noqa: B009 - made when the module is loaded, so no checker knows it
    distinct = keys.unique().to_pylist()
    for key in distinct:
        yield key, table if len(distinct) == 1 else table.filter(equal(keys, key))


def batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The table in batches; an empty one has none."""
    for batch in table.combine_chunks().to_batches():
        if batch.num_rows:
            yield batch
