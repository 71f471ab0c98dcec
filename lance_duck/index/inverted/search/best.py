"""The search for the best documents. Impacts allow skipping blocks of postings.

The threshold is the k-th best score so far. Blocks of a single term are read in descending order of their bounds, until
all remaining bounds are below the threshold. For several terms, document ids are divided into windows. The bounds of
the terms add up to the bound of a window. If some terms of a window cannot reach the threshold together, their postings
are looked up only for the documents of the other terms. If all terms are required, the documents of the rarest term are
looked up in the postings of the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.arrays import BinaryLists
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.codecs.scores import Norms
from lance_duck.index.inverted.costs import MOST_PRUNED_TERMS
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.bounds import block_bounds, windows_of
from lance_duck.index.inverted.search.intersect import intersected, work_of
from lance_duck.index.inverted.search.matching import Documents, Float32s, Mask, WeightedTerms, matching_documents
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.scores import SLACK
from lance_duck.kernels.postings.search.best import find_best_of_all, find_best_of_term
from lance_duck.kernels.postings.search.best_of_any import find_best_of_any

NO_MASK = readonly(np.empty(0, np.bool_))


def best_documents(
    partition: InvertedPartition,
    terms: WeightedTerms,
    average: float,
    keys: NDArray[np.uint64],
    k: int,
    mask: Mask | None = None,
    least: float = 0,
) -> tuple[Documents, Float32s]:
    """Return the k documents with the highest scores, sorted by descending score, then by ascending key.

    Args:
        partition: The partition.
        terms: The terms.
        average: Average number of terms per document.
        keys: uint64 (documents,), key of each document.
        k: Number of documents, at least 1.
        mask: bool (documents,), whether each document may match. None if all documents may match.
        least: Minimum score of the returned documents.

    Raises:
        CorruptError: Postings or impacts are corrupt.
    """
    if not terms.can_match:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    if not _can_prune(terms, k, partition.num_documents):
        documents, scores = _of_all(partition, terms, average, mask, least)
    elif terms.every and len(terms.ids) > 1:
        documents, scores = _having_all(partition, terms, average, keys, k, mask, least)
    else:
        postings = partition.postings(terms.ids)
        if postings.impacts is None:
            documents, scores = _of_all(partition, terms, average, mask, least)
        else:
            norms = partition.norms(average)
            documents, scores = _pruned(postings, postings.impacts, terms, norms, average, keys, k, mask, least)
    order = np.lexsort((keys[documents], -scores))[:k]
    return documents[order], scores[order]


def scoring_of(
    terms: WeightedTerms, norms: Norms, mask: Mask | None, keys: NDArray[np.uint64]
) -> tuple[NDArray[np.float32], Norms, Mask, NDArray[np.uint64], NDArray[np.int64]]:
    """Return the argument `scoring` of `kernels.postings.search.best`."""
    slots = terms.slots if terms.has_variants else np.arange(len(terms.ids))
    allowed = NO_MASK if mask is None else readonly(mask)
    return readonly(terms.weights), norms, allowed, readonly(keys), readonly(slots)


def _of_all(
    partition: InvertedPartition, terms: WeightedTerms, average: float, mask: Mask | None, least: float
) -> tuple[Documents, Float32s]:
    """Return all matching documents with a score of at least `least`."""
    documents, scores = matching_documents(partition, terms, average, mask)
    return documents[scores >= least], scores[scores >= least]


def _can_prune(terms: WeightedTerms, k: int, num_documents: int) -> bool:
    if len(terms.ids) > MOST_PRUNED_TERMS or k >= num_documents or (terms.weights == 0).any():
        return False
    return not terms.every or len(terms.ids) == terms.num_slots


def _having_all(
    partition: InvertedPartition,
    terms: WeightedTerms,
    average: float,
    keys: NDArray[np.uint64],
    k: int,
    mask: Mask | None,
    least: float,
) -> tuple[Documents, Float32s]:
    """Return the best documents that contain all of several terms, in any order."""
    found = intersected(partition, terms, average)
    scoring = scoring_of(terms, partition.norms(average), mask, keys)
    most = min(k, found.shortest)
    best, counts = (np.empty(most, np.float32), np.empty(most, np.int64)), np.zeros(2, np.int64)
    if most:
        code = find_best_of_all(found.lists, scoring, found.windows, float(least), best, found.work(), counts)
        check_code(code, "postings", found.postings.where, "term")
    return best[1][: counts[0]], best[0][: counts[0]]


def _pruned(
    postings: PostingBlocks,
    impacts: BinaryLists,
    terms: WeightedTerms,
    norms: Norms,
    average: float,
    keys: NDArray[np.uint64],
    k: int,
    mask: Mask | None,
    least: float,
) -> tuple[Documents, Float32s]:
    """Return the best documents that contain at least one term, in any order."""
    count = len(terms.ids)
    last, bounds = block_bounds(postings, impacts, terms, average)
    lists, scoring = (*postings.buffers, last, True), scoring_of(terms, norms, mask, keys)
    best, counts = (np.empty(k, np.float32), np.empty(k, np.int64)), np.zeros(2, np.int64)
    if count == 1:
        bounds *= SLACK
        room = np.empty((2, postings.form.size), np.uint32)
        code = find_best_of_term(lists, scoring, bounds, np.argsort(-bounds), float(least), best, room, counts)
    else:
        windows = windows_of(postings, last, bounds, every=False)
        size = windows[-1]
        meeting, sequence = work_of(postings, np.empty(count, np.int64), size), np.empty(count, np.int64)
        parts, sums = np.zeros((count, size), np.float32), np.empty(size, np.float32)
        work = meeting, parts, sums, np.empty(size + 1, np.int64), sequence
        code = find_best_of_any(lists, scoring, windows, float(least), best, work, counts)
    check_code(code, "postings", postings.where, "term")
    return best[1][: counts[0]], best[0][: counts[0]]
