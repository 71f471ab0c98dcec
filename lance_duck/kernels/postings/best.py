"""Kernels that find the documents with the greatest scores; bounds of blocks say what need not be looked at.

Arithmetic is that of `kernels.postings.scores`. Arguments that the kernels share come in tuples:

    postings   of several terms: bytes of all blocks; where each block begins, and where the last one ends; the first
               block of each term, and behind the last one of the last; documents of each term; documents of a block;
               whether numbers of the last block of a term are varints; the last document of each block, as its impacts
               say
    scoring    the idf of each term, more than 0; the norm of each document; whether each document may match, empty:
               all may; the key of each document
    windows    (terms, windows): what a term adds at most to the score of a document of a window of so many ids, 0: it
               has none there; what a document of each window reaches at most, less than 0: none can match; windows, the
               most promising first; ids of a window
    best       written: scores of the best, in no order, as many as are wanted; their ids
    counts     two numbers, 0 before; written: documents that were found, blocks that were decoded
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.reading import count_of, decode_known, first_block, lower_place, read_block
from lance_duck.kernels.postings.scores import score_of

Int64s = NDArray[np.int64]
Float32s = NDArray[np.float32]

DENSE_SHARE: Final = 8
"""Adding up a posting takes 2 ns, keeping it by term 12, looking one up 5 (`benchmarks/postings.py`)."""
CHUNK: Final = 64
"""Sums that are compared with the threshold together."""
_ROUNDED: Final = 1 - 1e-7
"""Makes what is rounded to float32 no greater than before."""
_LEAST: Final = np.float32(1e-37)


@kernel
def find_best_of_term(
    postings: Any,
    scoring: Any,
    bounds: NDArray[np.float64],
    order: Int64s,
    least: float,
    best: Any,
    room: NDArray[np.uint32],
    counts: Int64s,
) -> int:
    """Find the best documents of one term.

    Args:
        postings: See above; of one term.
        scoring: See above.
        bounds: What the term adds at most to the score of a document of each block; a little too large.
        order: Blocks in the order of their bounds, the greatest first.
        least: Documents below this score are not wanted.
        best: See above.
        room: (2, documents of a block), for work.
        counts: See above.

    Returns:
        A status; its place is 0.
    """
    data, offsets, _, lengths, block_size, is_varint, last = postings
    weights, norms, mask, keys = scoring
    scores, documents = best
    ids, frequencies = room[0], room[1]
    kept = np.int64(0)
    for number in range(len(order)):
        block = order[number]
        threshold = max(least, np.float64(scores[0])) if kept == len(scores) else least
        if bounds[block] < threshold:
            break
        count = min(block_size, lengths[0] - block * block_size)
        span = offsets[block], offsets[block + 1], last[block]
        code = decode_known(data, span, count, block_size, is_varint, ids, frequencies)
        if code != status.OK:
            return int(code)
        counts[1] += 1
        for i in range(count):
            document = np.int64(ids[i])
            if len(mask) and not mask[document]:
                continue
            score = score_of(weights[0], frequencies[i], norms[document])
            if score >= threshold:
                kept = push(scores, documents, keys, kept, score, document)
    counts[0] = kept
    return status.OK


@kernel
def find_best_of_any(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that have one of several terms.

    Args:
        postings: See above.
        scoring: See above.
        windows: See above.
        least: Documents below this score are not wanted.
        best: See above.
        work: (2, terms, documents of a block); a number for each term, -1; (terms, ids of a window), 0 everywhere; ids
            of a window, 0 everywhere; ids of a window; terms; the word that each term stands for, ascending.
        counts: See above.

    Returns:
        A status; its place is a term.
    """
    lists, lengths, last = postings[2], postings[3], postings[6]
    window_bounds, totals, order, size = windows
    scores = best[0]
    room, decoded, parts, marks, touched, sequence, slots = work
    has_variants = False
    for i in range(1, len(slots)):
        has_variants |= slots[i] == slots[i - 1]
    kept = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        start = window * size
        threshold = max(least, np.float64(scores[0])) if kept == len(scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            continue
        optional = _order_terms(window_bounds, window, threshold, sequence)
        is_dense = not has_variants and _is_dense(lengths, sequence, optional)
        found = np.int64(0)
        for stage in range(len(sequence)):
            # Sums are in the order of the terms; else those come first that can reach the threshold.
            term = np.int64(stage) if is_dense else sequence[len(sequence) - 1 - stage]
            if window_bounds[term, window] == 0:
                continue
            block = first_block(last, lists[term], lists[term + 1], start)
            while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
                code = read_block(postings, term, block, room, decoded, counts)
                if code != status.OK:
                    return int(code | (term << 8))
                found = _take(
                    postings, scoring, term, block, start, stage < len(sequence) - optional, is_dense, work, found
                )
                block += 1
            if not is_dense and found == 0 and stage + 1 >= len(sequence) - optional:
                break
        if is_dense:
            kept = _settle_sums(parts[0], start, threshold, best, scoring[3], kept)
        else:
            kept = _settle(parts, slots, marks, touched, found, start, threshold, best, scoring[3], kept)
    counts[0] = kept
    return status.OK


@subroutine
def _take(
    postings: Any, scoring: Any, term: Any, block: Any, start: Any, is_new: Any, is_dense: Any, work: Any, found: Any
) -> Any:
    """Keep what a term adds to the documents of a block that lie in a window; returns how many there are now.

    It is added to sums, or kept by term: of new documents, or of those alone that are known.
    """
    weights, norms, mask, _ = scoring
    room, _, parts, marks, touched, _, _ = work
    weight = weights[term]
    ids, frequencies = room[0, term], room[1, term]
    count = count_of(postings[2], postings[3], postings[4], term, block)
    low = lower_place(ids, np.int64(0), count, start)
    high = count if np.int64(ids[count - 1]) < start + len(marks) else lower_place(ids, low, count, start + len(marks))
    if is_dense:
        _add(ids, frequencies, low, high, weight, norms, mask, start, parts[0])
        return found
    scores = parts[term]
    for i in range(low, high):
        document = np.int64(ids[i])
        place = document - start
        if marks[place] == 0:
            if not is_new or (len(mask) and not mask[document]):
                continue
            marks[place] = 1
            touched[found] = place
            found += 1
        scores[place] = score_of(weight, frequencies[i], norms[document])
    return found


@subroutine
def _add(
    ids: Any, frequencies: Any, low: Any, high: Any, weight: Any, norms: Any, mask: Any, start: Any, sums: Any
) -> None:
    """Add what a term adds to the scores of documents of a window."""
    first = np.uint64(start)
    if len(mask):
        for i in range(low, high):
            document = np.uint64(ids[i])
            if mask[document]:
                place = document - first
                sums[place] = np.float32(sums[place] + score_of(weight, frequencies[i], norms[document]))
        return
    for i in range(low, high):
        document = np.uint64(ids[i])
        place = document - first
        sums[place] = np.float32(sums[place] + score_of(weight, frequencies[i], norms[document]))


@subroutine
def _settle_sums(sums: Any, start: Any, least: Any, best: Any, keys: Any, kept: Any) -> Any:
    """Keep the best documents of a window by their sums, and forget these; returns how many of the best there are now.

    A sum is more than 0 where there is a document.
    """
    scores, documents = best
    rounded = max(np.float32(least * _ROUNDED), _LEAST)
    begin, count = np.uint64(0), np.uint64(len(sums))  # indexes that may be negative are not looked at many at once
    while begin < count:
        end = min(begin + np.uint64(CHUNK), count)
        hits = np.int32(0)
        for place in range(begin, end):
            hits += np.int32(sums[place] >= rounded)
        if hits:
            for place in range(begin, end):
                if sums[place] >= rounded and sums[place] >= least:
                    kept = push(scores, documents, keys, kept, sums[place], start + np.int64(place))
        for place in range(begin, end):
            sums[place] = np.float32(0)
        begin = end
    return kept


@subroutine
def _settle(
    parts: Any,
    slots: Any,
    marks: Any,
    touched: Any,
    found: Any,
    start: Any,
    least: Any,
    best: Any,
    keys: Any,
    kept: Any,
) -> Any:
    """Score the documents of a window and forget them; returns how many of the best there are now."""
    scores, documents = best
    for i in range(found):
        place = touched[i]
        score, variants = np.float32(0), np.float32(0)
        for term in range(len(parts)):
            variants = np.float32(variants + parts[term, place])
            parts[term, place] = 0
            if term + 1 == len(parts) or slots[term + 1] != slots[term]:
                score = np.float32(score + variants)
                variants = np.float32(0)
        marks[place] = 0
        if score >= least:
            kept = push(scores, documents, keys, kept, score, start + place)
    return kept


@subroutine
def _order_terms(bounds: Any, window: Any, threshold: Any, sequence: Any) -> Any:
    """Sort terms by their bounds in a window, the least first; returns how many of them cannot reach the threshold."""
    for i in range(len(sequence)):
        j = i
        while j > 0 and bounds[sequence[j - 1], window] > bounds[i, window]:
            sequence[j] = sequence[j - 1]
            j -= 1
        sequence[j] = i
    total, optional = 0.0, 0
    while optional < len(sequence) - 1:
        total += bounds[sequence[optional], window]
        if total >= threshold:
            break
        optional += 1
    return optional


@subroutine
def _is_dense(lengths: Any, sequence: Any, optional: Any) -> Any:
    """Return whether it is quicker to add up all terms than to look up the optional ones."""
    few, many = np.int64(0), np.int64(0)
    for i in range(len(sequence)):
        if i < optional:
            many += lengths[sequence[i]]
        else:
            few += lengths[sequence[i]]
    return few * DENSE_SHARE > many


@subroutine
def push(scores: Any, documents: Any, keys: Any, kept: Any, score: Any, document: Any) -> Any:
    """Put a document into a heap whose root is the worst of the best; returns how many there are."""
    if kept < len(scores):
        place = kept
        while place > 0:
            above = (place - 1) >> 1
            if _is_worse(scores[above], keys[documents[above]], score, keys[document]):
                break
            scores[place] = scores[above]
            documents[place] = documents[above]
            place = above
        scores[place] = score
        documents[place] = document
        return kept + 1
    if not _is_worse(scores[0], keys[documents[0]], score, keys[document]):
        return kept
    place = np.int64(0)
    while True:
        below = place * 2 + 1
        if below >= kept:
            break
        right = below + 1
        if right < kept and _is_worse(scores[right], keys[documents[right]], scores[below], keys[documents[below]]):
            below = right
        if not _is_worse(scores[below], keys[documents[below]], score, keys[document]):
            break
        scores[place] = scores[below]
        documents[place] = documents[below]
        place = below
    scores[place] = score
    documents[place] = document
    return kept


@subroutine
def _is_worse(score: Any, key: Any, other: Any, other_key: Any) -> Any:
    return score < other or (score == other and key > other_key)
