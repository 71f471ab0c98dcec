"""Converts types between Lance and Spark, and batches to exactly the types declared to Spark.

From a table, at any depth:

    int8 … int64; uint8, uint16, uint32      byte … long; short, int, long
    uint64; _rowid, _rowaddr                 decimal(20, 0); long
    float16, bfloat16, float32; float64      float; double
    decimals of up to 38 digits              decimal
    strings, binary of any kind              string, binary
    date, timestamp with a zone, without     date, timestamp, timestamp_ntz; parts of a microsecond are cut off
    time; duration                           time (long nanoseconds before Spark 4.1); interval day to second
    dictionaries                             their values
    lists of any kind, vectors               array; field metadata stores the length of vectors
    struct, map, null                        struct, map, void

For the conversion from Spark types, see `spark.io.columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as st

from lance_duck.arguments import unknown_column
from lance_duck.arrow.types import is_binary, is_list, is_text, storage_type
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.projection import HIDDEN
from lance_duck.scan.read.small_batches import slices
from lance_duck.spark.costs import BATCH_BYTES
from lance_duck.spark.io.arrow_cast import cast_of, is_bfloat16

VECTOR_SIZE: Final = "arrow.fixed-size-list.size"
"""Field metadata key in Spark schemas for the length of the vectors in an array column."""
VECTOR_ITEM: Final = "arrow.fixed-size-list.item"
"""Field metadata key in Spark schemas for the item type of vectors. Only set if Spark does not have the type."""

_TIME: type[st.DataType] | None = getattr(st, "TimeType", None)
_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[], st.DataType]], ...]] = (
    (pa.types.is_null, st.NullType),
    (pa.types.is_boolean, st.BooleanType),
    (pa.types.is_int8, st.ByteType),
    (lambda kind: pa.types.is_int16(kind) or pa.types.is_uint8(kind), st.ShortType),
    (lambda kind: pa.types.is_int32(kind) or pa.types.is_uint16(kind), st.IntegerType),
    (lambda kind: pa.types.is_int64(kind) or pa.types.is_uint32(kind), st.LongType),
    (pa.types.is_uint64, lambda: st.DecimalType(20, 0)),
    (lambda kind: pa.types.is_float16(kind) or pa.types.is_float32(kind), st.FloatType),
    (pa.types.is_float64, st.DoubleType),
    (is_text, st.StringType),
    (is_binary, st.BinaryType),
    (pa.types.is_date, st.DateType),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, st.TimestampType),
    (pa.types.is_timestamp, st.TimestampNTZType),
    (pa.types.is_time, lambda: st.LongType() if _TIME is None else _TIME()),
    (pa.types.is_duration, st.DayTimeIntervalType),
)
_ARROW: Final[Mapping[type[st.DataType], pa.DataType]] = {
    st.NullType: pa.null(),
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.StringType: pa.string(),
    st.CharType: pa.string(),
    st.VarcharType: pa.string(),
    st.BinaryType: pa.binary(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", "UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.DayTimeIntervalType: pa.duration("us"),
    **({} if _TIME is None else {_TIME: pa.time64("ns")}),
}


def spark_schema(schema: pa.Schema, without_null_items: Container[str] = ()) -> st.StructType:
    """Return the schema that is declared to Spark for the columns of a scan.

    Args:
        schema: Schema of the scan.
        without_null_items: Names of vector columns to declare as arrays without nulls, even if their item field is
            nullable.

    Raises:
        UnsupportedError: Spark does not support the types of some columns. The message names all of them.
    """
    fields, refusals = [], []
    for field in schema:
        try:
            fields.append(_spark_field(field, field.name in without_null_items))
        except UnsupportedError as error:
            refusals.append(str(error))
    if refusals:
        raise UnsupportedError(
            "Spark does not support these types",
            where="columns",
            found="; ".join(refusals),
            remedy="leave out the columns, or cast them: columns={name: SQL, …}",
        )
    return st.StructType(fields)


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the exact Arrow types that Spark expects for columns.

    Raises:
        UnsupportedError: A column has a type that Lance does not support.
    """
    return pa.schema([pa.field(f.name, arrow_type(f.dataType, f.name), f.nullable) for f in schema])


def arrow_type(kind: st.DataType, where: str) -> pa.DataType:
    """Return the Arrow type of a Spark type. `where` names the column. Raises UnsupportedError."""
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, st.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType, f"{where}.element"), kind.containsNull))
    if isinstance(kind, st.MapType):
        value = pa.field("value", arrow_type(kind.valueType, f"{where}.value"), kind.valueContainsNull)
        return pa.map_(pa.field("key", arrow_type(kind.keyType, f"{where}.key"), nullable=False), value)
    if isinstance(kind, st.StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.dataType, f"{where}.{f.name}"), f.nullable) for f in kind])
    converter = _ARROW.get(type(kind))
    if converter is None:
        raise UnsupportedError(
            "Lance tables do not support this type",
            where=f"column {where!r}",
            found=kind.simpleString(),
            remedy="cast the column before writing",
        )
    return converter


