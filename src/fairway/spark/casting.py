"""Casting: whether a column may become the type that is asked for, down to the fields inside of it.

Guards: no cast of Arrow changes a value or drops a field in silence; who chose a schema chose what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyarrow import types

from fairway.errors import BadArgument

_GIVE = "; give the columns that you want, in types that hold all values, with .schema(...) or schema="
_NOTED = "the table that the schema was taken from"


def check_cast(column: pa.ChunkedArray, wanted: pa.DataType, path: str, chosen: bool) -> None:
    """Raise BadArgument if the cast would lose something, with the path to it."""
    has = column.type
    if has == wanted or types.is_null(has):
        return
    if types.is_dictionary(has):
        check_cast(column.cast(has.value_type), wanted, path, chosen)
    elif types.is_struct(has) and types.is_struct(wanted):
        _check_fields(column, wanted, path, chosen)
    elif _is_list(has) and _is_list(wanted):
        check_cast(_elements(column), wanted.value_type, f"{path}.element", chosen)
    elif types.is_map(has) and types.is_map(wanted):
        entries = _elements(column.cast(pa.list_(pa.struct([has.key_field, has.item_field]))))
        keys, values = entries.flatten()
        check_cast(keys, wanted.key_type, f"{path}.key", chosen)
        check_cast(values, wanted.item_type, f"{path}.value", chosen)
    elif column.null_count < len(column):
        _check_values(column, wanted, path, chosen)


def check_none_left_out(has: Iterable[str], wanted: list[str], path: str = "") -> None:
    """Raise BadArgument if there are columns, or fields below a path, beside those whose schema is taken for all."""
    more = [f"{path}{name}" for name in has if name not in wanted]
    if more:
        raise BadArgument(f"column {', '.join(map(repr, more))} is not in {_NOTED}{_GIVE}")


def _check_fields(column: pa.ChunkedArray, wanted: pa.StructType, path: str, chosen: bool) -> None:
    parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    if len(parts) < column.type.num_fields:
        raise BadArgument(f"column {path!r} has two fields of one name ({column.type}); rename one of them")
    if not chosen:
        check_none_left_out(parts, [field.name for field in wanted], f"{path}.")
    for field in wanted:
        if field.name in parts:
            check_cast(parts[field.name], field.type, f"{path}.{field.name}", chosen)


def _check_values(column: pa.ChunkedArray, wanted: pa.DataType, path: str, chosen: bool) -> None:
    kinds = _kind(column.type), _kind(wanted)
    what = f"column {path!r} is {column.type} and not {wanted}"
    if set(kinds) == {"boolean", "number"}:
        way = "; ask for a type that holds both, such as a string" if chosen else _GIVE
        raise BadArgument(f"{what}: of a truth value no number is made, nor the other way round{way}")
    if chosen:
        return
    if kinds[0] != kinds[1]:
        raise BadArgument(f"{what}, as in {_NOTED}{_GIVE}")
    try:
        changed = _changed(column, wanted) if kinds[0] in ("number", "date") else None
    except pa.ArrowException as error:
        raise BadArgument(f"{what}, as in {_NOTED}: {error}{_GIVE}") from error
    if changed is not None:
        raise BadArgument(f"{what}, as in {_NOTED}, which would change {changed!r}{_GIVE}")


def _changed(column: pa.ChunkedArray, wanted: pa.DataType) -> object:
    """A value that does not come back from the other type."""
    floats = types.is_floating(column.type) and types.is_floating(wanted)
    if floats and wanted.bit_width >= column.type.bit_width:
        return None
    equal = _run("equal", column.cast(wanted).cast(column.type), column)
    if floats:
        equal = _run("or", equal, _run("is_nan", column))
    others = column.filter(_run("invert", equal))
    return others[0].as_py() if len(others) else None


def _is_list(type: pa.DataType) -> bool:
    return types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type)


def _elements(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _run("list_flatten", column)


def _run(function: str, *columns: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow.compute as pc  # here: it is slow to load, and most columns are of the type that is wanted

    return pc.call_function(function, list(columns))


def _kind(type: pa.DataType) -> str:
    """Types that mean the same; between two kinds there is no cast that keeps what a value is."""
    if types.is_boolean(type):
        return "boolean"
    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
        return "number"
    if types.is_date(type) or (types.is_timestamp(type) and type.tz is None):
        return "date"
    for name, means in _KINDS.items():
        if any(mean(type) for mean in means):
            return name
    return str(type)


_KINDS = {
    "text": (types.is_string, types.is_large_string, types.is_string_view),
    "bytes": (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view),
    "instant": (types.is_timestamp,),
    "time": (types.is_time,),
    "duration": (types.is_duration,),
}
