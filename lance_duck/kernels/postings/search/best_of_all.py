"""A kernel that finds the documents with the greatest scores among those that have all of several terms.

Documents are intersected first, window by window, and frequencies are read only of those that have all terms.
`kernels.postings.search.best` describes its arguments, but for this one:

    work       (2, terms, documents of a block); (2, terms), all -1: see `read_documents`; the terms, the rarest first;
               uint16 (ids of a window,), all 0; (2 + terms, ids of a window + 1), rows of the candidates: the document,
               its place among the candidates before, and its place among the postings of each term
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.scores import score_of
from lance_duck.kernels.postings.search.best import push
from lance_duck.kernels.postings.search.reading import (
    block_of_posting,
    count_of,
    first_block,
    frequency_of,
    lower_place,
    read_documents,
)

Int64s = NDArray[np.int64]

ROWS_BEFORE: Final = 2
"""Number of rows of the last part of `work` before those of terms."""
LOOKED_UP: Final = 8
"""Postings of a term for each candidate, above which candidates are looked up one by one: a search in a block takes
some ten times as long as reading one of its documents. 2 takes the same time (`benchmarks/postings.py`)."""


@kernel
def find_best_of_all(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that have all of several terms.

    Args:
        postings: See `kernels.postings.search.best`.
        scoring: See `kernels.postings.search.best`.
        windows: See `kernels.postings.search.best`, without the bounds of terms.
        least: Lowest score of a document that is returned.
        best: See `kernels.postings.search.best`.
        work: See above.
        counts: See `kernels.postings.search.best`.

    Returns:
        A status; its place is a term.
    """
    totals, order, size = windows
    mask, keys = scoring[2], scoring[3]
    scores, documents = best
    num_best = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        threshold = max(least, np.float64(scores[0])) if num_best == len(scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            continue
        num_candidates, code = intersect_window(postings, mask, window * size, (size, len(totals)), work, counts)
        if code != status.OK:
            return int(code)
        for i in range(num_candidates):
            score, code = score_row(postings, scoring, work, i, counts)
            if code != status.OK:
                return int(code)
            if score >= threshold:
                num_best = push(scores, documents, keys, num_best, score, work[4][0, i])
    counts[0] = num_best
    return status.OK


@subroutine
def score_row(postings: Any, scoring: Any, work: Any, row: Any, counts: Any) -> Any:
    """Return (the score of a document that has all terms, a status)."""
    weights, norms = scoring[0], scoring[1]
    room, state, rows = work[0], work[1], work[4]
    norm, score = norms[rows[0, row]], np.float32(0)
    for term in range(len(weights)):
        block, place = block_of_posting(postings, term, rows[ROWS_BEFORE + term, row])
        frequency = frequency_of(postings, term, block, place, room, state, counts)
        if frequency == 0:
            return score, status.BAD_VALUE | (term << 8)
        score = np.float32(score + score_of(weights[term], frequency, norm))
    return score, status.OK


@subroutine
def intersect_window(postings: Any, mask: Any, start: Any, windows: Any, work: Any, counts: Any) -> Any:
    """Find the documents of a window that have all terms, and write them to the last part of `work`.

    Args:
        postings: See `kernels.postings.search.best`.
        mask: See there.
        start: First id of the window.
        windows: Ids of a window, and number of windows.
        work: See above.
        counts: See `kernels.postings.search.best`.

    Returns:
        (number of documents, a status).
    """
    sequence, rows = work[2], work[4]
    size, num_windows = windows
    num_candidates, code = _begin(postings, mask, sequence[0], start, size, work, counts)
    if code != status.OK:
        return num_candidates, code | (sequence[0] << 8)
    for stage in range(1, len(sequence)):
        if num_candidates == 0:
            break
        term = sequence[stage]
        if num_candidates * LOOKED_UP * num_windows < postings[3][term]:
            num_matches, code = _look_up(postings, term, num_candidates, work, counts)
        else:
            num_matches, code = _mark(postings, term, start, size, num_candidates, work, counts)
        if code != status.OK:
            return num_candidates, code | (term << 8)
        for i in range(num_matches):
            rows[0, i] = rows[0, rows[1, i]]
        for before in range(stage):
            row = ROWS_BEFORE + sequence[before]
            for i in range(num_matches):
                rows[row, i] = rows[row, rows[1, i]]
        num_candidates = num_matches
    return num_candidates, status.OK


@subroutine
def _begin(postings: Any, mask: Any, term: Any, start: Any, size: Any, work: Any, counts: Any) -> Any:
    """Write all documents of a window that have a term as candidates; see `intersect_window`."""
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, rows = work[0], work[1], work[4]
    ids, candidates, places = room[0, term], rows[0], rows[ROWS_BEFORE + term]
    num_candidates = np.int64(0)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = read_documents(postings, term, block, room, state, counts)
        if code != status.OK:
            return num_candidates, code
        count = count_of(lists, lengths, block_size, term, block)
        first = (block - lists[term]) * block_size
        low = lower_place(ids, np.int64(0), count, start)
        for i in range(low, _end_in(ids, low, count, start, size)):
            document = np.int64(ids[i])
            candidates[num_candidates] = document
            places[num_candidates] = first + i
            num_candidates += np.int64(len(mask) == 0 or mask[document])
        block += 1
    return num_candidates, status.OK


@subroutine
def _mark(postings: Any, term: Any, start: Any, size: Any, num_candidates: Any, work: Any, counts: Any) -> Any:
    """Find the candidates that a term has by reading all of its documents in the window; see `_look_up`."""
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, marks, rows = work[0], work[1], work[3], work[4]
    ids, candidates, sources, places = room[0, term], rows[0], rows[1], rows[ROWS_BEFORE + term]
    for i in range(num_candidates):
        marks[candidates[i] - start] = np.uint16(i + 1)
    num_matches, code = np.int64(0), np.int64(status.OK)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = np.int64(read_documents(postings, term, block, room, state, counts))
        if code != status.OK:
            break
        count = count_of(lists, lengths, block_size, term, block)
        first = (block - lists[term]) * block_size
        low = lower_place(ids, np.int64(0), count, start)
        for i in range(low, _end_in(ids, low, count, start, size)):
            mark = np.int64(marks[np.uint64(ids[i]) - np.uint64(start)])
            sources[num_matches] = mark - 1
            places[num_matches] = first + i
            num_matches += np.int64(mark != 0)
        block += 1
    for i in range(num_candidates):
        marks[candidates[i] - start] = np.uint16(0)
    return num_matches, code


@subroutine
def _look_up(postings: Any, term: Any, num_candidates: Any, work: Any, counts: Any) -> Any:
    """Find the candidates that a term has, one by one.

    Returns:
        (number of these, a status without place); which candidates they are, and where, is written to `work`.
    """
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, rows = work[0], work[1], work[4]
    ids, candidates, sources, places = room[0, term], rows[0], rows[1], rows[ROWS_BEFORE + term]
    block, stop = lists[term], lists[term + 1]
    place = count = num_matches = np.int64(0)
    for i in range(num_candidates):
        document = candidates[i]
        if count == 0 or last[block] < document:
            block = first_block(last, block, stop, document)
            if block == stop:
                break
            code = read_documents(postings, term, block, room, state, counts)
            if code != status.OK:
                return num_matches, np.int64(code)
            place, count = np.int64(0), count_of(lists, lengths, block_size, term, block)
        place = lower_place(ids, place, count, document)
        sources[num_matches] = i
        places[num_matches] = (block - lists[term]) * block_size + place
        num_matches += np.int64(np.int64(ids[place]) == document)
    return num_matches, np.int64(status.OK)


@subroutine
def _end_in(ids: Any, low: Any, count: Any, start: Any, size: Any) -> Any:
    """Return the end of the documents of a block that lie in a window and begin at `low`; `low` if there are none."""
    if np.int64(ids[low]) < start or np.int64(ids[low]) >= start + size:
        return low
    return count if np.int64(ids[count - 1]) < start + size else lower_place(ids, low, count, start + size)
