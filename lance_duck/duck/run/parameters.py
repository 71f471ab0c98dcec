"""Parameter values of a statement, and the number lists extracted from its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.duck.rules.order_by_distance import DistanceParameter
from lance_duck.duck.rules.table_read import Condition, Key
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.placeholders import LISTED


class ParameterValues:
    """Values for a run of a statement.

    Args:
        lists: Number lists from the text (see `LiftedText`).
        bound: Values in DuckDB's forms: by position or by name.
    """

    def __init__(self, lists: Sequence[str], bound: Any) -> None:
        self.lists = lists
        self.bound = bound

    def value(self, key: Key) -> Any:
        """Return the value of a parameter. Names are compared without case, as in DuckDB.

        Raises:
            NotFoundHere: The parameter is not bound.
        """
        bound = self.bound
        if isinstance(bound, Mapping):
            names = [name for name in bound if folded(str(name)) == folded(str(key))]
            if names:
                return bound[str(key) if str(key) in names else names[0]]
        positional = isinstance(bound, Sequence) and not isinstance(bound, str | bytes)
        if positional and isinstance(key, int) and 0 < key <= len(bound):
            return bound[key - 1]
        raise NotFoundHere("a parameter is missing")

    def values(self, keys: Sequence[Key]) -> list[Any]:
        """Return the values of parameters. Raises NotFoundHere if a value is missing."""
        return [self.value(key) for key in keys]

    def values_of(self, condition: Condition | None) -> list[Any]:
        """Return the values of the parameters of a condition. Raises NotFoundHere if a value is missing."""
        return [] if condition is None else self.values(condition.keys)

    def number(self, number: int | DistanceParameter) -> int:
        """Return the value of a LIMIT or OFFSET.

        Raises:
            NotFoundHere: The value is not a valid row count.
        """
        value = self.value(number.key) if isinstance(number, DistanceParameter) else number
        if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
            raise NotFoundHere("no number of rows")
        return int(value.__index__())

    def vector(self, key: Key) -> NDArray[np.float64]:
        """Return the numbers of a parameter, or of a list in the text.

        Raises:
            NotFoundHere: The value is not a vector.
        """
        try:
            if isinstance(key, str) and key.startswith(LISTED):
                text = self.lists[int(key.removeprefix(LISTED))]
                return np.array([float(part) for part in text.strip("[]").split(",")], np.float64)
        except (ValueError, TypeError) as error:
            raise NotFoundHere("no vector of numbers") from error
        return vector_numbers(self.value(key))


def vector_numbers(value: Any) -> NDArray[np.float64]:
    """Return the numbers of a parameter value or query result.

    Raises:
        NotFoundHere: The value is not a vector.
    """
    if isinstance(value, str | bytes):
        raise NotFoundHere("a text")
    try:
        return np.asarray(value, np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotFoundHere("no vector of numbers") from error
