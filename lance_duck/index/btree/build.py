"""Builds B-trees from rows and from other B-trees.

Entries that fit into memory are sorted there, together with the entries of other B-trees. Larger inputs are sorted in
portions. Each portion becomes a B-tree in a temporary folder, and these B-trees are merged with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from lance_duck.arrow.join import joined, joined_arrays
from lance_duck.errors import InternalError, UnsupportedError
from lance_duck.index.btree.costs import ARRAY_BYTES, SOURCE_TREE_BYTES
from lance_duck.index.btree.keys import BTreeKeys, key_maker
from lance_duck.index.btree.merge import SourceTree, merge_sources
from lance_duck.index.btree.open import BTreeFiles
from lance_duck.index.btree.search import BTreeIndex
from lance_duck.index.btree.write import TreeWriter, row_bytes, write_sorted
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions
from lance_duck.store import Store, open_store


def write_tree(
    sources: Sequence[SourceTree],
    rows: pa.RecordBatchReader | None,
    type_: pa.DataType,
    writer: SegmentWriter,
    options: BuildOptions,
    page_rows: int,
) -> None:
    """Write a B-tree.

    Args:
        sources: B-trees whose entries are merged.
        rows: Columns `VALUE` and `ROW` of further entries.
        type_: Type of the values.
        writer: Writer of the segment.
        options: Parameters and limits.
        page_rows: Number of entries per page.

    Raises:
        UnsupportedError: The type is not ordered.
        CorruptError: A source is corrupt.
    """
    make = key_maker(type_)
    if make is None:
        raise UnsupportedError("B-tree indexes do not support values of this type", found=type_)
    progress = _Progress(options.progress)
    with ExitStack() as stack:
        spilled: list[SourceTree] = []
        folder: Store | None = None
        for portion in _portions(rows, type_, options.memory_limit, progress) if rows is not None else ():
            if portion.is_empty and (spilled or sources):
                break
            if portion.is_last and not spilled and portion.fits_beside(sources, options.memory_limit):
                with TreeWriter(writer, type_, make, page_rows) as tree:
                    portion.write(tree, make, sources)
                    tree.finish()
                if sources:
                    progress(sum(source.index.num_entries for source in sources))
                return
            if folder is None:
                folder = open_store(
                    stack.enter_context(TemporaryDirectory(prefix="lance_duck-", ignore_cleanup_errors=True)),
                    {"fsync": "false"},
                )
            spilled.append(_spill(portion, type_, folder, make))
        with TreeWriter(writer, type_, make, page_rows) as tree:
            merge_sources([*sources, *spilled], tree, make, options.memory_limit, progress)
            tree.finish()


class _Progress:
    """A counter that reports the number of processed rows."""

    def __init__(self, tell: Callable[[int], None] | None) -> None:
        self._tell = tell
        self._rows = 0

    def __call__(self, rows: int) -> None:
        self._rows += rows
        if self._tell is not None:
            self._tell(self._rows)


class _Portion:
    """Rows that are sorted together. Writing releases their batches."""

    def __init__(self, batches: list[pa.RecordBatch], type_: pa.DataType, is_last: bool) -> None:
        self._batches = batches
        self._type = type_
        self.is_last = is_last

    @property
    def is_empty(self) -> bool:
        """Whether the portion is empty."""
        return not self._batches

    def fits_beside(self, sources: Sequence[SourceTree], limit: int) -> bool:
        """Return whether the portion and the entries of `sources` can be sorted together within `limit` bytes."""
        if not sources:
            return True
        size = sum(batch.column(VALUE).nbytes for batch in self._batches)
        count = sum(batch.num_rows for batch in self._batches)
        entry_bytes = max(row_bytes(size, count), *(source.entry_bytes for source in sources))
        count += sum(source.index.num_entries for source in sources)
        return bool(entry_bytes * count <= min(limit, ARRAY_BYTES))

    def write(
        self, tree: TreeWriter, make: Callable[[pa.Array], BTreeKeys], sources: Sequence[SourceTree] = ()
    ) -> None:
        """Write the rows and the entries of B-trees in sorted order."""
        parts = [part for source in sources for part in source.entries(self._type)]
        parts += ((batch.column(VALUE), batch.column(ROW).to_numpy()) for batch in self._batches)
        self._batches.clear()
        values = joined_arrays((values for values, _ in parts), self._type)
        rows = joined((rows for _, rows in parts), np.uint64)
        del parts
        write_sorted(tree, values, rows, make)


def _portions(
    rows: pa.RecordBatchReader, type_: pa.DataType, limit: int, progress: Callable[[int], None]
) -> Iterator[_Portion]:
    """Split rows into portions that can be sorted in memory. The last portion may be empty."""
    if rows.schema.field(VALUE).type != type_:
        raise InternalError(
            "the rows of a B-tree have the wrong type", expected=type_, found=rows.schema.field(VALUE).type
        )
    batches: list[pa.RecordBatch] = []
    size = count = 0
    for batch in rows:
        num_bytes = batch.column(VALUE).nbytes
        full = row_bytes(size + num_bytes, count + batch.num_rows) * (count + batch.num_rows) > limit
        if batches and (full or size + num_bytes > ARRAY_BYTES):
            yield _Portion(batches, type_, False)
            batches, size, count = [], 0, 0
        batches.append(batch)
        size, count = size + num_bytes, count + batch.num_rows
        progress(batch.num_rows)
    yield _Portion(batches, type_, True)


def _spill(portion: _Portion, type_: pa.DataType, folder: Store, make: Callable[[pa.Array], BTreeKeys]) -> SourceTree:
    with SegmentWriter(folder) as writer:
        with TreeWriter(writer, type_, make) as tree:
            portion.write(tree, make)
            tree.finish()
        files = BTreeFiles(SegmentReader(folder, writer.directory), type_, SOURCE_TREE_BYTES)
        return SourceTree(BTreeIndex(files))
