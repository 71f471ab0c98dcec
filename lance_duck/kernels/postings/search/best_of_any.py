"""A kernel that finds the highest-scoring documents with any of several terms.

`kernels.postings.search.best` describes its arguments, except `work`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.scores import SLACK, norm_of, score_of
from lance_duck.kernels.postings.search.heap import order_best, push, score_to_reach
from lance_duck.kernels.postings.search.intersect import (
    LOOKED_UP,
    ROWS_BEFORE,
    end_in,
    find_places,
    fresh_marks,
    intersect_window,
    leave_out,
    score_row,
)
from lance_duck.kernels.postings.search.reading import count_of, first_block, lower_place, read_both

Int64s = NDArray[np.int64]

DENSE_SHARE: Final = 8
"""All scores are summed if there are fewer than this many optional postings per required posting. Summing a posting
takes 2 ns, storing it by term takes 12 ns, and looking it up takes 5 ns (`benchmarks/postings.py`).
"""
_ROUNDED: Final = 1 - 1e-7
"""Factor that prevents a number from growing when it is rounded to float32."""
_LEAST: Final = np.float32(1e-37)


@kernel
def find_best_of_any(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that contain any of several terms.

    Each window is searched in one of three ways. If no document can reach the threshold without certain terms, the
    kernel intersects the documents of these terms. If some terms cannot reach the threshold even together, the kernel
    looks them up only for the documents of the other terms. If a lookup would cost more, the kernel sums all
    scores.

    Args:
        postings: Postings of the terms.
        scoring: Weights, norms and sort keys of documents.
        windows: Score bounds of each window, and the order of windows.
        least: Minimum score.
        best: Output: scores and ids of the best documents.
        work: `work` of `kernels.postings.search.intersect`; (terms, ids of a window), all 0; (ids of a window,), score
            sums; (ids of a window,), document offsets in the window; (terms,), terms sorted by their bounds.
        counts: Output: number of documents found, number of blocks decoded.

    Returns:
        A status with the index of a term.
    """
    lengths = postings[3]
    window_bounds, totals, order, size = windows
    scores = best[0]
    meeting, sequence = work[0], work[4]
    slots = scoring[4]
    has_variants = False
    for i in range(1, len(slots)):
        has_variants |= slots[i] == slots[i - 1]
    num_best = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        start = window * size
        threshold = score_to_reach(scores, num_best, least)
        if totals[window] < 0 or totals[window] < threshold:
            continue
        optional = _order_terms(window_bounds, window, threshold, sequence)
        limits = window_bounds, window, threshold
        num_needed = _order_needed(lengths, limits, totals[window], sequence, meeting[2])
        if num_needed > 1:
            span = start, size, len(totals)
            num_best, code = _best_of_needed(
                postings, scoring, span, num_needed, limits, meeting, best, num_best, counts
            )
        elif not has_variants and _is_dense(lengths, sequence, optional):
            num_best, code = _best_of_sums(postings, scoring, limits, work, best, num_best, counts)
        else:
            if num_needed == 1:
                optional = _put_last(lengths, meeting[2][0], sequence, optional)
            num_best, code = _best_of_some(
                postings, scoring, limits, optional, len(totals), work, best, num_best, counts
            )
        if code != status.OK:
            return int(code)
    order_best(scores, best[1], scoring[3], num_best)
    counts[0] = num_best
    return status.OK


