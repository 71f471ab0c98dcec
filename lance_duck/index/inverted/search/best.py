"""The search for the best documents, which skips blocks of postings whose impacts rule out that they have any.

Blocks of one term are read in the order of their bounds, until none reaches the score of the worst of the best.
For several terms, ids are divided into windows. The bound of a window is the sum of the bounds of its terms. In a
window, terms that together do not reach the worst of the best are looked up only for documents of the other terms.
If all terms are required, documents of the rarest term are looked up in the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.arrays import BinaryLists
from lance_duck.index.inverted.codecs.impacts import length_floors
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.codecs.scores import K1, B
from lance_duck.index.inverted.costs import FIRST_WINDOWS, MOST_PRUNED_TERMS, SEARCH_WINDOW
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.matching import Documents, Float32s, Mask, WeightedTerms, matching_documents
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.best import find_best_of_any, find_best_of_term
from lance_duck.kernels.postings.best_of_all import ROWS_BEFORE, find_best_of_all
from lance_duck.kernels.postings.impacts import decode_impacts
from lance_duck.kernels.postings.scores import bound_blocks, bound_windows

_FLOORS = length_floors().astype(np.float64)
NO_MASK = readonly(np.empty(0, np.bool_))
_SLACK = 2.0**-18
"""Bound of the relative rounding error of float32 sums of a hundred terms."""


def best_documents(
    partition: InvertedPartition,
    terms: WeightedTerms,
    average: float,
    keys: NDArray[np.uint64],
    k: int,
    mask: Mask | None = None,
    least: float = 0,
) -> tuple[Documents, Float32s]:
    """Return the k documents with the greatest scores, the greatest first; of equal scores those with the least keys.

    Args:
        partition: The partition.
        terms: The terms.
        average: Average number of terms of a document.
        keys: The key of each document, uint64.
        k: Number of documents, at least 1.
        mask: Whether each document may match; None if all may.
        least: Lowest score of a document that is returned.

    Raises:
        CorruptError: Postings or impacts are broken.
    """
    if not terms.can_match:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    postings = partition.postings(terms.ids)
    if postings.impacts is None or not _can_prune(terms, postings, k):
        documents, scores = matching_documents(partition, terms, average, mask)
        documents, scores = documents[scores >= least], scores[scores >= least]
    else:
        norms = partition.norms(average)
        documents, scores = _pruned(postings, postings.impacts, terms, norms, average, keys, k, mask, least)
    order = np.lexsort((keys[documents], -scores))[:k]
    return documents[order], scores[order]


def _can_prune(terms: WeightedTerms, postings: PostingBlocks, k: int) -> bool:
    if len(terms.ids) > MOST_PRUNED_TERMS or k >= postings.num_documents or (terms.weights == 0).any():
        return False
    return not terms.every or len(terms.ids) == terms.num_slots


def _pruned(
    postings: PostingBlocks,
    impacts: BinaryLists,
    terms: WeightedTerms,
    norms: Float32s,
    average: float,
    keys: NDArray[np.uint64],
    k: int,
    mask: Mask | None,
    least: float,
) -> tuple[Documents, Float32s]:
    blocks, form, count = postings.blocks, postings.form, len(terms.ids)
    last, bounds = block_bounds(postings, impacts, terms, average)
    lists = (blocks.data, blocks.offsets, blocks.lists, readonly(postings.lengths), form.size, form.is_varint, last)
    scoring = (readonly(terms.weights), readonly(norms), NO_MASK if mask is None else readonly(mask), readonly(keys))
    best, counts = (np.empty(k, np.float32), np.empty(k, np.int64)), np.zeros(2, np.int64)
    room = np.empty((2, count, form.size), np.uint32)
    if count == 1:
        bounds *= 1 + _SLACK
        code = find_best_of_term(lists, scoring, bounds, np.argsort(-bounds), float(least), best, room[:, 0], counts)
    else:
        windows = windows_of(blocks.lists, last, bounds, len(norms), every=terms.every)
        if terms.every:
            work = intersection_work(postings)
            code = find_best_of_all(lists, scoring, windows, float(least), best, work, counts)
        else:
            decoded, parts = np.full(count, -1, np.int64), np.zeros((count, SEARCH_WINDOW), np.float32)
            marks, sequence = np.zeros(SEARCH_WINDOW, np.uint16), np.empty(count, np.int64)
            slots = readonly(terms.slots if terms.has_variants else np.arange(count))
            work = (room, decoded, parts, marks, np.empty(SEARCH_WINDOW, np.int64), sequence, slots)
            code = find_best_of_any(lists, scoring, windows, float(least), best, work, counts)
    check_code(code, "postings", postings.where, "term")
    return best[1][: counts[0]], best[0][: counts[0]]


def intersection_work(postings: PostingBlocks) -> Any:
    """Return the work arrays of `kernels.postings.best_of_all`."""
    count = len(postings)
    room = np.empty((2, count, postings.form.size), np.uint32)
    rarest = np.argsort(postings.lengths, kind="stable")
    rows = np.empty((ROWS_BEFORE + count, SEARCH_WINDOW + 1), np.int64)
    return room, np.full((2, count), -1, np.int64), rarest, np.zeros(SEARCH_WINDOW, np.uint16), rows


def windows_of(
    lists: NDArray[np.int64],
    last: NDArray[np.int64],
    bounds: NDArray[np.float64],
    num_documents: int,
    *,
    every: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], int]:
    """Return the bounds of terms and documents in windows, the order in which windows are searched, and their size.

    A few of the most promising windows come first, to give a threshold; the others ascend, so that a block is decoded
    only once.
    """
    count = -(-num_documents // SEARCH_WINDOW)
    window_bounds = np.zeros((len(lists) - 1, count))
    totals, order = np.empty(count), np.empty(count, np.int64)
    bound_windows(lists, last, bounds, SEARCH_WINDOW, every, 1 + _SLACK, FIRST_WINDOWS, window_bounds, totals, order)
    return window_bounds, totals, order, SEARCH_WINDOW


def block_bounds(
    postings: PostingBlocks, impacts: BinaryLists, terms: WeightedTerms, average: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the last document of each block, and the bound of its term's part of a score."""
    lists = postings.blocks.lists
    entries, size = len(impacts.offsets) - 1, len(impacts.data)
    last_ids, pairs = np.empty(entries, np.int64), np.empty(entries + 1, np.int64)
    frequencies, codes = np.empty(size, np.uint32), np.empty(size, np.uint8)
    code = decode_impacts(impacts.data, impacts.offsets, last_ids, pairs, frequencies, codes)
    check_code(code, "impacts", postings.where, "entry")
    blocks = int(lists[-1])
    last, bounds = np.empty(blocks, np.int64), np.empty(blocks, np.float64)
    code = bound_blocks(
        lists,
        impacts.lists,
        last_ids,
        pairs,
        frequencies,
        codes,
        readonly(terms.weights),
        _norms_of_codes(float(average)),
        postings.num_documents,
        last,
        bounds,
    )
    check_code(code, "impacts", postings.where, "term")
    return last, bounds


@lru_cache(maxsize=16)
def _norms_of_codes(average: float) -> NDArray[np.float64]:
    """Return a lower bound of the norm of the least length of each code."""
    return readonly(float(K1) * (1 - float(B) + float(B) * _FLOORS / average) * (1 - 2.0**-20))
