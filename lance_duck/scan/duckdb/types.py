"""The Arrow types that DuckDB reads exactly, and as fast as possible.

    float16, lance.bfloat16   float32: DuckDB does not have a narrower float
    decimal128, decimal256    decimal32 up to 9 digits, decimal64 up to 18, decimal128 up to 38: the narrower types take
                              half the time of decimal128; a negative scale becomes zeros
    wider decimals            decimal128 of 38 digits, in the schema and for written values; scans reject the column,
                              see `TableScan.predicate_reader`
    dictionary in a list      its values: DuckDB rejects a batch in which all these lists are empty, and reads the wrong
                              values from dictionaries in fixed-size lists; the same applies to maps
    dictionary of bytes       its values: DuckDB 1.5 has an internal error when it pushes down their filters
    lance.blob.v2             large_binary: its bytes
    uuid, json, geoarrow.wkb  unchanged; other extension types become their storage

All other types are unchanged. The rules apply at any depth: in structs, lists, maps and the values of dictionaries.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_duck.arrow.decimals import sql_decimal
from lance_duck.arrow.types import is_bytes
from lance_duck.wire.logical import BFLOAT16, BLOB_V2, EXTENSION_NAME

_KEPT: Final = frozenset({"arrow.uuid", "arrow.json", "arrow.bool8"})
_EXTENSION: Final = EXTENSION_NAME.encode()
GEOMETRY: Final = "geoarrow.wkb"
"""Extension type that DuckDB converts from and to GEOMETRY."""
PLAIN_TYPES: Final = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
}
"""DuckDB's names of numbers, Booleans and strings."""


def duckdb_arrow_type(field: pa.Field) -> pa.DataType:
    """Return the type in which a scan passes a column to DuckDB."""
    type_ = field.type
    if _is_extension(field, BFLOAT16):
        return pa.float32()
    if _is_extension(field, BLOB_V2):
        return pa.large_binary()
    if isinstance(type_, pa.BaseExtensionType):
        if type_.extension_name in _KEPT:
            return type_
        return duckdb_arrow_type(pa.field(field.name, type_.storage_type))
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal(type_):
        return sql_decimal(type_)
    if pa.types.is_dictionary(type_):
        values = duckdb_arrow_type(pa.field("", type_.value_type))
        return values if is_bytes(values) else pa.dictionary(type_.index_type, values, type_.ordered)
    return _nested(type_) if pa.types.is_nested(type_) else type_


def duckdb_arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a scan for DuckDB. It keeps names, nullability, and the metadata that types need."""
    return pa.schema([_retyped(field) for field in schema])


def _retyped(field: pa.Field) -> pa.Field:
    changed = field.with_type(duckdb_arrow_type(field))
    if changed.metadata and _EXTENSION in changed.metadata and not _is_extension(field, GEOMETRY):
        return changed.remove_metadata()
    return changed


def _is_extension(field: pa.Field, name: str) -> bool:
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == name)
    return bool(field.metadata and field.metadata.get(_EXTENSION) == name.encode())


def _nested(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([_retyped(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_map(type_):
        return pa.map_(_plain(_retyped(type_.key_field)), _plain(_retyped(type_.item_field)), type_.keys_sorted)
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_plain(_retyped(type_.value_field)), type_.list_size)
    if pa.types.is_large_list(type_):
        return pa.large_list(_plain(_retyped(type_.value_field)))
    if pa.types.is_list(type_):
        return pa.list_(_plain(_retyped(type_.value_field)))
    return type_


def _plain(item: pa.Field) -> pa.Field:
    """Return the field of list items, without dictionaries."""
    type_ = item.type
    if pa.types.is_dictionary(type_):
        return item.with_type(type_.value_type)
    if pa.types.is_struct(type_):
        return item.with_type(pa.struct([_plain(type_.field(i)) for i in range(type_.num_fields)]))
    return item
