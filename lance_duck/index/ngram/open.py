"""The open file of an n-gram index: trigrams in memory, and posting lists that are read on demand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.index.files import INDEX_BLOCK_BYTES, SegmentFile, SegmentReader
from lance_duck.index.ngram.costs import LIST_BYTES, LISTS_AT_ONCE, MOST_LISTS
from lance_duck.index.ngram.layout import FILE, POSTINGS, TOKENS
from lance_duck.rows.costs import ROW_SET_BYTES
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_treemap

Trigrams = NDArray[np.uint32]
Int64s = NDArray[np.int64]
Entries: TypeAlias = Iterator[tuple[int, RowSet]]
"""Ascending tokens with their rows."""


class NGramFile:
    """A file of trigrams and their rows. Safe to use from several threads.

    Attributes:
        tokens: Tokens of the file, ascending.
        path: Path of the file, for messages.

    Args:
        files: Files of the segment.

    Raises:
        CorruptError, NotFoundError: The file is corrupt or missing.
    """

    def __init__(self, files: SegmentReader) -> None:
        self._file: SegmentFile = files.open(FILE)
        self._file.column(TOKENS, pa.uint32())
        self._file.column(POSTINGS, pa.binary())
        self.path = self._file.path
        self.tokens = self._tokens()
        self._lists: SizedCache[tuple[RowSet, int]] = SizedCache(LIST_BYTES, lambda entry: entry[1])

    def rows(self, trigrams: Trigrams) -> RowSet:
        """Return a superset of the rows whose text contains all given trigrams.

        Args:
            trigrams: The trigrams, ascending, at least one.

        Raises:
            CorruptError: A posting list is corrupt.
        """
        places = np.searchsorted(self.tokens, trigrams)
        if not len(self.tokens) or (self.tokens[np.minimum(places, len(self.tokens) - 1)] != trigrams).any():
            return RowSet({})
        step = -(-len(places) // MOST_LISTS)
        common, *row_sets = sorted(self._of(places[::step]), key=len)
        for row_set in row_sets:
            if not common:
                break
            common = common & row_set
        return common

    def prewarm(self) -> None:
        """Read all posting lists, and fill the cache with them."""
        for _ in self.entries():
            pass

    def entries(self) -> Entries:
        """Yield all tokens in ascending order, with their rows."""
        start, step = 0, min(LISTS_AT_ONCE, 64)
        while start < len(self.tokens):
            places = np.arange(start, min(start + step, len(self.tokens)))
            lists = self._file.read([POSTINGS], slice(start, int(places[-1]) + 1))[0]
            for place, data in zip(places.tolist(), lists, strict=True):
                yield int(self.tokens[place]), self._kept(place, data)
            start += len(places)
            step = max(1, min(LISTS_AT_ONCE, 4 * step, len(places) * INDEX_BLOCK_BYTES // max(lists.nbytes, 1)))

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.tokens.nbytes + self._lists.nbytes

    def _of(self, places: Int64s) -> list[RowSet]:
        """Return the rows of each token. Uncached posting lists are read together."""
        entries = {place: self._lists.find(place) for place in places.tolist()}
        rows = {place: entry[0] for place, entry in entries.items() if entry is not None}
        new_places = [place for place, entry in entries.items() if entry is None]
        if new_places:
            lists = self._file.read([POSTINGS], np.array(new_places, np.int64))[0]
            rows |= {place: self._kept(place, data) for place, data in zip(new_places, lists, strict=True)}
        return list(rows.values())

    def _kept(self, place: int, data: pa.Scalar) -> RowSet:
        content = data.as_py()
        if content is None:
            raise CorruptError("a token does not have a posting list", where=self.path, found=int(self.tokens[place]))
        rows = read_treemap(content, self.path)
        self._lists.put(place, (rows, len(content) + ROW_SET_BYTES))
        return rows

    def _tokens(self) -> Trigrams:
        column = self._file.read([TOKENS])[0]
        tokens: Trigrams = column.to_numpy(zero_copy_only=False)
        if column.null_count or (tokens[1:] <= tokens[:-1]).any():
            raise CorruptError("invalid tokens of the n-gram index", where=self.path, expected="ascending, each once")
        return tokens