@subroutine
def _best_of_needed(
    postings: Any,
    scoring: Any,
    span: Any,
    num_needed: Any,
    limits: Any,
    work: Any,
    best: Any,
    num_best: Any,
    counts: Any,
) -> Any:
    """Keep a window's best documents that contain all needed terms. Returns (their number, status)."""
    bounds, window, threshold = limits
    sequence, rows = work[2], work[5]
    scores, documents = best
    num_candidates, code = intersect_window(postings, scoring, span, num_needed, limits, work, counts)
    for stage in range(num_needed, len(sequence)):
        if code != status.OK or num_candidates == 0:
            return num_best, code
        term = sequence[stage]
        if bounds[term, window] > 0:
            num_candidates, code = leave_out(postings, scoring, stage, num_candidates, limits, work, counts)
            if code == status.OK:
                code = find_places(postings, term, num_candidates, work, counts)
        else:
            for i in range(num_candidates):
                rows[ROWS_BEFORE + term, i] = -1
    if code != status.OK:
        return num_best, code
    for i in range(num_candidates):
        score, code = score_row(postings, scoring, scoring[4], work, i, counts)
        if code != status.OK:
            return num_best, np.int64(code)
        if score >= threshold:
            num_best = push(scores, documents, scoring[3], num_best, score, rows[0, i])
    return num_best, np.int64(status.OK)


@subroutine
def _best_of_sums(postings: Any, scoring: Any, limits: Any, work: Any, best: Any, num_best: Any, counts: Any) -> Any:
    """Keep a window's best documents by summing all scores in term order.

    A document is recorded when its sum first reaches the threshold.

    Returns:
        (number of best documents, status).
    """
    bounds, window, threshold = limits
    meeting, parts, _, touched, _ = work
    weights, norms, mask, keys, _ = scoring
    lists, last = postings[2], postings[6]
    room, sums = meeting[0], parts[0]
    scores, documents = best
    start, least = window * len(sums), max(np.float32(threshold * _ROUNDED), _LEAST)
    num_touched = np.int64(0)
    for term in range(len(weights)):
        if bounds[term, window] == 0:
            continue
        ids, frequencies = room[0, term], room[1, term]
        block = first_block(last, lists[term], lists[term + 1], start)
        while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + len(sums)):
            low, high, code = _part_in(postings, term, block, start, len(sums), meeting, counts)
            if code != status.OK:
                return num_best, np.int64(code | (term << 8))
            span = low, high, start
            num_touched = _add(ids, frequencies, span, weights[term], norms, mask, sums, least, touched, num_touched)
            block += 1
    for i in range(num_touched):
        place = touched[i]
        if sums[place] >= threshold:
            num_best = push(scores, documents, keys, num_best, sums[place], start + place)
    for place in range(len(sums)):
        sums[place] = np.float32(0)
    return num_best, np.int64(status.OK)


@subroutine
def _best_of_some(
    postings: Any,
    scoring: Any,
    limits: Any,
    optional: Any,
    num_windows: Any,
    work: Any,
    best: Any,
    num_best: Any,
    counts: Any,
) -> Any:
    """Keep a window's best documents that contain any of the required terms of a sequence.

    Args:
        postings: Postings of the terms.
        scoring: Weights, norms and sort keys of documents.
        limits: See `kernels.postings.search.intersect`.
        optional: Number of leading terms in the sequence that are optional, and only looked up.
        num_windows: Number of windows.
        work: See `find_best_of_any`.
        best: Output: scores and ids of the best documents.
        num_best: Number of best documents so far.
        counts: Increased by the number of decoded blocks.

    Returns:
        (number of best documents, status).
    """
    bounds, window, threshold = limits
    meeting, _, sums, _, sequence = work
    lists, lengths, last = postings[2], postings[3], postings[6]
    size = len(sums)
    start, base, rest = window * size, fresh_marks(meeting[3], meeting[4]), 0.0
    for i in range(optional):
        rest += bounds[sequence[i], window]
    num_touched = np.int64(0)
    for stage in range(len(sequence)):
        term = sequence[len(sequence) - 1 - stage]
        is_new = stage < len(sequence) - optional
        if bounds[term, window] == 0:
            continue
        if not is_new:
            num_hopeful = _count_hopeful(work, num_touched, rest, threshold)
            if num_hopeful == 0:
                break
            rest -= bounds[term, window]
            if num_hopeful * LOOKED_UP * num_windows < lengths[term]:
                above = rest + bounds[term, window]
                code = _look_up(postings, scoring, term, start, num_touched, above, threshold, work, counts)
                if code != status.OK:
                    return num_best, np.int64(code | (term << 8))
                continue
        block = first_block(last, lists[term], lists[term + 1], start)
        while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
            low, high, code = _part_in(postings, term, block, start, size, meeting, counts)
            if code != status.OK:
                return num_best, np.int64(code | (term << 8))
            num_touched = _take(scoring, term, low, high, start, base, is_new, work, num_touched)
            block += 1
    meeting[4][0] = base + 1
    return _settle(scoring, num_touched, start, threshold, work, best, num_best), np.int64(status.OK)


