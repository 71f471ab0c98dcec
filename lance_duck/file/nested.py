"""Columns of 2.1 and 2.2 files: the physical columns of a field's leaves, assembled into values of the field's type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import check_count
from lance_duck.arrow.types import is_bytes, is_text, storage_type, with_type
from lance_duck.encoding.arrow.blocks import validity_buffer
from lance_duck.encoding.layouts.assemble import Structure, item_slots, list_slots
from lance_duck.encoding.layouts.page import Rows
from lance_duck.encoding.layouts.page_rows import check_rows
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.file.contract import Locate
from lance_duck.file.leaf import LeafColumn, LeafValues
from lance_duck.file.reader import LanceFile
from lance_duck.store.request import Bytes, Request, gather
from lance_duck.wire.schema import Field


@dataclass(frozen=True, slots=True)
class FieldNode:
    """A field of the column, in the tree of its fields.

    Attributes:
        arrow_type: Type of the field's arrays.
        leaf: Index of the physical column among the leaves. None if the field is not a leaf or the fragment lacks it.
        guide: Index of the leaf whose levels define the field's structure, and the field's layer in that leaf. None if
            the fragment lacks all its leaves.
        others: Guides in other files, for a struct outside lists. The struct is valid if any guide marks it as valid.
        children: Fields below it.
        is_valid: Whether a struct without a guide is valid: empty structs do not store levels and are never null.
    """

    arrow_type: pa.DataType
    leaf: int | None
    guide: tuple[int, int] | None
    children: tuple[FieldNode, ...]
    is_valid: bool = False
    others: tuple[tuple[int, int], ...] = ()


class NestedColumn:
    """A reader of a field of a 2.1 or 2.2 file."""

    def __init__(self, field: Field, locate: Locate, num_rows: int, arrow_type: pa.DataType) -> None:
        self.arrow_type = arrow_type
        self.num_rows = num_rows
        self._where = f"column {field.name}"
        self._leaves: list[LeafColumn] = []
        self._root = _NodeBuilder(locate, num_rows, self._leaves, []).build(field, arrow_type, ())

    def is_dictionary(self) -> bool:
        """Return whether the column is a single leaf whose pages are all dictionary-encoded."""
        return self._root.leaf is not None and self._leaves[self._root.leaf].is_dictionary()

    def has_no_nulls(self) -> bool:
        """Return whether the column is a single leaf whose pages are free of nulls."""
        return self._root.leaf is not None and self._leaves[self._root.leaf].has_no_nulls()

    def has_no_null_items(self) -> bool:
        """Return whether the column is a single leaf of fixed-size lists whose pages are free of null items."""
        return self._root.leaf is not None and self._leaves[self._root.leaf].has_no_null_items()

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Read rows: see `ColumnReader.read`."""
        count = check_rows(rows, self.num_rows)
        leaves = yield from gather([leaf.read(rows) for leaf in self._leaves])
        return self._assemble(self._root, leaves, count)

    def read_points(self, rows: NDArray[np.int64]) -> pa.Array | None:
        """Read a few rows immediately: see `ColumnReader.read_points`."""
        if self._root.leaf is None:
            return None
        values = self._leaves[self._root.leaf].read_points(rows)
        return None if values is None else with_type(values, self._root.arrow_type)

    def read_values(self, rows: NDArray[np.int64]) -> list[Bytes] | None:
        """Return a few values of a binary or string column, each as bytes: see `LeafColumn.read_values`."""
        return None if self._root.leaf is None else self._leaves[self._root.leaf].read_values(rows)

    def read_lists(self, rows: NDArray[np.int64]) -> tuple[Bytes, NDArray[np.int64], NDArray[np.int64]] | None:
        """Return a few rows of a column with binary or string lists: see `LeafColumn.read_lists`."""
        items = self._root.children if pa.types.is_list(storage_type(self._root.arrow_type)) else ()
        leaf = items[0].leaf if items else None
        return None if leaf is None else self._leaves[leaf].read_lists(rows)

    def _assemble(self, node: FieldNode, leaves: list[LeafValues], slots: int) -> pa.Array:
        if node.leaf is not None:
            values = leaves[node.leaf].values
            self._expect(len(values), slots)
            return with_type(values, node.arrow_type)
        storage = storage_type(node.arrow_type)
        if node.is_valid:
            children = [self._assemble(child, leaves, slots) for child in node.children]
            return with_type(pa.Array.from_buffers(storage, slots, [None], children=children), node.arrow_type)
        if node.guide is None:
            return pa.nulls(slots, node.arrow_type)
        if pa.types.is_struct(storage) or pa.types.is_fixed_size_list(storage):
            return with_type(self._items(node, storage, leaves, slots), node.arrow_type)
        return with_type(self._list(node, storage, leaves, slots), node.arrow_type)

    def _items(self, node: FieldNode, storage: pa.DataType, leaves: list[LeafValues], slots: int) -> pa.Array:
        leaf, layer = node.guide or (0, 0)
        count, valid = item_slots(self._leaves[leaf].structure, layer, leaves[leaf].entries)
        self._expect(count, slots)
        for leaf, layer in node.others if valid is not None else ():
            num_slots, flags = item_slots(self._leaves[leaf].structure, layer, leaves[leaf].entries)
            self._expect(num_slots, slots)
            valid = None if valid is None or flags is None else valid | flags
        inner = count * storage.list_size if pa.types.is_fixed_size_list(storage) else count
        children = [self._assemble(child, leaves, inner) for child in node.children]
        return pa.Array.from_buffers(storage, count, [validity_buffer(valid)], children=children)

    def _list(self, node: FieldNode, storage: pa.DataType, leaves: list[LeafValues], slots: int) -> pa.Array:
        leaf, layer = node.guide or (0, 0)
        offsets, valid = list_slots(self._leaves[leaf].structure, layer, leaves[leaf].entries)
        self._expect(len(offsets) - 1, slots)
        child = self._assemble(node.children[0], leaves, int(offsets[-1]))
        if pa.types.is_map(storage):
            self._expect_no_nulls(child)
        bitmap = validity_buffer(valid)
        return pa.Array.from_buffers(storage, slots, [bitmap, self._offsets(offsets, storage)], children=[child])

    def _offsets(self, offsets: NDArray[np.int32] | NDArray[np.int64], storage: pa.DataType) -> pa.Buffer:
        if pa.types.is_large_list(storage):
            return pa.py_buffer(offsets.astype(np.int64, copy=False))
        check_count(int(offsets[-1]), self._where)
        return pa.py_buffer(offsets.astype(np.int32, copy=False))

    def _expect_no_nulls(self, entries: pa.StructArray) -> None:
        """Reject null entries and null keys of a map, because Arrow aborts on them. Also computes null counts."""
        if entries.null_count or entries.field(0).null_count:
            raise CorruptError("a map has null entries or keys", where=self._where)

    def _expect(self, count: int, expected: int) -> None:
        if count != expected:
            raise CorruptError(
                "the physical columns have different lengths",
                where=self._where,
                expected=f"{expected} slots",
                found=count,
            )


