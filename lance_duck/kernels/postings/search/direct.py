"""Kernels that gather the postings of terms from a whole partition, and search them in the same call.

`kernels.postings.search.best` describes `scoring`, `windows` and `best`, and its kernels the rest of the arguments.

    source     `postings`, `impacts` and `lengths` of `kernels.postings.impacts.gather_terms`; its `norms` and `limits`;
               whether numbers in a term's last block are varints; True
    terms      the terms, by their positions in the source; (terms + 1,) and (terms,), scratch space
    arena      `data` and `offsets` of `out` of `gather_terms`, its `last` and `bounds`, for any number of blocks;
               (blocks,) and (2, blocks), scratch space
    counts     output, five numbers, initially 0: `counts` of the search; the required numbers of blocks and of bytes in
               `arena` if it is too small. In that case, no document is returned
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import as_readonly
from lance_duck.kernels.postings.impacts import gather_terms
from lance_duck.kernels.postings.lists import locate_blocks
from lance_duck.kernels.postings.scores import SLACK, bound_windows
from lance_duck.kernels.postings.search.best import find_best_of_all, find_best_of_term
from lance_duck.kernels.postings.search.best_of_any import find_best_of_any
from lance_duck.kernels.postings.search.phrases import find_best_phrases

Int64s = NDArray[np.int64]

BLOCKS: Final = 3
"""Index of the required number of blocks in `counts`. The required number of bytes follows."""


@kernel
def search_term(
    source: Any, terms: Any, scoring: Any, arena: Any, least: float, best: Any, room: Any, counts: Int64s
) -> int:
    """Find the best documents of one term: see `find_best_of_term`.

    Args:
        source: The partition.
        terms: The term.
        scoring: Weights, norms and sort keys of documents.
        arena: Scratch space for postings.
        least: Minimum score.
        best: Output: scores and ids of the best documents.
        room: (2, documents in a full block), scratch space.
        counts: Output.

    Returns:
        A status with the index 0.
    """
    code = _gather(source, terms, scoring, arena, counts)
    if code != status.OK or counts[BLOCKS]:
        return int(code)
    postings = _postings(source, terms, arena)
    return find_best_of_term(postings, scoring, arena[3], least, best, room, arena[4], counts)


@kernel
def search_all(
    source: Any, terms: Any, scoring: Any, arena: Any, windows: Any, num_first: int, least: float, best: Any, work: Any,
    counts: Int64s,
) -> int:  # fmt: skip
    """Find the best documents that contain all of several terms: see `find_best_of_all`.

    Args:
        source: The partition.
        terms: The terms.
        scoring: Weights, norms and sort keys of documents.
        arena: Scratch space for postings.
        windows: Scratch space for the windows, or windows without bounds.
        num_first: See `bound_windows`.
        least: Minimum score.
        best: Output: scores and ids of the best documents.
        work: Scratch space for a window's candidates.
        counts: Output.

    Returns:
        A status with the index of a term.
    """
    code = _gather(source, terms, scoring, arena, counts)
    if code != status.OK or counts[BLOCKS]:
        return int(code)
    _bound(terms, arena, windows, True, num_first)
    return find_best_of_all(_postings(source, terms, arena), scoring, windows, least, best, work, counts)


@kernel
def search_any(
    source: Any, terms: Any, scoring: Any, arena: Any, windows: Any, num_first: int, least: float, best: Any, work: Any,
    counts: Int64s,
) -> int:  # fmt: skip
    """Find the best documents that contain any of several terms: see `find_best_of_any` and `search_all`."""
    code = _gather(source, terms, scoring, arena, counts)
    if code != status.OK or counts[BLOCKS]:
        return int(code)
    _bound(terms, arena, windows, False, num_first)
    return find_best_of_any(_postings(source, terms, arena), scoring, windows, least, best, work, counts)


@kernel
def search_phrase(
    source: Any, positions: Any, terms: Any, scoring: Any, arena: Any, windows: Any, num_first: int, order: Any,
    best: Any, work: Any, pool: Any, reading: Any, counts: Int64s,
) -> int:  # fmt: skip
    """Find the best documents that contain a phrase: see `find_best_phrases` and `search_all`.

    Args:
        source: The partition.
        positions: Bytes of all positions; `terms`, `starts` and `lists` of `locate_blocks`; whether numbers are packed
            in groups.
        terms: The words, in phrase order.
        scoring: Weights, norms and sort keys of documents.
        arena: Scratch space for postings.
        windows: Scratch space for the windows, or windows without bounds.
        num_first: See `bound_windows`.
        order: Each word's distance from the previous word; the slop.
        best: Output: scores and ids of the best documents.
        work: Scratch space for a window's candidates.
        pool: Scratch space for documents whose positions are not read yet.
        reading: Scratch space for positions.
        counts: Output.

    Returns:
        A status with the index of a word.
    """
    code = _gather(source, terms, scoring, arena, counts)
    if code != status.OK or counts[BLOCKS]:
        return int(code)
    begins, ends = arena[5][0], arena[5][1]
    data, streams, starts, lists, has_groups = positions
    code = locate_blocks(streams, starts, lists, terms[0], as_readonly(terms[1]), begins, ends)
    if code != status.OK:
        return int(code)
    _bound(terms, arena, windows, True, num_first)
    phrase = data, begins, ends, has_groups, order[0], order[1]
    postings = _postings(source, terms, arena)
    return find_best_phrases(postings, scoring, windows, phrase, best, work, pool, reading, counts)


@subroutine
def _gather(source: Any, terms: Any, scoring: Any, arena: Any, counts: Any) -> Any:
    """Copy the postings of terms to the arena if they fit. Returns a status with the index of a term."""
    postings, impacts, lengths, norms, limits, _, _ = source
    data, offsets, lists = postings
    rows, out_lists, out_lengths = terms
    blocks, size = np.int64(0), np.int64(0)
    for i in range(len(rows)):
        row = rows[i]
        if row < 0 or row + 1 >= len(lists):
            return np.int64(status.BAD_OFFSETS | (i << 8))
        first, end = lists[row], lists[row + 1]
        if first < 0 or end < first or end >= len(offsets):
            return np.int64(status.BAD_OFFSETS | (i << 8))
        if offsets[first] < 0 or offsets[end] < offsets[first] or offsets[end] > len(data):
            return np.int64(status.BAD_OFFSETS | (i << 8))
        blocks += end - first
        size += offsets[end] - offsets[first]
    if blocks > len(arena[2]) or size > len(arena[0]):
        counts[BLOCKS], counts[BLOCKS + 1] = blocks, size
        return np.int64(status.OK)
    out = arena[0], arena[1], out_lists, out_lengths
    return np.int64(gather_terms(postings, impacts, lengths, rows, scoring[0], norms, limits, out, arena[2], arena[3]))


@subroutine
def _postings(source: Any, terms: Any, arena: Any) -> Any:
    """Return the argument `postings` of the searches."""
    _, _, _, _, limits, is_varint, is_exact = source
    data, offsets, lists, lengths = arena[0], arena[1], terms[1], terms[2]
    whole = as_readonly(data), as_readonly(offsets), as_readonly(lists), as_readonly(lengths)
    return (*whole, limits[0], is_varint, arena[2], is_exact)


@subroutine
def _bound(terms: Any, arena: Any, windows: Any, every: Any, num_first: Any) -> None:
    """Bound the score in each window, unless the windows do not have bounds."""
    window_bounds, totals, order, size = windows
    if len(window_bounds):
        lists = as_readonly(terms[1])
        bound_windows(lists, arena[2], arena[3], size, every, SLACK, num_first, window_bounds, totals, order)
