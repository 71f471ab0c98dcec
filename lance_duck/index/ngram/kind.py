"""N-gram indexes: for each trigram of a text column the set of rows whose text has it.

_indices/{uuid}/ngram_postings.lance    see `index.ngram.file`

Details are an empty message, the version is 0. Rows go by their stable ids where the table has them; from version 1 on
by address.

A trigram is in lower case and without accents, so an answer is never sure: the scan checks the condition on its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import is_text
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, Answer, BuildOptions, Details, MergedKind, MergeInput
from lance_duck.index.ngram.costs import MOST_TEXTS
from lance_duck.index.ngram.file import NGramFile, Trigrams
from lance_duck.index.ngram.runs import PostingRuns
from lance_duck.index.ngram.write import remapped_tokens, write_ngram_file
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
        """Return the number of rows of an answer; reads posting lists, which are cached for the search that follows."""
        return len(self._rows(query))

    def search(self, query: Query) -> Answer:
        """Return the rows that may satisfy a query."""
        return Answer.at_most(self._rows(query))

    def row_names(self) -> RowSet:
        """Return the names of all rows with a trigram, and of those that are null; reads all posting lists."""
        return RowSet.union(rows for _, rows in self.file.entries())

    def statistics(self) -> dict[str, Any]:
        """Return the number of tokens."""
        return {"num_ngrams": len(self.file.tokens)}

    def prewarm(self) -> None:
        """Read the posting lists, and keep as many as the cache holds."""
        self.file.prewarm()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.file.nbytes

    def _rows(self, query: Query) -> RowSet:
        return RowSet.union(self.file.rows(trigrams) for trigrams in _alternatives(query))


class NGramKind(MergedKind):
    """N-gram indexes."""

    name: str = "NGram"
    type_url: str = "/lance.table.NGramIndexDetails"
    versions: range = range(2)
    rows_by: str = "version"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of a storage type can be indexed: texts."""
        return is_text(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a query is one for trigrams, for a prefix with a trigram, or for a few texts with one each."""
        if not is_text(type_):
            return False
        alternatives = _alternatives(query)
        return bool(alternatives) and all(map(len, alternatives))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> NGramIndex:
        """Open a segment, which reads the tokens."""
        return NGramIndex(NGramFile(files), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of other segments and of new rows."""
        with PostingRuns(options) as runs:
            for batch in rows or ():
                runs.add(batch.column(VALUE), batch.column(ROW).to_numpy())
            old = [remapped_tokens(part.index.file.entries(), part.follow) for part in parts]
            write_ngram_file([*old, *runs.sources()], writer)
        return Details(0)


def _alternatives(query: Query) -> list[Trigrams]:
    """Return the trigrams of each text that a value may contain or equal; none for a query that is not about texts."""
    match query:
        case ContainsTrigrams(words):
            return [trigrams_of_words(words)]
        case HasPrefix(prefix) if is_text(prefix.type):
            return [trigrams_of_words(certain_words(prefix.as_py()))]
        case Among(values) if is_text(values.type) and len(values) <= MOST_TEXTS:
            return [trigrams_of_words(certain_words(value)) for value in values.to_pylist()]
    return []


NGRAM: Final[NGramKind] = NGramKind()
