"""Writes n-gram files from sorted entries."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lance_duck.index.files import INDEX_BLOCK_BYTES, SegmentWriter
from lance_duck.index.ngram.costs import LISTS_AT_ONCE
from lance_duck.index.ngram.layout import FILE, SCHEMA
from lance_duck.index.ngram.open import Entries
from lance_duck.rows.row_set_bytes import treemap


def write_ngram_file(entries: Entries, writer: SegmentWriter) -> None:
    """Write the file of an index.

    Args:
        entries: Distinct ascending tokens with their rows.
        writer: Writer of the segment.

    Raises:
        CorruptError: Entries of another segment are corrupt.
        StoreError: The disk or the service failed.
    """
    file = writer.create(FILE, SCHEMA)
    for tokens, lists in _blocks(entries):
        arrays = [pa.array(tokens, pa.uint32()), pa.array(lists, pa.binary())]
        file.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    writer.add(FILE, file)


def _blocks(entries: Entries) -> Iterator[tuple[list[int], list[bytes]]]:
    tokens: list[int] = []
    lists: list[bytes] = []
    size = 0
    for token, rows in entries:
        tokens.append(token)
        lists.append(treemap(rows))
        size += len(lists[-1])
        if size >= INDEX_BLOCK_BYTES or len(lists) >= LISTS_AT_ONCE:
            yield tokens, lists
            tokens, lists, size = [], [], 0
    if tokens:
        yield tokens, lists
