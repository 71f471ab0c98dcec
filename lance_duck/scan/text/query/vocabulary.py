"""Finds the vocabulary terms that match a query word: similar terms, and terms with the word as a prefix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.scan.text.query.tree import PhraseQuery
from lance_duck.scan.text.query.words import Word, WordQuery, query_words
from lance_duck.text.analyser import Analyser
from lance_duck.text.phrases import Target, phrases_of


def matching_terms(terms: pa.LargeBinaryArray, word: Word) -> list[bytes]:
    """Return the terms to which a word expands, in byte order.

    Args:
        terms: Distinct terms, large_binary, without nulls, in any order.
        word: The word.
    """
    matches: set[bytes] = set()
    if word.term is not None:
        matches.update(near_terms(terms, word.term, word.edits, word.fixed) if word.edits else _same(terms, word.term))
    if word.beginning is not None:
        matches.update(terms.filter(pc.starts_with(terms, word.beginning)).to_pylist())
    return sorted(matches)


def marked_by(query: WordQuery, texts: pa.Array | pa.ChunkedArray, analyser: Analyser) -> Iterator[Target]:
    """Yield the terms to mark in texts: those that match the query's words or phrase.

    Args:
        query: The query.
        texts: string, large_string or string_view.
        analyser: Analyser of the texts.
    """
    if isinstance(query, PhraseQuery):
        yield from phrases_of(query.query, analyser, query.slop)
        return
    terms = analyser.analyse(texts).terms
    for word in query_words(query, analyser):
        yield from (term.decode() for term in matching_terms(terms, word))


def near_terms(terms: pa.LargeBinaryArray, term: bytes, edits: int, fixed: int = 0) -> list[bytes]:
    """Return the terms within an edit distance (insert, delete, replace a character) of a term.

    Args:
        terms: Distinct terms, large_binary, without nulls.
        term: The term, in UTF-8.
        edits: Maximum edit distance.
        fixed: Number of leading characters that must match.
    """
    text = term.decode("utf-8", "replace")
    sizes = pc.binary_length(terms)
    least, most = max(0, len(text) - edits), 4 * (len(text) + edits)
    candidates = terms.filter(pc.and_(pc.greater_equal(sizes, least), pc.less_equal(sizes, most)))
    start = text[:fixed]
    if start:
        candidates = candidates.filter(pc.starts_with(candidates, start.encode("utf-8", "replace")))
    texts = _texts(candidates)
    lengths = pc.utf8_length(texts).to_numpy()
    places = np.flatnonzero(np.abs(lengths - len(text)) <= edits)
    if not len(places):
        return []
    matrix = _characters(texts.take(pa.array(places)), lengths[places])
    is_near = _distances(_code_points(text), matrix, lengths[places], edits) <= edits
    matches: list[bytes] = candidates.take(pa.array(places[is_near])).to_pylist()
    return matches


def _same(terms: pa.LargeBinaryArray, term: bytes) -> list[bytes]:
    return [term] if pc.index(terms, pa.scalar(term, terms.type)).as_py() >= 0 else []


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _texts(terms: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """Decode terms. A corrupt index may contain bytes that are not UTF-8. These are replaced."""
    try:
        return terms.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([term.decode("utf-8", "replace") for term in terms.to_pylist()], pa.large_string())


def _characters(texts: pa.LargeStringArray, lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the characters of texts as a matrix with one text per column, zero-padded."""
    matrix = np.zeros((len(texts), int(lengths.max(initial=0))), np.uint32)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = _code_points("".join(texts.to_pylist()))
    return np.ascontiguousarray(matrix.T)


def _distances(
    word: NDArray[np.uint32], texts: NDArray[np.uint32], lengths: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """Return the Levenshtein distances between a word and texts. They are exact up to `most`.

    The lengths of the word and the texts must not differ by more than `most`. For row i of the distance matrix, only
    columns i - `most` to i + `most` are computed, for all texts at once.
    """
    band = min(most, max(len(word), texts.shape[0]))
    far = len(word) + texts.shape[0] + 1
    row = np.full((2 * band + 1, texts.shape[1]), far, np.int64)
    for column in range(band + 1):
        row[band + column] = column
    for i in range(1, len(word) + 1):
        above, row = row, np.full_like(row, far)
        for k in range(2 * band + 1):
            column = i + k - band
            if not 0 <= column <= texts.shape[0]:
                continue
            best = above[k + 1] + 1 if k < 2 * band else row[k] * 1
            if column:
                best = np.minimum(best, above[k] + (texts[column - 1] != word[i - 1]))
                if k:
                    best = np.minimum(best, row[k - 1] + 1)
            row[k] = best
    result: NDArray[np.int64] = row[lengths - len(word) + band, np.arange(texts.shape[1])]
    return result
