"""Columns of 2.0 files.

Each field is a physical column, including parents:

    struct              a page without bytes; no validity: a struct is never null
    list, large_list    pages with the end offset of each list in the items; the item is the next field. Each page
                        of offsets covers the next `num_items` rows of the item's column
    packed struct       one column for all its fields
    blob                one column of (position, size) pairs that point into the file; (1, 0) is null
    other types         pages with the values; early files may store strings as lists of bytes, in two columns
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_duck.arrow.types import storage_type
from lance_duck.encoding.v20.buffers import PageBuffers
from lance_duck.encoding.v20.registry import parse_encoding
from lance_duck.encoding.v20.runs import Rows, runs_of_rows
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.file.contract import Locate, PlainColumn
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.file.reader import LanceFile
from lance_duck.file.v20.lists import ListNode, ListPages, TextNode, list_pages
from lance_duck.file.v20.nodes import DESCRIPTORS, BlobNode, LeafNode, MissingNode, StructNode, V20Node
from lance_duck.store.request import Request
from lance_duck.wire.pb import encodings20_pb2 as pb
from lance_duck.wire.schema import Field

COLUMN_MESSAGE = "lance.encodings.ColumnEncoding"


@dataclass(frozen=True)
class Column20(PlainColumn):
    """A column of a 2.0 file. Implements `ColumnReader`.

    Attributes:
        arrow_type: Type of the arrays that `read` returns.
        num_rows: Number of rows of the column.
    """

    node: V20Node
    arrow_type: pa.DataType
    num_rows: int

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Read a slice, or rows in ascending order.

        Raises:
            InvalidInputError: Rows lie outside the column.
            CorruptError: The stored bytes are inconsistent.
        """
        return (yield from self.node.read(runs_of_rows(rows, self.num_rows)))

    def is_dictionary(self) -> bool:
        """Return whether all pages are dictionary-encoded."""
        return self.node.is_dictionary


def open_column20(field: Field, locate: Locate, num_rows: int, arrow_type: pa.DataType | None = None) -> Column20:
    """Open a field of a 2.0 file, with all fields below it.

    Args:
        field: The field.
        locate: Returns the file and physical column of a field id. Returns None if the file does not have the field.
            Its values are then null.
        num_rows: Number of rows of the file.
        arrow_type: Type of the returned arrays, for example `string_view`. A blob column is returned as `large_binary`.
            `field.to_arrow(scan=True).type` by default.

    Raises:
        CorruptError: A column is inconsistent, or does not have `num_rows` rows.
        UnsupportedError: An encoding is not supported, or a child is in a file of a different version.
    """
    type_ = field.to_arrow(scan=True).type if arrow_type is None else arrow_type
    node = _open(field, locate, type_)
    if node.num_rows is not None and node.num_rows != num_rows:
        raise CorruptError(f"wrong row count in column {field.name!r}", expected=num_rows, found=node.num_rows)
    return Column20(node, type_, num_rows)


def _open(field: Field, locate: Locate, arrow_type: pa.DataType) -> V20Node:
    location = locate(field.id)
    if location is None:
        is_struct = field.logical_type == "struct" and not field.blob_version
        return _open_parent(field, locate, arrow_type) if is_struct else MissingNode(arrow_type)
    file, index = location
    if file.version != (2, 0):
        raise UnsupportedError(
            f"field {field.name!r} of a 2.0 column must be in a 2.0 file",
            where=file.source.path,
            found=f"a file of version {file.version}",
        )
    column = file.column(index)
    where = f"{file.source.path}: column {index} ({field.name})"
    if _is_blob(column, where):
        return _open_blob(field, column, where, file, arrow_type)
    kind = _page_kind(column)
    if field.logical_type == "struct" and kind != "packed_struct":
        return _open_struct(field, locate, arrow_type, column, where)
    if kind == "list":
        if field.children:
            return _open_list(field, locate, arrow_type, column, where)
        return _open_text(field, file, index, arrow_type)
    if field.children and field.logical_type.startswith(("list", "large_list", "map")) and column.pages:
        raise CorruptError("the list column has the wrong encoding", where=where, expected="list", found=kind)
    storage = storage_type(arrow_type)
    is_json = field.is_json and not pa.types.is_binary(storage) and not pa.types.is_large_binary(storage)
    return LeafNode(column, field.arrow_type, arrow_type, where, is_json=is_json)


