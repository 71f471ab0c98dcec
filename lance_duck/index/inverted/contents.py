"""The decoded contents of a partition of an inverted index, which builds, merges and compactions work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a partition: rows with at least one term. A document's id is its place here.

    Attributes:
        row_ids: Stable row id, or row address, of each document; uint64, in no order.
        num_tokens: Number of terms of each document, repeated ones counted; uint32.
        elements: In an index of list elements, the place of the element in each list around it, outermost first; one
            uint32 array for each list. Empty where a row is a document.
    """

    row_ids: NDArray[np.uint64]
    num_tokens: NDArray[np.uint32]
    elements: tuple[NDArray[np.uint32], ...] = ()

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.row_ids.nbytes + self.num_tokens.nbytes + sum(level.nbytes for level in self.elements)

    @property
    def total_tokens(self) -> int:
        """Number of terms of all documents."""
        return int(self.num_tokens.sum(dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class PartitionContents:
    """Terms, documents and postings of a partition, as plain arrays.

    Attributes:
        documents: The documents.
        terms: The terms by their id, large_binary (UTF-8), distinct.
        bounds: Where the postings of each term begin, and where the last one's end: int64 (terms + 1,).
        document_ids: Documents of each term, ascending; uint32 (postings,).
        frequencies: Frequency of each posting's term in its document, at least 1; uint32 (postings,).
        positions: Positions of each posting in turn, ascending; uint32 (frequencies.sum(),). None if not kept.
    """

    documents: Documents
    terms: pa.LargeBinaryArray
    bounds: NDArray[np.int64]
    document_ids: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    positions: NDArray[np.uint32] | None = None

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        arrays: list[NDArray[Any]] = [self.bounds, self.document_ids, self.frequencies]
        arrays += [] if self.positions is None else [self.positions]
        return self.documents.nbytes + sum(array.nbytes for array in arrays) + int(self.terms.nbytes)
