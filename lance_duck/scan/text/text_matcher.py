"""Matches in-memory texts against a word query. Scores use the statistics of the table.

A text matches like a row and gets the same score. This is the reference implementation of an index search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.scan.text.leaves import Weights, match_among
from lance_duck.scan.text.places import AnalysedRows
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery
from lance_duck.scan.text.query.words import Word
from lance_duck.text.analyser import Analyser
from lance_duck.text.texts import joined_texts


@dataclass(frozen=True, eq=False)
class TextMatcher:
    """A word query on one column, for in-memory texts. Safe to use from several threads.

    Attributes:
        query: The query.
        words: Words of the query.
        weights: Weights of the words among the rows of the table.
        analyser: Analyser of the column.
        by_element: Whether documents are list elements. The score of a list is then the score of its best element.
    """

    query: MatchQuery | PhraseQuery
    words: Sequence[Word]
    weights: Weights
    analyser: Analyser
    by_element: bool = False

    def scores(self, texts: pa.Array | pa.ChunkedArray) -> NDArray[np.float32]:
        """Return the score of each text, float32. Texts that are null or do not match get NaN.

        Args:
            texts: Texts or lists of texts, in the form that `Analyser.analyse` accepts.
        """
        array, numbers = joined_texts(texts), np.arange(len(texts), dtype=np.uint64)
        rows = AnalysedRows.of(numbers, array, self.analyser, by_element=self.by_element)
        terms = {word.term for word in self.words if word.term is not None}
        place = rows.narrowed(terms.union(self.weights.terms))
        matches = match_among(self.weights, self.query, self.words, place)
        scores = np.full(len(texts), np.nan, np.float32)
        np.fmax.at(scores, self.weights.corpus.addresses(place, matches.names), matches.scores)
        return scores