@dataclass(frozen=True, slots=True)
class _NodeBuilder:
    """Builds the nodes of a field, and opens its leaves."""

    locate: Locate
    num_rows: int
    leaves: list[LeafColumn]
    files: list[LanceFile]

    def build(self, field: Field, arrow_type: pa.DataType, around: tuple[tuple[bool, int], ...]) -> FieldNode:
        """Return the node of a field. `around` lists (is a list, dimension) for each outer layer, outermost first."""
        place = self.locate(field.id)
        if place is not None and field.logical_type == "struct" and not field.children:
            return FieldNode(arrow_type, None, None, (), is_valid=True)
        if place is not None or not field.children or field.blob_version:
            if place is None:
                return FieldNode(arrow_type, None, None, ())
            return self._leaf(field, place, arrow_type, ((*around, (False, 1))))
        storage = storage_type(arrow_type)
        layer = _layer(storage, field)
        first = len(self.leaves)
        inside = (*around, layer)
        parts = zip(field.children, _child_types(storage, field), strict=True)
        children = tuple(self.build(child, child_type, inside) for child, child_type in parts)
        if len(self.leaves) == first:
            if not pa.types.is_struct(storage) and any(child.is_valid for child in children):
                raise UnsupportedError(
                    "lists of structs without fields are not supported", where=f"column {field.name!r}", found=storage
                )
            return FieldNode(arrow_type, None, None, children, is_valid=any(child.is_valid for child in children))
        guide, *others = self._guides(first, len(around), several=layer == (False, 1) and not any(a for a, _ in around))
        return FieldNode(arrow_type, None, guide, children, others=tuple(others))

    def _guides(self, first: int, around: int, *, several: bool) -> list[tuple[int, int]]:
        """Return (leaf, layer of the field) for leaf `first`, or with `several` for the first leaf of each file."""
        by_file = {id(self.files[i]): i for i in reversed(range(first, len(self.files)))}
        guides = sorted(by_file.values()) if several else [first]
        return [(i, len(self.leaves[i].structure.lists) - 1 - around) for i in guides]

    def _leaf(
        self, field: Field, place: tuple[LanceFile, int], arrow_type: pa.DataType, layers: tuple[tuple[bool, int], ...]
    ) -> FieldNode:
        structure = Structure(tuple(a for a, _ in reversed(layers)), tuple(d for _, d in reversed(layers)))
        file, column = place
        storage = storage_type(arrow_type)
        is_json = field.is_json and not pa.types.is_binary(storage) and not pa.types.is_large_binary(storage)
        stored = storage_type(field.to_arrow(scan=True).type)
        check_form(field, stored, storage)
        self.files.append(file)
        self.leaves.append(LeafColumn(file, column, structure, self.num_rows, storage, stored, is_json))
        return FieldNode(arrow_type, len(self.leaves) - 1, (len(self.leaves) - 1, 0), ())


