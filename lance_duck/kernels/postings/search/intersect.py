"""Subroutines that find the documents in an id window that contain all of several terms.

Documents are intersected before any frequencies are read. Frequencies are read for documents that contain all terms.
They are also read before the third and each later term, to drop documents that cannot reach the threshold.
`kernels.postings.search.best` describes `postings`, `scoring`, `windows` and `counts`.

    work       (2, terms, documents in a full block); (2, terms), all -1: see `read_documents`; all terms, needed terms
               first, rarest first; uint32 (ids of a window,), initially 0: marks; one number, 0: the maximum mark;
               (2 + terms, ids of a window + 1), candidate rows: document, index of the previous candidate row, index
               in each term's postings, -1 if the term does not occur
    limits     (terms, windows), see `windows`, or (0, 0) if unknown; the window; the score to reach
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lance_duck.kernels import status
from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.postings.scores import SLACK, norm_of, score_of
from lance_duck.kernels.postings.search.reading import (
    block_of_posting,
    count_of,
    first_block,
    frequency_of,
    lower_place,
    next_block,
    read_documents,
)

ROWS_BEFORE: Final = 2
"""Number of rows of the scratch array before the rows of the terms: candidate ids, and their indices."""
LOOKED_UP: Final = 8
"""If a term has more postings per candidate than this, candidates are looked up one by one. A lookup in a block takes
about ten times as long as reading one of its documents. With values from 2 to 16, queries for three required words take
equally long. With 32, they take a tenth less (`benchmarks/kernel_costs.py`).
"""
_GREATEST: Final = 0xFFFFFFFF


@subroutine
def intersect_promising(
    postings: Any, scoring: Any, windows: Any, number: Any, threshold: Any, work: Any, counts: Any
) -> Any:
    """Find a window's documents with all terms. Skips the window if its bounds are below the threshold.

    Args:
        postings: Postings of the terms.
        scoring: Weights and norms.
        windows: Score bounds of each window, and the order of windows.
        number: Index of the window in that order.
        threshold: The score to reach.
        work: Output: the documents.
        counts: Increased by the number of decoded blocks.

    Returns:
        (number of documents, status).
    """
    bounds, totals, order, size = windows
    window = order[number]
    if totals[window] < 0 or totals[window] < threshold:
        return np.int64(0), np.int64(status.OK)
    span, limits = (window * size, size, len(totals)), (bounds, window, threshold)
    return intersect_window(postings, scoring, span, len(scoring[4]), limits, work, counts)


@subroutine
def intersect_window(
    postings: Any, scoring: Any, window: Any, num_needed: Any, limits: Any, work: Any, counts: Any
) -> Any:
    """Find a window's documents that contain the needed terms and may reach a score. Writes them to `work`.

    Args:
        postings: Postings of the terms.
        scoring: Weights and norms.
        window: First id of the window, number of ids, and number of windows.
        num_needed: Number of leading terms in `work` that a document must have.
        limits: Score bounds of the terms, index of the window, and the score.
        work: Output: the documents.
        counts: Increased by the number of decoded blocks.

    Returns:
        (number of documents, status).
    """
    sequence = work[2]
    start, size, num_windows = window
    lengths = postings[3]
    if num_needed > 1 and lengths[sequence[0]] * LOOKED_UP >= lengths[sequence[1]]:
        stage = np.int64(2)
        num_candidates, code = _meet(postings, scoring[2], start, size, work, counts)
    else:
        stage = np.int64(1)
        num_candidates, code = _begin(postings, scoring[2], start, size, work, counts)
    while code == status.OK and num_candidates > 0 and stage < num_needed:
        term = sequence[stage]
        if stage > 1:
            num_candidates, code = leave_out(postings, scoring, stage, num_candidates, limits, work, counts)
            if code != status.OK:
                break
        if num_candidates * LOOKED_UP * num_windows < lengths[term]:
            num_matches, code = _look_up(postings, term, num_candidates, work, counts)
        else:
            num_matches, code = _mark(postings, term, start, size, num_candidates, work, counts)
        _keep(work, stage, num_matches)
        num_candidates = num_matches
        stage += 1
    return num_candidates, code


@subroutine
def leave_out(postings: Any, scoring: Any, stage: Any, num_candidates: Any, limits: Any, work: Any, counts: Any) -> Any:
    """Drop candidates that cannot reach the score, given the first terms' scores and the other terms' bounds.

    Args:
        postings: Postings of the terms.
        scoring: Weights and norms.
        stage: Number of terms whose posting indices are known.
        num_candidates: Number of candidates.
        limits: Score bounds of the terms, index of the window, and the score.
        work: The candidates. The remaining candidates are moved to the front.
        counts: Increased by the number of decoded blocks.

    Returns:
        (number of remaining candidates, status).
    """
    room, state, sequence, _, _, rows = work
    weights, norms = scoring[0], scoring[1]
    bounds, window, threshold = limits
    if len(bounds) == 0 or threshold <= 0:
        return num_candidates, np.int64(status.OK)
    rest = 0.0
    for number in range(stage, len(sequence)):
        rest += bounds[sequence[number], window]
    num_left = np.int64(0)
    for i in range(num_candidates):
        norm, score = norm_of(norms, rows[0, i]), 0.0
        for number in range(stage):
            term = sequence[number]
            posting = rows[ROWS_BEFORE + term, i]
            if posting < 0:
                continue
            block, place = block_of_posting(postings, term, posting)
            frequency = frequency_of(postings, term, block, place, room, state, counts)
            if frequency == 0:
                return num_left, np.int64(status.BAD_VALUE | (term << 8))
            score += np.float64(score_of(weights[term], frequency, norm))
        rows[1, num_left] = i
        num_left += np.int64(score * SLACK + rest >= threshold)
    _keep(work, stage, num_left)
    return num_left, np.int64(status.OK)


@subroutine
def find_places(postings: Any, term: Any, num_candidates: Any, work: Any, counts: Any) -> Any:
    """Look up each candidate in the postings of an optional term, and write its posting index.

    Returns:
        A status.
    """
    num_matches, code = _look_up(postings, term, num_candidates, work, counts)
    rows = work[5]
    sources, places = rows[1], rows[ROWS_BEFORE + term]
    match = num_matches - 1
    for i in range(num_candidates - 1, -1, -1):
        if match >= 0 and sources[match] == i:
            places[i] = places[match]
            match -= 1
        else:
            places[i] = -1
    return code


@subroutine
def score_row(postings: Any, scoring: Any, slots: Any, work: Any, row: Any, counts: Any) -> Any:
    """Return (score of a candidate, status)."""
    weights, norms = scoring[0], scoring[1]
    room, state, _, _, _, rows = work
    norm, score, variants = norm_of(norms, rows[0, row]), np.float32(0), np.float32(0)
    for term in range(len(weights)):
        posting = rows[ROWS_BEFORE + term, row]
        if posting >= 0:
            block, place = block_of_posting(postings, term, posting)
            frequency = frequency_of(postings, term, block, place, room, state, counts)
            if frequency == 0:
                return score, status.BAD_VALUE | (term << 8)
            variants = np.float32(variants + score_of(weights[term], frequency, norm))
        if term + 1 == len(slots) or slots[term + 1] != slots[term]:
            score = np.float32(score + variants)
            variants = np.float32(0)
    return score, status.OK


@subroutine
def fresh_marks(marks: Any, greatest: Any) -> Any:
    """Return a base for new marks: at or above all marks, with room for one new mark per id of a window."""
    if greatest[0] > _GREATEST - len(marks):
        for i in range(len(marks)):
            marks[i] = np.uint32(0)
        greatest[0] = 0
    return greatest[0]


@subroutine
def end_in(ids: Any, low: Any, count: Any, start: Any, size: Any) -> Any:
    """Return the end of a block's documents in a window, at least `low`. The documents begin at `low`."""
    if np.int64(ids[low]) < start or np.int64(ids[low]) >= start + size:
        return low
    return count if np.int64(ids[count - 1]) < start + size else lower_place(ids, low, count, start + size)


