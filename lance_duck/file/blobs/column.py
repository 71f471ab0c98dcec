"""BlobColumn: values in memory as files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_duck.errors import InvalidInputError


class BlobColumn:
    """A column of bytes whose values are iterated as files; None for a null.

    Args:
        blob_column: A pyarrow Array or ChunkedArray of binary or large_binary.

    Raises:
        InvalidInputError: The column is of another type.
    """

    def __init__(self, blob_column: Any) -> None:
        type_name = (
            blob_column.type if isinstance(blob_column, pa.Array | pa.ChunkedArray) else type(blob_column).__name__
        )
        if type_name not in (pa.binary(), pa.large_binary()):
            raise InvalidInputError("Expected a binary array", where="BlobColumn", found=type_name)
        self.blob_column = blob_column

    def __iter__(self) -> Iterator[io.BytesIO | None]:
        for value in self.blob_column:
            yield io.BytesIO(value.as_py()) if value.is_valid else None
