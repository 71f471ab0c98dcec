"""Remedies for errors of searches and indexes on list columns: casts to vectors.

The first rows of the table are read to determine the length of the lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import is_any_list, is_any_number
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire.column_path import join_path, quoted_name, split_path
from lance_duck.wire.schema import Schema

_MOST_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 64 << 20
"""Maximum number of rows, and maximum size of their lists in bytes, for checking lengths. They limit the cost of an
error message."""
_MOST_COLUMNS: Final = 3


def list_columns(schema: Schema) -> list[str]:
    """Return the paths of the top-level columns with lists of floats."""
    types = ((field.name, field.arrow_type) for field in schema.fields)
    return [quoted_name(name) for name, type_ in types if _is_list(type_) and pa.types.is_floating(type_.value_type)]


def casts_to_vectors(table: TableScan, paths: list[str]) -> str | None:
    """Return one remedy that lists the casts of several columns, or None if no column can be cast."""
    remedies = [cast_to_vectors(table, path) for path in paths[:_MOST_COLUMNS]]
    return "; ".join(remedy for remedy in remedies if remedy is not None) or None


def cast_to_vectors(table: TableScan, path: str) -> str | None:
    """Return how to convert a list column to a vector column.

    Args:
        table: The table.
        path: Path of an existing column.

    Returns:
        The call that casts the column, or two rows whose lists differ in length. None if the column does not contain
        lists of numbers.
    """
    type_ = table.snapshot.schema.by_path(path).arrow_type
    if not _is_list(type_) or not is_any_number(type_.value_type):
        return None
    first: tuple[int, int] | None = None
    row = 0
    for lengths in _lengths(table, path):
        present = lengths.drop_null()
        if first is None and len(present):
            first = row + pc.index(lengths, present[0]).as_py(), present[0].as_py()
        other = None if first is None else pc.index(pc.not_equal(lengths, first[1]).fill_null(False), True).as_py()
        if first is not None and other is not None and other >= 0:
            return (
                f"lists of column {path!r} differ in length: row {first[0]} has {first[1]}, row {row + other} has "
                f"{lengths[other]}; a vector column needs one length"
            )
        row += len(lengths)
    length = "length" if first is None or not first[1] else str(first[1])
    value = type_.value_type
    item = str(value) if value == pa.uint8() else "float16" if value == pa.float16() else "float32"
    call = f'{{"path": {json.dumps(path, ensure_ascii=False)}, "data_type": pa.list_(pa.{item}(), {length})}}'
    names = split_path(path)
    sql = f", or ALTER TABLE … ALTER COLUMN {_sql_name(names[0])} TYPE FLOAT[{length}]"
    return f"cast its lists to vectors: ds.alter_columns({call}){sql if len(names) == 1 and item == 'float32' else ''}"


def _sql_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'


def _is_list(type_: pa.DataType) -> bool:
    return is_any_list(type_) and not pa.types.is_fixed_size_list(type_)


def _lengths(table: TableScan, path: str) -> Iterator[pa.Array]:
    """Yield the lengths of the lists in the first rows."""
    names = split_path(path)
    plan = table.plan(ScanOptions(columns=[join_path(names)], limit=_MOST_ROWS))
    done = 0
    for batch in table.reader(plan):
        values = batch.column(0)
        while pa.types.is_struct(values.type):
            values = values.flatten()[0]
        yield pc.list_value_length(values)
        done += batch.nbytes
        if done > _MOST_BYTES:
            return
