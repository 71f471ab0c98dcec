"""String columns read as dictionaries, which DuckDB groups and compares faster.

A column is read so if all its pages are dictionary-encoded, or if a small sample has few distinct, short texts; never
if its texts are long. If the sample misleads, batches still become dictionaries, only more slowly.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.errors import LanceDuckError
from lance_duck.scan.costs import (
    LARGEST_REPEATED_TEXT,
    REPEATED_TEXT_BYTES,
    REPEATED_TEXTS,
    TEXT_SAMPLE_FRAGMENTS,
    TEXT_SAMPLE_ROWS,
)
from lance_duck.scan.projection import Read
from lance_duck.scan.read.fragment_reader import ColumnCache, FragmentReader
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.request import run


def repeats(snapshot: Snapshot, columns: ColumnCache, read: Read) -> bool:
    """Return whether to read a string column as dictionary(int32, string).

    Args:
        snapshot: The version of the table.
        columns: Column readers to use again.
        read: A top-level column of strings.
    """
    fragments = snapshot.fragments
    if not len(fragments) or len(fragments) > TEXT_SAMPLE_FRAGMENTS:
        return False
    readers = [FragmentReader(snapshot, fragment, columns) for fragment in fragments]
    try:
        if any(reader.stored_bytes(read) > LARGEST_REPEATED_TEXT * reader.num_rows for reader in readers):
            return False
        if all(reader.is_dictionary(read) for reader in readers):
            return True
        return local_path(snapshot.uri) is not None and all(_few(r, read) for r in (readers[0], readers[-1]))
    except LanceDuckError:
        return False  # the scan will raise the error


def _few(reader: FragmentReader, read: Read) -> bool:
    start = max(0, reader.num_rows - TEXT_SAMPLE_ROWS) // 2
    rows = slice(start, min(start + TEXT_SAMPLE_ROWS, reader.num_rows))
    array = run(reader.read([read], rows))[read.name]
    if not len(array) or pa.types.is_dictionary(array.type):
        return False
    size = pc.sum(pc.binary_length(array)).as_py() or 0
    return bool(
        size <= REPEATED_TEXT_BYTES * len(array) and pc.count_distinct(array, mode="all").as_py() <= REPEATED_TEXTS
    )
