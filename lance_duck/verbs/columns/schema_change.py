"""Schemas after column changes, computed by pure functions. Remaining fields keep their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_duck.arrow.pandas_metadata import PANDAS, joined_pandas
from lance_duck.errors import DataMismatchError, InvalidInputError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import primary_key, refuse_mixed_lists, schema_from_arrow
from lance_duck.write.relations import refuse_enums

_DECLARATIONS = ("lance-schema:unenforced-", "computed_column", "computed_refresh")
_VIEW = "mv."
_LISTS = ("list", "large_list", "list.struct", "large_list.struct")


@dataclass(frozen=True)
class ColumnAddition:
    """A schema with additional columns.

    Attributes:
        whole: The schema with the new columns.
        new: The new columns only. A struct with a new field is included with this field only.
    """

    whole: Schema
    new: Schema

    @property
    def tightens(self) -> bool:
        """Whether a new column is non-nullable, which requires values for all rows."""
        old_ids = set(self._old_ids)
        return any(not field.nullable for field in self.new.walk() if field.id not in old_ids)

    @property
    def _old_ids(self) -> list[int]:
        new = {field.id for field in self.new.walk()}
        return [field.id for field in self.whole.walk() if field.id not in new]


def next_field_id(snapshot: Snapshot) -> int:
    """Return an id that exceeds all field ids of a version and its files."""
    ids = [field.id for field in snapshot.schema.walk()]
    ids += [i for fragment in snapshot.fragments for file in fragment.all_files for i in file.fields]
    return max(*ids, snapshot.manifest.proto.max_allocated_field_id, -1, -1) + 1


def declares_nothing(key: str) -> bool:
    """Return whether field metadata declares neither a table key nor a LanceDB computed column."""
    return not key.startswith(_DECLARATIONS)


def add_fields(
    schema: Schema,
    arrow: pa.Schema,
    version: str,
    first_id: int,
    *,
    lists: bool = False,
    keep: Callable[[str], bool] | None = declares_nothing,
) -> ColumnAddition:
    """Append columns, or add fields to structs.

    Args:
        schema: Schema of the table.
        arrow: The new columns.
        version: File version of the new columns.
        first_id: Lowest id for new fields.
        lists: Whether fields can be added to structs inside lists.
        keep: Function that returns whether a field metadata key of the new columns is kept. None keeps all keys.

    Raises:
        InvalidInputError: A column already exists, a name is repeated, or the columns extend a primary key.
        UnsupportedError: A type cannot be stored.
    """
    refuse_enums(arrow)
    new_schema = schema_from_arrow(arrow.remove_metadata(), version, first_id, schema, keep=keep)
    for field in new_schema.fields:
        refuse_mixed_lists(field)
    fields, new = _extend(schema.fields, new_schema.fields, (), lists=lists)
    if (key := primary_key(schema)) != primary_key(Schema(fields)) and key:
        raise InvalidInputError(
            "the primary key of a table cannot be changed once it is set",
            where="add_columns",
            remedy="remove the primary key from the metadata of the new columns",
        )
    added = {k.decode(): v.decode() for k, v in (arrow.metadata or {}).items()}
    labelled = joined_pandas(schema.metadata.get(PANDAS), added.pop(PANDAS, None), arrow.names)
    metadata = dict(schema.metadata) | {k: v for k, v in added.items() if not k.startswith(_VIEW)}
    if labelled is not None:
        metadata[PANDAS] = labelled
    return ColumnAddition(Schema(fields, metadata), Schema(new))


def drop_fields(schema: Schema, paths: Iterable[str]) -> Schema:
    """Drop columns or struct fields. Structs, lists and maps that lose all their fields are also dropped.

    Raises:
        InvalidInputError: A column does not exist or is a map's key or value, or no column would remain.
        UnsupportedError: The field belongs to a packed struct, which is one column on disk.
    """
    field_ids = {_droppable(schema, path).id for path in paths}
    fields = tuple(pruned for field in schema.fields if (pruned := _without(field, field_ids)) is not None)
    if not fields:
        raise InvalidInputError(
            "a table must keep at least one column", where="drop_columns", expected="at least one remaining column"
        )
    return replace(schema, fields=fields)


def replace_fields(schema: Schema, replacement: Callable[[Field], Field | None]) -> Schema:
    """Replace fields at all depths with the function's results. If the function returns None, the field is kept."""

    def walk(field: Field) -> Field:
        new = replacement(field)
        if new is not None:
            return new
        return replace(field, children=tuple(walk(child) for child in field.children))

    return replace(schema, fields=tuple(walk(field) for field in schema.fields))


