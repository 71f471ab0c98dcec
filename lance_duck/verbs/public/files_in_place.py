"""Adds existing data files in a table's directory to the table. The files are read, never changed."""

from __future__ import annotations

from collections.abc import Iterator

from lance_duck.arguments import unknown_column
from lance_duck.errors import InvalidInputError
from lance_duck.file.physical import physical_columns
from lance_duck.file.reader import LanceFile
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.schema import Field, Schema, schema_from_proto


def data_file_at(snapshot: Snapshot, name: str, base_id: int | None = None) -> DataFile:
    """Return the manifest entry for a data file. Its columns must match the table's by name and type.

    Args:
        snapshot: The table.
        name: Name of the file, relative to the data directory.
        base_id: Id of the file's base path. None is the table root.

    Raises:
        NotFoundError: The file does not exist.
        InvalidInputError: A column does not exist in the table, or its type differs.
        FormatError: The file is not a data file.
    """
    return _described(snapshot, name, base_id)[0]


def fragment_at(snapshot: Snapshot, name: str, fragment_id: int) -> Fragment:
    """Describe a file as a fragment. See `data_file_at`.

    Raises:
        InvalidInputError: See `data_file_at`. Also raised if the file lacks a non-nullable column.
    """
    file, num_rows = _described(snapshot, name, None)
    present = set(file.fields)
    missing = [f.name for f in snapshot.schema.fields if not f.nullable and not _is_present(f, present)]
    if missing:
        raise InvalidInputError(f"non-nullable columns {', '.join(missing)} are missing", where=name)
    return Fragment(fragment_id, (file,), None, num_rows, None, None, None)


def _described(snapshot: Snapshot, name: str, base_id: int | None) -> tuple[DataFile, int]:
    data_file: LanceFile = snapshot.data_file(DataFile(name, (), (), (2, 0), None, base_id))
    descriptor = data_file.descriptor.schema
    own = schema_from_proto(descriptor.fields, descriptor.metadata)
    ids = dict(_matched(own.fields, snapshot.schema, name))
    places = physical_columns(own.fields, data_file.version)
    fields = tuple(ids[own_id] for own_id in places)
    size = data_file.source.size
    return DataFile(name, fields, tuple(places.values()), data_file.version, size, base_id), data_file.num_rows


def _matched(own: tuple[Field, ...], table: Schema, where: str) -> Iterator[tuple[int, int]]:
    """Yield (id in the file, id in the table) for each matching field."""
    pairs = [(f, next((t for t in table.fields if t.name == f.name), None), f.name) for f in own]
    while pairs:
        field, existing, path = pairs.pop()
        if existing is None:
            raise unknown_column(path, table.names, where)
        if existing.logical_type != field.logical_type:
            raise InvalidInputError(
                f"column {path!r} has another type",
                where=where,
                expected=existing.logical_type,
                found=field.logical_type,
            )
        yield field.id, existing.id
        below = {child.name: child for child in existing.children}
        pairs += [(child, below.get(child.name), f"{path}.{child.name}") for child in field.children]


def _is_present(field: Field, ids: set[int]) -> bool:
    return any(below.id in ids for below in field.walk())
