"""Writing of n-gram files: streams of tokens with their rows are merged into one, and written as lists in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.files import INDEX_BLOCK_BYTES, INDEX_BLOCK_ROWS, SegmentWriter
from lance_duck.index.kind import Rows
from lance_duck.index.ngram.costs import LISTS_AT_ONCE
from lance_duck.index.ngram.file import FILE, SCHEMA
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import treemap

Entries: TypeAlias = Iterator[tuple[int, RowSet]]
"""Tokens, ascending, with their rows."""

Follow: TypeAlias = Callable[[Rows], tuple[Rows, NDArray[np.bool_]]]


def write_ngram_file(sources: Iterable[Entries], writer: SegmentWriter) -> None:
    """Write the file of an index.

    Args:
        sources: Tokens with their rows; rows of a token in several sources are united.
        writer: Writer of the segment.

    Raises:
        CorruptError: Entries of another segment are broken.
        StoreError: The disk or the service failed.
    """
    file = writer.create(FILE, SCHEMA)
    for tokens, lists in _blocks(_merged(list(sources))):
        arrays = [pa.array(tokens, pa.uint32()), pa.array(lists, pa.binary())]
        file.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    writer.add(FILE, file)


def remapped_tokens(entries: Entries, follow: Follow) -> Entries:
    """Yield entries with new names of their rows, those of many tokens at once, without tokens that lose all rows."""
    tokens: list[int] = []
    pieces: list[Rows] = []
    waiting = 0
    for token, rows in entries:
        tokens.append(token)
        pieces.append(rows.rows())
        waiting += len(pieces[-1])
        if waiting >= INDEX_BLOCK_ROWS:
            yield from _moved(tokens, pieces, follow)
            tokens, pieces, waiting = [], [], 0
    yield from _moved(tokens, pieces, follow)


def _moved(tokens: list[int], pieces: list[Rows], follow: Follow) -> Entries:
    if not tokens:
        return
    names, lives = follow(np.concatenate(pieces))
    end = 0
    for token, rows in zip(tokens, pieces, strict=True):
        start, end = end, end + len(rows)
        moved = RowSet.of(names[start:end][lives[start:end]])
        if moved:
            yield token, moved


def _merged(sources: list[Entries]) -> Entries:
    if len(sources) == 1:
        yield from sources[0]
        return
    for token, same in groupby(heapq.merge(*sources, key=itemgetter(0)), itemgetter(0)):
        yield token, RowSet.union([rows for _, rows in same])


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
