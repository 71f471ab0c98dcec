"""Converts Arrow schemas to JSON and back. The names of types are Lance's logical types, which all clients know.

schema    {"fields": [field, …], "metadata"?: {name: text}}
field     {"name", "nullable", "type": {"type": logical type, "fields"?: [field, …], "length"?: n}, "metadata"?}

| Arrow type | "type" | has |
|---|---|---|
| struct | struct | fields: the members |
| list, large_list | list, large_list | fields: the item |
| map | map | fields: the entries, a struct of key and value |
| fixed_size_list | fixed_size_list | fields: the item; length |
| fixed_size_binary | fixed_size_binary | length |
| others | see `wire.logical` | |

An extension type becomes its storage type, with the extension's name and parameters as metadata of the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.rest.fields import object_of, text_of, whole_of, wrong_field
from lance_duck.wire.c_schema import metadata_pairs
from lance_duck.wire.logical import arrow_from_logical, logical_from_arrow

_DEEPEST: Final = 64


def json_of_schema(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as JSON.

    Raises:
        UnsupportedError: Lance does not have one of the types.
    """
    return {"fields": [_field_to_json(field) for field in schema], **_metadata(schema.metadata)}


def schema_from_json(value: object) -> pa.Schema:
    """Return the schema that JSON describes.

    Raises:
        RequestError: The JSON does not have the form of a schema.
        UnsupportedError: A type is unknown.
    """
    if not isinstance(value, dict):
        raise wrong_field("schema", "an object", value)
    return pa.schema(_fields_from_json(value, "schema", 0), _texts(value))


def _field_to_json(field: pa.Field) -> dict[str, Any]:
    type_, pairs = field.type, dict(field.metadata or {})
    while isinstance(type_, pa.BaseExtensionType):
        pairs |= {name.encode(): text.encode() for name, text in metadata_pairs(type_)}
        type_ = type_.storage_type
    return {
        "name": field.name,
        "nullable": field.nullable,
        "type": _type_to_json(type_, field.name),
        **_metadata(pairs),
    }


def _type_to_json(type_: pa.DataType, where: str) -> dict[str, Any]:
    if pa.types.is_struct(type_):
        return {"type": "struct", "fields": [_field_to_json(type_.field(i)) for i in range(type_.num_fields)]}
    if pa.types.is_map(type_):
        entries = pa.field("entries", pa.struct([type_.key_field, type_.item_field]), nullable=False)
        return {"type": "map", "fields": [_field_to_json(entries)]}
    if pa.types.is_fixed_size_list(type_):
        return {"type": "fixed_size_list", "fields": [_field_to_json(type_.value_field)], "length": type_.list_size}
    if pa.types.is_fixed_size_binary(type_):
        return {"type": "fixed_size_binary", "length": type_.byte_width}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = "large_list" if pa.types.is_large_list(type_) else "list"
        return {"type": kind, "fields": [_field_to_json(type_.value_field)]}
    return {"type": logical_from_arrow(type_, where)}


def _fields_from_json(value: Mapping[str, Any], where: str, depth: int) -> list[pa.Field]:
    fields = value.get("fields")
    if not isinstance(fields, list):
        raise wrong_field(where, "a list of fields", fields)
    if depth > _DEEPEST:
        raise RequestError("the schema is nested too deeply", expected=f"at most {_DEEPEST} levels")
    return [_field_from_json(field, where, depth) for field in fields]


def _field_from_json(value: object, where: str, depth: int) -> pa.Field:
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str):
        raise wrong_field(where, "a field with a name", value)
    kind = object_of(value, "type")
    if kind is None:
        raise wrong_field(name, "a type", None)
    nullable = value.get("nullable", True)
    if not isinstance(nullable, bool):
        raise wrong_field(f"{name}.nullable", "true or false", nullable)
    return pa.field(name, _type_from_json(kind, name, depth), nullable, _texts(value))


def _type_from_json(value: Mapping[str, Any], where: str, depth: int) -> pa.DataType:
    kind = text_of(value, "type") or ""
    if kind == "struct":
        return pa.struct(_fields_from_json(value, where, depth + 1))
    if kind == "fixed_size_binary":
        return pa.binary(_length(value, where))
    if kind not in ("list", "large_list", "fixed_size_list", "map"):
        return arrow_from_logical(kind, where)
    item = _only(_fields_from_json(value, where, depth + 1), where)
    if kind == "map":
        if not pa.types.is_struct(item.type) or item.type.num_fields != 2:
            raise wrong_field(where, "entries with a key and a value", str(item.type))
        return pa.map_(item.type.field(0).with_nullable(False), item.type.field(1))
    if kind == "fixed_size_list":
        return pa.list_(item, _length(value, where))
    return pa.list_(item) if kind == "list" else pa.large_list(item)


def _only(fields: Sequence[pa.Field], where: str) -> pa.Field:
    if len(fields) != 1:
        raise wrong_field(where, "one field", len(fields))
    return fields[0]


def _length(value: Mapping[str, Any], where: str) -> int:
    length = whole_of(value, "length")
    if length is None or length >= 2**31:
        raise wrong_field(f"{where}.length", "a length", length)
    return length


def _metadata(pairs: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not pairs:
        return {}
    return {"metadata": {name.decode(errors="replace"): text.decode(errors="replace") for name, text in pairs.items()}}


def _texts(value: Mapping[str, Any]) -> dict[str, str] | None:
    metadata = object_of(value, "metadata")
    if metadata is not None and not all(isinstance(text, str) for text in metadata.values()):
        raise wrong_field("metadata", "texts by name", metadata)
    return metadata
