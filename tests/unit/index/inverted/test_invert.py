"""Tokens become postings: each term with its documents, how often they have it, and where."""

import numpy as np
import pyarrow as pa
import pytest
from unit.index.inverted.postings import rows_of, tokens_of, words_of

from lance_duck.index.inverted.contents import PartitionContents
from lance_duck.index.inverted.invert import Inversion, TokenBatch, TokenSorter
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters


def _inverted(batches: list[dict[int, str]], with_positions: bool = True) -> PartitionContents:
    return Inversion(_tokens(batches, with_positions), with_positions=with_positions).whole()


def _tokens(batches: list[dict[int, str]], with_positions: bool = True) -> list[TokenBatch]:
    return [
        TokenSorter(with_positions=with_positions).rows(
            tokens_of([words_of(text) for text in batch.values()]), np.array(list(batch), np.uint64)
        )
        for batch in batches
    ]


def test_each_term_lists_its_documents_frequencies_and_positions() -> None:
    contents = _inverted([{10: "the duck the lake", 11: "a duck"}])
    assert contents.terms.to_pylist() == [b"the", b"duck", b"lake", b"a"]
    assert contents.bounds.tolist() == [0, 1, 3, 4, 5]
    assert contents.document_ids.tolist() == [1, 0, 1, 1, 0]
    assert contents.frequencies.tolist() == [2, 1, 1, 1, 1]
    assert contents.positions is not None
    assert contents.positions.tolist() == [0, 2, 1, 1, 3, 0]
    assert contents.documents.row_ids.tolist() == [11, 10]
    assert contents.documents.num_tokens.tolist() == [2, 4]
    assert contents.documents.total_tokens == 6


def test_documents_of_all_batches_are_numbered_by_length_and_then_by_row() -> None:
    contents = _inverted([{4: "a b c", 5: "a", 6: "b a"}, {7: "c", 8: "a a a"}, {9: "b b"}])
    assert contents.documents.num_tokens.tolist() == [1, 1, 2, 2, 3, 3]
    assert contents.documents.row_ids.tolist() == [5, 7, 6, 9, 4, 8]
    assert contents.document_ids.tolist() == [0, 2, 4, 5, 2, 3, 4, 1, 4]


def test_rows_of_more_than_65535_terms_are_numbered_by_length() -> None:
    contents = _inverted([{1: "a " * 65536, 2: "a " * 3, 3: "a " * 65537, 4: "a " * 2}])
    assert contents.documents.row_ids.tolist() == [4, 2, 1, 3]
    assert contents.frequencies.tolist() == [2, 3, 65536, 65537]


def test_rows_without_terms_are_not_documents() -> None:
    contents = _inverted([{5: "", 6: "x", 7: "", 8: "y x"}, {9: ""}])
    assert rows_of(contents) == {6: [("x", 0)], 8: [("y", 0), ("x", 1)]}


def test_term_ids_follow_the_first_occurrence_across_batches() -> None:
    contents = _inverted([{1: "b a b", 2: "c"}, {3: "d a", 4: "b"}])
    assert contents.terms.to_pylist() == [b"b", b"a", b"c", b"d"]
    assert rows_of(contents) == {
        1: [("b", 0), ("a", 1), ("b", 2)],
        2: [("c", 0)],
        3: [("d", 0), ("a", 1)],
        4: [("b", 0)],
    }


@pytest.mark.parametrize("batches", [[], [{}], [{1: ""}, {2: ""}]])
def test_no_tokens_give_an_empty_partition(batches: list[dict[int, str]]) -> None:
    contents = _inverted(batches)
    assert len(contents.documents) == len(contents.terms) == len(contents.document_ids) == 0
    assert contents.terms.type == pa.large_binary()
    assert contents.bounds.tolist() == [0]
    assert contents.positions is not None
    assert len(contents.positions) == 0


def test_positions_are_optional() -> None:
    contents = _inverted([{1: "a b a"}], with_positions=False)
    assert contents.positions is None
    assert contents.frequencies.tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(4))
