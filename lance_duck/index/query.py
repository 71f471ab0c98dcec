"""Index queries: conditions on the values of one column.

`scan.predicate.tree` defines the semantics. NaN equals NaN and is greater than every other float, and -0.0 equals 0.0.
A null satisfies only `Null`, and never `Except`. Callers handle three-valued logic by pushing NOT down to the single
conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa


@dataclass(frozen=True)
class Between:
    """The value is within a range.

    Attributes:
        low: Lower bound in the storage type of the column, never null. None if unbounded.
        high: Upper bound in the storage type of the column, never null. None if unbounded.
        low_open: Whether the range excludes its lower bound.
        high_open: Whether the range excludes its upper bound.
    """

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    low_open: bool = False
    high_open: bool = False

    def __str__(self) -> str:
        low = "" if self.low is None else f"{self.low} {'<' if self.low_open else '<='} "
        high = "" if self.high is None else f" {'<' if self.high_open else '<='} {self.high}"
        return f"{low}value{high}"


@dataclass(frozen=True, eq=False)
class Among:
    """The value equals one of the given values: = and IN.

    Attributes:
        values: The values, in the storage type of the column, without nulls, in any order.
    """

    values: pa.Array

    def __str__(self) -> str:
        examples = ", ".join(str(v) for v in self.values[:8])
        suffix = f", … {len(self.values)} in all" if len(self.values) > 8 else ""
        return f"value in ({examples}{suffix})"


@dataclass(frozen=True)
class Null:
    """The value is null."""

    def __str__(self) -> str:
        return "value is null"


@dataclass(frozen=True)
class HasPrefix:
    """The string or binary value begins with a prefix, which may be empty: LIKE 'prefix%', starts_with."""

    prefix: pa.Scalar

    def __str__(self) -> str:
        return f"value starts with {self.prefix}"


@dataclass(frozen=True, eq=False)
class ContainsAny:
    """The list contains at least one of the values: array_has, array_has_any. False without values.

    Attributes:
        values: The values, in the storage type of the items, without nulls.
    """

    values: pa.Array

    def __str__(self) -> str:
        return f"list has any of {len(self.values)}"


@dataclass(frozen=True, eq=False)
class ContainsAll:
    """The list contains all of the values: array_has_all. Without values, true for every list that is not null.

    Attributes:
        values: The values, in the storage type of the items, without nulls.
    """

    values: pa.Array

    def __str__(self) -> str:
        return f"list has all of {len(self.values)}"


@dataclass(frozen=True)
class ContainsTrigrams:
    """The string contains all trigrams of some words, ignoring case and accents. See `text.trigrams`.

    Attributes:
        words: The words, each of at least three characters: letters a to z and digits.
    """

    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"value has the trigrams of {', '.join(map(repr, self.words))}"


@dataclass(frozen=True)
class Overlaps:
    """The bounding box of the geometry has a point in common with a box. False for geometries without points.

    Attributes:
        xmin, ymin, xmax, ymax: Sides of the box, in the units of the column.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    def __str__(self) -> str:
        return f"box overlaps ({self.xmin:g} {self.ymin:g}, {self.xmax:g} {self.ymax:g})"


@dataclass(frozen=True)
class Except:
    """The value is not null and does not satisfy a condition. `Except(Null())` is IS NOT NULL."""

    query: Between | Among | Null | HasPrefix | ContainsAny | ContainsAll | ContainsTrigrams

    def __str__(self) -> str:
        return f"not ({self.query})"


Query: TypeAlias = Between | Among | Null | HasPrefix | ContainsAny | ContainsAll | ContainsTrigrams | Overlaps | Except
