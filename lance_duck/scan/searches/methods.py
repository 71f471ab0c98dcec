"""The methods of a dataset that search and prepare.

This is a mixin because `dataset.py` would otherwise exceed 500 lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.scan.arguments import CountArguments, SearchArguments
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.table_scan import HasTable

if TYPE_CHECKING:
    from lance_duck.scan.duplicates import search as duplicates
    from lance_duck.scan.searches import builder, prepared, prepared_base, prepared_filter, request
else:
    duplicates = lazy.modules(globals(), "lance_duck.scan.duplicates", "search")
    builder, prepared, prepared_base, prepared_filter, request = lazy.modules(
        globals(), "lance_duck.scan.searches", "builder", "prepared", "prepared_base", "prepared_filter", "request"
    )


@checked_calls
class Searches:
    """Mixin that searches a dataset."""

    handle: HasTable
    _defaults: Mapping[str, Any]

    @overload
    def search(self, q: Any, k: int, column: str | None = None, **options: Unpack[SearchArguments]) -> pa.Table: ...

    @overload
    def search(
        self, q: Any = None, k: None = None, column: str | None = None, **options: Unpack[SearchArguments]
    ) -> builder.LanceQueryBuilder: ...

    def search(
        self, q: Any = None, k: int | None = None, column: str | None = None, **options: Unpack[SearchArguments]
    ) -> pa.Table | builder.LanceQueryBuilder:
        """Search by vector, by words, or both, and return the rows best first.

        With `k` the result is a pyarrow Table. Without `k`, returns a builder, which can be refined before its rows are
        read: `ds.search(q).where("price < 9").select(["id"]).limit(3).to_list()`. It has all attributes and methods of
        a Table, and reads its rows when one is first used. See `LanceQueryBuilder`.

        For a hybrid search, call `ds.search(vector, full_text_query="duck lake")`. Rows have `_distance`, `_score` and
        `_hybrid_score`, which is computed from both. `_distance` or `_score` is null if only the other search found the
        row.

        With `rerank`, the search finds `oversample_factor` · k candidates, and returns the k rows that a reranker
        prefers, with a `_relevance_score`. A reranker is "rrf", "linear" or "mrr", which combine both searches of a
        hybrid search, "mmr", which prefers rows that differ from each other, or an object of `lance_duck.rerankers`
        with other parameters. It may also be a function `rerank(candidates, query)`. The candidates are a Table with
        the requested columns, `_rowid`, and `_distance` or `_score` or both. The query is the words, or the vector if
        there are none. The function returns one finite number per candidate (greater is better), or a Table with some
        of the candidates and their `_rowid`, best first. Objects with the methods of LanceDB's rerankers
        (`rerank_hybrid`, `rerank_vector`, `rerank_fts`) also work.

        If the table's metadata names an embedder for the vector column (see `set_embedding_function`), `q` may be a
        text, whose vector is searched. Without `column`, a text is searched as a vector if an embedder is registered,
        and otherwise as words.

        Args:
            q: A vector: a list, numpy array or Arrow array of numbers, or a matrix or list of lists for several
                queries. The rows then have a `_distance`. Or words: a string, a query from `lance_duck.query` or its
                JSON form. The result then contains matching rows with a `_score`. None without `k` starts a scan, or a
                search that you define with the builder's methods.
            k: Number of rows per query. None derives it from `limit` and `offset`, or uses 10.
            column: Name of the vector or text column. Optional if the table has only one vector column, or for words,
                only one full-text index.
            options: Other arguments of `scanner` (columns, filter, prefilter, …), and of `nearest` (metric, recall,
                nprobes, ef, refine_factor, use_index, exact_distance, distance_range, …). A hybrid search also has
                `method` and `oversample_factor`. The method "linear" is a weighted sum of the distance and the score,
                each scaled to 0 … 1. `alpha` is the weight of the vector search (0.5). The method "rrf" is the sum of
                inverse ranks. `oversample_factor` is the number of candidates of each search, as a multiple of k (4).

        Raises:
            InvalidInputError: An argument does not fit this table.
        """
        table = self.handle.table
        if k is None:
            return builder.LanceQueryBuilder(table, q, column, options)
        return request.read_table(table, request.search_arguments(table.snapshot, q, k, column, options))

    def near_duplicates(
        self,
        column: str,
        threshold: float = 0.8,
        *,
        equal_texts: str = "all",
        filter: FilterLike | None = None,  # noqa: A002
    ) -> pa.Table:
        """Return pairs of rows whose texts are nearly equal.

        The similarity of two texts is the share of common shingles among all their shingles (Jaccard), where a shingle
        is a run of three words. It is exact, but not all pairs are compared: MinHash finds a pair of similarity 0.9
        almost always, 0.8 with a probability of 95 %, 0.7 with 61 %, and 0.5 with 6 %.

        Texts with the same shingles count as equal. Texts without a word have no pair.

        A MINHASHLSH index, which pylance builds, replaces the reading of texts that are not candidates. Its parameters
        then define shingles and probabilities.

        Args:
            column: A column of strings.
            threshold: Minimum similarity, above 0 and up to 1.
            equal_texts: "all" returns all pairs. With "first", equal texts are only paired with the first of them, the
                one with the smallest row id, and only the first is paired with other texts: 10,000 equal texts are
                9,999 pairs.
            filter: Only compare rows that pass this condition.

        Returns:
            Columns `left` and `right`, the row ids (uint64) with left < right, and `similarity` (float64), ordered by
            left and right. Each pair occurs once.

        Raises:
            InvalidInputError: The column does not exist, an argument is out of range, the filter is invalid, or there
                are more than 10 million pairs.
            UnsupportedError: The column does not contain strings.

        Warns:
            IndexWarning: A segment of the index is damaged. Its rows are read instead.
        """
        return duplicates.near_duplicates(self.handle.table, column, threshold, equal_texts, filter)

    def prepare_search(
        self, column: str | None = None, k: int = 10, **options: Unpack[SearchArguments]
    ) -> prepared.PreparedVectorSearch | prepared.PreparedTextSearch:
        """Prepare a search that you run with many queries, one at a time.

        `near = ds.prepare_search("vector", k=10, columns=["id"])` prepares it, and `near(q)` returns the rows that
        `ds.search(q, 10, "vector", columns=["id"])` returns. `near.ids(q)` returns only row ids and distances, as
        arrays. Each call searches the version that the dataset has at that time.

        With the name of a text column, queries are words, or queries from `lance_duck.query`, and `ids` returns scores.

        Args:
            column: Name of the vector or text column. Optional for a vector column if the table has only one.
            k: Number of rows per query.
            options: See `search`. A hybrid search cannot be prepared.

        Raises:
            InvalidInputError: An argument does not fit this table.
            UnsupportedError: An argument is not supported.
        """
        return prepared.prepared_search(self.handle, column, k, options)

    def prepare(
        self,
        filter: str,  # noqa: A002
        columns: ColumnsLike | None = None,
        **options: Unpack[CountArguments],
    ) -> prepared_filter.PreparedFilter:
        """Prepare a read of filtered rows that you run with many values.

        `one = ds.prepare("id = ?", columns=["name"])` prepares it, and `one(7)` returns the rows that
        `ds.to_table(["name"], filter="id = ?", parameters=[7])` returns. `one.rows(7)` returns them as tuples. Each
        call reads the version that the dataset has at that time. It is fastest for a number or a text in a column with
        a B-tree.

        Args:
            filter: Condition as SQL text, with `?` for each value.
            columns: See `scan`.
            options: See `scan`. Searches cannot be prepared in this way: see `prepare_search`.

        Raises:
            InvalidInputError: A column is unknown.
            UnsupportedError: An option is not supported.
        """
        given = {name: each for name, each in {**options, "columns": columns}.items() if each is not None}
        return prepared_filter.PreparedFilter(self.handle, filter, {**self._defaults, **given})

    def cache_stats(self) -> dict[str, int]:
        """Return the sizes of this dataset's caches in memory, in bytes.

        `indexes` is the size of open indexes, which all versions share. `columns` is the size of decoded columns.
        `prepared_searches` is the size of what prepared searches refer to, including open indexes.
        """
        table = self.handle.table
        return {
            "indexes": table.snapshot.shared_bytes(),
            "columns": table.taker.decoded.nbytes,
            "prepared_searches": prepared_base.prepared_bytes(self.handle),
        }
