"""Searches for the best documents that skip postings give what scoring every posting gives, bit for bit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.index.inverted.partitions import FORMS, contents_of, random_texts, segment_of

from lance_duck.index.inverted.codecs.scores import inverse_frequencies
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search import (
    PhraseOrder,
    WeightedTerms,
    best_documents,
    best_phrases,
    bounds,
    intersect,
    matching_documents,
    phrases,
)

WORDS = 120
FEW_MATCHES = st.sampled_from([0, intersect.FEW_MATCHES])
"""Match counts below which multi-word searches skip impacts: never, and always in this module."""
WINDOWS = st.sampled_from([64, 1024, bounds.SEARCH_WINDOW])
"""Documents of a window: many windows, some, and one or two."""


@contextmanager
def searching(few: int, window: int, waiting: int = phrases.WAITING_DOCUMENTS) -> Iterator[None]:
    with (
        patch.object(intersect, "FEW_MATCHES", few),
        patch.object(intersect, "LARGEST_WINDOW", 4 * window),
        patch.object(bounds, "SEARCH_WINDOW", window),
        patch.object(bounds, "LARGEST_WINDOW", 4 * window),
        patch.object(phrases, "WAITING_DOCUMENTS", waiting),
    ):
        yield


@pytest.fixture(scope="module")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, InvertedPartition]:
    texts = random_texts(5000, words=WORDS, most=40)
    texts[17] = ["w3"] * 400
    texts[2000:3000] = [["w1", "w2"]] * 1000  # ties
    root: Path = tmp_path_factory.mktemp("texts")
    contents = contents_of(texts)
    return {i: segment_of(root / str(i), [contents], **form).partitions[0] for i, form in enumerate(FORMS)}


@given(
    st.integers(0, len(FORMS) - 1),
    st.lists(st.integers(0, WORDS + 3), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([1, 2, 10, 100, 4999, 10_000]),
    st.sampled_from([None, 0.0, 0.01, 0.5, 1.0]),
    st.sampled_from([0.0, 1.0, 4.0]),
    FEW_MATCHES,
    WINDOWS,
    st.integers(0, 1000),
)
def test_the_best_are_the_best_of_all(partitions, form, words, every, k, share, least, few, window, seed) -> None:
    partition = partitions[form]
    random = np.random.default_rng(seed)
    count = partition.num_documents
    ids = partition.term_ids([f"w{i}".encode() for i in words])
    # Statistics of a larger index that contains this partition.
    weights = inverse_frequencies(3 * count, partition.document_frequencies(ids) + random.integers(1, count, len(ids)))
    average = random.uniform(1, 60)
    keys = random.permutation(count).astype(np.uint64)
    mask = None if share is None else random.random(count) < share
    terms = WeightedTerms.plain(ids, weights, every=every)
    documents, scores = matching_documents(partition, terms, average, mask)
    documents, scores = documents[scores >= least], scores[scores >= least]
    order = np.lexsort((keys[documents], -scores))[:k]
    with searching(few, window):
        found, their_scores = best_documents(partition, terms, average, keys, k, mask, least)
    assert found.tolist() == documents[order].tolist()
    assert their_scores.tobytes() == scores[order].tobytes()


@given(
    st.integers(0, len(FORMS) - 1),
    st.lists(st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=5, unique=True), min_size=2, max_size=4),
    st.sampled_from([1, 10, 100]),
    st.sampled_from([None, 0.01, 0.5]),
    WINDOWS,
    st.integers(0, 1000),
)
def test_word_variants_count_as_one_word(partitions, form, words, k, share, window, seed) -> None:
    partition = partitions[form]
    random = np.random.default_rng(seed)
    count = partition.num_documents
    ids = partition.term_ids([f"w{i}".encode() for slot in words for i in slot])
    slots = np.repeat(np.arange(len(words)), [len(slot) for slot in words])
    # Natural words differ more in frequency than these: some words make others unnecessary to read.
    weights = random.choice([0.1, 1, 8], len(ids)).astype(np.float32)
    keys = random.permutation(count).astype(np.uint64)
    mask = None if share is None else random.random(count) < share
    terms = WeightedTerms(ids, weights, slots, len(words))
    documents, scores = matching_documents(partition, terms, 15.0, mask)
    order = np.lexsort((keys[documents], -scores))[:k]
    with searching(0, window):
        found, their_scores = best_documents(partition, terms, 15.0, keys, k, mask)
    assert found.tolist() == documents[order].tolist()
    assert their_scores.tobytes() == scores[order].tobytes()


@given(
    st.integers(0, len(FORMS) - 1),
    st.lists(st.integers(0, WORDS - 1), min_size=2, max_size=6),
    st.booleans(),
    st.sampled_from([1, 10]),
    WINDOWS,
    st.integers(0, 1000),
)
def test_words_of_very_different_weights_are_searched_for(partitions, form, words, every, k, window, seed) -> None:
    partition = partitions[form]
    random = np.random.default_rng(seed)
    ids = partition.term_ids([f"w{i}".encode() for i in words])
    weights = random.choice([0.01, 0.3, 1, 8], len(ids)).astype(np.float32)
    keys = random.permutation(partition.num_documents).astype(np.uint64)
    terms = WeightedTerms.plain(ids, weights, every=every)
    documents, scores = matching_documents(partition, terms, 15.0)
    order = np.lexsort((keys[documents], -scores))[:k]
    with searching(0, window):
        found, their_scores = best_documents(partition, terms, 15.0, keys, k)
    assert found.tolist() == documents[order].tolist()
    assert their_scores.tobytes() == scores[order].tobytes()


class Ordered:
    """Strings by the positions of each word, and partitions built from them."""

    def __init__(self, texts: list[list[str]], root: Path) -> None:
        self.places = [{word: [i for i, w in enumerate(text) if w == word] for word in set(text)} for text in texts]
        parts = [contents_of(texts)]
        self.partitions = [
            segment_of(root / str(i), parts, with_position=True, **form).partitions[0] for i, form in enumerate(FORMS)
        ]


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Ordered:
    texts = random_texts(3000, words=12, most=30)
    texts[17] = ["w0", "w1", "w0"] * 500  # more positions than a search has room for at first
    texts[1000:1600] = [["w1", "w2"]] * 600  # ties, and groups of numbers without bits
    texts[2999] = ["w2", "w0", "w0", "w0", "w1"] * 60
    return Ordered(texts, tmp_path_factory.mktemp("phrases"))


def has_phrase(text: Mapping[str, list[int]], words: list[str], places: list[int], slop: int) -> bool:
    ends = text[words[0]]
    for word, gap in zip(words[1:], np.diff(places).tolist(), strict=True):
        ends = [at for at in text[word] if bisect_left(ends, at - gap - slop) < bisect_right(ends, at - gap)]
    return bool(ends)


@given(
    st.sampled_from([1, 2]),
    st.lists(st.tuples(st.integers(0, 13), st.integers(1, 3)), min_size=2, max_size=5),
    st.sampled_from([0, 0, 1, 3, 1 << 70]),
    st.sampled_from([1, 2, 10, 400, None]),
    st.sampled_from([None, 0.0, 0.05, 0.5]),
    FEW_MATCHES,
    WINDOWS,
    st.sampled_from([1, 7, 1 << 13]),
    st.integers(0, 1000),
)
def test_phrase_matches_equal_those_of_the_documents(
    ordered, form, words, slop, k, share, few, window, waiting, seed
) -> None:
    texts, partition = ordered.places, ordered.partitions[form]
    random = np.random.default_rng(seed)
    count = partition.num_documents
    names = [f"w{number}" for number, _ in words]
    places = np.cumsum([gap for _, gap in words])
    ids = partition.term_ids([name.encode() for name in names])
    weights = inverse_frequencies(3 * count, partition.document_frequencies(ids) + random.integers(1, count, len(ids)))
    average = random.uniform(1, 60)
    keys = random.permutation(count).astype(np.uint64)
    mask = None if share is None else random.random(count) < share
    terms = WeightedTerms.plain(ids, weights, every=True)
    documents, scores = matching_documents(partition, terms, average, mask)
    follows = np.array([has_phrase(texts[i], names, places.tolist(), slop) for i in documents.tolist()], np.bool_)
    documents, scores = documents[follows], scores[follows]
    best = np.lexsort((keys[documents], -scores))[:k]
    with searching(few, window, waiting):
        found = best_phrases(partition, terms, PhraseOrder(places, slop), average, keys, k, mask)
    assert found is not None
    order = np.lexsort((keys[found[0]], -found[1]))
    assert found[0][order].tolist() == documents[best].tolist()
    assert found[1][order].tobytes() == scores[best].tobytes()


def test_phrases_in_the_oldest_format_use_the_plain_search(ordered) -> None:
    partition = ordered.partitions[0]
    terms = WeightedTerms.plain(partition.term_ids([b"w0", b"w1"]), np.ones(2, np.float32), every=True)
    keys = partition.documents.row_ids
    assert best_phrases(partition, terms, PhraseOrder(np.arange(2)), 15.0, keys, 10) is None
