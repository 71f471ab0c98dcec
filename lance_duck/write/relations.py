"""Streams of batches from DuckDB relations. The batches contain exactly the relation's values.

DuckDB's export to Arrow changes some values silently: UHUGEINT wraps around, TIME WITH TIME ZONE loses its zone, and
BIT and BIGNUM become bytes in an internal format. The types of a relation are therefore checked before it runs:

    UUID                       arrow.uuid
    HUGEINT, UHUGEINT          decimal128(38, 0); values with more digits are rejected
    TIME, TIME_NS              unchanged; 24:00:00 is rejected, because Arrow cannot represent it
    ENUM                       dictionary, at any depth; new columns of this type are rejected: see `refuse_enums`
    INTERVAL, TIME WITH TIME ZONE, BIT, BIGNUM, UNION, VARIANT      rejected, at any depth

All other types have an equivalent Arrow type, or the writer rejects them with an error that names the type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import OVERFLOW, array_limit, check_limit, in_halves
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.write.uuids import uuids_from_texts

Convert = Callable[[pa.Array], pa.Array]

_CHANGED: Final = frozenset({"time with time zone", "bit", "bignum", "varint", "variant"})
"""Types whose values change in DuckDB's export to Arrow."""
_REFUSED: Final = _CHANGED | {"interval", "union"}
"""Rejected types: `_CHANGED`, and types that Lance does not support."""
_MOST: Final = 10**38 - 1
_WIDE: Final = pa.decimal128(38, 0)
_DAY: Final = {"us": 86_400_000_000, "ns": 86_400_000_000_000}
_MASK: Final = (1 << 64) - 1
_ENUM: Final = b"lance_duck:enum"
"""Metadata key of a relation's columns that contain an ENUM. Its value is the type to cast to. It is never stored."""
_ENUM_TYPE: Final = re.compile(r"""("(?:[^"]|"")*")|ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)((?:\[\d*\])*)""")
"""Matches quoted names, and ENUM types with the lists and arrays around them."""
_EXPRESSION: Final = re.compile(r"[(\[]")
"""Matches the names that DuckDB gives to unnamed expressions."""
_STOPPED: Final = re.compile(r"\bKeyboardInterrupt:?\s*(?:\Z|\n\nAt:)")


def relation_reader(relation: Any, rows_at_once: int, opened: ExitStack | None = None) -> pa.RecordBatchReader:
    """Run a DuckDB relation, and return a stream of its rows.

    Args:
        relation: A `DuckDBPyRelation`.
        rows_at_once: Maximum number of rows per batch.
        opened: Stack that closes the stream. Until then, DuckDB's connection cannot run other statements.

    Raises:
        UnsupportedError: Lance tables cannot store the type of a column. For a value that they cannot store, the stream
            raises InvalidInputError.
    """
    _refuse_types(relation, _REFUSED, "Lance")
    method = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
    reader: pa.RecordBatchReader = method(rows_at_once)
    if opened is not None:
        opened.callback(reader.close)
    converts = [
        _convert(type_, field.type, f"column {field.name!r} of type {type_}")
        for type_, field in zip(relation.types, reader.schema, strict=True)
    ]
    enums = [_without_enums(type_) for type_ in relation.types]
    if not any(converts) and enums == [None] * len(enums):
        return reader
    empty = [
        pa.nulls(0, field.type) if convert is None else convert(pa.nulls(0, field.type))
        for field, convert in zip(reader.schema, converts, strict=True)
    ]
    fields = [field.with_type(array.type) for field, array in zip(reader.schema, empty, strict=True)]
    marked = [field if cast is None else _with_cast(field, cast) for field, cast in zip(fields, enums, strict=True)]
    schema = pa.schema(marked, reader.schema.metadata)
    return pa.RecordBatchReader.from_batches(schema, _converted(reader, schema, converts))


def refuse_enums(columns: pa.Schema) -> None:
    """Reject new columns that contain a DuckDB ENUM.

    An ENUM is ordered by its declaration, and accepts only its values. A Lance column would compare and accept strings.

    Raises:
        UnsupportedError: A column contains an ENUM.
    """
    for field in columns:
        cast = (field.metadata or {}).get(_ENUM)
        if cast is not None:
            raise UnsupportedError(
                "Lance cannot store DuckDB type ENUM",
                where=f"column {field.name!r}",
                remedy=f"{_enum_remedy(field.name, cast.decode())}; cast it back in queries that need the order of the "
                "ENUM",
            )


def _enum_remedy(name: str, type_: str) -> str:
    if not type_:
        return "cast the values of the ENUM to VARCHAR, in a struct with named fields"
    if _EXPRESSION.search(name):
        return f"cast the expression to {type_} and name it"
    quoted = name.replace('"', '""')
    return f'write "{quoted}"::{type_}, or declare the column with that type'


