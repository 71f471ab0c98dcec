"""An open partition of a segment. `layout` describes its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError, InternalError, UnsupportedError
from lance_duck.index.files import SegmentFile, SegmentReader
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.codecs import blocks, positions
from lance_duck.index.inverted.codecs.arrays import BinaryLists, binary_lists_of
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.index.inverted.codecs.impacts import length_codes, length_floors
from lance_duck.index.inverted.codecs.positions import PositionBlocks, PositionStream
from lance_duck.index.inverted.codecs.scores import Norms, coded_lengths, length_norms
from lance_duck.index.inverted.columns import KeptTerms, TermColumns, numbers_without_nulls, read_columns
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.costs import LEAST_PIECE
from lance_duck.index.inverted.layout import InvertedParameters
from lance_duck.index.inverted.postings import PostingBlocks, arranged, joined_postings, one_of_postings
from lance_duck.index.inverted.terms import SortedTerms, Terms, open_terms
from lance_duck.kernels.jit import readonly

_BLOCKS: Final[Mapping[str, pa.DataType]] = {layout.POSTING: layout.BLOBS}
_DOCUMENTS: Final = {layout.ROW_ID: pa.uint64(), layout.NUM_TOKENS: pa.uint32()}
_STARTS: Final = pa.list_(pa.field("item", pa.uint32()))
_OLD_POSITIONS: Final = pa.list_(pa.field("item", layout.BLOBS))


class InvertedPartition:
    """An open partition that reads data on demand, and caches it within limits. Safe to use from several threads.

    Attributes:
        number: Number of the partition in the segment.

    Args:
        files: Files of the segment.
        number: Number of the partition.
        parameters: Parameters of the segment.
        cache: The segment's cache of postings and positions.
        column_bytes: Maximum size of a column that is cached whole, in bytes.
    """

    def __init__(
        self,
        files: SegmentReader,
        number: int,
        parameters: InvertedParameters,
        cache: SizedCache[PostingBlocks | PositionBlocks | pa.Array],
        column_bytes: int,
    ) -> None:
        self.number = number
        self._files = files
        self._parameters = parameters
        self._cache = cache
        self._column_bytes = column_bytes
        self._found_ids: tuple[tuple[bytes, ...], NDArray[np.int64]] = (), np.empty(0, np.int64)
        self._norms: tuple[float, NDArray[np.float32]] | None = None

    @property
    def num_documents(self) -> int:
        """Number of documents. Deleted documents count until the partition is rewritten."""
        return self._documents_file.num_rows

    @property
    def num_terms(self) -> int:
        """Number of terms. Term ids are smaller than this number."""
        return self._postings_file.num_rows

    @cached_property
    def total_tokens(self) -> int:
        """Number of terms of all documents, including repetitions.

        Raises:
            CorruptError: The number in the metadata is invalid.
        """
        text = self._documents_file.metadata.get(layout.TOTAL_TOKENS)
        if text is None:
            return self.documents.total_tokens
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise CorruptError(layout.TOTAL_TOKENS, where=self._documents_file.path, found=repr(text[:40]))
        return int(text)

    @cached_property
    def documents(self) -> Documents:
        """The documents, read once.

        Raises:
            CorruptError: The file contradicts itself.
        """
        file = self._documents_file
        types = _DOCUMENTS | {f"{layout.DOC_INDEX}{i}": pa.uint32() for i in range(self.num_levels)}
        row_ids, num_tokens, *elements = (numbers_without_nulls(array) for array in read_columns(file, types))
        documents = Documents(row_ids, num_tokens, tuple(elements))
        stated = file.metadata.get(layout.TOTAL_TOKENS)
        if stated is not None and stated != str(documents.total_tokens):
            raise CorruptError(
                layout.TOTAL_TOKENS, where=file.path, expected=documents.total_tokens, found=repr(stated[:40])
            )
        return documents

    def norms(self, average: float) -> Norms:
        """Return the norm of each document. With blocks of 256, uses the shortest length that has the same code.

        Args:
            average: Average number of terms per document. The norms for the last value are cached.

        Raises:
            CorruptError: The documents are corrupt.
        """
        codes, lengths = self._coded_lengths
        last = self._norms
        if last is None or last[0] != average:
            if not self._parameters.block_form.has_scores:
                lengths = length_floors()[length_codes(lengths)]
            last = self._norms = average, readonly(length_norms(lengths, average))
        return codes, last[1]

    @cached_property
    def _coded_lengths(self) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint32]]:
        """A code for the length of each document, and the length of each code."""
        return coded_lengths(self.documents.num_tokens)

    @property
    def num_levels(self) -> int:
        """List nesting depth of a document: 0 for a row, more for a list element."""
        return sum(name.startswith(layout.DOC_INDEX) for name in self._documents_file.schema.names)

    @property
    def has_positions(self) -> bool:
        """Whether the partition stores positions of terms."""
        names = self._postings_file.schema.names
        return layout.POSITIONS in names or layout.OLD_POSITIONS in names

    def term_ids(self, terms: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the term ids as a read-only int64 array, with -1 for unknown terms.

        The last result is cached: a query first needs the document counts of its terms, then their postings.

        Raises:
            CorruptError: The terms are corrupt.
        """
        asked, last = tuple(terms), self._found_ids
        if last[0] == asked:
            return last[1]
        ids = readonly(self._terms.find(asked))
        self._found_ids = asked, ids
        return ids

    def near_terms(self, word: str, edits: int, fixed: int, most: int, *, is_open: bool = False) -> list[bytes] | None:
        """Return sorted terms that are near a word: see `codecs.fst.Fst.near`.

        Returns:
            The terms. None if `sorted_terms` must be compared instead.

        Raises:
            CorruptError: The term file is corrupt.
        """
        return self._terms.near(word, edits, fixed, most, is_open=is_open)

    @cached_property
    def sorted_terms(self) -> SortedTerms:
        """All terms in byte order. Read once.

        Raises:
            CorruptError: The terms are corrupt.
        """
        return self._terms.in_order()

    def document_frequencies(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the document count of each term, int64.

        Args:
            ids: Term ids, or -1 for terms that the partition does not contain.

        Raises:
            CorruptError: The file is corrupt.
        """
        lengths = self._lengths
        return np.array([lengths.item(number) if number >= 0 else 0 for number in ids.tolist()], np.int64)

    def postings(self, ids: NDArray[np.int64], *, with_impacts: bool = True) -> PostingBlocks:
        """Return the postings of terms in the order of `ids`, read in one round trip and cached.

        Args:
            ids: Term ids, at least one.
            with_impacts: Whether impacts are needed. Otherwise they are included only if cached.

        Raises:
            CorruptError: The file is corrupt. Blocks are checked when they are decoded.
        """
        listed = self._checked(ids)
        types = self._posting_types if with_impacts else _BLOCKS
        whole = self._columns.whole_blobs(types)
        if whole is not None:
            path = self._postings_file.path
            return self._postings_of([lists.take(ids, path) for lists in whole], types, self._lengths[ids])
        return (self._kept_postings if with_impacts else self._kept_blocks).of(listed)

    def source_of(
        self, ids: NDArray[np.int64], *, reads_impacts: bool = True
    ) -> tuple[BinaryLists, BinaryLists | None, NDArray[np.int64], NDArray[np.int64]]:
        """Return lists that contain the blocks and the impacts of terms, unchecked.

        They are whole columns if these are cached, and otherwise the lists of these terms.

        Args:
            ids: Term ids, at least one.
            reads_impacts: Whether to read impacts that are not cached.

        Returns:
            The blocks; the impacts, or None if they do not exist or are not read; the number of documents of each list
            of blocks; the position of each term's list.

        Raises:
            CorruptError: The file is corrupt.
        """
        listed = self._checked(ids)
        whole = self._columns.whole_blobs(self._posting_types)
        if whole is None:
            postings = (self._kept_postings if reads_impacts else self._kept_blocks).of(listed)
            return postings.blocks, postings.impacts, postings.lengths, np.arange(len(listed))
        return whole[0], whole[1] if len(whole) > 1 else None, self._lengths, ids

    def columns_in_memory(self) -> tuple[Any, Any, NDArray[np.int64]] | None:
        """Return the arrays of all blocks, the arrays of all impacts, and the number of documents of each term.

        Returns None if they are not cached, or if the file does not have impacts.
        """
        whole = self._columns.whole_blobs(self._posting_types)
        if whole is None or len(whole) < 2:
            return None
        blobs, impacts = whole
        return (blobs.data, blobs.offsets, blobs.lists), (impacts.data, impacts.offsets, impacts.lists), self._lengths

    def positions_in_memory(self) -> tuple[Any, Any, Any, Any, bool] | None:
        """Return the bytes of all positions, `terms`, `starts` and `lists` of `locate_blocks`, and `has_groups`.

        Returns None if they are not cached.
        """
        whole = self._columns.whole_positions()
        return None if whole is None else (*whole, self._has_position_groups)

    @property
    def block_form(self) -> BlockForm:
        """Form of the posting blocks."""
        return self._parameters.block_form

    @property
    def where(self) -> str:
        """Name of the file of postings, for messages."""
        return self._postings_file.path

    def _checked(self, ids: NDArray[np.int64]) -> list[int]:
        """Return term ids as a list, checked to be in range."""
        listed: list[int] = ids.tolist()
        if not listed or min(listed) < 0 or max(listed) >= self.num_terms:
            raise InternalError(
                "the term ids are out of range", expected=f"some of 0 … {self.num_terms - 1}", found=listed[:8]
            )
        return listed

    def position_blocks(self, ids: NDArray[np.int64]) -> PositionBlocks | None:
        """Return the position blocks of terms in the order of `ids`. Each posting block has one position block.

        Returns:
            The blocks. None if positions are stored per document, or not at all.

        Raises:
            UnsupportedError: The position format is not supported.
            CorruptError: The file is corrupt. Positions are checked when they are read.
        """
        if layout.POSITIONS not in self._postings_file.schema.names:
            return None
        if self._columns.whole_positions() is not None:
            return self._read_blocks(ids)
        return self._kept_positions.of(ids.tolist())

    def positions(
        self, ids: NDArray[np.int64], bounds: NDArray[np.int64], frequencies: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        """Return the ascending positions of each posting of terms, concatenated: uint32 (frequencies.sum(),).

        Args:
            ids: Term ids, ascending.
            bounds: int64 (ids + 1,), index of each term's first posting, followed by the number of postings.
            frequencies: Frequencies of the postings.

        Raises:
            UnsupportedError: Positions are not stored, or in an unsupported format.
            CorruptError: The file is corrupt.
        """
        return self._positions(ids, bounds, frequencies)

    def contents(self) -> PartitionContents:
        """Return the whole partition, decoded.

        Raises:
            CorruptError: A file is corrupt.
        """
        return self._contents(self._terms.in_order().by_id(), None)

    @property
    def decoded_bytes(self) -> int:
        """Approximate size of the decoded contents, in bytes.

        Raises:
            CorruptError: A file is corrupt.
        """
        documents = self.num_documents * (12 + 4 * self.num_levels)
        return documents + int(self._lengths.sum()) * 8 + (4 * self.total_tokens if self.has_positions else 0)

    def pieces(self, most: int) -> Iterator[PartitionContents]:
        """Yield the decoded contents in chunks of terms. An empty partition yields one chunk.

        Args:
            most: Approximate size of a chunk's postings and positions, in bytes, at least `LEAST_PIECE`. Chunks with a
                single term may be larger.

        Raises:
            CorruptError: A file is corrupt.
        """
        terms = self._terms.in_order().by_id()
        if not len(terms):
            yield self._contents(terms, None)
            return
        postings = np.cumsum(self._lengths)
        tokens = self.total_tokens / max(1, int(postings[-1])) if self.has_positions else 0
        postings_of_piece, first = int(max(most, LEAST_PIECE) / (8 + 4 * tokens)), 0
        while first < len(terms):
            begin = int(postings[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(postings, begin + postings_of_piece, side="right")))
            yield self._contents(terms[first:last], slice(first, last))
            first = last

    def _contents(self, terms: pa.LargeBinaryArray, rows: slice | None) -> PartitionContents:
        """Return the decoded contents for a slice of the terms, or for all terms."""
        postings = self._read(_BLOCKS, rows)
        ids, frequencies = postings.decoded()
        bounds = postings.bounds
        positions = self._positions(rows, bounds, frequencies) if self.has_positions else None
        return PartitionContents(self.documents, terms, bounds, ids, frequencies, positions)

    def prewarm(self) -> None:
        """Read all data that searches use, and cache it within limits."""
        _ = self.documents, self._terms
        if self.num_terms and not self._columns.keep(self._posting_types):
            self.postings(np.arange(self.num_terms))

    @property
    def nbytes(self) -> int:
        """Size in memory without postings and positions, in bytes."""
        attributes = self.__dict__
        documents = attributes.get("documents")
        columns = () if documents is None else (documents.row_ids, documents.num_tokens, *documents.elements)
        objects = (attributes.get("_terms"), attributes.get("sorted_terms"), attributes.get("_lengths"), *columns)
        coded = attributes.get("_coded_lengths")
        norms: int = 0 if coded is None else coded[0].nbytes
        return norms + sum(int(each.nbytes) for each in objects if each is not None)

    @cached_property
    def _kept_postings(self) -> KeptTerms[PostingBlocks]:
        """Postings with their impacts."""
        return self._keeping("postings", self._posting_types, lambda _: None)

    @cached_property
    def _kept_blocks(self) -> KeptTerms[PostingBlocks]:
        """Postings without impacts."""
        return self._keeping("blocks", _BLOCKS, self._kept_postings.of_term)

    def _keeping(
        self, kind: str, types: Mapping[str, pa.DataType], of_others: Callable[[int], PostingBlocks | None]
    ) -> KeptTerms[PostingBlocks]:
        read = partial(self._read, types)
        return KeptTerms(self._cache, (kind, self.number), read, one_of_postings, arranged, joined_postings, of_others)

    @cached_property
    def _kept_positions(self) -> KeptTerms[PositionBlocks]:
        return KeptTerms(
            self._cache,
            ("positions", self.number),
            self._read_blocks,
            PositionBlocks.of_term,
            None,
            positions.joined_positions,
        )

    def _read_columns(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64] | slice | None) -> list[pa.Array]:
        if isinstance(rows, np.ndarray):
            return self._columns.read(types, rows)
        return read_columns(self._postings_file, types, rows)

    @cached_property
    def _posting_types(self) -> dict[str, pa.DataType]:
        """Types of the posting columns, by name."""
        names = self._postings_file.schema.names
        return {
            name: layout.BLOBS for name in (layout.POSTING, layout.IMPACTS) if name == layout.POSTING or name in names
        }

    def _read(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64] | slice | None) -> PostingBlocks:
        """Return the postings of the given terms, or of all terms. They have impacts if `types` includes impacts."""
        file = self._postings_file
        if isinstance(rows, np.ndarray):
            postings_and_impacts = self._columns.read_blobs(types, rows)
        else:
            postings_and_impacts = [binary_lists_of(array, file.path) for array in read_columns(file, types, rows)]
        lengths = self._lengths if rows is None else self._lengths[rows]
        return self._postings_of(postings_and_impacts, types, lengths)

    def _postings_of(
        self, lists: Sequence[BinaryLists], types: Mapping[str, pa.DataType], lengths: NDArray[np.int64]
    ) -> PostingBlocks:
        """Return postings, after checking that the lists, which have the order of `types`, fit the lengths."""
        path, form = self._postings_file.path, self._parameters.block_form
        blocks.check_lengths(lists[0], lengths, form, path)
        impacts = lists[1] if layout.IMPACTS in types else None
        return PostingBlocks(lists[0], lengths, form, self.num_documents, impacts, path)

    def _read_blocks(self, rows: NDArray[np.int64]) -> PositionBlocks:
        file, form = self._postings_file, self._parameters.block_form
        has_groups = self._has_position_groups
        values = self._columns.read_values(layout.POSITIONS, pa.large_binary(), rows)
        starts = self._columns.read_numbers(layout.POSITION_STARTS, _STARTS, rows)
        return positions.blocks_of(values, starts, has_groups, self._lengths[rows], form, file.path)

    def _positions(
        self, rows: NDArray[np.int64] | slice | None, bounds: NDArray[np.int64], frequencies: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        file = self._postings_file
        if layout.OLD_POSITIONS in file.schema.names:
            (lists,) = read_columns(file, {layout.OLD_POSITIONS: _OLD_POSITIONS}, rows)
            return positions.decode_old(lists, bounds, frequencies, file.path)
        if layout.POSITIONS not in file.schema.names:
            raise UnsupportedError(
                "the index does not store positions, which phrases need",
                where=file.path,
                remedy="build the index with with_position=True",
            )
        return positions.decode(self._stream(rows), bounds, frequencies, self._parameters.block_form, file.path)

    def _stream(self, rows: NDArray[np.int64] | slice | None) -> PositionStream:
        has_groups = self._has_position_groups
        values, starts = self._read_columns(
            {layout.POSITIONS: pa.large_binary(), layout.POSITION_STARTS: _STARTS}, rows
        )
        return PositionStream(values, starts, has_groups)

    @cached_property
    def _has_position_groups(self) -> bool:
        """Whether positions are packed in groups. Raises UnsupportedError for unknown forms."""
        file = self._postings_file
        codec = file.metadata.get(layout.POSITIONS_CODEC, layout.PACKED_POSITIONS)
        stream_layout = file.metadata.get(layout.POSITIONS_LAYOUT, layout.SHARED_STREAM)
        if stream_layout != layout.SHARED_STREAM or codec not in (layout.PACKED_POSITIONS, layout.VARINT_POSITIONS):
            raise UnsupportedError(
                "unknown layout of positions",
                where=file.path,
                expected=layout.SHARED_STREAM,
                found=f"{stream_layout}, {codec}",
            )
        return codec == layout.PACKED_POSITIONS

    @cached_property
    def _documents_file(self) -> SegmentFile:
        return self._files.open(layout.documents_file(self.number))

    @cached_property
    def _postings_file(self) -> SegmentFile:
        return self._files.open(layout.postings_file(self.number))

    @cached_property
    def _columns(self) -> TermColumns:
        return TermColumns(self._postings_file, self._cache, self._column_bytes)

    @cached_property
    def _terms(self) -> Terms:
        file = self._files.open(layout.tokens_file(self.number))
        return open_terms(file, self._parameters.token_set_format, self.num_terms)

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        (array,) = read_columns(self._postings_file, {layout.LENGTH: pa.uint32()})
        lengths: NDArray[np.int64] = numbers_without_nulls(array).astype(np.int64)
        most = int(lengths.max(initial=0))
        if most > self.num_documents:
            raise CorruptError(
                "too many documents of one term",
                where=self._postings_file.path,
                expected=f"≤ {self.num_documents}",
                found=most,
            )
        return readonly(lengths)
