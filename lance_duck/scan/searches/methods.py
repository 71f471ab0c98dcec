"""The method of a dataset that searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.scan.arguments import SearchArguments
from lance_duck.scan.table_scan import HasTable

if TYPE_CHECKING:
    from lance_duck.scan.searches import builder, request
else:
    builder, request = lazy.modules(globals(), "lance_duck.scan.searches", "builder", "request")


@checked_calls
class Searches:
    """Searches the table that the handle of a dataset is on; a mixin."""

    handle: HasTable

    @overload
    def search(self, q: Any, k: int, column: str | None = None, **options: Unpack[SearchArguments]) -> pa.Table: ...

    @overload
    def search(
        self, q: Any = None, k: None = None, column: str | None = None, **options: Unpack[SearchArguments]
    ) -> builder.LanceQueryBuilder: ...

    def search(
        self, q: Any = None, k: int | None = None, column: str | None = None, **options: Unpack[SearchArguments]
    ) -> pa.Table | builder.LanceQueryBuilder:
        """Return the rows nearest to a query vector, nearest first, those that match words, or both, the best first.

        With `k` they are a pyarrow Table. Without, they are read when they are first asked for, and more can be said
        before: `ds.search(q).where("price < 9").select(["id"]).limit(3).to_list()`; until then the result stands for
        the table: it has all its attributes and methods, its length, columns and rows. See `LanceQueryBuilder`.

        Both searches in one: `ds.search(vector, full_text_query="duck lake")`. Rows have `_distance` and `_score`, null
        where that search did not find them, and `_hybrid_score`, made of both.

        Args:
            q: A list, a numpy array or an Arrow array of numbers; a matrix, or a list of lists, for several queries.
                Rows have their `_distance`. Or words, a query of `lance_duck.query` or its JSON form: rows have their
                `_score`, and rows that do not match are left out. None, without `k`: a scan, or what the methods of
                the result say.
            k: Rows for each query; None: as many as `limit` and `offset` ask for, or 10.
            column: The vectors, or the texts; may be left out where the table has one column of vectors, or for words
                where it has one of texts, or a full-text index.
            options: What else `scanner` takes (columns, filter, prefilter, …) and what `nearest` does (metric, recall,
                nprobes, ef, refine_factor, use_index, exact_distance, distance_range, …). Of both searches in one, how
                their measures become one score: `method`, "linear" (each scaled to 0 … 1, weighed by `alpha`, the share
                of the vector: 0.5) or "rrf" (inverse ranks added up), and `oversample_factor`: each search finds so
                many times k candidates (4).

        Raises:
            InvalidInputError: What was asked makes no sense for this table.
        """
        table = self.handle.table
        if k is None:
            return builder.LanceQueryBuilder(table, q, column, options)
        return request.read_table(table, request.search_arguments(table.snapshot, q, k, column, options))
