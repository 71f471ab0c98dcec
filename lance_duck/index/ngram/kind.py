"""N-gram indexes: for each trigram of a text column, the rows whose text contains it.

_indices/{uuid}/ngram_postings.lance    see `index.ngram.layout`

Trigrams ignore case and accents, so results are never exact. The scan checks the condition on the rows found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from lance_duck.arrow.types import is_text
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions, Details, MergedKind, MergeInput
from lance_duck.index.ngram.build import PostingRuns
from lance_duck.index.ngram.merge import merged_tokens, remapped_tokens
from lance_duck.index.ngram.open import NGramFile
from lance_duck.index.ngram.search import NGramIndex, trigram_alternatives
from lance_duck.index.ngram.write import write_ngram_file
from lance_duck.index.query import Query


class NGramKind(MergedKind):
    """N-gram indexes."""

    name: str = "NGram"
    type_url: str = "/lance.table.NGramIndexDetails"
    versions: range = range(2)
    rows_by: str = "version"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of a storage type can be indexed: only strings."""
        return is_text(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return True for queries for trigrams, a prefix or a few strings, if each string contains a trigram."""
        if not is_text(type_):
            return False
        alternatives = trigram_alternatives(query)
        return bool(alternatives) and all(map(len, alternatives))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> NGramIndex:
        """Open a segment, and read its tokens."""
        return NGramIndex(NGramFile(files), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows."""
        with PostingRuns(options) as runs:
            for batch in rows or ():
                runs.add(batch.column(VALUE), batch.column(ROW).to_numpy())
            old = [remapped_tokens(part.index.file.entries(), part.follow) for part in parts]
            write_ngram_file(merged_tokens([*old, *runs.sources()]), writer)
        return Details(0)


NGRAM: Final[NGramKind] = NGramKind()
