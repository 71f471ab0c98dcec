from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unit.index.inverted.partitions import FORMS, contents_of, random_texts, segment_of

from lance_duck.errors import CorruptError
from lance_duck.index.inverted.codecs import blocks
from lance_duck.index.inverted.codecs.scores import inverse_frequencies
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search import (
    WeightedTerms,
    best_documents,
    count_documents,
    intersect,
    matching_documents,
)
from lance_duck.index.inverted.search.intersect import last_documents

TEXTS = [["a"], ["a", "b", "a"], ["c", "b"], ["b", "a", "c", "a", "a"]]


def searched(partition: InvertedPartition, words: str, *, every: bool = False) -> dict[int, float]:
    ids = partition.term_ids([word.encode() for word in words.split()])
    weights = inverse_frequencies(partition.num_documents, partition.document_frequencies(ids))
    average = partition.total_tokens / partition.num_documents
    terms = WeightedTerms.plain(ids, weights, every=every)
    documents, scores = matching_documents(partition, terms, average)
    return dict(zip(documents.tolist(), scores.tolist(), strict=True))


def expected(words: str, *, every: bool = False) -> dict[int, float]:
    average = np.float32(sum(map(len, TEXTS)) / len(TEXTS))
    result = {}
    for i, text in enumerate(TEXTS):
        found = [word for word in words.split() if word in text]
        if found and (not every or len(found) == len(words.split())):
            score = np.float32(0)
            for word in found:
                frequency = np.float32(text.count(word))
                has = sum(word in other for other in TEXTS)
                ratio = (np.float32(len(TEXTS)) - has + np.float32(0.5)) / np.float32(has + 0.5) + np.float32(1)
                norm = np.float32(1.2) * (np.float32(0.25) + np.float32(0.75) * np.float32(len(text)) / average)
                idf = np.float32(np.log(np.float64(ratio)))
                score += idf * (np.float32(2.2) * frequency / (frequency + norm))
            result[i] = float(score)
    return result


@pytest.mark.parametrize("words", ["a", "c", "a b", "b a", "a a", "c missing", "missing"])
@pytest.mark.parametrize("every", [False, True])
def test_scores_equal_the_formula(tmp_path, words, every) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    assert searched(partition, words, every=every) == expected(words, every=every)


def test_word_variants_count_as_one_word(tmp_path) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    ids = partition.term_ids([b"a", b"c", b"b"])
    terms = WeightedTerms(ids, np.ones(3, np.float32), np.array([0, 0, 1]), 2, every=True)
    documents, _ = matching_documents(partition, terms, 3.0)
    assert documents.tolist() == [1, 2, 3]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("every", [False, True])
def test_as_many_documents_are_counted_as_are_found(tmp_path, form, every) -> None:
    rng = np.random.default_rng(5)
    (partition,) = segment_of(tmp_path, [contents_of(random_texts(900))], **form).partitions
    number = len(partition.sorted_terms)
    for _ in range(30):
        size = rng.integers(1, 6)
        ids, slots = rng.integers(0, number, size), np.sort(rng.integers(0, 3, size))
        slots = np.unique(slots, return_inverse=True)[1]
        terms = WeightedTerms(ids, np.ones(size, np.float32), slots, int(slots.max()) + rng.integers(1, 3), every)
        for mask in (None, rng.random(partition.num_documents) < 0.5):
            documents, _ = matching_documents(partition, terms, 3.0, mask)
            assert count_documents(partition, terms, mask) == len(documents)


def test_the_lowest_keys_win_among_equal_scores(tmp_path) -> None:
    (partition,) = segment_of(tmp_path, [contents_of([["a"]] * 3000 + [["b"]])]).partitions
    keys = np.random.default_rng(1).permutation(3001).astype(np.uint64)
    terms = WeightedTerms.plain(np.array([0]), np.ones(1, np.float32))
    documents, scores = best_documents(partition, terms, 1.0, keys, 5)
    assert keys[documents].tolist() == sorted(keys[:3000].tolist())[:5]
    assert len(set(scores.tolist())) == 1


def test_documents_below_the_minimum_score_are_skipped(tmp_path) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    terms = WeightedTerms.plain(np.array([0]), np.ones(1, np.float32))
    keys = partition.documents.row_ids
    _, scores = best_documents(partition, terms, 2.75, keys, 3)
    documents, _ = best_documents(partition, terms, 2.75, keys, 3, least=float(scores[1]))
    assert len(documents) == 2


