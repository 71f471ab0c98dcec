"""The physical columns of the fields of a file."""

from __future__ import annotations

from collections.abc import Sequence

from lance_duck.wire.schema import Field


def physical_columns(fields: Sequence[Field], version: tuple[int, int]) -> dict[int, int]:
    """Return the physical column of each field in a file with these fields, by field id, depth first.

    In 0.1, the column number of a field is its id. In 2.0, every field has a column, including parents. Since 2.1,
    only fields that store values have a column. Fields below a packed struct or a blob share its column.
    """
    if version == (0, 1):
        return {below.id: below.id for field in fields for below in field.walk()}
    places: dict[int, int] = {}
    pending = list(reversed(fields))
    while pending:
        field = pending.pop()
        whole = is_whole(field, version)
        if whole or version == (2, 0):
            places[field.id] = len(places)
        if not whole:
            pending.extend(reversed(field.children))
    return places


def is_whole(field: Field, version: tuple[int, int]) -> bool:
    """Return whether a field is stored as one column, including all fields below it."""
    if not field.children or field.is_packed or bool(field.blob_version):
        return True
    return version == (2, 0) and field.logical_type.startswith("fixed_size_list:")
