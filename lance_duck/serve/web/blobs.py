"""Bytes of single cells, and cells of blob columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from pyarrow import types

from lance_duck.arrow.types import is_binary, is_text, storage_type
from lance_duck.dataset import LanceDataset
from lance_duck.errors import NotFoundError
from lance_duck.namespaces.names import name_parts
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import ForbiddenError, LimitError, RequestError
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.web.cells import (
    Cell,
    CellBytes,
    CellLink,
    ShownColumn,
    bytes_cell,
    image_type,
    shown_columns,
    text_cell,
)
from lance_duck.serve.web.formats import SAFE
from lance_duck.serve.web.tables import version_or_tag, whole_number

_HEAD: Final = 32
_BYTES: Final = "application/octet-stream"


def with_blobs(dataset: LanceDataset, rows: pa.Table, ids: Sequence[int], link: CellLink) -> list[ShownColumn]:
    """Return the columns of rows. Only the first bytes of blobs are read.

    Args:
        dataset: The table.
        rows: The rows. Values of blob columns are descriptions.
        ids: Row ids.
        link: Returns the path of a cell.
    """
    columns = shown_columns(rows, link)
    for at, column in enumerate(columns):
        if is_blob(dataset, column.name, rows.column(at).type):
            descriptions = rows.column(at).to_pylist()
            cells = _blob_cells(dataset, column.name, ids, descriptions, link)
            columns[at] = replace(column, type="blob", cells=cells)
    return columns


def is_blob(dataset: LanceDataset, name: str, read_type: pa.DataType) -> bool:
    """Return whether a column holds blobs: a scan reads their descriptions, which are structs."""
    if name not in dataset.schema.names or not types.is_struct(read_type):
        return False
    type_ = dataset.schema.field(name).type
    return isinstance(type_, pa.ExtensionType) or is_binary(type_)


def answer_cell(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the bytes of a cell. Images are shown, and all other bytes are downloaded.

    Raises:
        NotFoundError: The table, the row or the column does not exist, or the value is null.
        RequestError: The column holds neither bytes nor strings.
    """
    version = version_or_tag(request)
    dataset = call.open(name_parts(request.names["t"]), version)
    column, row = request.parameters.get("column", ""), whole_number(request, "row", 0)
    if column not in dataset.schema.names:
        raise NotFoundError("no such column", found=column[:80])
    body = _bytes(call, dataset, row, column)
    if body is None:
        raise NotFoundError("the row does not exist, or its value is null", where=f"row {row}")
    image = image_type(body[:_HEAD])
    file_name = quote(f"{column}-{row}", safe="")
    headers = {
        **SAFE,
        "content-security-policy": "default-src 'none'; sandbox",
        "content-disposition": f"{'inline' if image else 'attachment'}; filename*=UTF-8''{file_name}",
        "cache-control": "private, max-age=86400" if isinstance(version, int) else "private, no-cache",
    }
    return HttpAnswer(body, image or _BYTES, headers=headers)


def _bytes(call: ServerCall, dataset: LanceDataset, row: int, column: str) -> bytes | None:
    """Return the bytes of a cell, or None if the row does not exist or the value is null."""
    found = dataset.take_rows([row], columns=[column])
    if not found.num_rows or not found.column(0)[0].is_valid:
        return None
    type_ = found.column(0).type
    value = found.column(0)[0].as_py()
    if is_blob(dataset, column, type_):
        _check_inside(value, column)
        (file,) = dataset.take_blobs(column, ids=[row])
        if file is not None and file.size() > call.settings.max_bytes:
            raise LimitError("the blob is too large", expected=f"at most {call.settings.max_bytes} bytes")
        return None if file is None else bytes(file.readall())
    if is_binary(storage_type(type_)) and isinstance(value, bytes):
        return value
    if is_text(type_):
        return str(value).encode()
    raise RequestError("the column holds neither bytes nor strings", where=column[:80], found=str(type_)[:80])


def _blob_cells(
    dataset: LanceDataset, name: str, ids: Sequence[int], descriptions: Sequence[Any], link: CellLink
) -> list[Cell]:
    cells = []
    for at, (row, description) in enumerate(zip(ids, descriptions, strict=True)):
        if description is None:
            cells.append(text_cell(None))
        elif description.get("blob_uri"):
            cells.append(Cell("text", "outside the table"))
        else:
            (file,) = dataset.take_blobs(name, ids=[row])
            head = b"" if file is None else bytes(file.read(_HEAD))
            value = CellBytes(head, 0 if file is None else file.size(), link(at, name))
            cells.append(text_cell(None) if file is None else bytes_cell(value))
    return cells


def _check_inside(description: Mapping[str, Any], column: str) -> None:
    """Refuse blobs at a URI. Whoever wrote the table could otherwise make the server read any file."""
    if description.get("blob_uri"):
        raise ForbiddenError("a server does not open blobs outside its tables", where=column[:80])
