"""Writes the catalogue with pylance: one table for each group of kinds, storage version and null pattern."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from oracle import columns, nested_columns
from oracle.kinds import Kind, build

NARROW_ROWS = ((3000, 1), (1, 1), (200, 6))
WIDE_ROWS = ((170, 1), (1, 1), (30, 3))
PAGE_BYTES = 16 * 1024
ID = "row_number"
MISREAD = {"list_packed"}  # pylance 14.0.2 gives null lists

KINDS = [*columns.catalogue(), *nested_columns.catalogue()]
GROUPS = {
    "flat": [k for k in columns.catalogue() if not k.wide],
    "nested": [k for k in nested_columns.catalogue() if not k.wide],
    "wide": [k for k in KINDS if k.wide],
}


@dataclass(frozen=True)
class Written:
    """A table on disk, the rows that pylance reads from it, and the rows that were written."""

    uri: str
    kinds: Sequence[Kind]
    truth: pa.Table
    written: pa.Table

    @property
    def num_rows(self) -> int:
        """Rows of the whole table."""
        return int(self.truth.num_rows)


def kinds_of(group: str, version: str, pattern: str) -> list[Kind]:
    """Return the kinds of a group that pylance can write in this version under this pattern."""
    return [k for k in GROUPS[group] if pattern in k.patterns() and not k.is_refused(version, pattern)]


# Row count and batch count of each fragment.
def write(folder: Path, group: str, version: str, pattern: str) -> Written:
    """Write three fragments: a large one, one of one row, and one of many small pages."""
    kinds = kinds_of(group, version, pattern)
    uri = str(folder / f"{group}-{version}-{pattern}.lance")
    first = 0
    written = []
    for rows, batches in WIDE_ROWS if group == "wide" else NARROW_ROWS:
        tables = [make_table(kinds, pattern, rows, first + i * rows) for i in range(batches)]
        first += rows * batches
        written += tables
        cache = PAGE_BYTES * len(kinds) if batches > 1 else None
        lance.write_dataset(
            pa.concat_tables(tables), uri, mode="append", data_storage_version=version, data_cache_bytes=cache
        )
        if pattern == "empty":
            break
    whole = pa.concat_tables(written)
    return Written(uri, kinds, read(uri, whole), whole)


def read(uri: str, written: pa.Table) -> pa.Table:
    """Read each column separately with pylance, which fails on some combinations of valid columns.

    Columns that it reads incorrectly are returned as written.
    """
    dataset = lance.dataset(uri)
    parts = [
        written.select([name]) if name in MISREAD else dataset.to_table(columns=[name]) for name in dataset.schema.names
    ]
    schema = pa.schema([p.schema.field(0) for p in parts], metadata=parts[0].schema.metadata)
    return pa.table([_without_null_items(p.column(0)) for p in parts], schema=schema)


def _without_null_items(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the same values in dictionaries without a null among their items, which Arrow cannot join."""
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = [c.dictionary_decode().dictionary_encode().cast(column.type) for c in column.chunks]
    return pa.chunked_array(chunks, column.type)


def make_table(kinds: Sequence[Kind], pattern: str, rows: int, first: int = 0) -> pa.Table:
    """Return one column a kind, and ID, which counts the rows from `first`."""
    seed = zlib.crc32(f"{pattern} {first}".encode())
    arrays = [build(k, pattern, rows, seed) for k in kinds]
    ids = pa.array(np.arange(first, first + (0 if pattern == "empty" else rows)))
    fields = [pa.field(ID, pa.int64()), *(k.field_of(a) for k, a in zip(kinds, arrays, strict=True))]
    return pa.table([ids, *arrays], schema=pa.schema(fields))
