"""Columns and nested fields that ALTER TABLE adds, drops and renames.

Changes that DuckDB rejects for native tables fail with DuckDB's messages.
"""

from __future__ import annotations

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.tables.column_path import ColumnPath, field_below, is_struct, lance_path
from lance_duck.duck.statement.identifiers import folded, quoted, shown_names
from lance_duck.errors import InvalidInputError, UnknownColumnError
from lance_duck.wire.schema import Field, Schema


def new_field(schema: Schema, path: ColumnPath, where: str, *, may_exist: bool) -> bool:
    """Return whether to add a column or field. Returns False if it exists and IF NOT EXISTS is given.

    Args:
        schema: Columns of the table.
        path: The column or field.
        where: The table, for errors.
        may_exist: IF NOT EXISTS.

    Raises:
        UnknownColumnError: The column that contains the field does not exist.
        InvalidInputError: It exists (ignoring case), or its parent is not a struct.
    """
    parent = None
    if len(path.names) > 1:
        column = path.column(schema, where)
        if not column.children:
            what = f'Column "{column.name}" is not a nested type, ADD COLUMN can only be used on nested types'
            raise InvalidInputError(what, where=where, found=column.logical_type)
        parent = path.parent(schema, where)
        assert parent is not None
        if not is_struct(parent):
            what = f'Column "{parent.name}" is not a struct - ALTER TABLE can only add fields to structs'
            raise InvalidInputError(what, where=where, found=parent.logical_type)
    names = [field.name for field in (schema.fields if parent is None else parent.children)]
    shown = shown_names(names) if parent is None else []
    if all(folded(name) != folded(path.name) for name in (*names, *shown)):
        return True
    if may_exist:
        return False
    if parent is None:
        raise InvalidInputError(f'Column with name "{path.name}" already exists!', where=where)
    what = f'Duplicate field "{path.name}" - field already exists in struct "{parent.name}"'
    raise InvalidInputError(what, where=where)


def is_written_whole(schema: Schema, path: ColumnPath, where: str, has_default: bool) -> bool:
    """Return whether a new field needs all values of its column to be written.

    Args:
        schema: Columns of the table.
        path: The field.
        where: The table, for errors.
        has_default: Whether the field gets values. Otherwise, it is null.
    """
    above = _above(schema, path, where)
    if has_default:
        return any(field.logical_type != "struct" or field.is_packed for field in above)
    return any(not (field.logical_type == "struct" or field.is_list) or field.is_packed for field in above)


def null_field(dataset: LanceDataset, path: ColumnPath, type_: pa.DataType, where: str) -> pa.Field:
    """Return the argument for `add_columns` that adds a column or field of nulls. See `is_written_whole`."""
    added = pa.field(path.name, type_)
    for field in reversed(_above(dataset.handle.snapshot.schema, path, where)):
        if field.logical_type == "struct":
            type_ = pa.struct([added])
        else:
            type_ = (pa.large_list if field.logical_type.startswith("large_list") else pa.list_)(added)
        added = pa.field(field.name, type_)
    return added


def nested_defaults(dataset: LanceDataset, path: ColumnPath, value: str, where: str) -> dict[str, str]:
    """Return the argument for `add_columns` that sets a new struct field in every row. See `is_written_whole`.

    Args:
        dataset: The table.
        path: The field.
        value: SQL of the value.
        where: The table, for errors.
    """
    above = _above(dataset.handle.snapshot.schema, path, where)
    name = path.name
    for depth in range(len(above), 0, -1):
        struct = ".".join(quoted(field.name) for field in above[:depth])
        value = f"CASE WHEN {struct} IS NOT NULL THEN struct_pack({quoted(name)} := {value}) END"
        name = above[depth - 1].name
    return {name: value}


def dropped_field(schema: Schema, path: ColumnPath, where: str, *, may_miss: bool) -> str | None:
    """Return the dotted path of a column or field to drop. Returns None if it is missing and IF EXISTS is given.

    Args:
        schema: Columns of the table.
        path: The column or field.
        where: The table, for errors.
        may_miss: IF EXISTS.

    Raises:
        UnknownColumnError: The column or field does not exist.
        InvalidInputError: It is not a member of a struct, it is the last member or column, or several fields match its
            name.
    """
    try:
        column = path.column(schema, where)
    except UnknownColumnError:
        if may_miss:
            return None
        raise
    if len(path.names) == 1:
        return lance_path(schema, column)
    if not column.children:
        raise _not_nested("drop", column, where)
    parent = _parent(schema, path, where, may_miss=may_miss)
    if parent is not None and not parent.children:
        raise _not_nested("drop", parent, where)
    found = None if parent is None else field_below(parent, path.name, where)
    if parent is None or found is None:
        if may_miss:
            return None
        raise UnknownColumnError(f'Cannot drop field "{path.name}" - it does not exist', where=where)
    if not is_struct(parent):
        what = f'Cannot drop field "{path.name}" from column "{column.name}" - it\'s not a struct'
        raise InvalidInputError(what, where=where, found=parent.logical_type)
    if len(parent.children) == 1:
        what = f"Cannot drop field {found.name} from column {column.name} - it is the last field of the struct"
        raise InvalidInputError(what, where=where, remedy=f"DROP COLUMN {column.name} drops the whole column")
    return lance_path(schema, found)


def renamed_field(schema: Schema, path: ColumnPath, name: str, where: str) -> str:
    """Return the dotted path of a column or field to rename.

    Args:
        schema: Columns of the table.
        path: The column or field.
        name: Its new name.
        where: The table, for errors.

    Raises:
        UnknownColumnError: The column or field does not exist.
        InvalidInputError: A field with the new name exists (ignoring case), or the field is not a struct member.
    """
    column = path.column(schema, where)
    if len(path.names) == 1:
        names = [field.name for field in schema.fields if field is not column]
        taken = [each for each in (*names, *shown_names(names)) if folded(each) == folded(name)]
        if taken:
            raise InvalidInputError(f'Column with name "{taken[0]}" already exists!', where=where)
        return lance_path(schema, column)
    if not column.children:
        raise _not_nested("rename", column, where)
    parent = path.parent(schema, where)
    found = None if parent is None else field_below(parent, path.name, where)
    if parent is None or found is None:
        raise UnknownColumnError(f'Cannot rename field "{path.name}" - it does not exist', where=where)
    what = f'Cannot rename field "{path.name}" from column "{column.name}"'
    if not is_struct(parent):
        raise InvalidInputError(f"{what} - can only rename fields inside a struct", where=where)
    if any(folded(field.name) == folded(name) for field in parent.children):
        raise InvalidInputError(f"{what} to {name} - a field with this name already exists", where=where)
    return lance_path(schema, found)


def _parent(schema: Schema, path: ColumnPath, where: str, *, may_miss: bool) -> Field | None:
    try:
        return path.parent(schema, where)
    except UnknownColumnError:
        if may_miss:
            return None
        raise


def _above(schema: Schema, path: ColumnPath, where: str) -> list[Field]:
    """Return the ancestors of a field in the table's schema, outermost first."""
    parent = path.parent(schema, where)
    above: list[Field] = []
    while parent is not None:
        above.insert(0, parent)
        parent = schema.by_id(parent.parent_id) if parent.parent_id >= 0 else None
    return above


def _not_nested(verb: str, column: Field, where: str) -> InvalidInputError:
    what = f'Cannot {verb} field from column "{column.name}" - not a nested type'
    return InvalidInputError(what, where=where, found=column.logical_type)
