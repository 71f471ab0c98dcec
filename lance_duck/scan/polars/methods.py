"""The dataset method that returns a polars LazyFrame.

This is a mixin because `dataset.py` would otherwise exceed 500 lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError, UnsupportedError, install_extra
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.table_scan import HasTable

if TYPE_CHECKING:
    import polars as pl

if TYPE_CHECKING:
    from lance_duck.scan.polars import source
else:
    source = lazy.modules(globals(), "lance_duck.scan.polars", "source")


@checked_calls
class PolarsFrames:
    """Mixin that returns a dataset's table version as a LazyFrame."""

    handle: HasTable

    def to_polars(
        self,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
    ) -> pl.LazyFrame:
        """Return this version of the table as a polars LazyFrame. No data is read before it is collected.

        `ds.to_polars().filter(pl.col("x") > 3).select("id").head(10).collect()` reads only columns `id` and `x`, and
        stops after 10 rows. If `x` has an index, the index finds the rows. The scan evaluates comparisons with
        constants, `is_in`, `is_between`, `is_null`, `is_nan`, `starts_with`, `ends_with`, `contains` with a plain
        string, and combinations of these with `&`, `|` and `~`. polars evaluates the remaining filter.

        Args:
            columns: Names of the columns of the frame, which may include hidden columns. None selects all table
                columns.
            filter: Condition that selects the rows of the frame: see `scanner`. None selects all rows.

        Raises:
            UnsupportedError: polars is not installed, or does not support a column's type.
            InvalidInputError: A column is unknown, or the filter is invalid.
        """
        if isinstance(columns, Mapping):
            remedy = "LazyFrame.with_columns computes them"
            raise InvalidInputError("columns", where="to_polars", expected="names", found="expressions", remedy=remedy)
        table = self.handle.table if filter is None else self.handle.table.restricted(filter)
        try:
            import polars  # noqa: F401
        except ImportError as error:
            remedy = f"pip install polars, or {install_extra('polars')}"
            raise UnsupportedError("polars is not installed", where="to_polars", remedy=remedy) from error
        return source.lazy_frame(table, None if columns is None else tuple(columns))