def test_random_documents_are_inverted_correctly(seed: int) -> None:
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(list("abcdefghij"), random.integers(0, 12))) for _ in range(60)]
    batches = [{i: text for i, text in enumerate(texts) if i // 20 == b} for b in range(3)]
    assert rows_of(_inverted(batches)) == {i: words_of(text) for i, text in enumerate(texts) if text}


@pytest.mark.parametrize("with_positions", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_cover_the_partition_term_by_term(seed: int, with_positions: bool) -> None:
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(list("abcdefghij"), random.integers(0, 12))) for _ in range(60)]
    batches = [{i: text for i, text in enumerate(texts) if i // 20 == b} for b in range(3)]
    whole = _inverted(batches, with_positions)
    pieces = list(Inversion(_tokens(batches, with_positions), with_positions=with_positions).pieces(30))
    assert len(pieces) > 1
    assert pa.concat_arrays([piece.terms for piece in pieces]).equals(whole.terms)
    lengths = [np.diff(piece.bounds) for piece in pieces]
    np.testing.assert_array_equal(np.concatenate(lengths), np.diff(whole.bounds))
    for name in ("document_ids", "frequencies", "positions"):
        parts = [getattr(piece, name) for piece in pieces]
        if getattr(whole, name) is None:
            assert parts == [None] * len(pieces)
        else:
            np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, name))
    for piece in pieces:
        assert piece.documents.row_ids.tolist() == whole.documents.row_ids.tolist()


def test_a_piece_has_whole_terms_and_a_limited_number_of_postings() -> None:
    texts = dict.fromkeys(range(8), "a b c d e f g h i j")
    pieces = list(Inversion(_tokens([texts]), with_positions=True).pieces(1))
    assert [len(piece.terms) for piece in pieces] == [1] * 10
    texts = {row: " ".join(f"w{row}x{word}" for word in range(20)) for row in range(8)}
    pieces = list(Inversion(_tokens([texts]), with_positions=True).pieces(30))
    assert [len(piece.document_ids) for piece in pieces] == [30] * 5 + [10]


@pytest.mark.parametrize("batches", [[], [{1: ""}]])
def test_no_tokens_give_one_piece(batches: list[dict[int, str]]) -> None:
    (piece,) = Inversion(_tokens(batches), with_positions=True).pieces()
    assert len(piece.documents) == len(piece.terms) == 0


def test_runs_are_freed_after_their_postings_are_built() -> None:
    inversion = Inversion(_tokens([{1: "a b"}, {2: "c"}]), with_positions=False)
    empty = Inversion(with_positions=False)
    assert inversion.nbytes > empty.nbytes
    for piece in inversion.pieces(1):
        assert bool(inversion._runs) == (piece.terms[-1].as_py() != b"c")


@pytest.mark.parametrize("seed", range(4))
def test_batches_with_several_vocabularies_form_one_partition(seed: int) -> None:
    random = np.random.default_rng(seed)
    analyser = Analyser(AnalyserParameters())
    texts = [" ".join(random.choice(["cat", "cats", "the", "Ä", "lake", f"w{i % 9}"], 7)) for i in range(60)]
    vocabularies = [analyser.vocabulary() for _ in range(3)]
    sorters = [TokenSorter(with_positions=True, vocabulary=vocabulary) for vocabulary in vocabularies]
    numbered, own = [], []
    for at in range(0, 60, 10):
        column, rows = pa.array(texts[at : at + 10]), np.arange(at, at + 10, dtype=np.uint64)
        which = random.integers(3)
        numbered.append(sorters[which].rows(analyser.analyse(column, vocabularies[which]), rows))
        own.append(TokenSorter(with_positions=True).rows(analyser.analyse(column), rows))
    contents, expected = (Inversion(batches, with_positions=True).whole() for batches in (numbered, own))
    assert contents.terms.equals(expected.terms)
    for name in ("bounds", "document_ids", "frequencies", "positions"):
        np.testing.assert_array_equal(getattr(contents, name), getattr(expected, name))
    assert rows_of(contents) == {
        row: [(t.text, t.position) for t in analyser.terms_of(text)] for row, text in enumerate(texts)
    }