@subroutine
def _keep(work: Any, stage: Any, num_matches: Any) -> None:
    """Compact the remaining candidate rows, with their posting indices of the first `stage` terms."""
    sequence, rows = work[2], work[5]
    for i in range(num_matches):
        rows[0, i] = rows[0, rows[1, i]]
    for before in range(stage):
        row = ROWS_BEFORE + sequence[before]
        for i in range(num_matches):
            rows[row, i] = rows[row, rows[1, i]]


@subroutine
def _begin(postings: Any, mask: Any, start: Any, size: Any, work: Any, counts: Any) -> Any:
    """Write the window's documents that contain the first term as candidates. See `intersect_window`."""
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, sequence, _, _, rows = work
    term = sequence[0]
    ids, candidates, places = room[0, term], rows[0], rows[ROWS_BEFORE + term]
    num_candidates = np.int64(0)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = read_documents(postings, term, block, room, state, counts)
        if code != status.OK:
            return num_candidates, np.int64(code | (term << 8))
        count = count_of(lists, lengths, block_size, term, block)
        first = (block - lists[term]) * block_size
        low = lower_place(ids, np.int64(0), count, start)
        for i in range(low, end_in(ids, low, count, start, size)):
            document = np.int64(ids[i])
            candidates[num_candidates] = document
            places[num_candidates] = first + i
            num_candidates += np.int64(len(mask) == 0 or mask[document])
        block += 1
    return num_candidates, np.int64(status.OK)


