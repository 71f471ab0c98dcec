"""Tokens become postings: each term with its documents, how often they have it, and where."""

import numpy as np
import pyarrow as pa
import pytest
from unit.index.inverted.postings import rows_of, tokens_of, words_of

from lance_duck.index.inverted.contents import PartitionContents
from lance_duck.index.inverted.invert import inverted, token_batch


def _inverted(batches: list[dict[int, str]], with_positions: bool = True) -> PartitionContents:
    made = [
        token_batch(
            tokens_of([words_of(text) for text in batch.values()]),
            np.array(list(batch), np.uint64),
            with_positions=with_positions,
        )
        for batch in batches
    ]
    return inverted(made, with_positions=with_positions)


def test_each_term_has_its_documents_with_frequencies_and_positions() -> None:
    contents = _inverted([{10: "the duck the lake", 11: "a duck"}])
    assert contents.terms.to_pylist() == [b"the", b"duck", b"lake", b"a"]
    assert contents.bounds.tolist() == [0, 1, 3, 4, 5]
    assert contents.document_ids.tolist() == [0, 0, 1, 0, 1]
    assert contents.frequencies.tolist() == [2, 1, 1, 1, 1]
    assert contents.positions is not None
    assert contents.positions.tolist() == [0, 2, 1, 1, 3, 0]
    assert contents.documents.row_ids.tolist() == [10, 11]
    assert contents.documents.num_tokens.tolist() == [4, 2]
    assert contents.documents.total_tokens == 6


def test_rows_without_terms_are_no_documents() -> None:
    contents = _inverted([{5: "", 6: "x", 7: "", 8: "y x"}, {9: ""}])
    assert rows_of(contents) == {6: [("x", 0)], 8: [("y", 0), ("x", 1)]}


def test_batches_share_their_terms_in_order_of_first_occurrence() -> None:
    contents = _inverted([{1: "b a b", 2: "c"}, {3: "d a", 4: "b"}])
    assert contents.terms.to_pylist() == [b"b", b"a", b"c", b"d"]
    assert rows_of(contents) == {
        1: [("b", 0), ("a", 1), ("b", 2)],
        2: [("c", 0)],
        3: [("d", 0), ("a", 1)],
        4: [("b", 0)],
    }


@pytest.mark.parametrize("batches", [[], [{}], [{1: ""}, {2: ""}]])
def test_no_tokens_make_an_empty_partition(batches: list[dict[int, str]]) -> None:
    contents = _inverted(batches)
    assert len(contents.documents) == len(contents.terms) == len(contents.document_ids) == 0
    assert contents.terms.type == pa.large_binary()
    assert contents.bounds.tolist() == [0]
    assert contents.positions is not None
    assert len(contents.positions) == 0


def test_positions_are_left_out_where_they_are_not_wanted() -> None:
    contents = _inverted([{1: "a b a"}], with_positions=False)
    assert contents.positions is None
    assert contents.frequencies.tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_come_back_as_they_were(seed: int) -> None:
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(list("abcdefghij"), random.integers(0, 12))) for _ in range(60)]
    batches = [{i: text for i, text in enumerate(texts) if i // 20 == b} for b in range(3)]
    assert rows_of(_inverted(batches)) == {i: words_of(text) for i, text in enumerate(texts) if text}
