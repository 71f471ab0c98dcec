"""Arrow schemas as JSON, in the format of pylance and Lance namespace services.

    schema  {"fields": [field, …], "metadata": {…}}                              metadata is optional
    field   {"name": …, "type": type, "nullable": bool, "metadata": {…}}
    type    {"type": logical type}; lists and structs add "fields", fixed-size types "length"

Extension types are stored as their storage type, with the metadata that identifies them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.arguments import checked_call
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.wire.c_schema import metadata_pairs
from lance_duck.wire.logical import arrow_from_logical, logical_from_arrow

_MAX_DEPTH: Final = 32


@checked_call
def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Convert an Arrow schema to a dict for `json.dumps`.

    Raises:
        UnsupportedError: The format does not support a type: maps, views, intervals, and other types that Lance lacks.
    """
    result: dict[str, Any] = {"fields": [_field_to_json(field, field.name, 0) for field in schema]}
    metadata = _texts(schema.metadata)
    return {**result, "metadata": metadata} if metadata else result


@checked_call
def json_to_schema(schema_json: Mapping[str, Any]) -> pa.Schema:
    """Convert the output of `schema_to_json`, or of pylance's function of that name, to an Arrow schema.

    Raises:
        InvalidInputError: A key is missing or has the wrong type.
        UnsupportedError: A type is unknown.
    """
    try:
        fields = [_field_from_json(field, "schema", 0) for field in _list(schema_json, "fields", "schema")]
        storage = pa.schema(fields, _metadata(schema_json, "schema"))
        return pa.ipc.read_schema(storage.serialize())  # restores extension types from their metadata
    except LanceDuckError:
        raise
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidInputError("not an Arrow schema", where="schema", found=str(error)) from error


def _field_to_json(field: pa.Field, path: str, depth: int) -> dict[str, Any]:
    type_, metadata = field.type, _texts(field.metadata)
    while isinstance(type_, pa.BaseExtensionType):
        metadata |= dict(metadata_pairs(type_))
        type_ = type_.storage_type
    result = {"name": field.name, "type": _type_to_json(type_, path, depth), "nullable": field.nullable}
    return {**result, "metadata": metadata} if metadata else result


def _type_to_json(type_: pa.DataType, path: str, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise UnsupportedError("the schema is nested too deeply", where=path, expected=f"at most {_MAX_DEPTH} levels")
    for name, is_such in _WITH_FIELDS.items():
        if is_such(type_):
            fields = list(type_) if name == "struct" else [type_.value_field]
            below = [_field_to_json(field, f"{path}.{field.name}", depth + 1) for field in fields]
            length = {"length": type_.list_size} if name == "fixed_size_list" else {}
            return {"type": name, "fields": below, **length}
    if pa.types.is_fixed_size_binary(type_) and not pa.types.is_decimal(type_):
        return {"type": "fixed_size_binary", "length": type_.byte_width}
    is_view = pa.types.is_string_view(type_) or pa.types.is_binary_view(type_)
    is_list_view = pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_)
    if is_view or is_list_view or pa.types.is_map(type_):
        raise UnsupportedError(f"type {type_} does not have a JSON form", where=path)
    return {"type": logical_from_arrow(type_, path)}


_WITH_FIELDS: Final = {
    "struct": pa.types.is_struct,
    "list": pa.types.is_list,
    "large_list": pa.types.is_large_list,
    "fixed_size_list": pa.types.is_fixed_size_list,
}


def _field_from_json(field: Any, path: str, depth: int) -> pa.Field:
    name = _part(field, "name", str, path)
    path = f"{path}.{name}"
    nullable = _part(field, "nullable", bool, path)
    return pa.field(
        name, _type_from_json(_part(field, "type", Mapping, path), path, depth), nullable, _metadata(field, path)
    )


def _type_from_json(type_: Mapping[str, Any], path: str, depth: int) -> pa.DataType:
    name = _part(type_, "type", str, path)
    if depth > _MAX_DEPTH:
        raise InvalidInputError("the schema is nested too deeply", where=path, expected=f"at most {_MAX_DEPTH} levels")
    if name not in _WITH_FIELDS:
        size = f":{_part(type_, 'length', int, path)}" if name == "fixed_size_binary" else ""
        return arrow_from_logical(name + size, path)
    fields = [_field_from_json(field, path, depth + 1) for field in _list(type_, "fields", path)]
    if name == "struct":
        return pa.struct(fields)
    if len(fields) != 1:
        raise InvalidInputError(
            f"wrong number of fields in a {name}", where=path, expected="one field, for the items", found=len(fields)
        )
    if name == "fixed_size_list":
        length = _part(type_, "length", int, path)
        if not 0 <= length < 2**31:
            raise InvalidInputError("length", where=path, expected="0 to 2^31 - 1", found=length)
        return pa.list_(fields[0], length)
    return pa.list_(fields[0]) if name == "list" else pa.large_list(fields[0])


def _part(whole: Any, name: str, kind: type, path: str) -> Any:
    if not isinstance(whole, Mapping):
        raise InvalidInputError("invalid schema field", where=path, expected="a dict", found=type(whole).__name__)
    if not isinstance(whole.get(name), kind):
        raise InvalidInputError(
            f"{name!r} of a schema has the wrong type",
            where=path,
            expected=kind.__name__,
            found=repr(whole.get(name, "nothing")),
        )
    return whole[name]


def _list(whole: Any, name: str, path: str) -> Sequence[Any]:
    entries: Sequence[Any] = _part(whole, name, list, path)
    return entries


def _metadata(whole: Mapping[str, Any], path: str) -> dict[str, str] | None:
    metadata = whole.get("metadata")
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping) or not all(isinstance(x, str) for pair in metadata.items() for x in pair):
        raise InvalidInputError(
            "'metadata' of a schema has the wrong type", where=path, expected="strings by name", found=repr(metadata)
        )
    return dict(metadata)


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    try:
        return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
    except UnicodeDecodeError as error:
        raise InvalidInputError("the metadata are not valid text", where="schema", found=str(error)) from error


__all__ = ["json_to_schema", "schema_to_json"]