@subroutine
def _meet(postings: Any, mask: Any, start: Any, size: Any, work: Any, counts: Any) -> Any:
    """Write the window's documents that contain the first two terms as candidates. See `intersect_window`.

    The first term's documents are marked with their posting indices, then the second term's documents are tested.
    """
    _, _, sequence, marks, greatest, rows = work
    base = fresh_marks(marks, greatest)
    begin, num_marks, code = _mark_postings(postings, start, size, base, work, counts)
    greatest[0] = base + num_marks
    if code != status.OK or num_marks == 0:
        return np.int64(0), code
    candidates, found = rows[0], rows[1]
    num_matches, code = _find_marks(postings, sequence[1], start, size, base, candidates, work, counts)
    firsts, seconds = rows[ROWS_BEFORE + sequence[0]], rows[ROWS_BEFORE + sequence[1]]
    num_candidates = np.int64(0)
    for i in range(num_matches):
        document = candidates[i]
        candidates[num_candidates] = document
        firsts[num_candidates] = begin + found[i] - base - 1
        seconds[num_candidates] = seconds[i]
        num_candidates += np.int64(len(mask) == 0 or mask[document])
    return num_candidates, code


@subroutine
def _mark_postings(postings: Any, start: Any, size: Any, base: Any, work: Any, counts: Any) -> Any:
    """Mark a window's documents that contain the first term with the numbers after `base`, in order.

    Returns:
        (index of the first document in the postings, number of documents, status).
    """
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, sequence, marks, _, _ = work
    term = sequence[0]
    ids, begin, num_marks = room[0, term], np.int64(0), np.int64(0)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = read_documents(postings, term, block, room, state, counts)
        if code != status.OK:
            return begin, num_marks, np.int64(code | (term << 8))
        count = count_of(lists, lengths, block_size, term, block)
        low = lower_place(ids, np.int64(0), count, start)
        end = end_in(ids, low, count, start, size)
        if num_marks == 0:
            begin = (block - lists[term]) * block_size + low
        mark = np.uint32(base + num_marks + 1 - low)
        for i in range(np.uint64(low), np.uint64(end)):
            marks[np.uint64(ids[i]) - np.uint64(start)] = np.uint32(mark + np.uint32(i))
        num_marks += end - low
        block += 1
    return begin, num_marks, np.int64(status.OK)


