"""`search`: search a table by words, by a vector, or by both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from rich.text import Text

import lance_duck as ld
from lance_duck.arrow.types import is_text
from lance_duck.cli.open import open_table
from lance_duck.cli.show import Form, usual_form, write_rows
from lance_duck.cli.terminal import printable
from lance_duck.errors import InvalidInputError
from lance_duck.scan.nearest.options import only_vector_column
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.text.request import query_of_text

_MARKS: Final = ("\x02", "\x03")
"""Markers around matching words, before colours are applied."""

_STYLE: Final = "bold yellow"
_SHOWN_WORDS: Final = 30
"""Number of words of a long text to show on a terminal: the excerpt with the most matches."""


def search(
    table: str,
    query: str | None = None,
    column: str | None = None,
    count: int = 10,
    condition: str | None = None,
    vector: str | None = None,
    like: int | None = None,
    vector_column: str | None = None,
    select: Sequence[str] | None = None,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """Find rows by words, by a vector, or by both. The best rows come first."""
    dataset = open_table(table, version, tag, asof)
    arguments: dict[str, Any] = {"filter": condition, "limit": count, "with_row_id": True}
    if query is not None:
        arguments["full_text_query"] = query if column is None else query_of_text(query, column)
    if vector is not None or like is not None:
        arguments |= _nearest(dataset, vector, like, vector_column, condition)
    elif query is None:
        raise InvalidInputError(
            "the search does not have a query", where="search", remedy="give words, --vector or --like"
        )
    names = [field.name for field in dataset.schema if not pa.types.is_fixed_size_list(field.type)]
    scanner = dataset.scanner(columns=list(select) if select else names, **arguments)
    form = usual_form(as_json)
    result = scanner.to_table()
    rows = _marked(scanner, result) if form is Form.table and query is not None else result.to_pylist()
    write_rows(rows, result.schema.names, form, max_rows=max(count, 1))


def _nearest(
    dataset: ld.LanceDataset, vector: str | None, like: int | None, column: str | None, condition: str | None
) -> Mapping[str, Any]:
    """Return the arguments for a vector search.

    The vector may be the vector of an existing row. The results then exclude that row.
    """
    if vector is not None and like is not None:
        raise InvalidInputError("--vector and --like exclude each other", where="search", expected="one of them")
    name = only_vector_column(dataset.handle.table) if column is None else column
    if vector is not None:
        return {"nearest": {"column": name, "q": _numbers(vector)}}
    row = dataset.to_table([name], filter=f"_rowid = {like}").column(0)
    if not len(row) or row[0].as_py() is None:
        raise InvalidInputError("--like", where="search", expected="the _rowid of a row with a vector", found=like)
    others = f"_rowid <> {like}"
    condition = others if condition is None else f"({condition}\n) AND {others}"
    return {"nearest": {"column": name, "q": row[0].as_py()}, "filter": condition}


def _numbers(vector: str) -> Any:
    try:
        return json.loads(vector)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            "--vector", where="search", expected="numbers in JSON, as [0.5, 1]", found=vector[:40]
        ) from error


def _marked(scanner: LanceScanner, result: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yield the rows with matching words in colour."""
    rows = result.to_pylist()
    marked_texts = {
        name: scanner.highlight(_without_marks(result.column(name)), name, *_MARKS, words=_SHOWN_WORDS).to_pylist()
        for name in scanner.searched_texts
        if name in result.schema.names and is_text(result.schema.field(name).type)
    }
    for number, row in enumerate(rows):
        yield {**row, **{name: _coloured(texts[number]) for name, texts in marked_texts.items()}}


def _without_marks(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings with marker characters escaped."""
    for mark in _MARKS:
        texts = pc.replace_substring(texts.cast(pa.large_string()), mark, printable(mark))
    return texts


def _coloured(marked_text: str | None) -> Text | None:
    if marked_text is None:
        return None
    before, behind = _MARKS
    text = Text()
    plain, *parts = marked_text.split(before)
    text.append(printable(plain))
    for part in parts:
        word, _, rest = part.partition(behind)
        text.append(printable(word), _STYLE).append(printable(rest))
    return text
