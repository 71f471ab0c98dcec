"""Partitions are merged: deleted rows are removed, other rows get their new addresses."""

import dataclasses

import numpy as np
import pytest
from unit.index.inverted.postings import reordered, rows_of, tokens_of, words_of

from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.invert import Inversion, TokenSorter
from lance_duck.index.inverted.merge import LivingPart, merged_partitions, whole_partition


def _contents(texts: dict[int, str], with_positions: bool = True) -> PartitionContents:
    tokens = tokens_of([words_of(text) for text in texts.values()])
    batch = TokenSorter(with_positions=with_positions).rows(tokens, np.array(list(texts), np.uint64))
    return Inversion([batch], with_positions=with_positions).whole()


def test_merged_documents_are_ordered_by_length_and_terms_shared() -> None:
    contents = merged_partitions(
        [whole_partition(_contents({1: "a b", 2: "b"})), whole_partition(_contents({3: "c b b"}))]
    )
    assert contents.terms.to_pylist() == [b"a", b"b", b"c"]
    assert contents.documents.num_tokens.tolist() == [1, 2, 3]
    assert contents.documents.row_ids.tolist() == [2, 1, 3]
    assert contents.document_ids.tolist() == [1, 0, 1, 2, 2]
    assert contents.frequencies.tolist() == [1, 1, 1, 2, 1]
    assert rows_of(contents) == {1: [("a", 0), ("b", 1)], 2: [("b", 0)], 3: [("c", 0), ("b", 1), ("b", 2)]}


def test_deleted_documents_are_removed_with_their_terms() -> None:
    whole = _contents({1: "a b", 2: "c b", 3: "b"})
    assert whole.documents.row_ids.tolist() == [3, 1, 2]
    contents = merged_partitions([LivingPart(whole, np.array([13, 11, 0], np.uint64), np.array([1, 1, 0]) > 0)])
    assert contents.terms.to_pylist() == [b"a", b"b"]
    assert rows_of(contents) == {11: [("a", 0), ("b", 1)], 13: [("b", 0)]}


def test_merging_only_deleted_documents_gives_an_empty_partition() -> None:
    one = _contents({1: "a b"})
    contents = merged_partitions([LivingPart(one, one.documents.row_ids, np.zeros(1, np.bool_))])
    assert len(contents.documents) == len(contents.terms) == len(contents.document_ids) == 0
    assert contents.bounds.tolist() == [0]


def test_merging_parts_without_positions_stores_no_positions() -> None:
    contents = merged_partitions(
        [whole_partition(_contents({1: "a a"}, False)), whole_partition(_contents({2: "a"}, False))]
    )
    assert contents.positions is None
    assert contents.frequencies.tolist() == [1, 2]


def test_parts_with_and_without_positions_are_not_merged() -> None:
    with pytest.raises(InvalidInputError, match="partitions that differ in positions"):
        merged_partitions([whole_partition(_contents({1: "a"}, False)), whole_partition(_contents({2: "a"}))])


def test_list_element_positions_stay_with_their_documents() -> None:
    contents = _contents({1: "a", 2: "b", 3: "c"})
    elements = (np.array([7, 8, 9], np.uint32), np.array([0, 1, 2], np.uint32))
    documents = Documents(contents.documents.row_ids, contents.documents.num_tokens, elements)
    part = dataclasses.replace(contents, documents=documents)
    lives = np.array([True, False, True])
    result = merged_partitions([LivingPart(part, documents.row_ids, lives), whole_partition(part)])
    assert [level.tolist() for level in result.documents.elements] == [[7, 9, 7, 8, 9], [0, 2, 0, 1, 2]]


def test_postings_of_unknown_documents_are_corrupt() -> None:
    contents = _contents({1: "a", 2: "b"})
    damaged = dataclasses.replace(contents, document_ids=contents.document_ids + np.uint32(1))
    with pytest.raises(CorruptError):
        merged_partitions([whole_partition(damaged)])


@pytest.mark.parametrize("in_row_order", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_merging_random_parts_keeps_their_live_documents(seed: int, in_row_order: bool) -> None:
    random = np.random.default_rng(seed)
    expected: dict[int, list[tuple[str, int]]] = {}
    order: list[tuple[int, int]] = []
    parts = []
    for part in range(3):
        texts = {
            part * 100 + i: " ".join(random.choice(list("abcdefghijkl"), random.integers(1, 8))) for i in range(30)
        }
        contents = _contents(texts)
        if in_row_order:
            contents = reordered(contents, np.argsort(contents.documents.row_ids))
        lives = random.random(30) < 0.7
        rows = contents.documents.row_ids[lives]
        parts.append(LivingPart(contents, contents.documents.row_ids + np.uint64(1000), lives))
        expected |= {row + 1000: words_of(texts[row]) for row in rows.tolist()}
        order += [(len(words_of(texts[row])), row + 1000) for row in rows.tolist()]
    merged = merged_partitions(parts)
    assert rows_of(merged) == expected
    assert merged.documents.row_ids.tolist() == [row for _, row in sorted(order)]


def test_merging_keeps_the_order_of_parts_among_equal_lengths() -> None:
    parts = [whole_partition(_contents(texts)) for texts in ({8: "a", 9: "b b"}, {3: "a", 4: "c c"})]
    assert merged_partitions(parts).documents.row_ids.tolist() == [8, 3, 9, 4]