@subroutine
def _find_marks(
    postings: Any, term: Any, start: Any, size: Any, base: Any, documents: Any, work: Any, counts: Any
) -> Any:
    """Find a term's documents in a window with a mark above `base`, and write them to `documents`.

    The marks of these documents are written to the second candidate row of `work`. If only the marks are needed,
    `documents` may be that row. The posting indices are written to the row of the term.

    Returns:
        (number of documents, status).
    """
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, _, marks, _, rows = work
    ids, found, places = room[0, term], rows[1], rows[ROWS_BEFORE + term]
    num_matches = np.int64(0)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = read_documents(postings, term, block, room, state, counts)
        if code != status.OK:
            return num_matches, np.int64(code | (term << 8))
        count = count_of(lists, lengths, block_size, term, block)
        first = (block - lists[term]) * block_size
        low = lower_place(ids, np.int64(0), count, start)
        begin = num_matches
        num_matches = _find_marked(ids, low, end_in(ids, low, count, start, size), start, marks, base, found, begin)
        for match in range(begin, num_matches):
            i = found[match]
            documents[match] = np.int64(ids[i])
            found[match] = np.int64(marks[np.int64(ids[i]) - start])
            places[match] = first + i
        block += 1
    return num_matches, np.int64(status.OK)


@subroutine
def _find_marked(ids: Any, low: Any, high: Any, start: Any, marks: Any, base: Any, found: Any, num_found: Any) -> Any:
    """Write the indices of a block's documents with a mark above `base`. Returns `num_found` plus their number."""
    first, least = np.uint64(start), np.uint32(base)
    for i in range(np.uint64(low), np.uint64(high)):
        found[num_found] = np.int64(i)
        num_found += np.int64(marks[np.uint64(ids[i]) - first] > least)
    return num_found


@subroutine
def _mark(postings: Any, term: Any, start: Any, size: Any, num_candidates: Any, work: Any, counts: Any) -> Any:
    """Find the candidates that contain a term by reading all documents of the term in the window. See `_look_up`."""
    _, _, _, marks, greatest, rows = work
    candidates, sources = rows[0], rows[1]
    base = fresh_marks(marks, greatest)
    for i in range(num_candidates):
        marks[candidates[i] - start] = np.uint32(base + i + 1)
    greatest[0] = base + num_candidates
    num_matches, code = _find_marks(postings, term, start, size, base, sources, work, counts)
    for match in range(num_matches):
        sources[match] -= base + 1
    return num_matches, code


@subroutine
def _look_up(postings: Any, term: Any, num_candidates: Any, work: Any, counts: Any) -> Any:
    """Find the candidates that contain a term, one by one, and write them to `work`.

    Returns:
        (number of these candidates, status).
    """
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, state, rows = work[0], work[1], work[5]
    ids, candidates, sources, places = room[0, term], rows[0], rows[1], rows[ROWS_BEFORE + term]
    block, stop = lists[term], lists[term + 1]
    place = count = num_matches = np.int64(0)
    for i in range(num_candidates):
        document = candidates[i]
        if count == 0 or last[block] < document:
            block = first_block(last, block, stop, document) if count == 0 else next_block(last, block, stop, document)
            if block == stop:
                break
            code = read_documents(postings, term, block, room, state, counts)
            if code != status.OK:
                return num_matches, np.int64(code | (term << 8))
            place, count = np.int64(0), count_of(lists, lengths, block_size, term, block)
        place = lower_place(ids, place, count, document)
        sources[num_matches] = i
        places[num_matches] = (block - lists[term]) * block_size + place
        num_matches += np.int64(np.int64(ids[place]) == document)
    return num_matches, np.int64(status.OK)
