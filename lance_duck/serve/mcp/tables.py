"""Tools that describe tables and show their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import pyarrow as pa
from pydantic import Field

from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.redact import shown
from lance_duck.scan.nearest.options import only_vector_column
from lance_duck.scan.text.request import query_of_text
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.mcp.answers import (
    DescribedColumn,
    DescribedIndex,
    DescribedTable,
    ListedTables,
    ListedVersion,
    ListedVersions,
    ShownRows,
    ToolTable,
)
from lance_duck.serve.mcp.names import TableArgument, open_named, shown_name
from lance_duck.serve.mcp.rows import limited_rows, shown_rows, shown_type
from lance_duck.serve.mcp.texts import LONGEST_CELL, cut_text, first_fitting, json_size, said_for_tools

_OPENED: Final = 200
"""Maximum number of tables to open for a list. Each reads a manifest."""
_COUNTED_ROWS: Final = 100_000
_COUNTED_COLUMNS: Final = 50
"""Larger tables are described without numbers of nulls, because counting reads the columns."""
_MOST_VERSIONS: Final = 100
_LONGEST_LIST: Final = 15_000
"""Length of one list in an answer, in characters."""

VersionArgument = Annotated[
    int | str | None,
    Field(description="Version number or tag. Default: the newest version.", union_mode="left_to_right"),
]
FilterArgument = Annotated[
    str | None, Field(description="SQL condition on the columns, such as \"city = 'Kyoto' AND fare > 20\".")
]
ColumnsArgument = Annotated[list[str] | None, Field(description="Columns to return.")]


def list_tables(call: ServerCall) -> ListedTables:
    """List the tables with their numbers of rows and columns. Begin here."""
    names = list(call.namespace.tables())
    listed = (_listed(call, name) for name in names[:_OPENED])
    tables, left_out = first_fitting(listed, 3 * _LONGEST_LIST, lambda table: json_size(table.model_dump()))
    return ListedTables(tables=tables, left_out=left_out + max(0, len(names) - _OPENED))


def describe_table(call: ServerCall, table: TableArgument, version: VersionArgument = None) -> DescribedTable:
    """Describe a table: columns with types, indexes and the rows that they cover, versions, tags."""
    dataset = open_named(call, table, version)
    rows = dataset.count_rows()
    fragments = dataset.get_fragments()
    counts = rows <= _COUNTED_ROWS and len(dataset.schema) <= _COUNTED_COLUMNS
    described = (
        DescribedColumn(
            name=field.name,
            type=shown_type(field.type),
            nullable=field.nullable,
            nulls=_nulls(call, dataset, field) if counts else None,
        )
        for field in dataset.schema
    )
    columns, columns_left_out = first_fitting(described, _LONGEST_LIST, lambda column: json_size(column.model_dump()))
    indexes, indexes_left_out = first_fitting(
        _indexes(dataset, rows), _LONGEST_LIST, lambda index: json_size(index.model_dump())
    )
    tags, tags_left_out = first_fitting(dataset.tags.list().items(), _LONGEST_LIST, lambda tag: len(tag[0]) + 20)
    return DescribedTable(
        name=table,
        version=dataset.version,
        latest_version=dataset.latest_version,
        rows=rows,
        deleted_rows=sum(fragment.num_deletions for fragment in fragments),
        fragments=len(fragments),
        columns=columns,
        columns_left_out=columns_left_out,
        indexes=indexes,
        indexes_left_out=indexes_left_out,
        tags={name: entry["version"] for name, entry in tags},
        tags_left_out=tags_left_out,
    )


def sample(
    call: ServerCall,
    table: TableArgument,
    rows: Annotated[int, Field(ge=1, le=100, description="Number of rows.")] = 5,
    columns: ColumnsArgument = None,
    filter: FilterArgument = None,  # noqa: A002
    version: VersionArgument = None,
) -> ShownRows:
    """Show some rows of a table, spread over the whole table. With a filter, show the first matching rows."""
    dataset = open_named(call, table, version)
    if filter is None:
        total = dataset.count_rows()
        count = min(rows, total)
        found = dataset.take([number * total // count for number in range(count)], columns)
        return shown_rows(found.schema, found.to_batches(), rows)
    scanner = dataset.scanner(columns=columns, filter=filter, limit=rows)
    return limited_rows(call, scanner.projected_schema, scanner.to_batches(), rows)


def search(
    call: ServerCall,
    table: TableArgument,
    words: Annotated[str | None, Field(description="Words to find, or '\"a phrase\"'.")] = None,
    vector: Annotated[list[float] | None, Field(description="Find the rows near this vector.")] = None,
    like_row: Annotated[
        int | None, Field(ge=0, description="Find the rows near the vector of the row with this _rowid.")
    ] = None,
    k: Annotated[int, Field(ge=1, le=100, description="Number of rows.")] = 10,
    filter: FilterArgument = None,  # noqa: A002
    columns: ColumnsArgument = None,
    text_column: Annotated[str | None, Field(description="Default: all columns with a full-text index.")] = None,
    vector_column: Annotated[str | None, Field(description="Needed if the table has several.")] = None,
    version: VersionArgument = None,
) -> ShownRows:
    """Find rows by words, by a vector, or by both. The best rows come first, with _rowid and a score or distance."""
    dataset = open_named(call, table, version)
    arguments: dict[str, Any] = {"filter": filter, "limit": k, "with_row_id": True}
    if words is not None:
        arguments["full_text_query"] = words if text_column is None else query_of_text(words, text_column)
    if vector is not None or like_row is not None:
        name = only_vector_column(dataset.handle.table) if vector_column is None else vector_column
        arguments |= _nearest(dataset, name, vector, like_row, filter)
    elif words is None:
        raise InvalidInputError("the search has no query", where="search", remedy="give words, vector or like_row")
    scanner = dataset.scanner(columns=_readable(dataset) if columns is None else columns, **arguments)
    found = scanner.to_table()
    return limited_rows(call, found.schema, found.to_batches(), k)


def versions(
    call: ServerCall,
    table: TableArgument,
    limit: Annotated[int, Field(ge=1, le=_MOST_VERSIONS, description="Number of versions.")] = 20,
) -> ListedVersions:
    """List the newest versions of a table: when each was made, by which operation, and its rows and tags."""
    dataset = open_named(call, table)
    numbers = [entry["version"] for entry in dataset.version_refs()]
    tags: dict[int, list[str]] = {}
    for name, entry in dataset.tags.list().items():
        tags.setdefault(entry["version"], []).append(name)
    listed = (_version(call, dataset, number, tags.get(number, [])) for number in reversed(numbers[-limit:]))
    shown_versions, left_out = first_fitting(listed, 3 * _LONGEST_LIST, lambda each: json_size(each.model_dump()))
    return ListedVersions(versions=shown_versions, left_out=left_out + max(0, len(numbers) - limit))


def _listed(call: ServerCall, name: tuple[str, ...]) -> ToolTable:
    try:
        dataset = call.open(name)
        return ToolTable(
            name=shown_name(name),
            rows=dataset.count_rows(),
            columns=len(dataset.schema.names),
            version=dataset.version,
        )
    except LanceDuckError as error:
        call.check()
        problem = said_for_tools(call.settings.without_place(shown(error)))
        return ToolTable(name=shown_name(name), problem=cut_text(problem, 200))


def _nulls(call: ServerCall, dataset: LanceDataset, field: pa.Field) -> int | None:
    if not field.nullable:
        return 0
    call.check()
    try:
        return dataset.count_rows(f"{quoted(field.name)} IS NULL")
    except LanceDuckError:  # a type that filters do not support
        return None


def _indexes(dataset: LanceDataset, rows: int) -> Iterator[DescribedIndex]:
    for index in dataset.describe_indices():
        yield DescribedIndex(
            name=index.name,
            kind=index.index_type,
            columns=index.field_names,
            indexed_rows=index.num_rows_indexed,
            unindexed_rows=rows - index.num_rows_indexed,
        )


def _nearest(
    dataset: LanceDataset, column: str, vector: list[float] | None, like_row: int | None, condition: str | None
) -> Mapping[str, Any]:
    """Return the arguments for a vector search. Rows near another row do not include it."""
    if like_row is None:
        return {"nearest": {"column": column, "q": vector}}
    if vector is not None:
        raise InvalidInputError("vector and like_row exclude each other", where="search", expected="one of them")
    row = dataset.to_table([column], filter=f"_rowid = {like_row}").column(0)
    if not len(row) or row[0].as_py() is None:
        raise InvalidInputError("like_row", where="search", expected="the _rowid of a row with a vector")
    others = f"_rowid <> {like_row}"
    return {
        "nearest": {"column": column, "q": row[0].as_py()},
        "filter": others if condition is None else f"({condition}\n) AND {others}",
    }


def _readable(dataset: LanceDataset) -> list[str]:
    """Return the columns that a model can read: all but vectors and binary."""
    unreadable = (pa.types.is_fixed_size_list, pa.types.is_binary, pa.types.is_large_binary)
    return [field.name for field in dataset.schema if not any(is_one(field.type) for is_one in unreadable)]


def _version(call: ServerCall, dataset: LanceDataset, number: int, tags: list[str]) -> ListedVersion:
    call.check()
    version = dataset.checkout_version(number)
    entry, transaction = version.get_version(), version.read_transaction(number)
    counts = {name: int(value) for name, value in entry["metadata"].items() if value.isdecimal()}
    return ListedVersion(
        version=number,
        timestamp=entry["timestamp"].astimezone().isoformat(timespec="seconds"),
        operation=None if transaction is None else type(transaction.operation).__name__,
        rows=counts.get("total_rows"),
        fragments=counts.get("total_fragments"),
        tags=[cut_text(tag, LONGEST_CELL) for tag in sorted(tags)[:20]],
    )