@subroutine
def _part_in(postings: Any, term: Any, block: Any, start: Any, size: Any, work: Any, counts: Any) -> Any:
    """Decode a block. Returns (start and end of its documents in a window, status without an index)."""
    room, state = work[0], work[1]
    code = read_both(postings, term, block, room, state, counts)
    if code != status.OK:
        return np.int64(0), np.int64(0), code
    ids, count = room[0, term], count_of(postings[2], postings[3], postings[4], term, block)
    low = lower_place(ids, np.int64(0), count, start)
    return low, end_in(ids, low, count, start, size), code


@subroutine
def _count_hopeful(work: Any, num_touched: Any, rest: Any, threshold: Any) -> Any:
    """Count the documents that may reach the threshold, given their sums and the bounds of the remaining terms."""
    _, _, sums, touched, _ = work
    num_hopeful = np.int64(0)
    for i in range(num_touched):
        num_hopeful += np.int64(np.float64(sums[touched[i]]) * SLACK + rest >= threshold)
    return num_hopeful


@subroutine
def _look_up(
    postings: Any,
    scoring: Any,
    term: Any,
    start: Any,
    num_touched: Any,
    rest: Any,
    threshold: Any,
    work: Any,
    counts: Any,
) -> Any:
    """Record a term's contribution for documents that may reach the threshold. Returns a status without an index."""
    weights, norms = scoring[0], scoring[1]
    meeting, parts, sums, touched, _ = work
    room, state = meeting[0], meeting[1]
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    low = first_block(last, lists[term], lists[term + 1], start)
    for i in range(num_touched):
        place = touched[i]
        if np.float64(sums[place]) * SLACK + rest < threshold:
            continue
        document = start + place
        block = first_block(last, low, lists[term + 1], document)
        if block == lists[term + 1]:
            continue
        code = read_both(postings, term, block, room, state, counts)
        if code != status.OK:
            return code
        ids = room[0, term]
        at = lower_place(ids, np.int64(0), count_of(lists, lengths, block_size, term, block), document)
        if np.int64(ids[at]) == document:
            score = score_of(weights[term], room[1, term, at], norm_of(norms, document))
            parts[term, place] = score
            sums[place] = np.float32(sums[place] + score)
    return status.OK


@subroutine
def _take(
    scoring: Any, term: Any, low: Any, high: Any, start: Any, base: Any, is_new: Any, work: Any, num_touched: Any
) -> Any:
    """Record a term's contribution for a block's documents in a window. Returns the number of documents so far.

    If `is_new` is False, records it only for known documents.
    """
    weights, norms, mask, _, _ = scoring
    meeting, parts, sums, touched, _ = work
    marks, mark = meeting[3], np.uint32(base + 1)
    weight, scores = weights[term], parts[term]
    ids, frequencies = meeting[0][0, term], meeting[0][1, term]
    for i in range(low, high):
        document = np.int64(ids[i])
        place = document - start
        if marks[place] != mark:
            if not is_new or (len(mask) and not mask[document]):
                continue
            marks[place] = mark
            sums[place] = np.float32(0)
            touched[num_touched] = place
            num_touched += 1
        score = score_of(weight, frequencies[i], norm_of(norms, document))
        scores[place] = score
        sums[place] = np.float32(sums[place] + score)
    return num_touched


