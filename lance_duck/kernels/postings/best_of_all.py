"""A kernel that finds the documents with the greatest scores among those that have all of several terms.

Documents are intersected first, window by window, and frequencies are read of those alone that have all terms.
`kernels.postings.best` says what its arguments are, and these are more:

    work       (2, terms, documents of a block); (2, terms), all -1: see `read_documents`; the terms, the rarest first;
               ids of a window, all 0, uint16; one more than these, in each row: the document, its place among those
               before, and its place among the postings of each term
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.best import push
from lance_duck.kernels.postings.reading import (
    block_of_posting,
    count_of,
    first_block,
    frequency_of,
    lower_place,
    read_documents,
)
from lance_duck.kernels.postings.scores import score_of

Int64s = NDArray[np.int64]

ROWS_BEFORE: Final = 2
"""Rows of the last part of `work` before those of terms."""
LOOKED_UP: Final = 8
"""Documents are looked up one by one where a term has more than so many times as many: a search in a block takes some
ten times as long as looking at one of its documents. Other values were not measured."""


@kernel
def find_best_of_all(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that have all of several terms.

    Args:
        postings: See `kernels.postings.best`.
        scoring: See there.
        windows: See there.
        least: Documents below this score are not wanted.
        best: See there.
        work: See above.
        counts: See `kernels.postings.best`.

    Returns:
        A status; its place is a term.
    """
    _, totals, order, size = windows
    mask, keys = scoring[2], scoring[3]
    scores, documents = best
    kept = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        threshold = max(least, np.float64(scores[0])) if kept == len(scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            continue
        found, code = intersect_window(postings, mask, window * size, size, work, counts)
        if code != status.OK:
            return int(code)
        for i in range(found):
            score, code = score_row(postings, scoring, work, i, counts)
            if code != status.OK:
                return int(code)
            if score >= threshold:
                kept = push(scores, documents, keys, kept, score, work[4][0, i])
    counts[0] = kept
    return status.OK


@subroutine
def score_row(postings: Any, scoring: Any, work: Any, row: Any, counts: Any) -> Any:
    """Score a document that has all terms; returns (its score, a status)."""
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
def intersect_window(postings: Any, mask: Any, start: Any, size: Any, work: Any, counts: Any) -> Any:
    """Find the documents of a window that have all terms; they come into the first rows of the last part of `work`.

    Returns:
        (how many there are, a status).
    """
    sequence, rows = work[2], work[4]
    found, code = _begin(postings, mask, sequence[0], start, size, work, counts)
    if code != status.OK:
        return found, code | (sequence[0] << 8)
    for stage in range(1, len(sequence)):
        if found == 0:
            break
        term = sequence[stage]
        if found * LOOKED_UP * ((postings[6][-1] + size) // size) < postings[3][term]:
            kept, code = _look_up(postings, term, found, work, counts)
        else:
            kept, code = _mark(postings, term, start, size, found, work, counts)
        if code != status.OK:
            return found, code | (term << 8)
        for i in range(kept):
            rows[0, i] = rows[0, rows[1, i]]
        for before in range(stage):
            row = ROWS_BEFORE + sequence[before]
            for i in range(kept):
                rows[row, i] = rows[row, rows[1, i]]
        found = kept
    return found, status.OK


@subroutine
def _begin(postings: Any, mask: Any, term: Any, start: Any, size: Any, work: Any, counts: Any) -> Any:
    """Begin with the documents of a window that have a term; see `intersect_window`."""
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, rows = work[0], work[1], work[4]
    ids, candidates, places = room[0, term], rows[0], rows[ROWS_BEFORE + term]
    found = np.int64(0)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = read_documents(postings, term, block, room, state, counts)
        if code != status.OK:
            return found, code
        count = count_of(lists, lengths, block_size, term, block)
        first = (block - lists[term]) * block_size
        low = lower_place(ids, np.int64(0), count, start)
        for i in range(low, _end_in(ids, low, count, start, size)):
            document = np.int64(ids[i])
            candidates[found] = document
            places[found] = first + i
            found += np.int64(len(mask) == 0 or mask[document])
        block += 1
    return found, status.OK


@subroutine
def _mark(postings: Any, term: Any, start: Any, size: Any, found: Any, work: Any, counts: Any) -> Any:
    """Find documents among those that a term has: all of these in the window are looked at; see `_look_up`."""
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, marks, rows = work[0], work[1], work[3], work[4]
    ids, candidates, chosen, places = room[0, term], rows[0], rows[1], rows[ROWS_BEFORE + term]
    for i in range(found):
        marks[candidates[i] - start] = np.uint16(i + 1)
    kept, code = np.int64(0), np.int64(status.OK)
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
            chosen[kept] = mark - 1
            places[kept] = first + i
            kept += np.int64(mark != 0)
        block += 1
    for i in range(found):
        marks[candidates[i] - start] = np.uint16(0)
    return kept, code


@subroutine
def _look_up(postings: Any, term: Any, found: Any, work: Any, counts: Any) -> Any:
    """Find documents among those that a term has, one by one.

    Returns:
        (how many it has, a status without place); which ones, and where, comes into `work`.
    """
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, rows = work[0], work[1], work[4]
    ids, candidates, chosen, places = room[0, term], rows[0], rows[1], rows[ROWS_BEFORE + term]
    block, stop = lists[term], lists[term + 1]
    place = count = kept = np.int64(0)
    for i in range(found):
        document = candidates[i]
        if count == 0 or last[block] < document:
            block = first_block(last, block, stop, document)
            if block == stop:
                break
            code = read_documents(postings, term, block, room, state, counts)
            if code != status.OK:
                return kept, np.int64(code)
            place, count = np.int64(0), count_of(lists, lengths, block_size, term, block)
        place = lower_place(ids, place, count, document)
        chosen[kept] = i
        places[kept] = (block - lists[term]) * block_size + place
        kept += np.int64(np.int64(ids[place]) == document)
    return kept, np.int64(status.OK)


@subroutine
def _end_in(ids: Any, low: Any, count: Any, start: Any, size: Any) -> Any:
    """Return the end of the documents of a block that lie in a window; `low` is where they begin, or nothing does."""
    if np.int64(ids[low]) < start or np.int64(ids[low]) >= start + size:
        return low
    return count if np.int64(ids[count - 1]) < start + size else lower_place(ids, low, count, start + size)
