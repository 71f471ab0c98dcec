"""Opens columns of 0.1 files: builds the node tree of a field.

Each field has its own pages, with two exceptions: structs do not have pages, and the items of a fixed-size list are in
the list's pages. The fields of a struct may be in several files. The fields below a list are in the same file as the
list.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import is_bytes, is_text, storage_type
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.file.contract import Locate
from lance_duck.file.v01.container import LegacyFile, is_texts, page_sizes, storage_bits
from lance_duck.file.v01.nodes import BatchedLists, DictionaryNode, LengthyNode, NullNode, ValueNode
from lance_duck.file.v01.pages import Batches
from lance_duck.file.v20.columns import Column20
from lance_duck.file.v20.nodes import MissingNode, StructNode, V20Node
from lance_duck.wire.schema import Field

Int64s = NDArray[np.int64]


def open_column01(field: Field, locate: Locate, num_rows: int, arrow_type: pa.DataType | None = None) -> Column20:
    """Open a field that is stored in 0.1 files.

    Args:
        field: The field.
        locate: Returns (file, field id) for a field id. Returns None if the fragment does not have the field.
            Its values are then null.
        num_rows: Number of rows of the fragment.
        arrow_type: Type of the returned arrays; `field.to_arrow(scan=True).type` by default.

    Raises:
        CorruptError: A file is inconsistent, or the row counts do not match `num_rows`.
        UnsupportedError: 0.1 files do not support the type, or a nested field is in a file of a different version.
    """
    type_ = field.to_arrow(scan=True).type if arrow_type is None else arrow_type
    node = _open(field, locate, type_, None)
    if node.num_rows not in (None, num_rows):
        raise CorruptError(f"wrong row count in column {field.name!r}", expected=num_rows, found=node.num_rows)
    return Column20(node, type_, num_rows)


def _open(field: Field, locate: Locate, arrow_type: pa.DataType, listed: LegacyFile | None) -> V20Node:
    """Open a field. `listed` is the file of the enclosing list, if any."""
    if field.blob_version:
        raise UnsupportedError("files of version 0.1 cannot store blobs", where=f"column {field.name}")
    if field.logical_type == "struct":
        return _open_struct(field, locate, arrow_type, listed)
    place = locate(field.id)
    if place is None:
        return MissingNode(arrow_type)
    file, number = place
    if not isinstance(file, LegacyFile):
        raise UnsupportedError(
            "a column cannot be split over data files of version 0.1 and later",
            where=file.source.path,
            found=field.name,
        )
    if listed is not None and file is not listed:
        raise UnsupportedError(
            "list items in another data file are not supported", where=file.source.path, found=field.name
        )
    where = f"{file.source.path}: field {number} ({field.name})"
    pages = _batches(file, field, number, where)
    if listed is None and not np.array_equal(pages.bounds, file.bounds):
        raise CorruptError("pages and batches have different row counts", where=where)
    if field.is_list:
        return _open_list(field, locate, arrow_type, file, pages)
    if field.children:
        raise UnsupportedError("files of version 0.1 cannot store this type", where=where, found=field.logical_type)
    return _open_leaf(field, arrow_type, file, pages)


def _batches(file: LegacyFile, field: Field, number: int, where: str) -> Batches:
    """Return the pages of a field. Checks that they lie within the file."""
    positions, lengths = file.page_row(number)
    bits = 8 if field.is_list or is_texts(field) else storage_bits(storage_type(field.to_arrow().type))
    if bits > 1 and (lengths > file.source.size * 8 // bits).any():  # keeps the sizes below within int64
        raise CorruptError("invalid page length", where=where, expected=f"within {file.source.size} bytes")
    if (positions + page_sizes(field, lengths) > file.source.size).any():
        raise CorruptError("the page reaches beyond the file", where=where, expected=f"within {file.source.size} bytes")
    rows = np.maximum(lengths - 1, 0) if field.is_list else lengths
    bounds = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(rows, out=bounds[1:])
    return Batches(file.source, bounds, positions, where)


def _open_leaf(field: Field, arrow_type: pa.DataType, file: LegacyFile, pages: Batches) -> V20Node:
    stored = storage_type(field.to_arrow().type)
    if is_texts(field):
        storage = storage_type(arrow_type)
        is_json = field.is_json and not is_bytes(storage)
        return LengthyNode(arrow_type, pages, field.nullable, is_json)
    if pa.types.is_null(stored):
        return NullNode(arrow_type, pages)
    if pa.types.is_dictionary(stored):
        position, length = file.dictionary_extent(field.id)
        values = Batches(file.source, np.array([0, length]), np.array([position]), f"{pages.where}: dictionary")
        value_type = storage_type(stored.value_type)
        return DictionaryNode(
            arrow_type, pages, values, stored, is_text(value_type) or is_bytes(value_type), field.nullable
        )
    return ValueNode(arrow_type, pages, stored)


def _open_list(field: Field, locate: Locate, arrow_type: pa.DataType, file: LegacyFile, pages: Batches) -> V20Node:
    storage = storage_type(arrow_type)
    if not pa.types.is_list(storage) and not pa.types.is_large_list(storage):
        raise InvalidInputError(
            f"column {field.name!r} cannot be read as this type", expected=field.arrow_type, found=arrow_type
        )
    (item,) = field.children
    items = _open(item, locate, storage.value_type, file)
    bounds = [b for b in _all_bounds(item, locate) if b is not None]
    if not bounds:
        raise CorruptError("the list does not have items", where=pages.where)
    if any(not np.array_equal(b, bounds[0]) for b in bounds[1:]):
        raise CorruptError("list items do not match the batch lengths", where=pages.where)
    offset = np.dtype("<i8" if field.logical_type.startswith("large") else "<i4")
    return BatchedLists(arrow_type, pages, offset, items, bounds[0])


def _all_bounds(field: Field, locate: Locate) -> list[Int64s]:
    """Return the batch bounds of a field. For a struct, return the bounds of each descendant with pages."""
    if field.logical_type == "struct":
        return [bounds for child in field.children for bounds in _all_bounds(child, locate)]
    place = locate(field.id)
    if place is None or not isinstance(place[0], LegacyFile):
        return []
    return [_batches(place[0], field, place[1], field.name).bounds]


def _open_struct(field: Field, locate: Locate, arrow_type: pa.DataType, listed: LegacyFile | None) -> V20Node:
    storage = storage_type(arrow_type)
    if not pa.types.is_struct(storage) or storage.num_fields != len(field.children):
        raise InvalidInputError(
            f"column {field.name!r} cannot be read as this type", expected=field.arrow_type, found=arrow_type
        )
    if all(locate(below.id) is None for below in field.walk()):
        return MissingNode(arrow_type)
    children = tuple(_open(f, locate, storage.field(i).type, listed) for i, f in enumerate(field.children))
    num_rows = next((child.num_rows for child in children if child.num_rows is not None), None)
    for child, node in zip(field.children, children, strict=True):
        if node.num_rows not in (None, num_rows):
            raise CorruptError(
                f"wrong row count of {child.name!r} in {field.name!r}", expected=num_rows, found=node.num_rows
            )
    return StructNode(arrow_type, children, num_rows)
