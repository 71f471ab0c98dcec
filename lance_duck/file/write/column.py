"""Writes columns of 2.1 and 2.2 files: a field's arrays become the pages of its physical columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.encoding.write.shred import Outline, unfold_fixed, unfold_items, unfold_list
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.file.costs import HELD_BYTES, PAGE_BYTES
from lance_duck.file.write.contract import ColumnWriter, Pages, Space, num_bytes
from lance_duck.file.write.leaf import Layer, LeafWriter
from lance_duck.wire.schema import Field
from lance_duck.wire.schema_write import refuse_mixed_lists


@dataclass(frozen=True, slots=True)
class _FieldWriter:
    """A node in the field tree of a column.

    Attributes:
        field: The field.
        leaf: Number of its physical column, or None if the field does not have a column.
        children: Fields below it.
    """

    field: Field
    leaf: int | None
    children: tuple[_FieldWriter, ...] = ()


class NestedColumnWriter:
    """A writer of a field of a 2.1 or 2.2 file.

    Args:
        field: The field.
        version: "2.1" or "2.2".
        space: Space for bytes outside pages.
        page_bytes: Page size before compression, in bytes of values and levels.

    Raises:
        UnsupportedError: The version does not support the type.
    """

    def __init__(self, field: Field, version: str, space: Space, page_bytes: int = PAGE_BYTES) -> None:
        self._version = version
        self._space = space
        self._page_bytes = page_bytes
        self._leaves: list[LeafWriter] = []
        refuse_mixed_lists(field)
        self._where = f"column {field.name}"
        self._root = self._build(field, (), self._where)

    @property
    def num_columns(self) -> int:
        """Number of physical columns of the field."""
        return len(self._leaves)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of values and levels that wait for full pages."""
        return sum(leaf.waiting_bytes for leaf in self._leaves)

    def write(self, array: pa.Array) -> Pages:
        """Add rows, and return the pages that are full.

        Raises:
            InvalidInputError: The array does not fit the field.
            UnsupportedError: The version does not support the values.
        """
        pages: Pages = []
        size = num_bytes(array)
        rows = len(array) if size <= HELD_BYTES else max(1, len(array) * HELD_BYTES // size)
        for start in range(0, len(array), max(1, rows)):
            part = array.slice(start, rows)
            self._ravel(self._root, part, Outline(len(part)), len(part), self._where)
            pages += [(i, page) for i, leaf in enumerate(self._leaves) for page in leaf.full()]
        for leaf in self._leaves:
            leaf.own()
        return pages

    def finish(self) -> Pages:
        """Return the pages of the remaining rows."""
        return [(i, page) for i, leaf in enumerate(self._leaves) for page in leaf.rest()]

    def _build(self, field: Field, around: tuple[Layer, ...], where: str) -> _FieldWriter:
        if not field.children or field.is_packed or field.blob_version:
            layers = (*around, Layer(False, field.nullable))[::-1]
            if self._version == "2.1" and field.logical_type == "fixed_size_binary:0":
                raise UnsupportedError(
                    "data files of version 2.1 cannot store values without bytes",
                    where=where,
                    found=field.logical_type,
                    remedy="write with data_storage_version='2.2'",
                )
            metadata = {} if field.blob_version else field.metadata
            choice = EncodingOptions.from_metadata(metadata, self._version, field.logical_type)
            self._leaves.append(LeafWriter(field, layers, choice, self._space, self._page_bytes, where))
            return _FieldWriter(field, len(self._leaves) - 1)
        layer = self._layer(field, where)
        children = tuple(self._build(c, (*around, layer), f"{where}.{c.name}") for c in field.children)
        return _FieldWriter(field, None, children)

    def _layer(self, field: Field, where: str) -> Layer:
        kind = field.logical_type
        if self._version == "2.1" and (kind == "map" or kind.startswith("fixed_size_list:")):
            raise UnsupportedError(
                f"data files of version 2.1 cannot store type {kind}",
                where=where,
                remedy="write with data_storage_version='2.2'",
            )
        if kind.startswith("fixed_size_list:"):
            return Layer(False, field.nullable, int(kind.rpartition(":")[2]))
        return Layer(kind != "struct", field.nullable)

    def _ravel(self, node: _FieldWriter, array: pa.Array, outline: Outline, num_rows: int, where: str) -> None:
        """Shred an array, down to the leaves."""
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        if node.leaf is not None:
            self._leaves[node.leaf].add(array, outline, num_rows)
            return
        kind = array.type
        if pa.types.is_struct(kind) and node.field.logical_type == "struct":
            inside = unfold_items(outline, array)
            for child in node.children:
                place = kind.get_field_index(child.field.name)
                if place < 0:
                    raise InvalidInputError("a struct does not have the field", where=where, expected=child.field.name)
                self._ravel(child, array.field(place), inside, num_rows, f"{where}.{child.field.name}")
            return
        if pa.types.is_fixed_size_list(kind):
            inside, items = unfold_fixed(outline, array, where)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
            inside, items = unfold_list(outline, array, where)
        else:
            raise InvalidInputError(
                "the array has a different type", where=where, expected=node.field.logical_type, found=kind
            )
        (child,) = node.children
        self._ravel(child, items, inside, num_rows, f"{where}.{child.field.name}")


def open_v21_column(field: Field, version: str, space: Space, page_bytes: int = PAGE_BYTES) -> ColumnWriter:
    """Return a writer of a top-level field for a 2.1 or 2.2 file.

    Raises:
        UnsupportedError: The version does not support the type.
    """
    return NestedColumnWriter(field, version, space, page_bytes)