class Declaration:
    """The schema declared to Spark. Converts the batches of a scan to this schema.

    Args:
        schema: The declared schema.
        arrow: Schema of the batches.

    Raises:
        InvalidInputError: A column is missing in the batches, or its type cannot be converted.
    """

    def __init__(self, schema: st.StructType, arrow: pa.Schema) -> None:
        self.arrow = arrow_schema(schema)
        self._columns = []
        for field in self.arrow:
            place = arrow.get_field_index(field.name)
            if place < 0:
                raise unknown_column(field.name, arrow.names, "schema")
            cast = cast_of(arrow.field(place), field.type, field.name)
            self._columns.append((place, field, cast, promises_more(arrow.field(place).type, field.type)))

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a converted batch in slices of about `BATCH_BYTES`. See `apply`."""
        rows = max(1, BATCH_BYTES * batch.num_rows // max(1, batch.nbytes))
        yield from map(self.apply, slices(batch, rows))

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch to the declared schema.

        Raises:
            InvalidInputError: A value cannot be converted, or a null is in a column declared without nulls.
        """
        arrays = []
        for place, field, cast, promises in self._columns:
            array = batch.column(place)
            if cast is not None:
                try:
                    array = cast(array)
                except pa.ArrowException as error:
                    raise InvalidInputError(
                        "Spark cannot represent this value",
                        where=f"column {field.name!r}",
                        expected=field.type,
                        found=error,
                        remedy="leave out the column, or cast it: columns={name: SQL, …}",
                    ) from error
            if not field.nullable and array.null_count:
                raise InvalidInputError(
                    "the column is declared NOT NULL and contains nulls", where=f"column {field.name!r}"
                )
            if promises:
                refuse_nulls(array, field.name)
            arrays.append(array)
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


def as_declared(batch: pa.RecordBatch, schema: st.StructType) -> pa.RecordBatch:
    """Convert one batch to the declared schema. For many batches with the same schema, use `Declaration`."""
    return Declaration(schema, batch.schema).apply(batch)


def _spark_field(field: pa.Field, without_null_items: bool) -> st.StructField:
    if field.name in HIDDEN:
        return st.StructField(field.name, st.LongType(), field.nullable)
    kind, declared = storage_type(field.type), _spark_type(field, field.name)
    metadata: dict[str, Any] = {}
    if pa.types.is_fixed_size_list(kind):
        if without_null_items and isinstance(declared, st.ArrayType):
            declared = st.ArrayType(declared.elementType, containsNull=False)
        metadata[VECTOR_SIZE] = kind.list_size
        if pa.types.is_float16(kind.value_type):
            metadata[VECTOR_ITEM] = "float16"
    return st.StructField(field.name, declared, field.nullable, metadata)


def _spark_type(field: pa.Field, where: str) -> st.DataType:
    kind = field.type
    if is_bfloat16(field):
        return st.FloatType()
    if isinstance(kind, pa.BaseExtensionType):
        return _spark_type(field.with_type(kind.storage_type), where)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _spark_type(field.with_type(kind.value_type), where)
    if pa.types.is_decimal(kind) and max(kind.precision, kind.scale, kind.precision - kind.scale) <= 38:
        return st.DecimalType(max(kind.precision - min(kind.scale, 0), kind.scale), max(kind.scale, 0))
    if pa.types.is_map(kind):
        key, value = _spark_type(kind.key_field, f"{where}.key"), _spark_type(kind.item_field, f"{where}.value")
        return st.MapType(key, value, kind.item_field.nullable)
    if pa.types.is_struct(kind):
        return st.StructType([st.StructField(f.name, _spark_type(f, f"{where}.{f.name}"), f.nullable) for f in kind])
    if is_list(kind):
        return st.ArrayType(_spark_type(kind.value_field, f"{where}.item"), kind.value_field.nullable)
    converter = next((make for holds, make in _PLAIN if holds(kind)), None)
    if converter is None:
        raise UnsupportedError(f"{where!r} is {kind}")
    return converter()


def promises_more(found: pa.DataType, declared: pa.DataType) -> bool:
    """Return whether arrays of the found type may contain nested nulls that the declared type does not allow."""
    by_name = {field.name: field for field in _fields(storage_type(found))} if pa.types.is_struct(declared) else None
    inside = list(_fields(storage_type(found)))
    for place, field in enumerate(_fields(declared)):
        inner = inside[place] if by_name is None and place < len(inside) else (by_name or {}).get(field.name)
        is_sure = inner is not None and not inner.nullable
        if not (field.nullable or is_sure) or promises_more(pa.null() if inner is None else inner.type, field.type):
            return True
    return False


def refuse_nulls(array: pa.Array, where: str) -> None:
    """Check that the nested values of an array do not contain forbidden nulls. Values inside a null are ignored.

    Spark does not check columns that are declared without nulls. It would read a null as an arbitrary value.

    Raises:
        InvalidInputError: A null violates the declared type.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        valid = array.filter(array.is_valid()) if array.null_count else array
        inner = [valid.field(place) for place in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        valid = array.filter(array.is_valid()) if array.null_count else array
        start, stop = (valid.offsets[0].as_py(), valid.offsets[-1].as_py()) if len(valid) else (0, 0)
        inner = [part.slice(start, stop - start) for part in (valid.keys, valid.items)]
    elif pa.types.is_list(kind):
        inner = [array.values]
        if array.values.null_count or pa.types.is_nested(kind.value_type):
            inner = [array.flatten()]  # omits the items of null lists, and items outside of the slice
    else:
        return
    for field, values in zip(_fields(kind), inner, strict=True):
        if not field.nullable and values.null_count:
            raise InvalidInputError(
                "the column contains nulls, but its Spark schema does not allow them",
                where=f"column {where}.{field.name}",
                found=f"{values.null_count} of {len(values)}",
                remedy="remove contains_null=False, or allow nulls in the schema with containsNull",
            )
        refuse_nulls(values, f"{where}.{field.name}")


def _fields(kind: pa.DataType) -> Iterator[pa.Field]:
    if pa.types.is_map(kind):
        yield from (kind.key_field, kind.item_field)
    elif pa.types.is_struct(kind):
        yield from kind
    elif is_list(kind):
        yield kind.value_field
