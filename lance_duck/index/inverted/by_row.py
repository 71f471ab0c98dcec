"""Conversion of partitions whose documents are list elements: a document becomes a row, as in newer indexes.

Writers before 2026 made a document of each element of a list, under the name of its row and without its place, and of
texts without terms, too. Here each row with a term becomes one document, in the order of the rows' names.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.contents import Documents, PartitionContents


def by_row(contents: PartitionContents, *, keeps_positions: bool) -> PartitionContents:
    """Return a partition whose documents are rows with terms, each once.

    Args:
        contents: Documents in any order, with any lengths, perhaps several for a row, or without terms; the postings of
            a term in any order, too.
        keeps_positions: Whether positions are kept, which mean nothing if a row has several documents.
    """
    names, rows = np.unique(contents.documents.row_ids, return_inverse=True)
    rows = rows.astype(np.int64)[contents.document_ids]
    lengths = np.bincount(rows, contents.frequencies, len(names)).clip(max=0xFFFFFFFF).astype(np.uint32)
    has_terms = lengths > 0
    new = np.cumsum(has_terms) - 1
    keys = np.repeat(np.arange(len(contents.terms)) << 32, np.diff(contents.bounds)) | new[rows]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    unique_keys = keys[firsts]
    frequencies = contents.frequencies[order]
    return PartitionContents(
        Documents(names[has_terms], lengths[has_terms]),
        contents.terms,
        np.searchsorted(unique_keys >> 32, np.arange(len(contents.terms) + 1)).astype(np.int64),
        (unique_keys & 0xFFFFFFFF).astype(np.uint32),
        np.add.reduceat(frequencies, firsts) if len(firsts) else frequencies,
        _moved(contents, order) if keeps_positions else None,
    )


def _moved(contents: PartitionContents, order: NDArray[np.int64]) -> NDArray[np.uint32] | None:
    """Return the positions of postings in a new order."""
    if contents.positions is None:
        return None
    counts = contents.frequencies.astype(np.int64)
    moved = counts[order]
    shifts = (np.cumsum(counts) - counts)[order] - (np.cumsum(moved) - moved)
    places = np.arange(len(contents.positions)) + np.repeat(shifts, moved)
    positions: NDArray[np.uint32] = contents.positions[places]
    return positions
