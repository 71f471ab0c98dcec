"""Searches for the best documents that skip postings give what scoring every posting gives, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.index.inverted.partitions import FORMS, contents_of, random_texts, segment_of

from lance_duck.index.inverted.codecs.scores import inverse_frequencies
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search import WeightedTerms, best_documents, matching_documents

WORDS = 120


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
    st.integers(0, 1000),
)
def test_the_best_are_the_best_of_all(partitions, form, words, every, k, share, least, seed) -> None:
    partition = partitions[form]
    random = np.random.default_rng(seed)
    count = partition.num_documents
    ids = partition.term_ids([f"w{i}".encode() for i in words])
    # Statistics of a larger index, of which this is a partition.
    weights = inverse_frequencies(3 * count, partition.document_frequencies(ids) + random.integers(1, count, len(ids)))
    average = random.uniform(1, 60)
    keys = random.permutation(count).astype(np.uint64)
    mask = None if share is None else random.random(count) < share
    terms = WeightedTerms.plain(ids, weights, every=every)
    documents, scores = matching_documents(partition, terms, average, mask)
    documents, scores = documents[scores >= least], scores[scores >= least]
    order = np.lexsort((keys[documents], -scores))[:k]
    found, their_scores = best_documents(partition, terms, average, keys, k, mask, least)
    assert found.tolist() == documents[order].tolist()
    assert their_scores.tobytes() == scores[order].tobytes()
