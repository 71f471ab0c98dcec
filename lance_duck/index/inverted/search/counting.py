"""Counts matching documents without scoring them."""

from __future__ import annotations

import numpy as np

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search.matching import NO_MASK, Mask, WeightedTerms
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.marks import count_marked


def count_documents(partition: InvertedPartition, terms: WeightedTerms, mask: Mask | None = None) -> int:
    """Return the number of documents that `matching_documents` finds.

    Args:
        partition: The partition.
        terms: The terms.
        mask: bool (documents,), whether each document may match. None if all documents may match.

    Raises:
        CorruptError: Postings are corrupt.
    """
    if not terms.can_match:
        return 0
    if mask is None and len(terms.ids) == 1:
        return int(partition.document_frequencies(terms.ids)[0])
    postings = partition.postings(terms.ids, with_impacts=False)
    code, count = count_marked(
        *postings.buffers,
        readonly(terms.slots),
        terms.num_slots,
        NO_MASK if mask is None else readonly(mask),
        terms.every,
        np.zeros(partition.num_documents, np.uint16),
        np.empty(postings.form.size, np.uint32),
        np.empty(postings.form.size, np.uint32),
    )
    check_code(code, "postings", postings.where, "term")
    return int(count)
