"""The Lance filter function `contains_tokens`: whether texts contain all words of other texts, compared verbatim."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.texts import joined_texts
from lance_duck.text.words import tokens_of_text

WRITTEN: Final = AnalyserParameters(
    lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False, max_token_length=None
)
"""Parameters that keep every run of letters and digits as a word, with its case and at any length."""


def written_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text, unchanged."""
    return tuple(dict.fromkeys(word for word, _ in tokens_of_text(text, WRITTEN)))


def contains_tokens(texts: pa.Array | pa.ChunkedArray, words: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    """Return whether each text contains all words of its counterpart in `words`, in any order.

    True if the counterpart does not contain words.

    Args:
        texts: string, (n,), without nulls.
        words: string, (n,), without nulls.
    """
    analyser = Analyser(WRITTEN)
    queries = joined_texts(words).dictionary_encode()
    which = queries.indices.to_numpy()
    tokens, query_tokens = analyser.analyse(texts), analyser.analyse(queries.dictionary)
    term_ids = pc.index_in(query_tokens.terms, value_set=tokens.terms).fill_null(-1).to_numpy().astype(np.int64)
    counts = np.diff(query_tokens.bounds)[which]
    rows = np.repeat(np.arange(len(which)), counts)
    terms = term_ids[query_tokens.term_ids[_spans(query_tokens.bounds[which], counts)]]
    text_terms = np.repeat(np.arange(tokens.num_texts), np.diff(tokens.bounds)) * len(tokens.terms) + tokens.term_ids
    result = np.ones(len(which), np.bool_)
    result[rows[(terms < 0) | ~np.isin(rows * len(tokens.terms) + terms, text_terms)]] = False
    return pa.array(result)


def _spans(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices start, start + 1, … of each span, span by span."""
    before = np.cumsum(counts) - counts
    spans: NDArray[np.int64] = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return spans
