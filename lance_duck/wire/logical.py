"""Logical types: the type strings of fields, for Arrow types without children.

    null bool int8 … uint64 halffloat float double string large_string binary large_binary json
    date32:day  date64:ms  time32:{s|ms}  time64:{us|ns}  duration:{unit}  timestamp:{unit}:{zone or -}
    decimal:{128|256}:{precision}:{scale}  fixed_size_binary:{bytes}
    dict:{value type}:{index type}:{ordered}
    fixed_size_list:{item type or lance.bfloat16}:{length}

`struct`, `list`, `list.struct`, `large_list`, `large_list.struct`, `map` and `fixed_size_list:struct:{length}` get
their item and member types from the children of the field: see `wire.schema`.
"""

from __future__ import annotations

import pyarrow as pa

from lance_duck.errors import UnsupportedError

BFLOAT16 = "lance.bfloat16"
BLOB_V2 = "lance.blob.v2"
EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"

_MAX_DEPTH = 32
_UNITS = ("s", "ms", "us", "ns")
_PLAIN = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "json": pa.string(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    **{f"duration:{unit}": pa.duration(unit) for unit in _UNITS},
}
_NAMES = {arrow: name for name, arrow in _PLAIN.items() if name != "json"} | {
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}


def arrow_from_logical(logical_type: str, where: str) -> pa.DataType:
    """Return the Arrow storage type of a childless logical type.

    The caller applies extension types, except for `fixed_size_list:lance.bfloat16:n`: the metadata of its item field
    contains the extension name. JSON becomes string, even if the file stores it in binary form.

    Args:
        logical_type: For example "timestamp:us:UTC".
        where: Name of the field, for messages.

    Raises:
        UnsupportedError: The type is unknown, or its parameters are invalid. The message contains the type.
    """
    return _parse(logical_type, logical_type, where, 0)


def logical_from_arrow(arrow: pa.DataType, where: str) -> str:
    """Return the logical type of an Arrow storage type: the inverse of `arrow_from_logical`. Supports nested types.

    Views become plain strings, binary and lists.

    Args:
        arrow: The type. Must not be an extension type.
        where: Name of the field, for messages.

    Raises:
        UnsupportedError: Lance does not support the type. The message contains the type.
    """
    simple = _NAMES.get(arrow) or _with_parameters(arrow)
    if simple is not None:
        return simple
    if pa.types.is_map(arrow):
        return "map"
    if pa.types.is_struct(arrow):
        return "struct"
    is_large = pa.types.is_large_list(arrow) or pa.types.is_large_list_view(arrow)
    if is_large or pa.types.is_list(arrow) or pa.types.is_list_view(arrow):
        kind = "large_list" if is_large else "list"
        return f"{kind}.struct" if pa.types.is_struct(arrow.value_type) else kind
    if pa.types.is_dictionary(arrow) and pa.types.is_integer(arrow.index_type):
        value = None if isinstance(arrow.value_type, pa.BaseExtensionType) else _NAMES.get(arrow.value_type)
        if value is not None and ":" not in value:
            return f"dict:{value}:{_NAMES[arrow.index_type]}:false"
    if pa.types.is_fixed_size_list(arrow) and arrow.list_size > 0:
        item = "struct" if pa.types.is_struct(arrow.value_type) else _item_name(arrow.value_field)
        if item is not None:
            return f"fixed_size_list:{item}:{arrow.list_size}"
    remedy = "cast it to a list" if pa.types.is_fixed_size_list(arrow) else "cast the column before it is written"
    raise UnsupportedError(f"Lance cannot store {arrow}", where=where, remedy=remedy)


def _with_parameters(arrow: pa.DataType) -> str | None:
    if pa.types.is_timestamp(arrow):
        return f"timestamp:{arrow.unit}:{arrow.tz or '-'}"
    if pa.types.is_decimal128(arrow) or pa.types.is_decimal256(arrow):
        return f"decimal:{arrow.bit_width}:{arrow.precision}:{arrow.scale}"
    if pa.types.is_fixed_size_binary(arrow):
        return f"fixed_size_binary:{arrow.byte_width}"
    return None


def _item_name(item: pa.Field) -> str | None:
    """Return the logical type of fixed-size list items, or None if a fixed-size list cannot hold them."""
    arrow = item.type
    name = (item.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode(errors="replace")
    if isinstance(arrow, pa.BaseExtensionType):
        name, arrow = arrow.extension_name, arrow.storage_type
    if name:  # the schema cannot store the extension metadata of these items
        return BFLOAT16 if name == BFLOAT16 else None
    if pa.types.is_fixed_size_list(arrow) and arrow.list_size > 0:
        below = _item_name(arrow.value_field)
        return None if below is None else f"fixed_size_list:{below}:{arrow.list_size}"
    plain = _NAMES.get(arrow)
    if plain in ("null", "string", "large_string", "binary", "large_binary"):
        return None
    return plain or _with_parameters(arrow)


def _parse(text: str, whole: str, where: str, depth: int) -> pa.DataType:
    plain = _PLAIN.get(text)
    if plain is not None:
        return plain
    kind, _, parameters = text.partition(":")
    parser = _PARSERS.get(kind)
    try:
        if parser is not None:
            return parser(parameters)
        if kind == "dict":
            value, index, _ordered = parameters.rsplit(":", 2)
            if depth < _MAX_DEPTH:
                return pa.dictionary(_parse(index, whole, where, depth + 1), _parse(value, whole, where, depth + 1))
        if kind == "fixed_size_list":
            item, length = parameters.rsplit(":", 1)
            if depth < _MAX_DEPTH:
                return pa.list_(_item_field(item, whole, where, depth + 1), _size(length))
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        if isinstance(error, UnsupportedError):
            raise
        raise _unknown(whole, where) from error
    raise _unknown(whole, where)


def _item_field(item: str, whole: str, where: str, depth: int) -> pa.Field:
    if item == BFLOAT16:
        return pa.field("item", pa.binary(2), metadata={EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""})
    return pa.field("item", _parse(item, whole, where, depth))


def _decimal(parameters: str) -> pa.DataType:
    bits, precision, scale = parameters.split(":")
    make = {"128": pa.decimal128, "256": pa.decimal256}.get(bits)
    if make is None:
        raise ValueError(bits)
    return make(int(precision), int(scale))


def _timestamp(parameters: str) -> pa.DataType:
    unit, zone = parameters.split(":", 1)
    return pa.timestamp(unit, None if zone == "-" else zone)


def _fixed_size_binary(parameters: str) -> pa.DataType:
    return pa.binary(_size(parameters))


def _size(text: str) -> int:
    size = int(text)
    if not 0 <= size < 2**31:
        raise ValueError(text)
    return size


_PARSERS = {"decimal": _decimal, "timestamp": _timestamp, "fixed_size_binary": _fixed_size_binary}


def _unknown(logical_type: str, where: str) -> UnsupportedError:
    return UnsupportedError(
        f"unknown logical type {logical_type!r}", where=where, remedy="leave out this column, or upgrade lance_duck"
    )
