"""Searches of an open segment, which find the rows that contain the trigrams of a query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_duck.arrow.types import is_text
from lance_duck.index.kind import Answer
from lance_duck.index.ngram.costs import MOST_TEXTS
from lance_duck.index.ngram.open import NGramFile, Trigrams
from lance_duck.index.query import Among, ContainsTrigrams, HasPrefix, Query
from lance_duck.rows.row_set import RowSet
from lance_duck.text.needles import certain_words, trigrams_of_words


class NGramIndex:
    """An open segment.

    Attributes:
        file: File of the segment.
        type: Storage type of the column.
    """

    def __init__(self, file: NGramFile, type_: pa.DataType) -> None:
        self.file = file
        self.type = type_

    def estimate(self, query: Query) -> int | None:
        """Return the row count of the result. Reads the posting lists, and caches them for the search that follows."""
        return len(self._rows(query))

    def search(self, query: Query) -> Answer:
        """Return the rows that may satisfy a query."""
        return Answer.at_most(self._rows(query))

    def row_names(self) -> RowSet:
        """Return the ids or addresses of all rows that are null or have a trigram. Reads all posting lists."""
        return RowSet.union(rows for _, rows in self.file.entries())

    def statistics(self) -> dict[str, Any]:
        """Return the number of tokens."""
        return {"num_ngrams": len(self.file.tokens)}

    def prewarm(self) -> None:
        """Read the posting lists, and fill the cache with them."""
        self.file.prewarm()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.file.nbytes

    def _rows(self, query: Query) -> RowSet:
        return RowSet.union(self.file.rows(trigrams) for trigrams in trigram_alternatives(query))


def trigram_alternatives(query: Query) -> list[Trigrams]:
    """Return the trigrams of each string for which a query searches. Returns [] for unsupported queries."""
    match query:
        case ContainsTrigrams(words):
            return [trigrams_of_words(words)]
        case HasPrefix(prefix) if is_text(prefix.type):
            return [trigrams_of_words(certain_words(prefix.as_py()))]
        case Among(values) if is_text(values.type) and len(values) <= MOST_TEXTS:
            return [trigrams_of_words(certain_words(value)) for value in values.to_pylist()]
    return []
