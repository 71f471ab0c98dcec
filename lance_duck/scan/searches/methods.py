"""The method of a dataset that searches.

This is a mixin because `dataset.py` would otherwise exceed 500 lines.
"""

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
    """Mixin that searches a dataset."""

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
        """Search by vector, by words, or both, and return the rows best first.

        With `k` the result is a pyarrow Table. Without `k`, returns a builder, which can be refined before its rows are
        read: `ds.search(q).where("price < 9").select(["id"]).limit(3).to_list()`. It has all attributes and methods of
        a Table, and reads its rows when one is first used. See `LanceQueryBuilder`.

        For both searches in one, call `ds.search(vector, full_text_query="duck lake")`. Rows have `_distance` and
        `_score`, null if that search did not find the row, and `_hybrid_score`, computed from both.

        Args:
            q: A list, a numpy array or an Arrow array of numbers, or a matrix or list of lists for several queries.
                Rows have a `_distance`. Alternatively words, a query of `lance_duck.query` or its JSON form. Matching
                rows have a `_score`, and other rows are left out. None, without `k`, starts a scan, or a search defined
                by methods of the result.
            k: Number of rows per query. None derives it from `limit` and `offset`, or uses 10.
            column: Name of the vector or text column. Optional if the table has only one, or for words, only one
                full-text index.
            options: Other arguments of `scanner` (columns, filter, prefilter, …), and of `nearest` (metric, recall,
                nprobes, ef, refine_factor, use_index, exact_distance, distance_range, …). For both searches in one,
                `method`: "linear", the sum of both measures, scaled to 0 … 1, with `alpha` (0.5) as the weight of the
                vector, or "rrf", the sum of inverse ranks; and `oversample_factor`: candidates of each search, as a
                multiple of k (4).

        Raises:
            InvalidInputError: An argument does not fit this table.
        """
        table = self.handle.table
        if k is None:
            return builder.LanceQueryBuilder(table, q, column, options)
        return request.read_table(table, request.search_arguments(table.snapshot, q, k, column, options))
