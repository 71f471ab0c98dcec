"""Plain models of a partition: lists of words for each row."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.text.tokens import Tokens

Rows = Mapping[int, Sequence[tuple[str, int]]]
"""Words with their positions, of each row."""


def tokens_of(texts: Sequence[Sequence[tuple[str, int]]]) -> Tokens:
    """Return what an analyser would give for texts of these words."""
    words = list(dict.fromkeys(word for text in texts for word, _ in text))
    ids = {word: i for i, word in enumerate(words)}
    flat = [token for text in texts for token in text]
    return Tokens(
        pa.array([word.encode() for word in words], pa.large_binary()),
        np.array([ids[word] for word, _ in flat], np.uint32),
        np.array([position for _, position in flat], np.uint32),
        np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64),
    )


def words_of(row: str) -> list[tuple[str, int]]:
    """Return the words of a string in order."""
    return [(word, i) for i, word in enumerate(row.split())]


def rows_of(contents: PartitionContents) -> dict[int, list[tuple[str, int]]]:
    """Return the words of each row by position, or 0 without positions, after checking the partition."""
    documents = contents.documents
    rows: list[list[tuple[str, int]]] = [[] for _ in range(len(documents))]
    terms = [term.decode() for term in contents.terms.to_pylist()]
    assert len(set(terms)) == len(terms) == len(contents.bounds) - 1
    assert contents.bounds[0] == 0
    assert contents.bounds[-1] == len(contents.document_ids) == len(contents.frequencies)
    positions = contents.positions
    kept = np.zeros(int(contents.frequencies.sum()), np.uint32) if positions is None else positions
    assert len(kept) == contents.frequencies.sum()
    starts = np.append(0, np.cumsum(contents.frequencies, dtype=np.int64))
    for i, term in enumerate(terms):
        run = range(contents.bounds[i], contents.bounds[i + 1])
        ids = contents.document_ids[run.start : run.stop]
        assert len(ids)
        assert (np.diff(ids.astype(np.int64)) > 0).all()
        for j in run:
            rows[contents.document_ids[j]] += [(term, p) for p in kept[starts[j] : starts[j + 1]].tolist()]
    assert documents.num_tokens.tolist() == [len(words) for words in rows]
    assert len(set(documents.row_ids.tolist())) == len(documents)
    return {
        row: sorted(words, key=lambda pair: (pair[1], pair[0]))
        for row, words in zip(documents.row_ids.tolist(), rows, strict=True)
    }


def reordered(contents: PartitionContents, order: NDArray[np.int64]) -> PartitionContents:
    """Return a partition whose documents have another order, like those of other writers."""
    old = contents.documents
    documents = Documents(old.row_ids[order], old.num_tokens[order], tuple(level[order] for level in old.elements))
    ids = np.empty(len(order), np.uint32)
    ids[order] = np.arange(len(order))
    new = ids[contents.document_ids]
    places = np.lexsort([new, np.repeat(np.arange(len(contents.terms)), np.diff(contents.bounds))])
    positions = contents.positions
    if positions is not None and len(places):
        pieces = np.split(positions, np.cumsum(contents.frequencies)[:-1])
        positions = np.concatenate([pieces[i] for i in places])
    frequencies = contents.frequencies[places]
    return PartitionContents(documents, contents.terms, contents.bounds, new[places], frequencies, positions)
