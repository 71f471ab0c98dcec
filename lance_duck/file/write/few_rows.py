"""Pages of files with few rows and only flat columns, without the writers of columns.

The pages are those that `column.NestedColumnWriter` makes. Its writers collect rows until they fill a page, which takes
longer than the encoding of a few rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from lance_duck.encoding.write.blocks import array_to_block
from lance_duck.encoding.write.layouts.leaf import LeafRows, encode_leaf
from lance_duck.encoding.write.layouts.levels import LeafShape
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.encoding.write.shred import Outline, unfold_items
from lance_duck.file.write.stored import stored_array, stored_type
from lance_duck.wire.schema import Field, Schema

_SCHEMAS: Final = 64
_FLAT: Final = (
    "bool",
    "int",
    "uint",
    "halffloat",
    "float",
    "double",
    "string",
    "large_string",
    "binary",
    "large_binary",
)
_FLAT_FAMILIES: Final = ("date", "time", "duration", "timestamp:", "decimal:")


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """A column whose type has fixed or variable width, without lists, structs, dictionaries and blobs.

    Attributes:
        field: The field.
        type: Its storage type.
        shape: Layers of the column.
        choice: Encoding options of the field.
        where: Name of the column, for messages.
    """

    field: Field
    type: pa.DataType
    shape: LeafShape
    choice: EncodingOptions
    where: str

    def pages(self, array: pa.Array) -> Iterable[EncodedPage]:
        """Return the pages of all rows of a file. See `ColumnWriter.write` for errors."""
        values = stored_array(array, self.field, self.type, self.where)
        outline = unfold_items(Outline(len(values)), values)
        block = array_to_block(values, self.where)
        return encode_leaf(
            LeafRows(block, self.shape, None, outline.holes, outline.hidden, len(values)), 0, self.choice
        )


@lru_cache(_SCHEMAS)
def flat_columns(schema: Schema, version: str) -> tuple[FlatColumn, ...] | None:
    """Return the columns of a file of version "2.1" or "2.2". Returns None if a column is not flat."""
    if not all(map(_is_flat, schema.fields)):
        return None
    return tuple(_column(field, version) for field in schema.fields)


def _is_flat(field: Field) -> bool:
    kind = field.logical_type
    is_flat = kind.rstrip("0123456789") in _FLAT or kind.startswith(_FLAT_FAMILIES)
    return is_flat and not (field.children or field.blob_version or field.is_json)


def _column(field: Field, version: str) -> FlatColumn:
    choice = EncodingOptions.from_metadata(field.metadata, version, field.logical_type)
    shape = LeafShape.of((False,), (field.nullable,), has_dense_nulls=choice.grammar.has_dense_nulls)
    return FlatColumn(field, stored_type(field), shape, choice, f"column {field.name}")
