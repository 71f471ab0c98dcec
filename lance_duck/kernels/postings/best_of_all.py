"""A kernel that finds the documents with the greatest scores among those that have all of several terms.

`kernels.postings.best` says what its arguments are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.best import push
from lance_duck.kernels.postings.reading import count_of, first_block, lower_place, read_block
from lance_duck.kernels.postings.scores import score_of

Int64s = NDArray[np.int64]

SLACK: Final = 1 + 2.0**-18
"""Rounding of float32 sums, of a hundred terms."""


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
        work: (2, terms, documents of a block); a number for each term, -1; (terms, ids of a window); ids of a window;
            the terms, the rarest first.
        counts: See there.

    Returns:
        A status; its place is a term.
    """
    window_bounds, totals, order, size = windows
    parts, candidates, sequence = work[2:]
    scores, documents = best
    keys = scoring[3]
    kept = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        threshold = max(least, np.float64(scores[0])) if kept == len(scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            continue
        found = np.int64(0)
        rest = totals[window]
        for stage in range(len(sequence)):
            term = sequence[stage]
            rest -= window_bounds[term, window]
            found, code = _keep(
                postings, scoring, sequence, stage, window * size, size, threshold - rest, work, found, counts
            )
            if code != status.OK:
                return int(code | (term << 8))
            if found == 0:
                break
        for i in range(found):
            score = np.float32(0)
            for term in range(len(sequence)):
                score = np.float32(score + parts[term, i])
            if score >= threshold:
                kept = push(scores, documents, keys, kept, score, candidates[i])
    counts[0] = kept
    return status.OK


@subroutine
def _keep(
    postings: Any,
    scoring: Any,
    sequence: Any,
    stage: Any,
    start: Any,
    size: Any,
    least: Any,
    work: Any,
    found: Any,
    counts: Any,
) -> Any:
    """Keep the documents of a window that have a term, too, and may reach a score with it.

    Returns:
        (how many there are, a status without place).
    """
    if stage == 0:
        return _begin(postings, scoring, sequence[0], start, size, least, work, counts)
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    weights, norms = scoring[0], scoring[1]
    room, decoded, parts, candidates, _ = work
    term = sequence[stage]
    ids, frequencies = room[0, term], room[1, term]
    block, stop = lists[term], lists[term + 1]
    place = count = np.int64(0)
    kept = np.int64(0)
    for i in range(found):
        document = candidates[i]
        if count == 0 or last[block] < document:
            block = first_block(last, block, stop, document)
            if block == stop:
                break
            code = read_block(postings, term, block, room, decoded, counts)
            if code != status.OK:
                return kept, code
            place, count = np.int64(0), count_of(lists, lengths, block_size, term, block)
        place = lower_place(ids, place, count, document)
        if np.int64(ids[place]) != document:
            continue
        score = score_of(weights[term], frequencies[place], norms[document])
        total = np.float64(score)
        for before in range(stage):
            total += np.float64(parts[sequence[before], i])
        if total * SLACK < least:
            continue
        for before in range(stage):
            parts[sequence[before], kept] = parts[sequence[before], i]
        parts[term, kept] = score
        candidates[kept] = document
        kept += 1
    return kept, status.OK


@subroutine
def _begin(postings: Any, scoring: Any, term: Any, start: Any, size: Any, least: Any, work: Any, counts: Any) -> Any:
    """Begin with the documents of a window that have a term; returns what `_keep` does."""
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    weights, norms, mask, _ = scoring
    room, decoded, parts, candidates, _ = work
    ids, frequencies = room[0, term], room[1, term]
    found = np.int64(0)
    block = first_block(last, lists[term], lists[term + 1], start)
    while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
        code = read_block(postings, term, block, room, decoded, counts)
        if code != status.OK:
            return found, code
        count = count_of(lists, lengths, block_size, term, block)
        for i in range(lower_place(ids, np.int64(0), count, start), count):
            document = np.int64(ids[i])
            if document >= start + size:
                break
            if len(mask) and not mask[document]:
                continue
            score = score_of(weights[term], frequencies[i], norms[document])
            if np.float64(score) * SLACK < least:
                continue
            parts[term, found] = score
            candidates[found] = document
            found += 1
        block += 1
    return found, status.OK
