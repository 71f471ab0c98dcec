"""The alterations of `alter_columns`: names, nullability and types of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from lance_duck.arrow.types import is_any_number, is_list
from lance_duck.errors import DataMismatchError, InvalidInputError
from lance_duck.verbs.columns.schema_change import check_column_name, path_of, replace_fields
from lance_duck.wire.column_path import join_path
from lance_duck.wire.logical import EXTENSION_METADATA, EXTENSION_NAME
from lance_duck.wire.schema import BLOB_KEY, PACKED_KEY, Field, Schema
from lance_duck.wire.schema_write import is_primary_key, schema_from_arrow
from lance_duck.write.enums import ENUM_KEYS

_OF_TYPE: Final = (EXTENSION_NAME, EXTENSION_METADATA, *ENUM_KEYS)
"""Field metadata keys that only apply to the field's type."""
_KEYS: Final = ("path", "name", "nullable", "data_type")


@dataclass(frozen=True)
class Alteration:
    """An alteration of one column. None leaves an attribute unchanged."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None


@dataclass(frozen=True)
class AlteredSchema:
    """A schema after alterations.

    Attributes:
        schema: The schema.
        casts: Ids of the new fields, by the ids of the fields whose values are cast.
        tightened: Ids of fields that become non-nullable.
    """

    schema: Schema
    casts: Mapping[int, int]
    tightened: tuple[int, ...]


def parse_alterations(raw: Iterable[Any]) -> list[Alteration]:
    """Validate a user's alterations.

    Raises:
        InvalidInputError: An alteration is not a mapping, lacks a path, has an unknown key, or has no effect.
    """
    return [_parse(one) for one in raw]


def alter_schema(schema: Schema, alterations: Sequence[Alteration], version: str, first_id: int) -> AlteredSchema:
    """Apply column alterations to a schema.

    Args:
        schema: Schema of the table. It must contain the paths of all alterations.
        alterations: The alterations.
        version: File version of the columns that change their type.
        first_id: Lowest field id for the columns that change their type.

    Raises:
        InvalidInputError: A column does not exist, a name is taken, a column cannot be cast to the type, or a column is
            cast and made non-nullable at once.
    """
    if version == "2.0":
        alterations = [_of_whole_list(schema, alteration) for alteration in alterations]
    targets = {schema.by_path(alteration.path).id: alteration for alteration in alterations}
    if len(targets) < len(alterations):
        raise InvalidInputError(
            "the column is altered twice", where="alter_columns", remedy="combine the changes in one alteration"
        )
    if any(a.nullable is False for a in alterations) and any(a.data_type is not None for a in alterations):
        raise InvalidInputError(
            "one call cannot cast a column and make it non-nullable",
            where="alter_columns",
            remedy="cast first, then set nullable=False in a second call",
        )
    casts: dict[int, int] = {}
    next_id = first_id

    def change(field: Field) -> Field | None:
        nonlocal next_id
        alteration = targets.get(field.id)
        if alteration is None:
            return None
        _refuse_in_map(path_of(schema, field.id), alteration)
        result = _relabelled(field, alteration)
        if alteration.data_type is None:
            return result if not result.children else replace(result, children=_below(result, change))
        _refuse_changes_below(field, targets)
        _refuse_cast_in(path_of(schema, field.id)[:-1], alteration)
        result = _cast(result, alteration, version, next_id)
        casts[field.id] = result.id
        next_id = max(below.id for below in result.walk()) + 1
        return result

    altered = replace_fields(schema, change)
    _check_siblings(altered.fields)
    tightened = [i for i, a in targets.items() if a.nullable is False and schema.by_id(i).nullable]
    return AlteredSchema(altered, casts, tuple(tightened))


def _of_whole_list(schema: Schema, alteration: Alteration) -> Alteration:
    """Return the cast of a list instead of the cast of its items, which pylance cannot read in format 2.0."""
    while alteration.data_type is not None and alteration.name is None and alteration.nullable is None:
        item = schema.by_path(alteration.path)
        parent = None if item.parent_id < 0 else schema.by_id(item.parent_id)
        if parent is None or not parent.is_list:
            break
        make = pa.large_list if parent.logical_type.startswith("large_list") else pa.list_
        path = join_path([field.name for field in path_of(schema, parent.id)])
        alteration = Alteration(path, data_type=make(pa.field(item.name, alteration.data_type, item.nullable)))
    return alteration


def _below(field: Field, change: Any) -> tuple[Field, ...]:
    return replace_fields(Schema(field.children), change).fields


def _parse(raw: Any) -> Alteration:
    if not isinstance(raw, Mapping):
        raise InvalidInputError(
            "not an alteration", expected="a dict with path and name, nullable or data_type", found=repr(raw)
        )
    unknown = [key for key in raw if key not in _KEYS]
    if unknown:
        raise InvalidInputError(f"unknown key {unknown[0]!r}", where="alter_columns", expected=", ".join(_KEYS))
    if not isinstance(raw.get("path"), str):
        raise InvalidInputError("the alteration needs a path", where="alter_columns", found=repr(raw))
    alteration = Alteration(**raw)
    if alteration.name is None and alteration.nullable is None and alteration.data_type is None:
        raise InvalidInputError(
            "the alteration does not change anything", where=alteration.path, expected="name, nullable or data_type"
        )
    if alteration.nullable is not None and not isinstance(alteration.nullable, bool):
        raise InvalidInputError("nullable", where=alteration.path, expected="a bool", found=repr(alteration.nullable))
    if alteration.data_type is not None and not isinstance(alteration.data_type, pa.DataType):
        raise InvalidInputError(
            "data_type", where=alteration.path, expected="an Arrow type", found=repr(alteration.data_type)
        )
    return alteration


def _relabelled(field: Field, alteration: Alteration) -> Field:
    """Return the field with its new name and nullability."""
    if alteration.name is not None:
        check_column_name(alteration.name, (), alteration.path)
    if alteration.nullable and is_primary_key(field):
        raise InvalidInputError("a primary key column cannot become nullable", where=alteration.path)
    name = field.name if alteration.name is None else alteration.name
    return replace(field, name=name, nullable=field.nullable if alteration.nullable is None else alteration.nullable)


def _cast(field: Field, alteration: Alteration, version: str, first_id: int) -> Field:
    assert alteration.data_type is not None
    if field.blob_version or not can_cast(field.arrow_type, alteration.data_type):
        raise InvalidInputError(
            f"column {alteration.path!r} cannot be cast",
            expected="a type of the same group (integers, floats, decimals, strings, bytes, times, or lists "
            "of these), or vectors of floats for lists of numbers",
            found=f"{field.arrow_type} to {alteration.data_type}",
        )
    arrow = pa.field("column", alteration.data_type, True)
    (new_field,) = schema_from_arrow(pa.schema([arrow]), version, first_id).fields
    return with_attributes(new_field, field)


def with_attributes(new: Field, old: Field) -> Field:
    """Return a field with the name, nullability and metadata of an old one. Fields inside keep their own metadata."""
    metadata = dict(new.metadata) | _still_valid(old, new)
    children = tuple(
        child if inner is None else replace(with_attributes(child, inner), name=child.name, parent_id=new.id)
        for child, inner in _pairs(new, old)
    )
    return replace(
        new, name=old.name, parent_id=old.parent_id, nullable=old.nullable, metadata=metadata, children=children
    )


def _pairs(new: Field, old: Field) -> list[tuple[Field, Field | None]]:
    """Pair the fields inside a new type with those inside the old one: members of structs by name, others in order."""
    if new.logical_type == old.logical_type == "struct" and not old.blob_version:
        before = {child.name.lower(): child for child in old.children}
        return [(child, before.get(child.name.lower())) for child in new.children]
    if len(new.children) == len(old.children) and (new.logical_type == "map") == (old.logical_type == "map"):
        return list(zip(new.children, old.children, strict=True))
    return [(child, None) for child in new.children]


def _still_valid(old: Field, new: Field) -> dict[str, str]:
    """Return the metadata of a field that still applies after it gets the type of another field."""
    dropped = {*_OF_TYPE}
    if new.logical_type not in ("binary", "large_binary"):
        dropped.add(BLOB_KEY)
    if new.logical_type != "struct":
        dropped |= {PACKED_KEY, "packed"}
    return {key: value for key, value in old.metadata.items() if key not in dropped}


def _refuse_in_map(path: Sequence[Field], alteration: Alteration) -> None:
    """Raise InvalidInputError if map entries, keys or values would be altered in a way that maps do not support."""
    maps = [depth for depth, field in enumerate(path[:-1], 1) if field.logical_type == "map"]
    below = len(path) - maps[-1] if maps else 0
    is_value = below == 2 and path[-1] == path[-2].children[1]
    if below in (1, 2) and (alteration.name is not None or (alteration.nullable is not None and not is_value)):
        raise InvalidInputError(
            "keys and entries of a map cannot be renamed or made nullable",
            where=alteration.path,
        )


def _refuse_cast_in(above: Sequence[Field], alteration: Alteration) -> None:
    """Raise InvalidInputError for fields in maps, fixed-size lists and packed structs, which files store whole."""
    for field in above:
        if field.logical_type == "map" or field.logical_type.startswith("fixed_size_list:") or field.is_packed:
            raise InvalidInputError(
                "fields in maps, fixed-size lists and packed structs cannot be cast",
                where=alteration.path,
                remedy=f"add a column with the new type, update it, and drop {field.name!r}",
            )


def can_cast(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether a column can change its type. Both types must be of the same kind. Their widths may differ.

    Lists and vectors can be cast to each other, and lists of numbers to vectors of floats. Whether the lengths fit
    depends on the values.
    """
    if isinstance(old, pa.BaseExtensionType) or isinstance(new, pa.BaseExtensionType):
        return bool(old == new)
    if pt.is_dictionary(old):
        return can_cast(old.value_type, new)
    if pt.is_dictionary(new):
        return can_cast(old, new.value_type)
    if is_list(old) and is_list(new):
        sizes = {t.list_size for t in (old, new) if pt.is_fixed_size_list(t)}
        becomes_vectors = pt.is_fixed_size_list(new) and not pt.is_fixed_size_list(old)
        if becomes_vectors and pt.is_floating(new.value_type) and is_any_number(old.value_type):
            return True
        return len(sizes) < 2 and can_cast(old.value_type, new.value_type)
    return bool(old == new) or (_kind(old) is not None and _kind(old) == _kind(new))


def _kind(kind: pa.DataType) -> str | None:
    kinds = {
        "whole": pt.is_integer,
        "float": pt.is_floating,
        "decimal": pt.is_decimal,
        "text": lambda type_: pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_),
        "bytes": lambda type_: pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_binary_view(type_),
        "span": pt.is_duration,
        "time": pt.is_time,
        "moment": lambda type_: pt.is_date(type_) or pt.is_timestamp(type_),
    }
    return next((name for name, holds in kinds.items() if holds(kind)), None)


def _refuse_changes_below(field: Field, targets: Mapping[int, Alteration]) -> None:
    if any(below.id in targets for child in field.children for below in child.walk()):
        raise InvalidInputError("one call cannot cast a column and alter its fields", where=targets[field.id].path)


def _check_siblings(fields: Sequence[Field]) -> None:
    names = [field.name for field in fields]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise DataMismatchError(f"column {double!r} already exists", where="alter_columns")
    for field in fields:
        _check_siblings(field.children)