@pytest.mark.parametrize("form", FORMS)
def test_the_first_document_of_a_block_bounds_the_previous_block(tmp_path, form) -> None:
    texts = [["a", "b"] if i % 3 else ["a"] for i in range(1000)]
    (partition,) = segment_of(tmp_path, [contents_of(texts)], **form).partitions
    postings = partition.postings(partition.term_ids([b"a", b"b"]), with_impacts=False)
    size = postings.form.size
    firsts = [[i for i in range(1000) if word in texts[i]][::size] for word in ("a", "b")]
    expected = [last for each in firsts for last in [*(first - 1 for first in each[1:]), 999]]
    assert last_documents(postings).tolist() == expected


def test_descending_first_documents_are_detected(tmp_path) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(random_texts(2000))]).partitions
    sound = partition.postings(np.array([0]), with_impacts=False)
    data = sound.blocks.data.copy()
    data[sound.blocks.offsets[1] + 4 : sound.blocks.offsets[1] + 8] = 0
    with pytest.raises(CorruptError, match="postings"):
        last_documents(replace(sound, blocks=replace(sound.blocks, data=data)))


def replace_postings(partition: InvertedPartition, broken: PostingBlocks) -> None:
    """Let a partition return postings that replace its own, to all searches."""
    places = np.arange(len(broken))
    partition.postings = lambda ids, with_impacts=True: broken  # type: ignore[method-assign]
    partition.source_of = lambda ids, **_: (broken.blocks, broken.impacts, broken.lengths, places)  # type: ignore[method-assign]


@pytest.mark.parametrize("few", [0, 1 << 30])
@pytest.mark.parametrize("form", FORMS)
def test_damaged_postings_of_required_words_are_detected(tmp_path, monkeypatch, form, few) -> None:
    monkeypatch.setattr(intersect, "FEW_MATCHES", few)
    (partition,) = segment_of(tmp_path, [contents_of(random_texts(2000))], **form).partitions
    sound = partition.postings(np.array([0, 1]))
    data = sound.blocks.data.copy()
    data[20:60] ^= 0xFF
    broken = replace(sound, blocks=replace(sound.blocks, data=data))
    replace_postings(partition, broken)
    terms = WeightedTerms.plain(np.array([0, 1]), np.ones(2, np.float32), every=True)
    with pytest.raises(CorruptError, match="postings"):
        best_documents(partition, terms, 15.0, np.arange(2000, dtype=np.uint64), 1999)


@pytest.mark.parametrize("words", [[0], [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("k", [5, 1990])
def test_overlapping_blocks_are_detected(tmp_path, words, k) -> None:
    size = 128
    texts = [["a", *(["b"] if i % 2 else []), *(["c"] if i % 400 == 0 else [])] for i in range(2000)]
    (partition,) = segment_of(tmp_path, [contents_of(texts)]).partitions
    sound = partition.postings(np.array(words))
    data = sound.blocks.data.copy()
    block = int(sound.blocks.lists[0]) + 1
    ids, frequencies = np.arange(size, 2 * size, dtype=np.uint32), np.full(size, 1, np.uint32)
    ids[0] = 3  # the block before ends with 127
    column = blocks.encode(np.array([0, size]), ids, frequencies, np.ones(1, np.float32), sound.form)
    overlapping = np.frombuffer(column[0].as_py()[0], np.uint8)
    offsets = sound.blocks.offsets
    data = np.concatenate([data[: offsets[block]], overlapping, data[offsets[block + 1] :]])
    moved = offsets.copy()
    moved[block + 1 :] += len(overlapping) - (offsets[block + 1] - offsets[block])
    broken = replace(sound, blocks=replace(sound.blocks, data=data, offsets=moved))
    replace_postings(partition, broken)
    terms = WeightedTerms.plain(np.array(words), np.ones(len(words), np.float32))
    with pytest.raises(CorruptError, match="postings"):
        matching_documents(partition, terms, 2.0)
    with pytest.raises(CorruptError, match="postings"):
        best_documents(partition, terms, 2.0, np.arange(2000, dtype=np.uint64), k)


@pytest.mark.parametrize("form", FORMS)
def test_damaged_postings_are_detected(tmp_path, form) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(random_texts(2000))], **form).partitions
    sound = partition.postings(np.array([0]))
    data = sound.blocks.data.copy()
    data[20:60] ^= 0xFF
    broken = replace(sound, blocks=replace(sound.blocks, data=data))
    replace_postings(partition, broken)
    terms = WeightedTerms.plain(np.array([0]), np.ones(1, np.float32))
    keys = np.arange(2000, dtype=np.uint64)
    with pytest.raises(CorruptError, match="postings"):
        matching_documents(partition, terms, 15.0)
    with pytest.raises(CorruptError, match="postings"):
        best_documents(partition, terms, 15.0, keys, 1999)
