"""An open segment of an inverted index: partitions that are read on demand and cached. `layout` describes the files."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.cache import SizedCache
from lance_duck.errors import NotFoundError
from lance_duck.index.files import SegmentFile, SegmentReader, SegmentWriter
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.columns import read_columns, single
from lance_duck.index.inverted.contents import PartitionContents
from lance_duck.index.inverted.costs import COLUMN_SHARE, POSTINGS_BYTES
from lance_duck.index.inverted.layout import InvertedParameters, inverted_parameters, partition_numbers
from lance_duck.index.inverted.merge import merged_partitions, whole_partition
from lance_duck.index.inverted.old_segments import by_row, read_unpartitioned
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.write import write_partition
from lance_duck.rows import fragments_in_bitmap
from lance_duck.rows.row_set import RowSet
from lance_duck.store import store_in_memory
from lance_duck.text.filters import STEMMER


class InvertedSegment:
    """An open segment. Thread-safe. Reads are cached within limits.

    Attributes:
        parameters: Parameters of the analyser and the layout.
        partitions: Partitions of the segment.
        deleted_fragments: uint32, ascending ids of fragments whose rows are missing.
        is_converted: Whether the files were converted in memory from an old layout. In that case, merges analyse the
            texts again, and do not use the stored terms.

    Args:
        files: Files of the segment.
        parameters: Parameters from the metadata.
        numbers: Numbers of the partitions.
        deleted_fragments: uint32, ascending ids of fragments whose rows are missing.
        by_element: Whether documents are list elements, according to the manifest. The document files take precedence.
        cache_bytes: Cache size for postings and positions, in bytes.
        held_bytes: Size of the files in bytes if they are in memory, otherwise 0.
    """

    def __init__(
        self,
        files: SegmentReader,
        parameters: InvertedParameters,
        numbers: list[int],
        deleted_fragments: NDArray[np.uint32],
        by_element: bool = False,
        cache_bytes: int = POSTINGS_BYTES,
        held_bytes: int = 0,
    ) -> None:
        self._held_bytes = held_bytes
        self.is_converted = held_bytes > 0
        self._by_element = by_element
        self._cache: SizedCache[Any] = SizedCache(cache_bytes, lambda value: value.nbytes)
        self._parameters = parameters
        column_bytes = cache_bytes // COLUMN_SHARE // max(1, len(numbers))
        self.partitions = tuple(InvertedPartition(files, n, parameters, self._cache, column_bytes) for n in numbers)
        self.deleted_fragments = deleted_fragments

    @cached_property
    def parameters(self) -> InvertedParameters:
        """Parameters from the metadata. If there are partitions, they determine the document granularity."""
        by_element = any(partition.num_levels for partition in self.partitions[:1])
        by_element = by_element or (self._by_element and not self.partitions)
        return replace(self._parameters, document_granularity="list_element" if by_element else "row")

    @property
    def num_documents(self) -> int:
        """Number of documents of all partitions. Deleted documents count until the segment is rewritten."""
        return sum(partition.num_documents for partition in self.partitions)

    @property
    def total_tokens(self) -> int:
        """Number of terms of all documents, including repetitions."""
        return sum(partition.total_tokens for partition in self.partitions)

    def row_names(self) -> RowSet:
        """Return the row ids or addresses of all documents."""
        return RowSet.union(RowSet.of(partition.documents.row_ids) for partition in self.partitions)

    def statistics(self) -> dict[str, Any]:
        """Return the segment's statistics with the fields of pylance's index_statistics, and the query stemmer."""
        return {
            "stemmer": STEMMER,
            "params": dict(self._parameters.params),
            "num_tokens": sum(partition.num_terms for partition in self.partitions),
            "num_docs": self.num_documents,
        }

    def prewarm(self) -> None:
        """Read all data that searches use, and cache it within limits."""
        for partition in self.partitions:
            partition.prewarm()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self._held_bytes + self._cache.nbytes + sum(partition.nbytes for partition in self.partitions)


def open_segment(
    files: SegmentReader, by_element: bool = False, cache_bytes: int = POSTINGS_BYTES, *, is_list: bool = False
) -> InvertedSegment:
    """Open a segment, and read metadata.lance. Some segments of old writers are completely read into memory.

    Args:
        files: Files of the segment.
        by_element: See `InvertedSegment`.
        cache_bytes: Cache size for postings and positions, in bytes.
        is_list: Whether the column contains lists.

    Raises:
        NotFoundError: A file is missing.
        CorruptError: The files contradict themselves.
        UnsupportedError: The format of the segment is not supported.
    """
    try:
        file = files.open(layout.METADATA)
    except NotFoundError as error:
        return _unpartitioned(files, error, cache_bytes, is_list=is_list)
    parameters = inverted_parameters(file.metadata, file.path)
    numbers = partition_numbers(file.metadata, file.path)
    segment = InvertedSegment(files, parameters, numbers, _deleted_fragments(file), by_element, cache_bytes)
    if is_list and not by_element and _has_parts_of_rows(segment):
        parts = [whole_partition(partition.contents()) for partition in segment.partitions]
        contents = by_row(merged_partitions(parts), keeps_positions=False)
        return _held(replace(parameters, with_position=False), contents, segment.deleted_fragments, cache_bytes)
    return segment


def _unpartitioned(
    files: SegmentReader, not_found: NotFoundError, cache_bytes: int, *, is_list: bool
) -> InvertedSegment:
    """Open a segment without metadata.lance: an old writer made it, or its parts were never joined."""
    try:
        parameters, contents = read_unpartitioned(files, is_list=is_list)
    except NotFoundError as error:
        raise not_found from error
    return _held(parameters, contents, np.empty(0, np.uint32), cache_bytes)


def _has_parts_of_rows(segment: InvertedSegment) -> bool:
    """Return whether some rows have several documents without list positions."""
    if any(partition.num_levels for partition in segment.partitions):
        return False
    row_ids = joined((partition.documents.row_ids for partition in segment.partitions), np.uint64)
    return len(distinct(row_ids)) < len(row_ids)


def _held(
    parameters: InvertedParameters,
    contents: PartitionContents,
    deleted_fragments: NDArray[np.uint32],
    cache_bytes: int,
) -> InvertedSegment:
    """Return an in-memory segment."""
    store = store_in_memory()
    writer = SegmentWriter(store)
    write_partition(writer, 0, contents, parameters)
    files = SegmentReader(store, writer.directory, dict(writer.files))
    size = sum(size for _, size in writer.files)
    return InvertedSegment(files, parameters, [0], deleted_fragments, cache_bytes=cache_bytes, held_bytes=size)


def _deleted_fragments(file: SegmentFile) -> NDArray[np.uint32]:
    if file.num_rows == 0 or layout.DELETED_FRAGMENTS not in file.schema.names:
        return np.empty(0, np.uint32)
    (column,) = read_columns(file, {layout.DELETED_FRAGMENTS: pa.binary()})
    data = single(column, file.path)[0].as_py()
    return fragments_in_bitmap(data, file.path) if data else np.empty(0, np.uint32)
