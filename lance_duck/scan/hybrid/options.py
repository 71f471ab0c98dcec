"""The validated options of a hybrid search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.hybrid.mix import HybridMethod

WHERE: Final = "hybrid search"
ARGUMENTS: Final = ("method", "alpha", "oversample_factor")
_OVERSAMPLE: Final = 4
"""Number of candidates of each search per result row. DuckDB's `lance` extension has the same default."""


@dataclass(frozen=True)
class Hybrid:
    """Options for combining a vector search and a full-text search.

    Attributes:
        method: How distances and scores are combined into one score.
        oversample_factor: Number of candidates of each search, as a multiple of k.
        is_whole: Whether the result contains all candidates, for a reranker, instead of the k best.
    """

    method: HybridMethod
    oversample_factor: int = _OVERSAMPLE
    is_whole: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any] | Self | None) -> Self:
        """Validate the optional arguments `method` ("linear" or "rrf"), `alpha` and `oversample_factor`.

        Options that were validated before are returned unchanged.

        Raises:
            WrongTypeError: `values` is not a dict, contains an unknown name, or contains a value of the wrong type.
            InvalidInputError: A value is out of range.
        """
        if isinstance(values, cls):
            return values
        if values is not None and not isinstance(values, Mapping):
            raise WrongTypeError("hybrid", where="scan", expected="a dict", found=type(values).__name__)
        arguments = {name: value for name, value in (values or {}).items() if value is not None}
        refuse_unknown(arguments, ARGUMENTS, "hybrid")
        method, alpha = arguments.get("method", "linear"), arguments.get("alpha", 0.5)
        if not isinstance(method, str):
            raise WrongTypeError("method", where=WHERE, expected="a string", found=repr(method))
        if isinstance(alpha, bool | str) or not hasattr(alpha, "__float__"):
            raise WrongTypeError("alpha", where=WHERE, expected="a number, 0 to 1", found=repr(alpha))
        factor = arguments.get("oversample_factor", _OVERSAMPLE)
        return cls(HybridMethod(method, float(alpha)), at_least_one("oversample_factor", factor))


def at_least_one(name: str, value: Any) -> int:
    """Return a value after checking that it is an integer of at least 1.

    Raises:
        InvalidInputError: The value is not an integer, or is less than 1.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
        raise InvalidInputError(name, where=WHERE, expected="1 or more", found=repr(value))
    return int(value.__index__())