def _open_parent(field: Field, locate: Locate, arrow_type: pa.DataType) -> V20Node:
    """Open a struct whose column is missing. All rows are null unless the file stores a nested field."""
    if all(locate(below.id) is None for below in field.walk()):
        return MissingNode(arrow_type)
    return _struct(field, locate, arrow_type, None)


def _open_struct(field: Field, locate: Locate, arrow_type: pa.DataType, column: ColumnMetadata, where: str) -> V20Node:
    for page in column.pages:
        kind = parse_encoding(page.encoding, PageBuffers(page)).WhichOneof("array_encoding")
        if kind != "struct":
            raise CorruptError("the struct column has the wrong encoding", where=where, expected="struct", found=kind)
    return _struct(field, locate, arrow_type, column.num_rows)


def _struct(field: Field, locate: Locate, arrow_type: pa.DataType, num_rows: int | None) -> V20Node:
    storage = storage_type(arrow_type)
    if not pa.types.is_struct(storage) or storage.num_fields != len(field.children):
        raise InvalidInputError(
            f"column {field.name!r} cannot be read as this type", expected=field.arrow_type, found=arrow_type
        )
    children = tuple(_open(child, locate, storage.field(i).type) for i, child in enumerate(field.children))
    for child, node in zip(field.children, children, strict=True):
        num_rows = node.num_rows if num_rows is None else num_rows
        if node.num_rows not in (None, num_rows):
            raise CorruptError(
                f"wrong row count of {child.name!r} in {field.name!r}", expected=num_rows, found=node.num_rows
            )
    return StructNode(arrow_type, children, num_rows)


def _open_list(field: Field, locate: Locate, arrow_type: pa.DataType, column: ColumnMetadata, where: str) -> V20Node:
    storage = storage_type(arrow_type)
    if not pa.types.is_list(storage) and not pa.types.is_large_list(storage):
        raise UnsupportedError("2.0 files do not support this list type", where=where, found=arrow_type)
    items = _open(field.children[0], locate, storage.value_type)
    pages = list_pages(column, where)
    _check_items(pages, items, where)
    return ListNode(arrow_type, pages, items, where)


def _check_items(pages: ListPages, items: V20Node, where: str) -> None:
    if items.num_rows is not None and pages.num_items > items.num_rows:
        raise CorruptError(
            "wrong item count in a list column", where=where, expected=pages.num_items, found=items.num_rows
        )


def _open_text(field: Field, file: LanceFile, index: int, arrow_type: pa.DataType) -> V20Node:
    where = f"{file.source.path}: column {index} ({field.name})"
    items = LeafNode(file.column(index + 1), pa.uint8(), pa.uint8(), where)
    pages = list_pages(file.column(index), where)
    _check_items(pages, items, where)
    return TextNode(arrow_type, pages, items, where)


def _open_blob(field: Field, column: ColumnMetadata, where: str, file: LanceFile, arrow_type: pa.DataType) -> V20Node:
    descriptors = LeafNode(column, DESCRIPTORS, DESCRIPTORS, where)
    if pa.types.is_struct(arrow_type):
        if arrow_type != DESCRIPTORS:
            raise InvalidInputError(
                f"blob column {field.name!r} cannot be read as this type", expected=DESCRIPTORS, found=arrow_type
            )
        return descriptors
    return BlobNode(arrow_type, descriptors, file.source, where)


def _is_blob(column: ColumnMetadata, where: str) -> bool:
    if column.encoding is None or column.encoding.name != COLUMN_MESSAGE:
        type_url = None if column.encoding is None else column.encoding.type_url
        raise UnsupportedError(
            "the column encoding is not supported", where=where, expected=COLUMN_MESSAGE, found=type_url
        )
    try:
        kind = pb.ColumnEncoding.FromString(column.encoding.value).WhichOneof("column_encoding")
    except DecodeError as error:
        raise CorruptError("the column encoding is not a protobuf message", where=where) from error
    if kind not in ("values", "blob"):
        raise UnsupportedError(
            "the column encoding is not supported", where=where, expected="values or blob", found=kind
        )
    return bool(kind == "blob")


def _page_kind(column: ColumnMetadata) -> str | None:
    if not column.pages:
        return None
    first = column.pages[0]
    kind: str | None = parse_encoding(first.encoding, PageBuffers(first)).WhichOneof("array_encoding")
    return kind
