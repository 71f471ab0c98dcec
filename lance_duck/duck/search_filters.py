"""The filters behind the `filter` argument of the search functions.

A text that `pushdown` writes may refer to Python values: parameters of the statement, or rows that DuckDB has found.
The text then ends with the number of these values.

    ("label" = ?) /*__lance_values_7*/
    __lance_rows_8
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import FilterLike, TreeFilter, all_filters, make_filter
from lance_duck.scan.predicate.tree import In
from lance_duck.scan.projection import ROW_ADDRESS

_KEPT: Final = 1024
_VALUES: Final = re.compile(r"(.*) /\*__lance_values_(\d+)\*/\Z", re.DOTALL)
_ROWS: Final = re.compile(r"(?:(.*) AND )?__lance_rows_(\d+)\Z", re.DOTALL)
_NUMBERS: Final = count()


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Rows of a version that satisfy a condition.

    Attributes:
        state: State of the table to which the rows belong: see `Snapshot.state`.
        addresses: Row addresses, as uint64.
    """

    state: Hashable
    addresses: pa.Array


class SearchFilters:
    """Python values to which the text of a filter refers. The most recent 1024 are kept."""

    def __init__(self) -> None:
        self._values: LruCache[Sequence[Any]] = LruCache(_KEPT)
        self._rows: LruCache[ChosenRows] = LruCache(_KEPT)

    def with_values(self, condition: str, values: Sequence[Any]) -> str:
        """Return the text of a condition whose `?` have these values."""
        if not values:
            return condition
        number = next(_NUMBERS)
        self._values.put(number, list(values))
        return f"{condition} /*__lance_values_{number}*/"

    def with_rows(self, rows: ChosenRows) -> str:
        """Return text that stands for rows."""
        number = next(_NUMBERS)
        self._rows.put(number, rows)
        return f"__lance_rows_{number}"

    def filter(self, text: str | None, dataset: LanceDataset) -> FilterLike | None:
        """Return the filter for the text of an argument.

        Raises:
            InvalidInputError: The rows belong to a different version of the table, or the values are gone.
        """
        if text is None:
            return None
        if (match := _VALUES.match(text)) is not None:
            return match[1], self._known(self._values.find(int(match[2])))
        if (match := _ROWS.match(text)) is None:
            return text
        rows = self._known(self._rows.find(int(match[2])))
        if rows.state != dataset.handle.snapshot.state:
            raise InvalidInputError(
                "the table has changed since WHERE was evaluated",
                where=dataset.uri,
                remedy="run the statement again",
            )
        chosen = TreeFilter(In((ROW_ADDRESS,), rows.addresses))
        return all_filters(make_filter(match[1], dataset.schema), chosen)

    @staticmethod
    def _known(values: Any) -> Any:
        if values is None:
            raise InvalidInputError("the values of the condition are gone", remedy="run the statement again")
        return values
