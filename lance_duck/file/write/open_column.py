"""The writer of a column, by the version of the file."""

from __future__ import annotations

from lance_duck.file.costs import PAGE_BYTES
from lance_duck.file.write.column import open_v21_column as open_newer
from lance_duck.file.write.column20 import open_v20_column as open_20
from lance_duck.file.write.contract import ColumnWriter, Space
from lance_duck.wire.schema import Field


def open_column_writer(field: Field, version: str, space: Space, page_bytes: int = PAGE_BYTES) -> ColumnWriter:
    """Begin a column of a new file.

    Raises:
        UnsupportedError: The version does not have the type.
    """
    opener = open_20 if version == "2.0" else open_newer
    return opener(field, version, space, page_bytes)
