"""The schema of a table as pylance's class: fields with their ids."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.wire.column_path import split_path
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import clustering_key, is_primary_key, key_position, primary_key, schema_from_arrow


@dataclass(frozen=True)
class LanceField:
    """A field of a table, at any depth."""

    _field: Field

    def name(self) -> str:
        """Return the name of the field, without its parents."""
        return self._field.name

    def id(self) -> int:
        """Return the id of the field in data files."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """Return the fields of a struct, the item of a list, or the entries of a map."""
        return [LanceField(child) for child in self._field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the field."""
        return dict(self._field.metadata)

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field, with its metadata."""
        return self._field.to_arrow()

    def is_unenforced_primary_key(self) -> bool:
        """Return whether the field belongs to the table's declared primary key."""
        return is_primary_key(self._field)

    def unenforced_primary_key_position(self) -> int | None:
        """Return the field's position in the primary key, from 1. Returns None for other fields."""
        return key_position(self._field, clustering=False)

    def is_unenforced_clustering_key(self) -> bool:
        """Return whether the field belongs to the table's declared clustering key."""
        return self.unenforced_clustering_key_position() is not None

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the field's position in the clustering key, from 1. Returns None for other fields."""
        return key_position(self._field, clustering=True)

    def __repr__(self) -> str:
        f = self._field
        below = f", children={self.children()}" if f.children else ""
        return f"LanceField(name={f.name!r}, id={f.id}, type={f.logical_type!r}, nullable={f.nullable}{below})"


@dataclass(frozen=True)
class LanceSchema:
    """Fields of a table with their ids. Can be compared and pickled."""

    _schema: Schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Assign ids to the fields of an Arrow schema, from 0, depth first.

        Raises:
            InvalidInputError: `schema` is not an Arrow schema, or has a duplicate name or a name with a dot.
            UnsupportedError: A type is not supported by Lance.
        """
        if not isinstance(schema, pa.Schema):
            raise InvalidInputError("schema", expected="a pyarrow.Schema", found=type(schema).__name__)
        return LanceSchema(schema_from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """Return the Arrow schema."""
        return self._schema.to_pyarrow()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self._schema.names

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the schema."""
        return dict(self._schema.metadata)

    def fields(self) -> list[LanceField]:
        """Return the columns, in order."""
        return [LanceField(field) for field in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """Return the field at a dotted path, or None."""
        try:
            return LanceField(self._schema.by_path(name))
        except InvalidInputError:
            return None

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return the field at a dotted path, or None. Case is ignored if no name matches exactly."""
        exact = self.field(name)
        if exact is not None:
            return exact
        match, below = None, self._schema.fields
        for part in split_path(name):
            match = next((f for f in below if f.name.lower() == part.lower()), None)
            below = () if match is None else match.children
        return None if match is None else LanceField(match)

    def unenforced_primary_key(self) -> list[LanceField]:
        """Return the fields of the declared primary key, in key order."""
        return [LanceField(field) for field in primary_key(self._schema)]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Return the fields of the declared clustering key, in key order."""
        return [LanceField(field) for field in clustering_key(self._schema)]

    def __repr__(self) -> str:
        return f"LanceSchema({self.fields()})"


def known_schema(schema: Schema | LanceSchema) -> Schema:
    """Return this package's schema, unwrapping a `LanceSchema`."""
    return schema._schema if isinstance(schema, LanceSchema) else schema
