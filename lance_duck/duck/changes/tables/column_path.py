"""Paths of columns and nested fields in ALTER TABLE, COMMENT ON COLUMN and CREATE INDEX.

    c | c.field | c.element.field | c.key | c.value.field

`element` refers to list items, `key` and `value` to map entries. Names are compared without case. A quoted name is a
single name, even with dots in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_duck.arguments import unknown_column
from lance_duck.duck.changes.target import ambiguous_name
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import ambiguous_columns, folded
from lance_duck.errors import UnknownColumnError
from lance_duck.wire.column_path import join_path
from lance_duck.wire.schema import Field, Schema

_ELEMENT, _KEY, _VALUE = "element", "key", "value"


@dataclass(frozen=True)
class ColumnPath:
    """The path of a column or nested field in a statement.

    Attributes:
        names: Its names, outermost first.
        after: Position of the token after it.
    """

    names: tuple[str, ...]
    after: int

    @classmethod
    def at(cls, clauses: Clauses, place: int) -> ColumnPath | None:
        """Parse the path that begins at a token. Returns None if no path begins there."""
        name = TableName.at(clauses, place)
        return None if name is None or name.path is not None else cls(name.parts, name.after)

    @property
    def name(self) -> str:
        """The last name."""
        return self.names[-1]

    def column(self, schema: Schema, where: str) -> Field:
        """Return the column at the start of the path.

        Args:
            schema: Columns of the table.
            where: The table, for errors.

        Raises:
            UnknownColumnError: The column does not exist.
            InvalidInputError: Several columns have this name.
        """
        column = _column(schema, self.names[0], where)
        if column is None:
            raise unknown_column(self.names[0], schema.names, where)
        return column

    def parent(self, schema: Schema, where: str) -> Field | None:
        """Return the parent of the field, or None for a column. Raises the same errors as `field`."""
        return ColumnPath(self.names[:-1], self.after).field(schema, where) if len(self.names) > 1 else None

    def field(self, schema: Schema, where: str) -> Field:
        """Return the column or field.

        Args:
            schema: Columns of the table.
            where: The table, for errors.

        Raises:
            UnknownColumnError: The column or field does not exist.
            InvalidInputError: Several columns or fields match one of the names.
        """
        field = self.column(schema, where)
        for name in self.names[1:]:
            below = field_below(field, name, where)
            if below is None:
                raise UnknownColumnError(
                    f'field "{name}" does not exist',
                    where=f"{where}, column {'.'.join(self.names)}",
                    expected=", ".join(_members(field)) or f"no field of a {field.logical_type}",
                )
            field = below
        return field

    def index_path(self, schema: Schema, where: str) -> str:
        """Return the dotted path of an index column. `element` may be omitted.

        Args:
            schema: Columns of the table.
            where: The table, for errors.

        Raises:
            InvalidInputError: Several fields have one of the names.
        """
        try:
            return lance_path(schema, self.field(schema, where))
        except UnknownColumnError:
            self._refuse_ambiguous(schema, where)
            return join_path(self.names)

    def _refuse_ambiguous(self, schema: Schema, where: str) -> None:
        fields: Sequence[Field] = schema.fields
        for name in self.names:
            field = _one(fields, name, where)
            while field is None and len(fields) == 1 and fields[0].children:
                fields = fields[0].children
                field = _one(fields, name, where)
            fields = () if field is None else field.children


def field_below(field: Field, name: str, where: str) -> Field | None:
    """Return the direct child of a field with this SQL name, or None.

    Args:
        field: A struct, list or map. Other fields do not have members.
        name: The name.
        where: The table, for errors.

    Raises:
        InvalidInputError: Several members have this name.
    """
    if field.logical_type == "map":
        key, value = field.children[0].children
        return {_KEY: key, _VALUE: value}.get(folded(name))
    if field.logical_type == "struct":
        return _one(field.children, name, where)
    return field.children[0] if field.children and folded(name) == _ELEMENT else None


def refuse_ambiguous_names(schema: Schema, part: Clauses, where: str) -> None:
    """Raise InvalidInputError if an expression uses a name that matches several columns ignoring case."""
    for token in part.tokens:
        if token.name is not None:
            _column(schema, token.name, where)


def is_struct(field: Field) -> bool:
    """Return whether a field has named members."""
    return field.logical_type == "struct" and not field.blob_version


def lance_path(schema: Schema, field: Field) -> str:
    """Return the dotted path of a field, as used by `LanceDataset` methods."""
    names = [field.name]
    while field.parent_id >= 0:
        field = schema.by_id(field.parent_id)
        names.insert(0, field.name)
    return join_path(names)


def _column(schema: Schema, name: str, where: str) -> Field | None:
    names = ambiguous_columns(schema.names).get(folded(name))
    if names is not None:
        raise ambiguous_name(name, names, where)
    return _one(schema.fields, name, where)


def _one(fields: Sequence[Field], name: str, where: str) -> Field | None:
    found = [field for field in fields if folded(field.name) == folded(name)]
    if len(found) > 1:
        raise ambiguous_name(name, [field.name for field in found], where)
    return found[0] if found else None


def _members(field: Field) -> list[str]:
    if field.logical_type == "map":
        return [_KEY, _VALUE]
    if field.logical_type == "struct":
        return [child.name for child in field.children]
    return [_ELEMENT] if field.children else []