def _layer(storage: pa.DataType, field: Field) -> tuple[bool, int]:
    if pa.types.is_struct(storage):
        return False, 1
    if pa.types.is_fixed_size_list(storage):
        return False, int(storage.list_size)
    if pa.types.is_list(storage) or pa.types.is_large_list(storage) or pa.types.is_map(storage):
        return True, 1
    raise UnsupportedError("a field of this type cannot have children", where=f"column {field.name}", found=storage)


def _child_types(storage: pa.DataType, field: Field) -> list[pa.DataType]:
    if pa.types.is_struct(storage):
        return [storage.field(i).type for i in range(storage.num_fields)]
    if pa.types.is_map(storage):
        return [pa.struct([storage.key_field, storage.item_field])]
    return [storage.value_type]


def check_form(field: Field, stored: pa.DataType, target: pa.DataType) -> None:
    """Check that a leaf can be read as `target`.

    A leaf can be read as its own type, or as one of these forms:

        stored                                  | forms
        string, large_string, string_view       | each other
        binary, large_binary, binary_view       | each other
        JSON, as text                           | the forms of string; binary, large_binary: the stored bytes
        blob description of 2.1                 | binary, large_binary: its bytes
        decimal128, decimal256                  | decimals of the same scale (0 if it is negative) and no more bits
        halffloat, fixed_size_binary(2)         | float32
        all of these, and any other             | dictionary(index, form)
        fixed_size_list(item)                   | fixed_size_list(form of the item)

    Args:
        field: The field of the leaf.
        stored: Storage type in the file.
        target: Requested storage type.

    Raises:
        InvalidInputError: The leaf cannot be read as `target`.
    """
    if not (stored == target or _has_form(field, stored, target)):
        raise InvalidInputError(
            "column cannot be read as this type", where=f"column {field.name}", expected=f"{stored}", found=target
        )


def _has_form(field: Field, stored: pa.DataType, target: pa.DataType) -> bool:
    if stored == target:
        return True
    if pa.types.is_dictionary(target):
        inner = stored.value_type if pa.types.is_dictionary(stored) else stored
        return _has_form(field, inner, target.value_type)
    if pa.types.is_dictionary(stored):
        return _has_form(field, stored.value_type, target)
    if pa.types.is_fixed_size_list(stored) and pa.types.is_fixed_size_list(target):
        return stored.list_size == target.list_size and _has_form(field, stored.value_type, target.value_type)
    if is_bytes(target):
        return is_bytes(stored) or field.is_json or field.blob_version == 1
    if is_text(target):
        return is_text(stored)
    if pa.types.is_decimal(target):
        same_scale = pa.types.is_decimal(stored) and max(stored.scale, 0) == target.scale
        return bool(same_scale and target.bit_width <= stored.bit_width)
    if pa.types.is_float32(target):
        is_brain = pa.types.is_fixed_size_binary(stored) and stored.byte_width == 2
        return bool(pa.types.is_float16(stored)) or bool(is_brain)
    return False
