"""The decoded contents of an inverted index partition, which builds, merges and compactions process.

Builds and merges number the documents by length, and documents of equal length in the order of their rows. A block of
postings then has documents of similar lengths, and the bounds of its scores are tight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.errors import InternalError
from lance_duck.kernels import status
from lance_duck.kernels.postings.order import DIGIT_BITS, sort_documents


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

    def by_length(self) -> tuple[Documents, NDArray[np.uint32]]:
        """Sort the documents by length. Documents of equal length keep their order.

        Returns:
            The sorted documents, and the new id of each document, uint32 (documents,).
        """
        lengths = self.num_tokens
        if int(lengths.max(initial=0)) < 1 << 16:  # numpy sorts 16 bits in linear time
            lengths = lengths.astype(np.uint16)
        order = np.argsort(lengths, kind="stable")
        ids = np.empty(len(order), np.uint32)
        ids[order] = np.arange(len(order), dtype=np.uint32)
        elements = tuple(level[order] for level in self.elements)
        return Documents(self.row_ids[order], self.num_tokens[order], elements), ids


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


def sort_postings(
    bounds: NDArray[np.int64],
    document_ids: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    positions: NDArray[np.uint32] | None,
    token_bounds: NDArray[np.int64] | None,
) -> None:
    """Sort the postings of each term by document, in place.

    Args:
        bounds: See `PartitionContents`.
        document_ids: Documents of each term, distinct, in any order.
        frequencies: See `PartitionContents`.
        positions: See `PartitionContents`. Modified like the postings.
        token_bounds: int64 (terms + 1,), index of each term's first position, followed by the number of positions. None
            without positions.

    Raises:
        InternalError: The arrays contradict each other.
    """
    room = unset(2 * int(np.diff(bounds).max(initial=0)), np.uint64).reshape(2, -1)
    moved = unset(0 if token_bounds is None else int(np.diff(token_bounds).max(initial=0)), np.uint32)
    starts = np.empty(0, np.int64) if token_bounds is None else token_bounds
    kept = moved[:0] if positions is None else positions
    counts = np.empty(1 << DIGIT_BITS, np.uint32)
    outcome = sort_documents(bounds, document_ids, frequencies, starts, kept, room, moved, counts)
    if outcome != status.OK:
        raise InternalError("the postings do not match their terms", found=f"status {outcome}")
