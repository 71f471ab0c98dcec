"""Filtered reads that are prepared once, and run with many values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.searches.key_lookup import KeyLookup, bound_column
from lance_duck.scan.searches.prepared_base import Prepared
from lance_duck.scan.searches.request import cached_lookup, scanned
from lance_duck.scan.sql.tokens import tokens
from lance_duck.scan.table_scan import HasTable, TableScan
from lance_duck.telemetry.metrics import ROWS_RETURNED

_WHERE: Final = "prepare"
_REFUSED: Final = ("parameters", "nearest", "full_text_query", "hybrid", "rerank")
_MARKS: Final = ("param", "params")


class _FilterVersion:
    """The lookup of rows in one version of the table. None if a scan finds them."""

    def __init__(self, table: TableScan, lookup: KeyLookup | None) -> None:
        self.table = table
        self.lookup = lookup

    @property
    def nbytes(self) -> int:
        """Size of the segment of the lookup, in bytes."""
        return 0 if self.lookup is None else self.lookup.nbytes


@checked_calls
class PreparedFilter(Prepared[_FilterVersion]):
    """A prepared read of filtered rows, from `LanceDataset.prepare`. Safe to use from several threads and after a fork.

    Each call reads the version that the dataset has at that time.

    As a context manager, it is closed at the end of the block.
    """

    def __init__(self, handle: HasTable, text: str, arguments: Mapping[str, Any]) -> None:
        if not isinstance(text, str):
            raise WrongTypeError("filter", where=_WHERE, expected="SQL text", found=type(text).__name__)
        for name in _REFUSED:
            if arguments.get(name) is not None:
                raise UnsupportedError(f"{name} is not supported", where=_WHERE)
        super().__init__(handle, text, _WHERE)
        self._arguments = {**arguments, "filter": text}
        self._column = bound_column(text)
        self._count = _number_of_marks(text)
        handle.table.plan(ScanOptions.of({**arguments, "filter": None if self._count else text}))
        self._start()

    def __call__(self, *values: Any) -> pa.Table:
        """Return the rows that pass the filter, like `LanceDataset.to_table`.

        Args:
            values: A value for each `?` of the filter, in order.

        Raises:
            InvalidInputError: The number of values is wrong, or the filter is invalid.
        """
        if len(values) != self._count:
            raise InvalidInputError("number of values", where=_WHERE, expected=self._count, found=len(values))
        version = self._version()
        rows = None if version.lookup is None else version.lookup.rows(values)
        if rows is None:
            return scanned(version.table, {**self._arguments, "parameters": list(values) if values else None})
        ROWS_RETURNED.add(by=rows.num_rows)
        return rows

    def rows(self, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that pass the filter as tuples of Python values. See `__call__`."""
        table = self(*values)
        if not table.num_columns:
            return [()] * table.num_rows
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _made(self, table: TableScan) -> _FilterVersion:
        column = self._column
        return _FilterVersion(table, None if column is None else cached_lookup(table, column, self._arguments))


def _number_of_marks(text: str) -> int:
    """Return the number of question marks that stand for values.

    Raises:
        UnsupportedError: The text has a named parameter.
    """
    marks = "".join(token.text for token in tokens(text) if token.kind in _MARKS)
    if "$" in marks:
        raise UnsupportedError("named parameters are not supported", where=_WHERE, remedy="write a ? for each value")
    return marks.count("?")