def only(schema: Schema, ids: set[int]) -> Schema:
    """Return the schema restricted to some field ids, with their ancestors and descendants."""

    def prune(field: Field) -> Field | None:
        if field.id in ids:
            return field
        children = tuple(pruned for child in field.children if (pruned := prune(child)) is not None)
        return replace(field, children=children) if children else None

    return replace(schema, fields=tuple(pruned for field in schema.fields if (pruned := prune(field)) is not None))


def path_of(schema: Schema, field_id: int) -> list[Field]:
    """Return the path to the field with this id, from its column down to the field itself."""
    field = schema.by_id(field_id)
    fields = [field]
    while field.parent_id >= 0:
        field = schema.by_id(field.parent_id)
        fields.insert(0, field)
    return fields


def check_column_name(name: str, siblings: Sequence[Field], path: str) -> None:
    """Raise InvalidInputError if a field's new name is empty, contains a dot, or is taken."""
    if not isinstance(name, str) or not name or "." in name:
        raise InvalidInputError("invalid column name", where=path, expected="a string without dots", found=repr(name))
    if any(field.name == name for field in siblings):
        raise DataMismatchError(f"column {name!r} already exists", where=path)


def check_new_names(schema: Schema, paths: Iterable[str]) -> None:
    """Raise InvalidInputError if a new column already exists."""
    for path in paths:
        if path in schema.names:
            raise _exists((path,))


def _extend(
    old: Sequence[Field], additions: Sequence[Field], path: tuple[str, ...], *, lists: bool
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the old fields with the additions, and the additions only. New fields keep their ids."""
    fields, new = list(old), []
    for field in additions:
        place = next((i for i, other in enumerate(fields) if other.name == field.name), None)
        if place is None:
            fields.append(field)
            new.append(field)
            continue
        existing = fields[place]
        where = (*path, field.name)
        if not _may_grow(existing, field, lists=lists):
            raise _exists(where)
        children, new_fields = _extend(existing.children, field.children, where, lists=lists)
        fields[place] = replace(existing, children=children)
        new.append(replace(existing, children=new_fields))
    return tuple(fields), tuple(new)


def _may_grow(existing: Field, field: Field, *, lists: bool) -> bool:
    if existing.is_packed or existing.blob_version:
        return False
    if existing.logical_type == field.logical_type == "struct":
        return True
    return lists and existing.logical_type in _LISTS and field.logical_type == existing.logical_type


def _exists(path: Sequence[str]) -> InvalidInputError:
    return DataMismatchError(f"column {'.'.join(path)!r} already exists", where="schema")


def _droppable(schema: Schema, path: str) -> Field:
    field = schema.by_path(path)
    *above, _ = path_of(schema, field.id)
    if any(each.is_packed for each in above):
        raise UnsupportedError(
            "fields of a packed struct cannot be dropped",
            where="drop_columns",
            found=path,
            remedy="copy the other fields to new columns, then drop the struct",
        )
    if above[-2:-1] and above[-2].logical_type == "map":
        raise InvalidInputError(
            "keys and values of a map cannot be dropped",
            where="drop_columns",
            found=path,
            remedy="drop the map, or fields of its struct value",
        )
    return field


def _without(field: Field, field_ids: set[int]) -> Field | None:
    if field.id in field_ids:
        return None
    children = tuple(pruned for child in field.children if (pruned := _without(child, field_ids)) is not None)
    is_whole = bool(children) or not field.children
    if field.logical_type == "map":
        is_whole = is_whole and len(children[0].children) == len(field.children[0].children)
    return replace(field, children=children) if is_whole else None