def with_narrow_offsets(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return a stream whose strings, bytes and lists have 32-bit offsets. Batches are split if necessary."""
    schema = pa.schema([field.with_type(_narrow(field.type)) for field in reader.schema], reader.schema.metadata)
    return pa.RecordBatchReader.from_batches(schema, _cast(reader, schema))


def _cast(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield from in_halves(partial(_cast_rows, batch, schema), 0, batch.num_rows)


def _cast_rows(batch: pa.RecordBatch, schema: pa.Schema, start: int, stop: int) -> list[pa.RecordBatch]:
    rows = pa.concat_batches([batch.slice(start, stop - start)])  # otherwise, bytes before a slice also count
    try:
        cast = rows.cast(schema)
    except OVERFLOW as error:
        raise array_limit(error) from error
    for column in cast.columns:
        check_limit(column)
    return [cast]


def _narrow(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_struct(type_):
        return pa.struct([_narrow_field(type_.field(place)) for place in range(type_.num_fields)])
    if pa.types.is_map(type_):
        return pa.map_(_narrow_field(type_.key_field), _narrow_field(type_.item_field))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_narrow_field(type_.value_field), type_.list_size)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_narrow_field(type_.value_field))
    return type_


def _narrow_field(field: pa.Field) -> pa.Field:
    return field.with_type(_narrow(field.type))


def is_stopped(error: Exception) -> bool:
    """Return whether an error means that Ctrl-C interrupted a relation.

    DuckDB raises `RuntimeError("Query interrupted")`. In a stream, it is the last line of the traceback in the error.
    """
    text = str(error)
    return text == "Query interrupted" if isinstance(error, RuntimeError) else _STOPPED.search(text) is not None


def relation_table(relation: Any) -> pa.Table:
    """Run a DuckDB relation for a result that is not written to a table. Intervals, unions and 24:00:00 are allowed.

    Raises:
        UnsupportedError: A column has a type that Arrow does not support.
        InvalidInputError: An integer has more than 38 digits.
    """
    _refuse_types(relation, _CHANGED, "Arrow")
    table: pa.Table = relation.to_arrow_table()
    for place, (type_, field) in enumerate(zip(relation.types, table.schema, strict=True)):
        convert = _convert(type_, field.type, f"column {field.name!r} of type {type_}", of_table=False)
        if convert is not None:
            chunks = [convert(chunk) for chunk in table.column(place).chunks]
            column = pa.chunked_array(chunks or [convert(pa.nulls(0, field.type))])
            table = table.set_column(place, field.with_type(column.type), column)
    return table


def _refuse_types(relation: Any, types: Collection[str], who: str) -> None:
    for name, whole in zip(relation.columns, relation.types, strict=True):
        for type_ in _types_in(whole):
            is_geometry_inside = type_.id == "geometry" and type_ is not whole
            if type_.id in types or (is_geometry_inside and not _exports_geometries_inside()):
                inside = "" if str(type_) == str(whole) else f" in {whole}"
                raise UnsupportedError(
                    f"{who} cannot store DuckDB type {type_}{inside}",
                    where=f"column {name!r}",
                    remedy="cast the column in the query, for example to VARCHAR",
                )


def _types_in(whole: Any) -> Iterator[Any]:
    """Yield a type and all types inside it."""
    pending = [whole]
    while pending:
        type_ = pending.pop()
        yield type_
        pending += _children(type_)


def _with_cast(field: pa.Field, cast: str) -> pa.Field:
    """Mark a column that contains an ENUM with the type to cast it to."""
    return field.with_metadata({**(field.metadata or {}), _ENUM: cast.encode()})


def _without_enums(type_: Any) -> str | None:
    """Return the SQL of a type with VARCHAR instead of ENUM, or None if it does not contain an ENUM.

    Arrays of ENUMs become lists, because Lance does not store arrays of strings. DuckDB 1 has no SQL for tuples, which
    it calls structs with unnamed fields. For these, the text is empty.
    """
    if all(each.id != "enum" for each in _types_in(type_)):
        return None
    if any(each.id == "struct" and "" in dict(each.children) for each in _types_in(type_)):
        return ""
    return _ENUM_TYPE.sub(lambda found: found[1] or "VARCHAR" + re.sub(r"\d", "", found[2]), str(type_))


@cache
def _exports_geometries_inside() -> bool:
    """Return whether DuckDB can export geometries inside nested types. Versions before 1.5.4 may crash the process."""
    return tuple(int(part) for part in version("duckdb").split(".")[:3] if part.isdecimal()) >= (1, 5, 4)


def _children(type_: Any) -> list[Any]:
    """Return the types directly inside a nested type: the types of its fields, items, keys and values."""
    nested = type_.id in ("struct", "tuple", "list", "array", "map")
    return [child for _, child in type_.children if hasattr(child, "id")] if nested else []


def _converted(
    reader: pa.RecordBatchReader, schema: pa.Schema, converts: list[Convert | None]
) -> Iterator[pa.RecordBatch]:
    try:
        for batch in reader:
            arrays = [
                array if convert is None else convert(array)
                for array, convert in zip(batch.columns, converts, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    finally:
        reader.close()  # until then, DuckDB's connection cannot run other statements


def _convert(type_: Any, arrow_type: pa.DataType, where: str, *, of_table: bool = True) -> Convert | None:
    """Return the function that converts a column's arrays for writing, or None if conversion is not needed.

    Args:
        type_: Type of the column in DuckDB.
        arrow_type: Type of the arrays in Arrow.
        where: Name of the column, for messages.
        of_table: Whether the values will be written to a table.
    """
    if type_.id == "uuid":
        return None if isinstance(arrow_type, pa.BaseExtensionType) else uuids_from_texts
    if type_.id in ("hugeint", "uhugeint"):
        is_signed = type_.id == "hugeint"
        return lambda array: _whole_numbers(array, where, is_signed=is_signed)
    if type_.id in ("time", "time_ns"):
        return (lambda array: _times(array, where)) if of_table else None
    children = zip(_children(type_), _below(arrow_type), strict=False)
    inner = [_convert(child, below, where, of_table=of_table) for child, below in children]
    return (lambda array: _rebuilt(array, inner)) if any(inner) else None


def _below(type_: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(type_):
        return [type_.field(i).type for i in range(type_.num_fields)]
    if pa.types.is_map(type_):
        return [type_.key_type, type_.item_type]
    return [type_.value_type] if hasattr(type_, "value_field") else []


def _rebuilt(array: pa.Array, inner: list[Convert | None]) -> pa.Array:
    """Return a nested array whose child arrays are converted."""
    type_ = array.type
    if array.offset:  # DuckDB's batches do not contain slices
        array = array.take(pa.array(range(len(array))))

    def below(place: int, values: pa.Array) -> pa.Array:
        convert = inner[place]
        return values if convert is None else convert(values)

    validity = array.buffers()[0]
    if pa.types.is_struct(type_):
        children = [below(i, array.field(i)) for i in range(type_.num_fields)]
        fields = [type_.field(i).with_type(child.type) for i, child in enumerate(children)]
        return pa.Array.from_buffers(pa.struct(fields), len(array), [validity], array.null_count, children=children)
    if pa.types.is_map(type_):
        keys, items = below(0, array.keys), below(1, array.items)
        fields = [type_.key_field.with_type(keys.type), type_.item_field.with_type(items.type)]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        arrow_type = pa.map_(*fields, keys_sorted=type_.keys_sorted)
        return pa.Array.from_buffers(arrow_type, len(array), array.buffers()[:2], array.null_count, children=[entries])
    values = below(0, array.values)
    item = type_.value_field.with_type(values.type)
    if pa.types.is_fixed_size_list(type_):
        arrow_type = pa.list_(item, type_.list_size)
        return pa.Array.from_buffers(arrow_type, len(array), [validity], array.null_count, children=[values])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        arrow_type = pa.list_(item) if pa.types.is_list(type_) else pa.large_list(item)
        return pa.Array.from_buffers(arrow_type, len(array), array.buffers()[:2], array.null_count, children=[values])
    arrow_type = pa.list_view(item) if pa.types.is_list_view(type_) else pa.large_list_view(item)
    return pa.Array.from_buffers(arrow_type, len(array), array.buffers()[:3], array.null_count, children=[values])


def _whole_numbers(array: pa.Array, where: str, *, is_signed: bool) -> pa.Array:
    """Return DuckDB's 128-bit integers as decimals."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    validity, data = storage.buffers()
    words = (
        np.frombuffer(data, np.uint64)[2 * storage.offset :][: 2 * len(storage)]
        if len(storage)
        else np.empty(0, np.uint64)
    )
    low, high = words[0::2], words[1::2]
    is_negative = (high >> np.uint64(63)).astype(bool) & is_signed
    beyond = ~is_negative & _is_above(high, low, _MOST)
    beyond |= is_negative & _is_above(~high, ~low, _MOST - 1)  # ~x is -x - 1
    beyond &= storage.is_valid().to_numpy(zero_copy_only=False)
    if beyond.any():
        row = int(beyond.argmax())
        value = int(high[row]) << 64 | int(low[row])
        raise InvalidInputError(
            "the number has more than 38 digits",
            where=where,
            found=value - (1 << 128) if is_negative[row] else value,
            remedy="cast it in the query, for example to VARCHAR or DOUBLE",
        )
    return pa.Array.from_buffers(_WIDE, len(storage), [validity, data], storage.null_count, storage.offset)


def _is_above(high: NDArray[Any], low: NDArray[Any], most: int) -> NDArray[Any]:
    above, same = np.uint64(most >> 64), np.uint64(most & _MASK)
    is_above: NDArray[Any] = (high > above) | ((high == above) & (low > same))
    return is_above


def _times(array: pa.Array, where: str) -> pa.Array:
    ticks = array.cast(pa.int64())
    late = np.asarray(ticks.fill_null(0)) >= _DAY[array.type.unit]
    if late.any():
        raise InvalidInputError(
            "Arrow cannot represent this time of day", where=where, expected="before 24:00:00", found="24:00:00"
        )
    return array
