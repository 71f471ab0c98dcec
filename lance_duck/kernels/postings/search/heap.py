"""Heaps of scores. In the heap of a search's best documents, the root is the document with the lowest score."""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_duck.kernels.jit import subroutine


@subroutine
def score_to_reach(scores: Any, num_best: Any, least: Any) -> Any:
    """Return the score that a document needs to be one of the best. It is at least `least`."""
    return max(least, np.float64(scores[0])) if num_best == len(scores) else least


@subroutine
def push(scores: Any, documents: Any, keys: Any, num_best: Any, score: Any, document: Any) -> Any:
    """Push a document to the heap. Returns the number of documents in the heap."""
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
    _sink(scores, documents, keys, num_best, score, document)
    return num_best


@subroutine
def order_best(scores: Any, documents: Any, keys: Any, num_best: Any) -> None:
    """Sort the documents of a heap, best first."""
    for end in range(num_best - 1, 0, -1):
        score, document = scores[end], documents[end]
        scores[end], documents[end] = scores[0], documents[0]
        _sink(scores, documents, keys, end, score, document)


@subroutine
def _sink(scores: Any, documents: Any, keys: Any, num_best: Any, score: Any, document: Any) -> None:
    """Replace the root of the heap by a document."""
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


@subroutine
def _is_worse(score: Any, key: Any, other: Any, other_key: Any) -> Any:
    return score < other or (score == other and key > other_key)


@subroutine
def order_entries(scores: Any, order: Any, count: Any) -> None:
    """Write the entries 0 to `count` - 1 to `order`, as a heap. Its root is the entry with the highest score."""
    for i in range(count):
        order[i] = i
    for i in range((count >> 1) - 1, -1, -1):
        _sift(scores, order, i, count)


@subroutine
def take_first(scores: Any, order: Any, count: Any) -> Any:
    """Remove the root of a heap of `count` entries, and return it."""
    entry = order[0]
    order[0] = order[count - 1]
    _sift(scores, order, np.int64(0), count - 1)
    return entry


@subroutine
def _sift(scores: Any, order: Any, place: Any, count: Any) -> None:
    """Restore a heap of entries after the score at `place` decreased."""
    if place >= count:
        return
    entry = order[place]
    while True:
        below = place * 2 + 1
        if below >= count:
            break
        if below + 1 < count and scores[order[below + 1]] > scores[order[below]]:
            below += 1
        if scores[order[below]] <= scores[entry]:
            break
        order[place] = order[below]
        place = below
    order[place] = entry
