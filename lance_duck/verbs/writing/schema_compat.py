"""Checks that rows fit the columns of a table, before they are written and when they are committed."""

from __future__ import annotations

from dataclasses import replace
from operator import is_

import pyarrow as pa

from lance_duck.errors import DataMismatchError, IncompatibleError
from lance_duck.snapshot import Snapshot
from lance_duck.wire.schema import Field, Schema


def fitting(schema: Schema, source: pa.Schema) -> Schema:
    """Return the table columns and struct fields that the data contains.

    Raises:
        DataMismatchError: The data has unknown columns, or lacks non-nullable columns.
    """
    unknown = [name for name in source.names if name not in schema.names]
    missing = [field.name for field in schema.fields if field.name not in source.names and not field.nullable]
    if unknown or missing:
        what = f"columns {', '.join(map(repr, unknown))} are not in the table" if unknown else ""
        lack = f"columns {', '.join(map(repr, missing))} are missing and cannot be null" if missing else ""
        raise DataMismatchError(
            " and ".join(filter(None, (what, lack))), where="data", expected=", ".join(schema.names) or "none"
        )
    present = {field.name: field for field in source}
    fields = tuple(_prune(field, present[field.name].type) for field in schema.fields if field.name in present)
    if len(fields) == len(schema.fields) and all(map(is_, fields, schema.fields)):
        return schema  # reuse the object, which has cached properties
    return replace(schema, fields=fields)


def _prune(field: Field, kind: pa.DataType) -> Field:
    if field.logical_type != "struct" or field.is_packed or field.blob_version or not pa.types.is_struct(kind):
        return field
    members = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
    children = tuple(
        _prune(child, members[child.name]) if child.name in members else child
        for child in field.children
        if child.name in members or not child.nullable
    )
    return replace(field, children=children) if children else field


def check_still_fits(written_schema: Schema, snapshot: Snapshot) -> None:
    """Reject written rows that do not fit the columns of a newer version.

    Dropped columns are ignored if others remain.

    Raises:
        IncompatibleError: A column was replaced, a non-nullable column was added, or all columns were dropped.
    """
    now, have = _by_id(snapshot.schema), _by_id(written_schema)
    names_by_id = dict(now.values())
    for field_id, (path, field) in have.items():
        other = now[field_id][1] if field_id in now else names_by_id.get(path)
        if other is not None and not (other.id == field_id and _holds(other, field)):
            raise IncompatibleError(
                f"column {'.'.join(path)!r} was replaced concurrently",
                where=snapshot.uri,
                remedy="write the rows again",
            )
    for field_id, (path, field) in now.items():
        if field_id not in have and not field.nullable and (field.parent_id < 0 or field.parent_id in have):
            raise IncompatibleError(
                f"non-nullable column {'.'.join(path)!r} was added concurrently",
                where=snapshot.uri,
                remedy="write the rows again",
            )
    if have and not have.keys() & now.keys():
        raise IncompatibleError("all columns of the written rows were dropped concurrently", where=snapshot.uri)


def _holds(now: Field, written_field: Field) -> bool:
    return now.logical_type == written_field.logical_type and (now.nullable or not written_field.nullable)


def _by_id(schema: Schema) -> dict[int, tuple[tuple[str, ...], Field]]:
    """Map each field id to the field's path of names and the field."""
    fields: dict[int, tuple[tuple[str, ...], Field]] = {}
    for field in schema.walk():
        above = fields[field.parent_id][0] if field.parent_id in fields else ()
        fields[field.id] = (*above, field.name), field
    return fields
