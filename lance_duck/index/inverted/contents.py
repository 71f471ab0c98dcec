"""The decoded contents of an inverted index partition, which builds, merges and compactions process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a partition: rows with at least one term. The id of a document is its position.

    Attributes:
        row_ids: uint64 (documents,), stable row id or row address of each document, in any order.
        num_tokens: uint32 (documents,), number of terms of each document, including repetitions.
        elements: Positions of the documents in their lists, if documents are list elements: one uint32 array for each
            list level, outermost first. Empty if each row is a document.
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
        terms: The distinct terms, large_binary (UTF-8). The id of a term is its position.
        bounds: int64 (terms + 1,), index of each term's first posting, followed by the number of postings.
        document_ids: uint32 (postings,), documents of each term, ascending.
        frequencies: uint32 (postings,), number of occurrences of the term in the document, at least 1.
        positions: uint32 (frequencies.sum(),), ascending positions of each posting, concatenated. None if not stored.
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
