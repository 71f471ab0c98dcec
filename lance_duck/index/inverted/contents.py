"""A partition of an inverted index, decoded: what builds, merges and compactions make and take."""

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
        row_ids: Stable row id, or row address, of each; uint64, in no order.
        num_tokens: Terms of each, repeated ones counted; uint32.
        elements: Of an index of list elements, the place of the element in each list around it, outermost first; one
            uint32 array for each list. Empty where a row is a document.
    """

    row_ids: NDArray[np.uint64]
    num_tokens: NDArray[np.uint32]
    elements: tuple[NDArray[np.uint32], ...] = ()

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def total_tokens(self) -> int:
        """Terms of all documents."""
        return int(self.num_tokens.sum(dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class PartitionContents:
    """Terms, documents and postings of a partition, as plain arrays.

    Attributes:
        documents: The documents.
        terms: The terms by their id, large_binary (UTF-8), distinct.
        bounds: Where the postings of each term begin, and where the last one's end: int64, one more than terms.
        document_ids: Documents of each term, ascending; uint32.
        frequencies: How often the document has the term, at least 1; uint32.
        positions: Positions of each posting in turn, ascending, `frequencies` of them; uint32. None: not kept.
    """

    documents: Documents
    terms: pa.LargeBinaryArray
    bounds: NDArray[np.int64]
    document_ids: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    positions: NDArray[np.uint32] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that it holds in memory."""
        documents = self.documents
        arrays: list[NDArray[Any]] = [documents.row_ids, documents.num_tokens, *documents.elements]
        arrays += [self.bounds, self.document_ids, self.frequencies]
        arrays += [] if self.positions is None else [self.positions]
        return sum(array.nbytes for array in arrays) + int(self.terms.nbytes)
