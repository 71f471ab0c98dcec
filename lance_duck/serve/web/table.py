"""The page of a table: rows, searches, columns, indexes and versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.namespaces.names import name_parts
from lance_duck.scan.text.columns import text_columns
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.web.blobs import with_blobs
from lance_duck.serve.web.cells import CellLink, ShownColumn, is_number_list
from lance_duck.serve.web.changes import version_entries
from lance_duck.serve.web.coverage import coverage_strips
from lance_duck.serve.web.html import html_page, table_path
from lance_duck.serve.web.names import TableName, sql_name
from lance_duck.serve.web.tables import version_or_tag, whole_number
from lance_duck.verbs.indexes.describe import IndexDescription
from lance_duck.wire.column_path import quoted_name
from lance_duck.wire.index import SYSTEM

_ROWS: Final = 20
_MOST_COLUMNS: Final = 50
_VERSIONS: Final = 8
_ROW_ID: Final = "_rowid"
_COMPUTED: Final = ("_distance", "_score")
_WORDS: Final = "Inverted"


@dataclass(frozen=True)
class RowSample:
    """The rows that a page shows.

    Attributes:
        columns: Their columns.
        ids: Their row ids.
        title: What they are.
        is_search: Whether a search found them.
        similar: Returns the path of a search for rows with a similar vector.
    """

    columns: Sequence[ShownColumn]
    ids: Sequence[int]
    title: str
    is_search: bool
    similar: CellLink


def answer_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the page of a table. It reads the manifest and the rows that it shows."""
    name = name_parts(request.names["t"])
    dataset = open_version(call, name, request)
    snapshot = dataset.handle.snapshot
    indexes = [index for index in dataset.describe_indices() if index.name not in SYSTEM]
    counts = snapshot.fragments.row_counts()
    skip = whole_number(request, "skip", 0)
    has_words = any(index.index_type == _WORDS for index in indexes)
    texts = text_columns(dataset.handle.snapshot.schema)
    is_searchable = has_words or len(texts) == 1
    sample = _sample(dataset, name, request, skip, is_searchable=is_searchable)
    numbers = snapshot.version_numbers()
    newest = numbers[::-1][: _VERSIONS + 1]
    before = newest.pop() if len(newest) > _VERSIONS else None
    call.check()
    return html_page(
        call.settings,
        "table.html",
        name=name,
        sql_name=sql_name(name),
        snapshot=snapshot,
        version=request.parameters.get("version"),
        is_newest=snapshot.version == numbers[-1],
        rows=None if counts is None else sum(counts),
        size=int(snapshot.manifest.summary()["total_files_size"]),
        sample=sample,
        skip=skip,
        step=_ROWS,
        words=request.parameters.get("words", ""),
        has_words=has_words,
        missing_index=None if has_words else _index_on(name, dataset, texts),
        fields=_fields(dataset, indexes),
        most_columns=_MOST_COLUMNS,
        indexes=indexes,
        coverage=coverage_strips(snapshot, indexes),
        versions=version_entries(snapshot, newest, before),
        version_count=len(numbers),
    )


def open_version(call: ServerCall, name: TableName, request: HttpRequest, field: str = "version") -> LanceDataset:
    """Open the version that a field of the query string names: a number or a tag. Without it, the newest one."""
    return call.open(name, version_or_tag(request, field))


def _index_on(name: TableName, dataset: LanceDataset, paths: Sequence[str]) -> str:
    """Return SQL that makes a full-text index on the first column. "" without one, or if SQL has no name for it."""
    table = sql_name(name)
    columns = [column for column in dataset.schema.names if quoted_name(column) in paths]
    return f"CREATE INDEX ON {table} USING INVERTED ({quoted(columns[0])})" if columns and table else ""


def _sample(
    dataset: LanceDataset, name: TableName, request: HttpRequest, skip: int, *, is_searchable: bool
) -> RowSample:
    """Return the found rows if the request has a search, else the rows from a position on.

    Args:
        dataset: The table.
        name: Its name.
        request: The request.
        skip: Number of rows to leave out first.
        is_searchable: Whether a search by words is possible.
    """
    asked = request.parameters
    names = dataset.schema.names
    columns = names[:_MOST_COLUMNS] if len(names) > _MOST_COLUMNS else None
    options: dict[str, Any] = {"columns": columns, "with_row_id": True, "limit": _ROWS}
    if asked.get("words", "").strip() and is_searchable:
        found = dataset.scan(full_text_query=asked["words"], **options).to_table()
        title = f"Best matches for “{asked['words'][:80]}”"
    elif "like" in asked:
        like, column = whole_number(request, "like", 0), asked.get("by", "")
        options["nearest"] = {"column": column, "q": _vector_of(dataset, like, column), "k": _ROWS}
        found = dataset.scan(filter=f"{_ROW_ID} <> {like}", **options).to_table()
        title = f"Most similar to row {like} by {column[:80]}"
    else:
        found = dataset.scan(offset=skip, **options).to_table()
        last = skip + found.num_rows
        title = f"Rows {skip + 1:,} to {last:,}" if found.num_rows else "Rows"
        return _shown(dataset, name, found, title, request, is_search=False)
    return _shown(dataset, name, found, title, request, is_search=True)


def _vector_of(dataset: LanceDataset, row_id: int, column: str) -> Any:
    """Return the vector of a row.

    Raises:
        InvalidInputError: The column does not hold vectors, or the vector of the row is null.
        NotFoundError: The row does not exist.
    """
    if column not in dataset.schema.names or not is_number_list(dataset.schema.field(column).type):
        raise InvalidInputError("not a column of vectors", found=column[:80])
    rows = dataset.take_rows([row_id], columns=[column])
    if not rows.num_rows:
        raise NotFoundError("no such row", found=row_id)
    vector = rows.column(0)[0].as_py()
    if vector is None:
        raise InvalidInputError("the row has no vector", where=f"row {row_id}")
    return vector


def _shown(
    dataset: LanceDataset, parts: TableName, found: pa.Table, title: str, request: HttpRequest, *, is_search: bool
) -> RowSample:
    ids = found.column(_ROW_ID).to_pylist()
    first = [column for column in _COMPUTED if is_search and column in found.column_names]
    rows = found.select([*first, *(column for column in dataset.schema.names if column in found.column_names)])

    def link(row: int, name: str) -> str:
        return table_path(parts, "cell", row=ids[row], column=name, version=dataset.version)

    def similar(row: int, name: str) -> str:
        return table_path(parts, like=ids[row], by=name, version=request.parameters.get("version"))

    return RowSample(with_blobs(dataset, rows, ids, link), ids, title, is_search, similar)


def _fields(dataset: LanceDataset, indexes: Sequence[IndexDescription]) -> list[dict[str, Any]]:
    """Return the columns with their types, the indexes on them, and their metadata."""
    computed = dataset.computed_columns
    return [
        {
            "name": field.name,
            "type": str(field.type),
            "nullable": field.nullable,
            "computed": computed.get(field.name, ""),
            "indexes": [index.name for index in indexes if field.name in index.field_names],
        }
        for field in dataset.schema
    ]
