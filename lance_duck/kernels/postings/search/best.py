"""Kernels that find the documents with the greatest scores; bounds of blocks tell which blocks can be skipped.

Arithmetic is that of `kernels.postings.scores`. Arguments that the kernels share come in tuples:

    postings   of several terms: bytes of all blocks; where each block begins, and where the last one ends; the first
               block of each term, and one past the last block; number of documents of each term; number of documents of
               a block; whether numbers of the last block of a term are varints; the last document of each block, by its
               impacts, or a bound of it, below the first document of the next block of the term; whether it is exact
    scoring    the idf of each term, more than 0; the norm of each document; whether each document may match, empty if
               all may; the key of each document, by which equal scores are ordered
    windows    (terms, windows), the most that a term adds to the score of a document in a window of ids, 0 if it has
               none there; the highest score in each window, less than 0 if no document can match; windows, the most
               promising first; number of ids of a window
    best       written: scores of the best documents, in no order, as many as are asked for; their ids
    counts     two numbers, 0 before; written: number of documents found, number of blocks decoded
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.scores import score_of
from lance_duck.kernels.postings.search.reading import count_of, decode_known, first_block, lower_place, read_block

Int64s = NDArray[np.int64]
Float32s = NDArray[np.float32]

DENSE_SHARE: Final = 8
"""Postings of optional terms for each other posting, up to which all are added up: adding up a posting takes 2 ns,
storing it by term 12, looking one up 5 (`benchmarks/postings.py`)."""
CHUNK: Final = 64
"""Number of sums that are compared with the threshold at once."""
_ROUNDED: Final = 1 - 1e-7
"""Factor that keeps a number from growing when it is rounded to float32."""
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
        bounds: The most that the term adds to the score of a document of each block; a little too large.
        order: Blocks in the order of their bounds, the greatest first.
        least: Lowest score of a document that is returned.
        best: See above.
        room: (2, documents of a block), for work.
        counts: See above.

    Returns:
        A status; its place is 0.
    """
    data, offsets, _, lengths, block_size, is_varint, last, is_exact = postings
    weights, norms, mask, keys = scoring
    scores, documents = best
    ids, frequencies = room[0], room[1]
    num_best = np.int64(0)
    for number in range(len(order)):
        block = order[number]
        threshold = max(least, np.float64(scores[0])) if num_best == len(scores) else least
        if bounds[block] < threshold:
            break
        count = min(block_size, lengths[0] - block * block_size)
        span = offsets[block], offsets[block + 1], last[block], is_exact
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
                num_best = push(scores, documents, keys, num_best, score, document)
    counts[0] = num_best
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
        least: Lowest score of a document that is returned.
        best: See above.
        work: (2, terms, documents of a block); (terms,), all -1; (terms, ids of a window), all 0; (ids of a window,),
            all 0; (ids of a window,); (terms,); the word that each term stands for, ascending.
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
    num_best = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        start = window * size
        threshold = max(least, np.float64(scores[0])) if num_best == len(scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            continue
        optional = _order_terms(window_bounds, window, threshold, sequence)
        is_dense = not has_variants and _is_dense(lengths, sequence, optional)
        num_touched = np.int64(0)
        for stage in range(len(sequence)):
            # Sums are made in the order of the terms; otherwise terms that can reach the threshold come first.
            term = np.int64(stage) if is_dense else sequence[len(sequence) - 1 - stage]
            if window_bounds[term, window] == 0:
                continue
            block = first_block(last, lists[term], lists[term + 1], start)
            while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
                code = read_block(postings, term, block, room, decoded, counts)
                if code != status.OK:
                    return int(code | (term << 8))
                num_touched = _take(
                    postings, scoring, term, block, start, stage < len(sequence) - optional, is_dense, work, num_touched
                )
                block += 1
            if not is_dense and num_touched == 0 and stage + 1 >= len(sequence) - optional:
                break
        if is_dense:
            num_best = _settle_sums(parts[0], start, threshold, best, scoring[3], num_best)
        else:
            num_best = _settle(parts, slots, marks, touched, num_touched, start, threshold, best, scoring[3], num_best)
    counts[0] = num_best
    return status.OK


@subroutine
def _take(
    postings: Any,
    scoring: Any,
    term: Any,
    block: Any,
    start: Any,
    is_new: Any,
    is_dense: Any,
    work: Any,
    num_touched: Any,
) -> Any:
    """Note what a term adds to the documents of a block that lie in a window; return the number of documents so far.

    It is added to sums, or stored by term: for new documents, too, or only for those that are known.
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
        return num_touched
    scores = parts[term]
    for i in range(low, high):
        document = np.int64(ids[i])
        place = document - start
        if marks[place] == 0:
            if not is_new or (len(mask) and not mask[document]):
                continue
            marks[place] = 1
            touched[num_touched] = place
            num_touched += 1
        scores[place] = score_of(weight, frequencies[i], norms[document])
    return num_touched


@subroutine
def _add(
    ids: Any, frequencies: Any, low: Any, high: Any, weight: Any, norms: Any, mask: Any, start: Any, sums: Any
) -> None:
    """Add a term's part of the scores of documents in a window."""
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
def _settle_sums(sums: Any, start: Any, least: Any, best: Any, keys: Any, num_best: Any) -> Any:
    """Keep the best documents of a window by their sums, and clear these; return the number of best documents so far.

    A sum is more than 0 where there is a document.
    """
    scores, documents = best
    rounded = max(np.float32(least * _ROUNDED), _LEAST)
    begin, count = np.uint64(0), np.uint64(len(sums))  # unsigned, for loops with signed indexes are not vectorized
    while begin < count:
        end = min(begin + np.uint64(CHUNK), count)
        hits = np.int32(0)
        for place in range(begin, end):
            hits += np.int32(sums[place] >= rounded)
        if hits:
            for place in range(begin, end):
                if sums[place] >= rounded and sums[place] >= least:
                    num_best = push(scores, documents, keys, num_best, sums[place], start + np.int64(place))
        for place in range(begin, end):
            sums[place] = np.float32(0)
        begin = end
    return num_best


@subroutine
def _settle(
    parts: Any,
    slots: Any,
    marks: Any,
    touched: Any,
    num_touched: Any,
    start: Any,
    least: Any,
    best: Any,
    keys: Any,
    num_best: Any,
) -> Any:
    """Score the documents of a window and clear them; return the number of best documents so far."""
    scores, documents = best
    for i in range(num_touched):
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
            num_best = push(scores, documents, keys, num_best, score, start + place)
    return num_best


@subroutine
def _order_terms(bounds: Any, window: Any, threshold: Any, sequence: Any) -> Any:
    """Sort terms by their bounds in a window, the least first; return how many together stay below the threshold."""
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
    """Return whether it is faster to add up all terms than to look up the optional ones."""
    required_postings, optional_postings = np.int64(0), np.int64(0)
    for i in range(len(sequence)):
        if i < optional:
            optional_postings += lengths[sequence[i]]
        else:
            required_postings += lengths[sequence[i]]
    return required_postings * DENSE_SHARE > optional_postings


@subroutine
def push(scores: Any, documents: Any, keys: Any, num_best: Any, score: Any, document: Any) -> Any:
    """Put a document into the heap of the best, whose root is the worst; return the number of documents in it."""
    if num_best < len(scores):
        place = num_best
        while place > 0:
            above = (place - 1) >> 1
            if _is_worse(scores[above], keys[documents[above]], score, keys[document]):
                break
            scores[place] = scores[above]
            documents[place] = documents[above]
            place = above
        scores[place] = score
        documents[place] = document
        return num_best + 1
    if not _is_worse(scores[0], keys[documents[0]], score, keys[document]):
        return num_best
    place = np.int64(0)
    while True:
        below = place * 2 + 1
        if below >= num_best:
            break
        right = below + 1
        if right < num_best and _is_worse(scores[right], keys[documents[right]], scores[below], keys[documents[below]]):
            below = right
        if not _is_worse(scores[below], keys[documents[below]], score, keys[document]):
            break
        scores[place] = scores[below]
        documents[place] = documents[below]
        place = below
    scores[place] = score
    documents[place] = document
    return num_best


@subroutine
def _is_worse(score: Any, key: Any, other: Any, other_key: Any) -> Any:
    return score < other or (score == other and key > other_key)