@subroutine
def _add(
    ids: Any,
    frequencies: Any,
    span: Any,
    weight: Any,
    norms: Any,
    mask: Any,
    sums: Any,
    least: Any,
    touched: Any,
    num_touched: Any,
) -> Any:
    """Add a term's contribution to the sums of a window. Returns the number of documents with a sum so far."""
    low, high, start = span
    first = np.uint64(start)
    if len(mask):
        for i in range(low, high):
            document = np.uint64(ids[i])
            if mask[document]:
                place = document - first
                before = sums[place]
                sums[place] = np.float32(before + score_of(weight, frequencies[i], norm_of(norms, document)))
                touched[num_touched] = np.int64(place)
                num_touched += np.int64(before < least) & np.int64(sums[place] >= least)
        return num_touched
    for i in range(low, high):
        document = np.uint64(ids[i])
        place = document - first
        before = sums[place]
        after = np.float32(before + score_of(weight, frequencies[i], norm_of(norms, document)))
        sums[place] = after
        touched[num_touched] = np.int64(place)
        num_touched += np.int64(before < least) & np.int64(after >= least)
    return num_touched


@subroutine
def _settle(scoring: Any, num_touched: Any, start: Any, least: Any, work: Any, best: Any, num_best: Any) -> Any:
    """Score the documents of a window, and reset their scratch space. Returns the number of best documents so far."""
    _, parts, _, touched, _ = work
    keys, slots = scoring[3], scoring[4]
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
        if score >= least:
            num_best = push(scores, documents, keys, num_best, score, start + place)
    return num_best


@subroutine
def _order_terms(bounds: Any, window: Any, threshold: Any, sequence: Any) -> Any:
    """Sort terms by their bounds in a window, ascending. Returns how many terms cannot reach the threshold together."""
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
def _order_needed(lengths: Any, limits: Any, total: Any, sequence: Any, needed: Any) -> Any:
    """Sort the needed terms to the front, rarest first. Documents that lack a needed term cannot reach the threshold.

    The other terms follow in descending order of their bounds.

    Returns:
        The number of needed terms.
    """
    bounds, window, threshold = limits
    num_needed = np.int64(0)
    for term in range(len(sequence)):
        if total - bounds[term, window] < threshold:
            place = num_needed
            while place > 0 and lengths[needed[place - 1]] > lengths[term]:
                needed[place] = needed[place - 1]
                place -= 1
            needed[place] = term
            num_needed += 1
    end = num_needed
    for i in range(len(sequence) - 1, -1, -1):
        if total - bounds[sequence[i], window] >= threshold:
            needed[end] = sequence[i]
            end += 1
    return num_needed


@subroutine
def _put_last(lengths: Any, term: Any, sequence: Any, optional: Any) -> Any:
    """Make a needed term the only required term, unless the current required terms have fewer documents in total.

    Returns:
        The number of optional terms at the front of the sequence.
    """
    num_postings, place = np.int64(0), 0
    for i in range(len(sequence)):
        if i >= optional:
            num_postings += lengths[sequence[i]]
        if sequence[i] == term:
            place = i
    if lengths[term] > num_postings:
        return optional
    for i in range(place, len(sequence) - 1):
        sequence[i] = sequence[i + 1]
    sequence[len(sequence) - 1] = term
    return len(sequence) - 1


@subroutine
def _is_dense(lengths: Any, sequence: Any, optional: Any) -> Any:
    """Return whether summing all terms is faster than looking up the optional terms."""
    required_postings, optional_postings = np.int64(0), np.int64(0)
    for i in range(len(sequence)):
        if i < optional:
            optional_postings += lengths[sequence[i]]
        else:
            required_postings += lengths[sequence[i]]
    return required_postings * DENSE_SHARE > optional_postings
